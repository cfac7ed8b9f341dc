"""Operators without an entry in their newest version: what an old one means is told by the steps
between opsets."""

from __future__ import annotations

from onnx import defs, helper

from passes.choices import RuleOptions
from passes.converters import opset as steps_of_node
from passes.converters.steps import Identical
from passes.converters.table import steps
from passes.ir.model import Model
from passes.ir.names import Names
from passes.ir.operators import is_onnx_domain
from passes.ir.places import holds_graphs
from passes.ir.scope import all_names, owners, walk_model
from passes.proving.assumptions import STEPS
from passes.proving.nodes import type_of
from passes.proving.symbolic_evaluator import Application, Values
from passes.proving.terms.arrays import Array, NotProvable, Stacked, Unranked
from passes.rule import Refused, Site


def in_newest_version(call: Application) -> list[Array] | None:
    """The outputs of the nodes that an operator is in the newest opset; None if it means the same
    there, or if that depends on what is unknown of its inputs."""
    newest, node = defs.onnx_opset_version(), call.node
    if not call.evaluator.calls.newer or not is_onnx_domain(node.domain) or holds_graphs(node):
        return None
    if all(isinstance(one, Identical) for one in steps(call.op, call.opset, newest)):
        return None
    model = _alone(call)
    names = Names(all_names(owner for _, owner in owners(model.proto)))
    (place,) = walk_model(model.proto)
    site = Site(model, place, call.opset, newest, names, RuleOptions())
    try:
        edit = steps_of_node.rewrite(site)
    except Refused:
        return None
    if not edit.exact:
        return None
    evaluator = call.evaluator
    evaluator.assumed.add(STEPS)
    values: Values = {**call.values}
    values |= {one.name: evaluator.constant(one) for one in edit.initializers}
    graph = helper.make_graph([*edit.context, *edit.nodes], "newest", [], [])
    try:
        inner = evaluator.run(graph, values, {**call.opsets, "": newest})
    except NotProvable:
        return None
    return [
        inner[name] if name else Unranked(call.algebra, call.algebra.zero) for name in node.output
    ]


def _alone(call: Application) -> Model:
    """A model of the node alone."""
    inputs = {
        name: helper.make_empty_tensor_value_info(name)
        if isinstance(array, Unranked | Stacked)
        else helper.make_value_info(name, type_of(array))
        for name, array in zip(call.node.input, call.inputs, strict=True)
        if array is not None
    }
    outputs = [helper.make_empty_tensor_value_info(name) for name in call.node.output if name]
    graph = helper.make_graph([call.node], "alone", [*inputs.values()], outputs)
    return Model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", call.opset)]))
