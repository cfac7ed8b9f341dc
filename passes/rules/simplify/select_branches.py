"""The rule `select-branches`: an If becomes both of its branches, and a choice."""

from __future__ import annotations

from onnx import TensorProto

from passes.analysis.bodies.body_types import are_shapes_proven
from passes.analysis.bodies.value_numbers import Numbering
from passes.analysis.safety.randomness import first_random
from passes.ir import scope as scoping
from passes.ir.graph_index import GraphIndex
from passes.ir.operators import op_of
from passes.operators.element_types import runs
from passes.rule import Edit, Refused, Site, nodes_of, register
from passes.rules.simplify.inlining import InferredBranch, chosen, unpacked
from passes.types.value_types import elem_type_of
from passes.writing import spelling
from passes.writing.author import Author


@register("select-branches", considers=nodes_of("If"), optional=True)
def select_branches(site: Site) -> Edit:
    """Run both branches of an If, and select the outputs of the one that it takes.

    Before:

        y, z = If (c) <then_branch = a () => (int64[2] p, float[2] r) { p = Neg (n) r = Exp (x) },
                       else_branch = b () => (int64[2] q, float[2] s) { q = Abs (n) s = Exp (x) }>

    After:

        p = Neg (n)
        q = Abs (n)
        y = Where (c, p, q)
        z = Exp (x)

    Both branches must be proven to fail on no value, for the one that is not taken runs, too: no
    integer is divided by what may be 0, no index is out of range, all shapes fit, and no loops or
    branches are in them. An op that is never reached fails on inputs that are valid, so that
    `--assume valid-inputs` only lets each symbol mean one size. Each output must be a tensor
    that is proven to have one shape in both branches, whatever these declare. In the body of a
    Loop, the shapes of carried values must follow from what is outside.

    NaN and infinities of the branch that is not taken do not get through. Where onnxruntime's
    Where lacks a type, or would turn -0.0 into 0.0, as with floats, a Gather takes the output from
    a list of both. An output that both branches compute alike is computed once.

    Refuses:
    - `may-fail`: a node of a branch could fail where the branch is not taken, or holds a body
    - `random`: a node of a branch draws random numbers
    - `may-differ`: an output is not proven to have one type and shape in both branches
    - `not-a-tensor`: an output is a sequence or an optional, or of strings before opset 9
    - `shape-may-change`: a Loop around the If may change the shapes of what it carries
    """
    if not are_shapes_proven(site):
        raise site.refused(
            "shape-may-change",
            "the shapes that the branches read are not proven: a Loop around them may change them",
        )
    branches = {
        part: InferredBranch.seen(site, graph, part) for part, graph in scoping.subgraphs(site.node)
    }
    for branch in branches.values():
        _check_nodes(branch)
    choice = _Choice(site, branches["then_branch"], branches["else_branch"])
    elem_types = [
        choice.elem_type(position) if name else 0 for position, name in enumerate(site.node.output)
    ]
    author = Author.at(site, "if")
    bodies = [unpacked(site, part, author) for part in ("then_branch", "else_branch")]
    indices = [GraphIndex(body.graph) for body in bodies]
    condition = spelling.scalar(author, site.node.input[0], site.type_of(site.node.input[0]))
    returned = zip(*(scoping.output_names(body.graph) for body in bodies), strict=True)
    for position, ((new, old), output) in enumerate(zip(returned, site.node.output, strict=True)):
        if not output:
            continue
        new, old = indices[0].source(new), indices[1].source(old)
        if choice.is_alike(position):
            author.op("Identity", new, outputs=[output])
        else:
            spelling.select(author, condition, new, old, elem_types[position], [output])
    return chosen(site, bodies, author, "both branches")


def _check_nodes(branch: InferredBranch) -> None:
    """Check that all nodes of a branch may run where it is not taken.

    Raises:
        Refused: `random`, `may-fail`.
    """
    site = branch.site
    for node in branch.graph.node:
        what = f"{op_of(node)} {list(node.output)}"
        if first_random(site.model, [node]) is not None:
            raise site.refused("random", f"{what} draws random numbers", *node.output)
        if not branch.cannot_fail(node):
            raise site.refused(
                "may-fail",
                f"{what} could fail where the branch is not taken",
                *filter(None, node.output),
            )


class _Choice:
    """The outputs of the two branches."""

    def __init__(self, site: Site, then: InferredBranch, other: InferredBranch) -> None:
        self.site, self.branches = site, (then, other)
        numbers = Numbering(then.graph)
        self._numbers = numbers, Numbering(other.graph, beside=numbers)
        self._returned = [scoping.output_names(branch.graph) for branch in self.branches]

    def is_alike(self, position: int) -> bool:
        """Return whether both branches compute an output from the same values by the same nodes."""
        names = (returned[position] for returned in self._returned)
        first, second = (
            numbers.of(name) for numbers, name in zip(self._numbers, names, strict=True)
        )
        return first == second

    def elem_type(self, position: int) -> int:
        """The element type of an output.

        Raises:
            Refused: `not-a-tensor`, `may-differ`.
        """
        names = [returned[position] for returned in self._returned]
        pairs = list(zip(self.branches, names, strict=True))
        kinds = {elem_type_of(branch.type_of(name)) for branch, name in pairs}
        output, elem_type = self.site.node.output[position], min(kinds)
        known = self.site.type_of(output)
        if known is not None and not known.HasField("tensor_type"):
            raise self._refused("not-a-tensor", f"{output!r} is no tensor", output)
        if self.is_alike(position):
            return elem_type
        selects = runs("Where", self.site.target, TensorProto.STRING)
        if elem_type == TensorProto.STRING and not selects:
            raise self._refused("not-a-tensor", f"{output!r} holds strings", output)
        shapes = [branch.dims_of(name) for branch, name in pairs]
        proven = all(branch.has_sizes(name) for branch, name in pairs)
        if not proven or shapes[0] != shapes[1] or len(kinds) > 1 or not elem_type:
            raise self._refused(
                "may-differ", f"{output!r} is not proven to have one shape in both branches", output
            )
        return elem_type

    def _refused(self, code: str, sentence: str, name: str) -> Refused:
        return self.site.refused(code, sentence, name)
