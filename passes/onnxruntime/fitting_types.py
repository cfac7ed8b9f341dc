"""Element types that an operator does not take, or that onnxruntime has no kernel for, in nodes
that a rewrite writes: another spelling that is taken, or a refusal, before the model is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper

from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.ir.repeated import replace_all
from passes.ir.versions import SCAN_8
from passes.onnxruntime.element_types import Need, given_and_needed, needs_of, signature, wider
from passes.rule import Edit, Refused, Site
from passes.types.value_types import elem_type_of
from passes.writing.author import Author

_NO_INFINITY = (
    TensorProto.FLOAT8E5M2
)  # a Cast to it makes numbers of infinities, unless told not to


def with_fitting_types(site: Site, edit: Edit) -> Edit:
    """An Edit whose nodes take the types that they get, by Casts to and from a wider type.

    Nodes that the site had before stay as they are; and where no onnxruntime has a kernel for one
    of them, it needs none for the new ones, either.

    Raises:
        Refused: `type-not-taken`: a node does not take its types, and there is no other spelling.
    """
    constants = {one.name: one.data_type for one in edit.initializers}

    def known(name: str) -> int:
        return constants.get(name) or elem_type_of(site.type_of(name))

    needs = _Scope(site.target, known).needs(edit.nodes)
    if not needs:
        return edit
    owner = site.scope.owner
    gone = [owner.node[at] for at in sorted({site.place.index, *edit.covered})]

    def had(*, surely: bool = False) -> Iterator[Need]:
        for nodes in ([*edit.context, *gone], [site.node]):  # whose bodies may be new
            yield from _Scope(site.opset, known, surely=surely).needs(nodes)

    fitting = _Fitting(
        site,
        kept=frozenset((need.op, need.elem_type) for need in had()),
        called=frozenset(_called(site)),
        runs=not any(need.elem_type in need.formal.always_lacked for need in had(surely=True)),
    )
    if not any(map(fitting.objects, needs)):
        return edit
    results = {name for node in (*gone, site.node) for name in node.output}
    author = Author(site.target, site.names, site.node.name or op_of(site.node).lower())
    nodes = _Level(fitting, _Scope(site.target, known), author).fitted(edit.nodes, results)
    return replace(edit, nodes=tuple(nodes))


@dataclass
class _Scope:
    """The element types of what one graph defines, as far as they show, and of what is around.

    What is `surely` needed leaves out what onnxruntime may run without a kernel for the types: an
    If with its branches (it may be inlined), an Identity (removed), a loop (the first of its
    values alone is looked at).
    """

    opset: int
    outer: Callable[[str], int]
    in_body: bool = False
    surely: bool = False
    types: dict[str, int] = field(default_factory=dict)

    def of(self, name: str) -> int:
        """The type of a value, 0 where it is unknown."""
        return self.types[name] if name in self.types else self.outer(name)

    def needs(self, nodes: Iterable[NodeProto]) -> frozenset[Need]:
        """What nodes need that there is not, in their bodies too."""
        return frozenset(need for node in nodes for need in self.read(node))

    def read(self, node: NodeProto) -> frozenset[Need]:
        """What a node needs that there is not; the types of its outputs are known from then on."""
        inputs = [self.of(name) if name else 0 for name in node.input]
        if not scoping.holds_graphs(node):
            given, found = given_and_needed(node, self.opset, inputs)
            self._define(node, given)
            return frozenset() if self.surely and op_of(node) == "Identity" else found
        given, found = [], frozenset()
        for _, graph in scoping.subgraphs(node):
            inner = self.inside(node, graph)
            found |= inner.needs(graph.node)
            given = [inner.of(value.name) for value in graph.output]
        given = given[1:] if op_of(node) == "Loop" else given
        self._define(node, given)
        if self.surely and op_of(node) == "If":
            return frozenset()
        if self.surely:
            first = [*inputs[_LOOP_STATES * (op_of(node) == "Loop") :], *given][:1]
            return found | needs_of(op_of(node), self.opset, [], first)
        return found | needs_of(op_of(node), self.opset, inputs, given)

    def _define(self, node: NodeProto, given: Sequence[int]) -> None:
        """Note what a node gives; what its names meant before shows where that does not."""
        for name, elem_type in zip(node.output, given, strict=False):
            self.types[name] = elem_type or (0 if self.in_body else self.outer(name))

    def inside(self, node: NodeProto, graph: GraphProto) -> _Scope:
        """The scope of a body, before its nodes are read."""
        inner = _Scope(self.opset, self.of, in_body=True, surely=self.surely)
        op = op_of(node)
        fed: Sequence[str] = node.input if op in ("Loop", "Scan") else ()
        shift = 1 if op == "Scan" and self.opset == SCAN_8 else 0
        for position, value in enumerate(graph.input):
            at = position + shift
            feeds = at < len(fed) and (op == "Scan" or position >= _LOOP_STATES)
            said = elem_type_of(value.type)
            inner.types[value.name] = said or (self.of(fed[at]) if feeds else 0)
        for tensor in graph.initializer:
            inner.types[tensor.name] = tensor.data_type
        return inner


_LOOP_STATES = 2  # inputs of a Loop's body in front of what it carries


def _called(site: Site) -> Iterator[str]:
    """Ops of functions, whose bodies may come to stand in the place of a call."""
    for function in site.model.proto.functions:
        for graph in scoping.graphs_below(function):
            yield from map(op_of, graph.node)


@dataclass(frozen=True)
class _Fitting:
    """What nodes of an Edit may need: what was `kept` from before and, where the site's own nodes
    did not `run` in onnxruntime, or functions are `called`, the kernels that it lacks."""

    site: Site
    kept: frozenset[tuple[str, int]]
    called: frozenset[str]
    runs: bool

    def objects(self, need: Need) -> bool:
        """Whether there has to be another spelling."""
        if (need.op, need.elem_type) in self.kept:
            return False
        return not need.is_lacked or (self.runs and need.op not in self.called)

    def refusal(self, node: NodeProto, need: Need) -> Refused:
        """Why there is none."""
        name = TensorProto.DataType.Name(need.elem_type).lower()
        opset = self.site.target
        lacks = f"onnxruntime has no kernel for {op_of(node)} of {name}"
        invalid = f"{op_of(node)} takes no {name} at opset {opset}"
        return Refused(
            "type-not-taken",
            f"{lacks if need.is_lacked else invalid}, which the rewrite needs for "
            f"{[name for name in node.output if name]}, and there is no other spelling",
            [self.site.path],
        )


@dataclass
class _Level:
    """Writes the nodes of one graph anew.

    `wide` are wider twins of values, by name and type; `narrow` what is made of such twins.
    """

    fitting: _Fitting
    scope: _Scope
    author: Author
    around: _Level | None = None
    wide: dict[tuple[str, int], str] = field(default_factory=dict)
    narrow: set[str] = field(default_factory=set)

    def fitted(self, nodes: Iterable[NodeProto], results: Iterable[str]) -> list[NodeProto]:
        """The nodes with Casts, but for those whose result is none of `results` and not read."""
        for node in nodes:
            needs = [need for need in self.scope.read(node) if self.fitting.objects(need)]
            if needs and scoping.holds_graphs(node):
                self._around(node, needs)
            elif needs:
                self._through(node, needs)
            else:
                self.author.adopt([node])
        made = self.author.nodes
        idle = self.narrow.difference(results, scoping.all_reads(made))
        return [node for node in made if idle.isdisjoint(node.output)]

    def _around(self, node: NodeProto, needs: Sequence[Need]) -> None:
        """Write a node in whose bodies there are needs; its own have no other spelling."""
        for need in needs:
            if need.op == op_of(node):
                raise self.fitting.refusal(node, need)
        copy = NodeProto()
        copy.CopyFrom(node)
        for _, graph in scoping.subgraphs(copy):
            inner = self.author.inside(self.author.prefix)
            level = _Level(self.fitting, self.scope.inside(node, graph), inner, self)
            replace_all(graph.node, level.fitted(list(graph.node), scoping.output_names(graph)))
        self.author.adopt([copy])

    def _through(self, node: NodeProto, needs: Sequence[Need]) -> None:
        """Write a node with wider types in the place of those that it does not take."""
        known = signature(op_of(node), self.scope.opset)
        assert known is not None
        casts: dict[str, tuple[int, int]] = {}
        for need in needs:
            variable = need.formal.variable
            wide = wider(op_of(node), self.scope.opset, need.elem_type, variable)
            if not wide:
                raise self.fitting.refusal(node, need)
            casts[variable] = need.elem_type, wide
        copy = NodeProto()
        copy.CopyFrom(node)
        for position, name in enumerate(node.input):
            formal = known.input(position)
            if name and formal is not None and formal.variable in casts:
                wide_input = self._widened(name, casts[formal.variable][1])
                if op_of(node) == "Shape":  # onnxruntime takes away a Cast in front of it
                    wide_input = self.author.op("Abs", wide_input)
                copy.input[position] = wide_input
        given: list[tuple[str, str, int]] = []
        for position, name in enumerate(node.output):
            formal = known.output(position)
            if name and formal is not None and formal.variable in casts:
                elem_type, wide = casts[formal.variable]
                twin = self.wide[name, wide] = self.author.fresh(f"{op_of(node).lower()}/wide")
                copy.output[position] = twin
                given.append((twin, name, elem_type))
        if op_of(node) == "ConstantOfShape":
            _widen_value(copy, *(wide for _, wide in casts.values()))
        self.author.adopt([copy])
        for twin, name, elem_type in given:
            self._cast(twin, elem_type, [name])
            self.narrow.add(name)

    def _widened(self, name: str, to: int) -> str:
        """The wider twin of a value, made where that is defined, once for all who read it."""
        if name not in self.scope.types and self.around is not None:
            return self.around._widened(name, to)
        if (name, to) not in self.wide:
            self.wide[name, to] = self._cast(name, to)
        return self.wide[name, to]

    def _cast(self, name: str, to: int, outputs: Sequence[str] = ()) -> str:
        if to == _NO_INFINITY:
            return self.author.op("Cast", name, outputs=outputs, to=to, saturate=0)
        return self.author.op("Cast", name, outputs=outputs, to=to)


def _widen_value(node: NodeProto, to: int) -> None:
    """Let a ConstantOfShape give a wider type."""
    (value,) = (one for one in node.attribute if one.name == "value")
    wide = numpy_helper.to_array(value.t).astype(helper.tensor_dtype_to_np_dtype(to))
    value.t.CopyFrom(numpy_helper.from_array(wide))
