"""Element types that an operator does not take, or for which onnxruntime has no kernel, in nodes
that a rewrite writes: they are written in another form, or refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    NodeProto,
    TensorProto,
    helper,
    numpy_helper,
)

from passes.ir import scope as scoping
from passes.ir.attributes import attribute_proto, has_references
from passes.ir.operators import FunctionKey, called_key, function_key, op_of
from passes.ir.protos import copied, replace_all
from passes.ir.versions import SCAN_8
from passes.operators.element_types import (
    TypeNeed,
    held_types,
    needs_of,
    output_types_and_needs,
    signature,
    wider,
)
from passes.rule import Edit, Refused, Site, Slot
from passes.types.value_types import elem_type_of
from passes.writing.author import Author

_HELD: Slot[frozenset[int]] = Slot()


def _all_run(site: Site, edit: Edit) -> bool:
    """Return whether the nodes of an Edit take whatever type the model holds: a quick look, which
    infers no types."""
    held = site.memory.once(_HELD, lambda: held_types(site.model))
    types = held.union(tensor.data_type for tensor in edit.initializers)
    return all(
        not scoping.holds_graphs(node) and _runs_all(op_of(node), site.target, types)
        for node in edit.nodes
    )


@cache
def _runs_all(op: str, opset: int, types: frozenset[int]) -> bool:
    known = signature(op, opset)
    if known is None:
        return True
    formals = (*known.inputs, *known.outputs)
    single = all(
        len(formal.valid) <= 1 or types <= formal.valid - formal.lacked for formal in formals
    )
    return single and op not in _CHOOSING


#: They make tensors of types that the model may not hold yet.
_CHOOSING = ("Cast", "Constant", "ConstantOfShape")

_NO_INFINITY = (
    TensorProto.FLOAT8E5M2
)  # a Cast to it replaces infinities by numbers, unless its attribute forbids it


def with_fitting_types(site: Site, edit: Edit) -> Edit:
    """An Edit whose nodes support the types that they get, by Casts to and from a wider type.

    Nodes that the site had before stay as they are; and where no onnxruntime has a kernel for one
    of them, the new ones need none, either.

    On the way down to an older opset, where no release of onnxruntime was named, what lacks a
    kernel and has no other form is written all the same.

    Raises:
        Refused: `type-not-taken`: a node does not support its types, and there is no other form.
    """
    if _all_run(site, edit):
        return edit
    constants = {tensor.name: tensor.data_type for tensor in edit.initializers}

    def known(name: str) -> int:
        return constants.get(name) or elem_type_of(site.type_of(name))

    functions = {function_key(function): function for function in site.model.proto.functions}
    needs = _Scope(site.target, known, functions).needs(edit.nodes)
    if not needs:
        return edit
    owner = site.scope.owner
    gone = [owner.node[position] for position in sorted({site.place.index, *edit.covered})]

    def had(*, surely: bool = False) -> Iterator[TypeNeed]:
        for nodes in ([*edit.context, *gone], [site.node]):  # whose bodies may be new
            scope = _Scope(site.opset, known, functions, calls_count=True, surely=surely)
            yield from scope.needs(nodes)

    fitting = _Fitting(
        site,
        kept=frozenset((need.op, need.elem_type, need.is_lacked) for need in had()),
        runs=not any(need.elem_type in need.formal.always_lacked for need in had(surely=True)),
    )
    if not any(map(fitting.objects, needs)):
        return edit
    results = {name for node in (*gone, site.node) for name in node.output}
    author = Author.at(site)
    nodes = _Level(fitting, _Scope(site.target, known, functions), author).fitted(
        edit.nodes, results
    )
    return replace(edit, nodes=tuple(nodes))


@dataclass
class _Scope:
    """The element types of what one graph defines, as far as they are known, and of what is around.

    With `calls_count`, a call has the needs of its function, whose nodes may take its place. With
    `surely`, needs are left out that onnxruntime may do without: those of an
    If with its branches (it may be inlined), an Identity (removed), a loop (only the first of its
    values is checked). An Identity of what the same graph computes is removed in any case;
    one of an outer value may be what a body returns, and stays.
    """

    opset: int
    outer: Callable[[str], int]
    functions: Mapping[FunctionKey, FunctionProto]
    in_body: bool = False
    calls_count: bool = False
    surely: bool = False
    types: dict[str, int] = field(default_factory=dict)
    computed: set[str] = field(default_factory=set)

    def of(self, name: str) -> int:
        """The type of a value, 0 where it is unknown."""
        return self.types[name] if name in self.types else self.outer(name)

    def needs(self, nodes: Iterable[NodeProto]) -> frozenset[TypeNeed]:
        """The needs of nodes, in their bodies too."""
        return frozenset(need for node in nodes for need in self.read(node))

    def read(self, node: NodeProto) -> frozenset[TypeNeed]:
        """The needs of a node; the types of its outputs are known from then on."""
        inputs = [self.of(name) if name else 0 for name in node.input]
        if function := self.functions.get(called_key(node)):
            outputs, found = self._of_call(function, node, inputs)
            self._define(node, outputs)
            return found if self.calls_count else frozenset()
        if not scoping.holds_graphs(node):
            outputs, found = output_types_and_needs(node, self.opset, inputs)
            removed = op_of(node) == "Identity" and (self.surely or node.input[0] in self.computed)
            self._define(node, outputs)
            return frozenset() if removed else found
        outputs, found = [], frozenset()
        for _, graph in scoping.subgraphs(node):
            inner = self.inside(node, graph)
            found |= inner.needs(graph.node)
            outputs = [inner.of(value.name) for value in graph.output]
        outputs = outputs[1:] if op_of(node) == "Loop" else outputs
        self._define(node, outputs)
        if self.surely and op_of(node) == "If":
            return frozenset()
        if self.surely:
            first = [*inputs[_LOOP_STATES * (op_of(node) == "Loop") :], *outputs][:1]
            return found | needs_of(op_of(node), self.opset, [], first)
        return found | needs_of(op_of(node), self.opset, inputs, outputs)

    def _of_call(
        self, function: FunctionProto, call: NodeProto, inputs: Sequence[int]
    ) -> tuple[Sequence[int], frozenset[TypeNeed]]:
        """The output types of a call of a function of the model, and the needs of its nodes."""
        given = {one.name: one for one in (*function.attribute_proto, *call.attribute)}
        opset = next((one.version for one in function.opset_import if not one.domain), self.opset)
        inner = replace(
            self,
            opset=opset,
            outer=_unknown,
            in_body=True,
            types=dict(zip(function.input, inputs, strict=False)),
            computed=set(),
        )
        found = inner.needs(_with_attributes(node, given) for node in function.node)
        return [inner.of(name) for name in function.output], found

    def _define(self, node: NodeProto, types: Sequence[int]) -> None:
        """Record the output types of a node; unknown ones are those that the names had before."""
        self.computed.update(node.output)
        for name, elem_type in zip(node.output, types, strict=False):
            self.types[name] = elem_type or (0 if self.in_body else self.outer(name))

    def inside(self, node: NodeProto, graph: GraphProto) -> _Scope:
        """The scope of a body, before its nodes are read."""
        inner = replace(self, outer=self.of, in_body=True, types={}, computed=set())
        op = op_of(node)
        fed: Sequence[str] = node.input if op in ("Loop", "Scan") else ()
        shift = 1 if op == "Scan" and self.opset == SCAN_8 else 0
        for position, value in enumerate(graph.input):
            source = position + shift
            feeds = source < len(fed) and (op == "Scan" or position >= _LOOP_STATES)
            declared = elem_type_of(value.type)
            inner.types[value.name] = declared or (self.of(fed[source]) if feeds else 0)
        for tensor in graph.initializer:
            inner.types[tensor.name] = tensor.data_type
        return inner


_LOOP_STATES = 2  # inputs of a Loop's body in front of what it carries


def _unknown(name: str) -> int:
    return 0


def _with_attributes(node: NodeProto, given: Mapping[str, AttributeProto]) -> NodeProto:
    """A node of a function with what a call gives for the attributes that it refers to."""
    if not has_references(node):
        return node
    copy = copied(node)
    del copy.attribute[:]
    for attribute in node.attribute:
        found = given.get(attribute.ref_attr_name) if attribute.ref_attr_name else attribute
        if found is not None:
            copy.attribute.add().CopyFrom(found)
            copy.attribute[-1].name = attribute.name
    return copy


@dataclass(frozen=True)
class _Fitting:
    """The kernels that nodes of an Edit may need: those `kept` from before (operator, element type,
    whether only a kernel is lacked) and, if the site's own nodes did not `run` in onnxruntime, the
    kernels that it lacks."""

    site: Site
    kept: frozenset[tuple[str, int, bool]]
    runs: bool

    def objects(self, need: TypeNeed) -> bool:
        """Return whether another form is required."""
        if (need.op, need.elem_type, False) in self.kept:
            return False
        if need.is_lacked and (need.op, need.elem_type, True) in self.kept:
            return False
        return not need.is_lacked or self.runs

    def may_lack(self, need: TypeNeed) -> bool:
        """Return whether a kernel may be missing: a model of an older opset is for whatever runs
        it, unless a release of onnxruntime was named."""
        site = self.site
        return need.is_lacked and site.target < site.opset and not site.options.for_onnxruntime

    def refusal(self, node: NodeProto, need: TypeNeed) -> Refused:
        """Return the refusal if there is none."""
        name = TensorProto.DataType.Name(need.elem_type).lower()
        opset = self.site.target
        lacks = f"onnxruntime has no kernel for {op_of(node)} of {name}"
        invalid = f"{op_of(node)} takes no {name} at opset {opset}"
        return self.site.refused(
            "type-not-taken",
            f"{lacks if need.is_lacked else invalid}, which the rewrite needs for "
            f"{[name for name in node.output if name]}, and no equivalent form exists",
        )


@dataclass
class _Level:
    """Rewrites the nodes of one graph.

    `wide` are wider twins of values, by name and type; `narrow` the values cast back from them.
    """

    fitting: _Fitting
    scope: _Scope
    author: Author
    around: _Level | None = None
    wide: dict[tuple[str, int], str] = field(default_factory=dict)
    narrow: set[str] = field(default_factory=set)

    def fitted(self, nodes: Iterable[NodeProto], results: Iterable[str]) -> list[NodeProto]:
        """The nodes with Casts, but for unread ones whose result is none of `results`."""
        for node in nodes:
            needs = [need for need in self.scope.read(node) if self.fitting.objects(need)]
            if needs and scoping.holds_graphs(node):
                self._around(node, needs)
            elif needs:
                self._through(node, needs)
            else:
                self.author.adopt([node])
        written = self.author.nodes
        idle = self.narrow.difference(results, scoping.all_reads(written))
        return [node for node in written if idle.isdisjoint(node.output)]

    def _around(self, node: NodeProto, needs: Sequence[TypeNeed]) -> None:
        """Write a node whose bodies have needs; its own have no other form."""
        for need in needs:
            if need.op == op_of(node) and not self.fitting.may_lack(need):
                raise self.fitting.refusal(node, need)
        copy = copied(node)
        for _, graph in scoping.subgraphs(copy):
            inner = self.author.inside(self.author.prefix)
            level = _Level(self.fitting, self.scope.inside(node, graph), inner, self)
            replace_all(graph.node, level.fitted(list(graph.node), scoping.output_names(graph)))
        self.author.adopt([copy])

    def _through(self, node: NodeProto, needs: Sequence[TypeNeed]) -> None:
        """Write a node with wider types in place of those that it does not support."""
        known = signature(op_of(node), self.scope.opset)
        assert known is not None
        casts: dict[str, tuple[int, int]] = {}
        for need in needs:
            variable = need.formal.variable
            wide = wider(op_of(node), self.scope.opset, need.elem_type, variable)
            if not wide and self.fitting.may_lack(need):
                continue
            if not wide:
                raise self.fitting.refusal(node, need)
            casts[variable] = need.elem_type, wide
        copy = copied(node)
        for position, name in enumerate(node.input):
            formal = known.input(position)
            if name and formal is not None and formal.variable in casts:
                wide_input = self._widened(name, casts[formal.variable][1])
                if op_of(node) == "Shape":  # onnxruntime removes a Cast before it
                    wide_input = self.author.op("Abs", wide_input)
                copy.input[position] = wide_input
        narrowed: list[tuple[str, str, int]] = []
        for position, name in enumerate(node.output):
            formal = known.output(position)
            if name and formal is not None and formal.variable in casts:
                elem_type, wide = casts[formal.variable]
                twin = self.wide[name, wide] = self.author.fresh(f"{op_of(node).lower()}/wide")
                copy.output[position] = twin
                narrowed.append((twin, name, elem_type))
        if op_of(node) == "ConstantOfShape":
            _widen_value(copy, *(wide for _, wide in casts.values()))
        self.author.adopt([copy])
        for twin, name, elem_type in narrowed:
            self._cast(twin, elem_type, [name])
            self.narrow.add(name)

    def _widened(self, name: str, to: int) -> str:
        """The wider twin of a value, made where that is defined, once for all its readers."""
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
    """Let a ConstantOfShape return a wider type."""
    value = attribute_proto(node, "value")
    assert value is not None
    wide = numpy_helper.to_array(value.t).astype(helper.tensor_dtype_to_np_dtype(to))
    value.t.CopyFrom(numpy_helper.from_array(wide))
