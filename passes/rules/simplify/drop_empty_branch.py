"""The rule `drop-empty-branch`: removes an If whose other branch only handles empty inputs."""

from __future__ import annotations

from dataclasses import replace

from onnx import NodeProto, TensorProto

from passes.analysis.bodies.context import context_of
from passes.analysis.bodies.liveness import dead_after_rewrite
from passes.analysis.integers.affine import Atom
from passes.analysis.integers.computed import stands_in_loop
from passes.analysis.integers.integers import Integers
from passes.analysis.trip_count.trip_count import exceeding
from passes.choices import Assumption
from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.ir.versions import SOFTMAX_OF_ONE_AXIS
from passes.operators.table import traits_of
from passes.operators.traits import Work
from passes.rule import Edit, NothingToDo, Site, nodes_of, register
from passes.rules.simplify.inlining import InferredBranch, inlined
from passes.types.value_types import elem_type_of

#: Ops that only move data, of any size.
_MOVING = ("Concat", "Gather", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze")


def runs_on_empty(level: InferredBranch, node: NodeProto) -> bool:
    """Return whether a node runs on the empty values of the branch, according to its document.

    onnxruntime returns another shape from a reducer with a negative axis, and does not transpose
    empty strings; onnx's reference does not flatten empty tensors.
    """
    kinds = {elem_type_of(level.type_of(name)) for name in (*node.input, *node.output) if name}
    if kinds & {0, TensorProto.STRING}:
        return False
    traits = traits_of(node)
    known = traits.by_element or traits.work is Work.FREE or op_of(node) in _MOVING
    if op_of(node) in ("MatMul", "Gemm"):
        known = _multiplies(level, node)
    if op_of(node) in ("LogSoftmax", "Softmax"):
        known = level.site.opset >= SOFTMAX_OF_ONE_AXIS
    return known and level.cannot_fail(node)


def is_removable(level: InferredBranch, node: NodeProto) -> bool:
    """Return whether a node that is to go could not fail."""
    if op_of(node) == "ConstantOfShape":
        return level.has_sizes(node.output[0])
    return level.may_go(node)


def _multiplies(level: InferredBranch, node: NodeProto) -> bool:
    """Return whether a product is one with a matrix that is not empty."""
    left, right = (level.dims_of(name) for name in node.input[:2])
    if left is None or right is None or len(right) != 2 or len(left) < 2:
        return False
    return all(isinstance(size, int) and size for size in right)


@register("drop-empty-branch", considers=nodes_of("If"), optional=True)
def drop_empty_branch(site: Site) -> Edit:
    """Replace an If by its branch for non-empty inputs, if the other one is only for empty inputs.

    Before:

        some = Greater (T, zero)
        y = If (some) <then_branch = a () => (float[T,2] p) { p = Neg (x) },
                       else_branch = b () => (float[T,2] q) { q = ConstantOfShape (none) }>

    After, where T is the size of x, and `none` is 0, 2:

        y = Neg (x)

    The condition must compare a size, or a sum of sizes, with 0 by Greater, as `raise-loop`
    writes it. Where it does not hold, these sizes are 0, from which it must follow that both
    branches return tensors of the same sizes, without elements, and that no op of either branch
    can fail. Ifs that contain loops or branches stay, and so do those in the body of a Loop, whose
    values may change their shapes between iterations. With `--assume non-empty`, every If goes that
    compares a size of an input with 0.

    Refuses:
    - `may-differ`: it is not proven that both branches return the same for empty inputs
    - `may-fail`: an op of a branch could fail on empty inputs, or is not known to run on them
    """
    if _is_assumed(site):
        return _first(site, "no input is empty")
    zeros = _zeros(site)
    levels = [
        InferredBranch.seen(site, graph, part, zeros)
        for part, graph in scoping.subgraphs(site.node)
    ]
    some, none = sorted(levels, key=lambda level: level.scope.key[-1] != "then_branch")
    _check_same(site, some, none)
    for level, may_run in ((some, runs_on_empty), (none, is_removable)):
        for node in level.graph.node:
            if not may_run(level, node):
                what = f"{op_of(node)} {list(node.output)} could fail on empty inputs"
                raise site.refused("may-fail", what, *node.output)
    return _first(site, "for empty inputs, too")


def _first(site: Site, note: str) -> Edit:
    edit = inlined(site, "then_branch")
    covered = dead_after_rewrite(site, Integers(site), (), edit.nodes)
    return replace(edit, note=note, covered=covered, context=context_of(site))


def _is_assumed(site: Site) -> bool:
    """Return whether the user promised that the second branch is not taken."""
    found = exceeding(site) if site.assumes(Assumption.non_empty) else None
    if found is None or found[1].number != 0 or found[0].constant < 0 or not found[0].terms:
        return False
    inputs = scoping.input_names(site.model.proto.graph)
    sizes = [atom.tensor in inputs and atom.axis is not None for atom, _ in found[0].terms]
    return all(sizes) and all(times > 0 for _, times in found[0].terms)


def _zeros(site: Site) -> list[Atom]:
    """Return the sizes that are 0 when the second branch is taken.

    Raises:
        NothingToDo: it is taken elsewhere, a branch holds bodies, or the If is in a Loop.
    """
    graphs = [graph for _, graph in scoping.subgraphs(site.node)]
    holds_bodies = any(scoping.holds_graphs(node) for graph in graphs for node in graph.node)
    if holds_bodies or stands_in_loop(site.scope):
        raise NothingToDo
    found = exceeding(site)
    if found is None:
        raise NothingToDo
    count, bound = found
    if bound.number != 0 or count.constant or not count.terms or not count.at_least(0):
        raise NothingToDo
    return [atom for atom, _ in count.terms]


def _check_same(site: Site, some: InferredBranch, none: InferredBranch) -> None:
    """Check that both branches return empty tensors of the same sizes.

    Raises:
        Refused: `may-differ` where they may not.
    """
    pairs = zip(*(scoping.output_names(level.graph) for level in (some, none)), strict=True)
    for name, (some_name, none_name) in zip(site.node.output, pairs, strict=True):
        dims, others = some.dims_of(some_name), none.dims_of(none_name)
        kinds = {elem_type_of(some.type_of(some_name)), elem_type_of(none.type_of(none_name))}
        alike = dims is not None and None not in dims and dims == others and len(kinds) == 1
        if not alike or 0 not in (dims or ()):
            raise site.refused(
                "may-differ",
                f"{name!r} is not proven to be empty, and of the same shape in both branches, "
                "for empty inputs",
                name,
            )
