"""Loops that carry nothing, in a branch: onnxruntime drops the omitted inputs at the end of a node
where it takes an If apart, and cannot load a Loop without a second input (`vector::reserve`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from onnx import FunctionProto, GraphProto, NodeProto, TensorProto, helper

from passes import scope as scoping
from passes.author import Author
from passes.constant_nodes import constant_tensor
from passes.constants import Constants
from passes.loop_form import Carried, Condition, LoopForm
from passes.operators import op_of
from passes.repeated import replace_all
from passes.rule import Edit, Site
from passes.value_types import dims_of

_OPSET = 11  # a Loop is read alike at all; from here on it may carry nothing

_Graphs = tuple[GraphProto, ...]


def with_conditions_said(site: Site, edit: Edit) -> Edit:
    """An Edit whose Loops that stand in a branch say that they go on, if they carry nothing.

    The branch may be one of the Edit, or the one it is spliced into; a function may be called in
    one.
    """
    if not any(map(scoping.holds_graphs, edit.nodes)):
        return edit
    opened = _may_be_opened(site.scope)
    if next(_silent(edit.nodes, opened), None) is None:
        return edit
    author = Author(site.target, site.names, site.node.name or op_of(site.node).lower())
    saying = _Saying(site, author, {one.name: one for one in edit.initializers})
    nodes = [_copy(node) if scoping.holds_graphs(node) else node for node in edit.nodes]
    for loop, around in list(_silent(nodes, opened)):
        saying.say(loop, around)
    return replace(edit, nodes=tuple(nodes), initializers=(*edit.initializers, *author.constants))


def carrying_its_condition(form: LoopForm, author: Author, before: str) -> LoopForm:
    """A Loop that starts without a condition, so that the body's is not heard, whose body is told
    as a carried value what it said before: `before` at first."""
    assert form.condition is not None
    condition = Condition("", author.fresh("going"), author.fresh("going"))
    body = GraphProto()
    body.CopyFrom(form.body)
    true = helper.make_tensor("", TensorProto.BOOL, [], [True])
    body.node.append(helper.make_node("Constant", [], [condition.body_output], value=true))
    for name, values in ((condition.body_input, body.input), (condition.body_output, body.output)):
        values.append(helper.make_tensor_value_info(name, TensorProto.BOOL, []))
    said = Carried(
        before, form.condition.body_input, form.condition.body_output, author.fresh("unused")
    )
    return replace(form, body=body, condition=condition, carried=(*form.carried, said))


def _may_be_opened(scope: scoping.Scope) -> bool:
    """Whether a graph may be inlined as the branch of an If, or with one."""
    if scope.outer is None:
        return isinstance(scope.owner, FunctionProto)
    position = scope.key[-2]
    assert isinstance(position, int)
    return _is(scope.outer.owner.node[position], "If")


def _is(node: NodeProto, op_type: str) -> bool:
    return op_of(node) == op_type


def _silent(
    nodes: Sequence[NodeProto], opened: bool, around: _Graphs = ()
) -> Iterator[tuple[NodeProto, _Graphs]]:
    """The Loops, innermost first, that have a trip count at most, and the graphs of the Edit
    around each; `opened`: the nodes may be inlined."""
    for node in nodes:
        if not scoping.holds_graphs(node):
            continue
        for _, graph in scoping.subgraphs(node):
            yield from _silent(graph.node, _is(node, "If"), (*around, graph))
        if opened and _is(node, "Loop") and not any(node.input[1:]):
            yield node, around


@dataclass(frozen=True)
class _Saying:
    """Gives Loops a second input; `initializers` are those of the Edit."""

    site: Site
    author: Author
    initializers: Mapping[str, TensorProto]

    def say(self, loop: NodeProto, around: _Graphs) -> None:
        """Give a Loop a condition that is always true, or a value to carry, in place."""
        form = LoopForm.from_node(loop, _OPSET)
        assert form.condition is not None
        if self._goes_on(form, around):
            true = self.author.constant(np.array(True), "true")
            replace_all(loop.input, [loop.input[0], true])
            return
        heard = next(one for one in form.body.input if one.name == form.condition.body_input)
        shape = tuple(1 for _ in dims_of(heard.type) or ())
        before = self.author.constant(np.ones(shape, np.bool_), "true")
        loop.CopyFrom(carrying_its_condition(form, self.author, before).to_node())

    def _goes_on(self, form: LoopForm, around: _Graphs) -> bool:
        """Whether a body that is told to go on says so, too."""
        assert form.condition is not None
        makers = {name: node for node in form.body.node for name in node.output}
        name = form.condition.body_output
        while (maker := makers.get(name)) is not None and _is(maker, "Identity"):
            name = maker.input[0]
        if name == form.condition.body_input:
            return True
        if maker is not None:
            tensor = constant_tensor(maker)
        else:
            tensor = self._constant(name, (*around, form.body))
        value = None if tensor is None else self.site.model.read(tensor)
        return value is not None and value.size == 1 and bool(value.item())

    def _constant(self, name: str, around: _Graphs) -> TensorProto | None:
        """The tensor that a name means inside of these graphs, None where it is not fixed."""
        for graph in reversed(around):
            if name in scoping.defined(graph):
                return next((one for one in graph.initializer if one.name == name), None)
        own = self.initializers.get(name)
        return own or Constants(self.site.model, self.site.scope).tensor(name)


def _copy(node: NodeProto) -> NodeProto:
    copy = NodeProto()
    copy.CopyFrom(node)
    return copy
