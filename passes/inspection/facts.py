"""The facts about a group of loops or Ifs: types, trip counts, sizes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from onnx import TypeProto, defs

from passes.analysis.bodies import body_facts
from passes.analysis.trip_count.trip_count import TripCount
from passes.errors import BadModel, ChosenByCaller
from passes.inspection.inspection import Answer, Group, Slice, Value
from passes.ir import scope as scoping
from passes.ir.model import Model
from passes.ir.names import Names
from passes.ir.operators import op_of
from passes.ir.places import Place, Scope, is_loop
from passes.loops.alike import Alike
from passes.loops.form import LoopForm
from passes.loops.parts import Collected, Scanned
from passes.rule import Site
from passes.types.signature import describe_type
from passes.types.value_types import INFERRED

_MADE_UP = re.compile(rf"{INFERRED}\d+")


def group_of(model: Model, alike: Alike, above: int, answers: Sequence[Answer]) -> Group:
    """Return the facts about a group, whose rules gave these answers.

    Raises:
        BadModel: the form of a loop is invalid.
    """
    first = alike.first
    opset = model.opset_at(first.scope)
    graphs = [graph for _, graph in scoping.subgraphs(first.node)]
    captured = dict.fromkeys(name for graph in graphs for name in scoping.captures(graph))
    group = Group(
        pattern=alike.pattern,
        paths=alike.paths,
        above=above,
        op=op_of(first.node),
        version=defs.get_schema(op_of(first.node), opset).since_version,
        opset=opset,
        nodes=sum(len(below.node) for graph in graphs for below in scoping.graphs_below(graph)),
        captured=tuple(_value(model, first.scope, name) for name in captured),
        answers=answers,
    )
    return _looked_into(model, alike, group) if is_loop(first.node) else group


def _looked_into(model: Model, alike: Alike, group: Group) -> Group:
    (body,) = alike.first.scope.inner(alike.first.index)
    try:
        forms = [LoopForm.from_node(place.node, group.opset) for place in alike.places]
    except ChosenByCaller as error:
        return replace(group, trip_counts=("?",), unreadable=error.sentence)
    except BadModel as error:
        raise error.at(path=group.paths[0], file=model.file) from error
    form = forms[0]
    trips = [_trip_count(model, place, one) for place, one in zip(alike.places, forms, strict=True)]
    return replace(
        group,
        trip_counts=tuple(dict.fromkeys(trips)),
        lengths=bool(form.lengths),
        carried=tuple(_value(model, body, one.body_input) for one in form.carried),
        scanned=tuple(_slice(model, body, one.body_input, one) for one in form.scanned),
        collected=tuple(_slice(model, body, one.body_output, one) for one in form.collected),
        recurrences=tuple(tuple(sorted(names)) for names in body_facts.recurrences(form)),
        invariant_nodes=len(body_facts.invariant_nodes(form)),
    )


def _trip_count(model: Model, place: Place, form: LoopForm) -> str:
    opset = model.opset_at(place.scope)
    return str(TripCount(Site(model, place, opset, opset, Names(), model.types), form))


def _value(model: Model, scope: Scope, name: str) -> Value:
    known = describe_type(model.types.of(scope, name) or TypeProto())
    return Value(name, _MADE_UP.sub("?", known))


def _slice(model: Model, body: Scope, name: str, how: Scanned | Collected) -> Slice:
    value = _value(model, body, name)
    return Slice(value.name, value.type, how.axis, how.reversed)
