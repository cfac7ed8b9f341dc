"""A loop's body, made ready to run over all iterations at once: time is the new leading axis."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property

from onnx import GraphProto, ModelProto, NodeProto, TypeProto, helper

from passes.analysis.sizes.made_up_sizes import symbol_of_rows
from passes.analysis.trip_count import facts
from passes.ir import scope as scoping
from passes.ir.constants import Constants
from passes.ir.names import Names
from passes.ir.operators import FunctionKey, function_key, is_onnx_domain, op_of
from passes.ir.versions import FREE_INITIALIZERS
from passes.loops.form import Kind, LoopForm, Scanned
from passes.rule import Refused, Site
from passes.rules.simplify.guarded_by_if import is_guarded_by_if, least_size
from passes.types.value_types import dims_of, elem_type_of, tensor_type
from passes.vectorize import Axis, Captured, Rows, Vectorizer, prepare
from passes.writing.author import Author

#: The table of vectorisation rules knows the ops in their spelling from here on.
OLDEST = 13
#: What the size of a row is taken for where nothing tells it.
UNKNOWN_DIM = 8
#: By how much it may exceed the least that an If around the loop lets through.
SPREAD = 8


@dataclass(frozen=True)
class TimeBody:
    """A loop whose body has names that are unique, inside and outside, and typed values.

    `form` is the loop on that body, each of whose outputs is the output of a node of its own;
    `rows` has the body's types and constants. What a node outside is to write must be renamed:
    see `moving`. `unknown`: what sizes of a row that are not known are taken for.
    """

    site: Site
    form: LoopForm
    rows: Rows
    unknown: int = UNKNOWN_DIM

    @classmethod
    def of(cls, site: Site) -> TimeBody:
        """Prepare a loop.

        Raises:
            Refused: `opset-too-old` before opset 13.
        """
        if site.opset < OLDEST:
            raise Refused(
                "opset-too-old",
                f"the rules for one more axis know opset {OLDEST} and later, this is {site.opset}; "
                "--opset converts the model first",
                [site.path],
            )
        node = NodeProto()
        node.CopyFrom(site.node)
        form = LoopForm.from_node(node, site.opset)
        _declare_types(site, form)
        scoping.drop_constant_inputs(form.body)
        _own_outputs(form.body, site.names)
        captured = {
            name: Captured(site.type_of(name), site.constant(name))
            for name in scoping.captures(form.body)
        }
        rows = prepare(form.body, captured, _alone(site), site.names, site.is_visible)
        form.body.CopyFrom(rows.graph)
        body = cls(site, LoopForm.from_node(node, site.opset), rows)
        if site.scope.outer is None:
            return body
        least = [least_size(site, *place) for place in body.open_sizes.values()]
        return replace(body, unknown=max([UNKNOWN_DIM, *(SPREAD * one for one in least)]))

    @cached_property
    def open_sizes(self) -> dict[str, tuple[str, int]]:
        """The symbols of what the loop reads, each with a tensor and the axis that it names."""
        read = [*scoping.captures(self.rows.graph), *(one.initial for one in self.form.carried)]
        return {
            dim: (name, axis)
            for name in [*read, *(one.tensor for one in self.form.scanned)]
            for axis, dim in enumerate(dims_of(self.site.type_of(name)) or ())
            if isinstance(dim, str)
        }

    @cached_property
    def nodes(self) -> list[NodeProto]:
        """The nodes of the body."""
        return list(self.rows.graph.node)

    @cached_property
    def producers(self) -> dict[str, int]:
        """The position of the node that writes a value of the body."""
        return {name: at for at, node in enumerate(self.nodes) for name in node.output if name}

    @cached_property
    def initializers(self) -> frozenset[str]:
        """The names of the body's own constants, but for those that are nodes."""
        return frozenset(scoping.initializer_names(self.rows.graph))

    @cached_property
    def varying(self) -> frozenset[str]:
        """The values that may differ from one iteration to the next."""
        found = set(scoping.input_names(self.rows.graph))
        for node in self.nodes:
            if not found.isdisjoint(scoping.free_names(node)):
                found.update(node.output)
        return frozenset(found)

    @cached_property
    def unread(self) -> frozenset[int]:
        """The positions of nodes on which no output depends that the loop's node has."""
        form = self.form
        needed = {one.body_output for one in form.carried}
        needed |= {one.body_output for one in form.collected if one.tensor}
        if form.condition is not None:
            needed.add(form.condition.body_output)
        found = set()
        for at in reversed(range(len(self.nodes))):
            if needed.isdisjoint(self.nodes[at].output):
                found.add(at)
            else:
                needed.update(scoping.free_names(self.nodes[at]))
        return frozenset(found)

    @cached_property
    def trips(self) -> int | None:
        """How often the loop runs, where that is known."""
        known = facts.trip_count(self.site, self.form)
        return known.size if isinstance(known.size, int) and not known.at_most else None

    @cached_property
    def may_be_empty(self) -> bool:
        """Whether the loop may run no iteration."""
        assumed = self.site.assumes("non-empty")
        sized = self.form.kind is Kind.SCAN
        proven = (assumed and sized and self.trips is None) or self.entered
        return not self.trips and not proven

    @cached_property
    def entered(self) -> bool:
        """Whether only an If around the loop sees to it that it runs an iteration."""
        return self.trips is None and is_guarded_by_if(self.site, self.form)

    def axis(self, size: str) -> Axis:
        """Time, whose length `size` names."""
        return Axis(size, self.trips, not self.may_be_empty, symbol=self._symbol)

    @property
    def _symbol(self) -> str | None:
        """What the model calls the length of what the loop scans first."""
        first, *_ = self.form.scanned or (None,)
        dim = None if first is None else facts.scanned_size(self.site, first.tensor, first.axis)
        return symbol_of_rows(dim, self.rows.types)

    def vectorizer(self, author: Author, size: str, carrying: Collection[str]) -> Vectorizer:
        """What writes nodes of the body with time in front."""
        return Vectorizer(self.rows, self.axis(size), author, set(carrying), self.site.path)

    def origin(self, name: str) -> str:
        """The value that Identities hand on under this name."""
        while (at := self.producers.get(name)) is not None:
            node = self.nodes[at]
            if op_of(node) != "Identity":
                break
            name = node.input[0]
        return name

    def readers(self) -> dict[str, list[int]]:
        """The positions of the nodes that read a value, each once."""
        found: dict[str, list[int]] = {}
        for at, node in enumerate(self.nodes):
            for name in scoping.free_names(node):
                found.setdefault(name, []).append(at)
        return found

    @cached_property
    def functions(self) -> frozenset[FunctionKey]:
        """The model-local functions, whose names may be those of operators."""
        return frozenset(map(function_key, self.site.model.proto.functions))

    def is_constant(self, name: str) -> bool:
        """Whether a value is fixed when the model is loaded."""
        if name in self.rows.constants or name in self.initializers:
            return True
        outer = name not in self.producers and name not in self.varying
        return outer and Constants(self.site.model, self.site.scope).tensor(name) is not None

    def row_rank(self, name: str) -> int | None:
        """The rank of a value in one iteration, None where it is not known."""
        dims = dims_of(self.rows.types.get(name))
        return None if dims is None else len(dims)


def _alone(site: Site) -> ModelProto:
    """The opsets in which the body is written; functions stay calls."""
    # up to IR 3, inference does not look at initializers that are no inputs
    model = ModelProto(ir_version=max(site.model.proto.ir_version, FREE_INITIALIZERS))
    for entry in site.model.proto.opset_import:
        if not is_onnx_domain(entry.domain):
            model.opset_import.append(entry)
    model.opset_import.add(domain="", version=site.target)
    return model


def _declare_types(site: Site, form: LoopForm) -> None:
    """Write what inference found of the inputs of the body where they do not say it."""
    rows = {one.body_input: _element_type(site, one) for one in form.scanned}
    for value in form.body.input:
        if dims_of(value.type) is not None:
            continue
        known = site.body_type_of("body", value.name)
        if dims_of(known) is None:
            known = rows.get(value.name) or known
        if known is not None:
            value.type.CopyFrom(known)


def _element_type(site: Site, one: Scanned) -> TypeProto | None:
    """The type of what one iteration reads, from that of the whole tensor."""
    known = site.type_of(one.tensor)
    dims = dims_of(known)
    if dims is None or not -len(dims) <= one.axis < len(dims):
        return None
    axis = one.axis % len(dims)
    return tensor_type(elem_type_of(known), (*dims[:axis], *dims[axis + 1 :]))


def _own_outputs(body: GraphProto, names: Names) -> None:
    """Give every output of a body a node of its own, which onnxruntime needs."""
    computed = {name for node in body.node for name in node.output}
    for value in body.output:
        if value.name in computed:
            computed.remove(value.name)
            continue
        own = names.fresh(f"{value.name}/own")
        body.node.append(helper.make_node("Identity", [value.name], [own]))
        value.name = own
