"""Finds what a target does not take of an If, Loop or Scan: branches, values, trip counts."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from onnx import TypeProto

from passes.analysis.trip_count.trip_count import TripCount
from passes.errors import BadModel
from passes.ir.constants import Constants
from passes.ir.model import Model
from passes.ir.operators import op_of
from passes.ir.scope import Place
from passes.loops.form import LoopForm
from passes.reports.report import Finding
from passes.rule import Site
from passes.targets.profile import BranchAgreement, LoopSupport, Profile
from passes.types.value_types import Dim, dims_of


def findings(model: Model, place: Place, profile: Profile) -> Iterator[Finding]:
    """Yield the findings at an If, Loop or Scan."""
    match op_of(place.node):
        case "If":
            yield from _of_if(model, place, profile)
        case "Loop":
            yield from _of_loop(model, place, profile)
        case "Scan":
            yield from _of_scan(model, place, profile)


def _of_if(model: Model, place: Place, profile: Profile) -> Iterator[Finding]:
    facts = profile.if_
    sure = facts.confidence
    constant = Constants(model, place.scope).tensor(place.node.input[0]) is not None
    if constant and facts.constant:
        return
    if not facts.taken:
        yield Finding("if", place.path, "If", "an If is not taken", sure)
        return
    bodies = [(scope, scope.owner.output) for scope in place.scope.inner(place.index)]
    for (then, first), (otherwise, second) in pairwise(bodies):
        for one, other in zip(first, second, strict=False):
            kinds = (
                model.types.within(then, _name(one)),
                model.types.within(otherwise, _name(other)),
            )
            if any(kind is not None and kind.HasField("sequence_type") for kind in kinds):
                if not facts.sequences:
                    sentence = "an If that gives a sequence is not taken"
                    yield Finding("if", place.path, "If", sentence, sure)
            elif not _agree(*kinds, facts.branches):
                sentence = f"its branches do not give the {facts.branches}"
                yield Finding("if-branches", place.path, "If", sentence, sure)


def _name(value: object) -> str:
    """The name of an output of a graph, which is a value, or of a function."""
    return str(getattr(value, "name", value))


def _agree(one: TypeProto | None, other: TypeProto | None, agreement: BranchAgreement) -> bool:
    """Return whether two types are known to agree so far."""
    if agreement == "any":
        return True
    first, second = dims_of(one), dims_of(other)
    if first is None or second is None or len(first) != len(second):
        return False
    return agreement == "same rank" or (first == second and None not in first)


def _of_loop(model: Model, place: Place, profile: Profile) -> Iterator[Finding]:
    facts = profile.loop
    sure = facts.confidence
    if not facts.taken:
        yield Finding("loop", place.path, "Loop", "a Loop is not taken", sure)
        return
    form = _form(model, place)
    if form is None:
        return
    trips = TripCount(Site.at(model, place), form)
    kind = "constant" if trips.declared is not None else "computed"
    if not form.trip_count:
        kind = "absent"
    if kind not in facts.trip_count:
        sentence = f"its trip count is {kind}, taken is {' or '.join(facts.trip_count)}"
        yield Finding("trip-count", place.path, "Loop", sentence, sure, facts.otherwise)
    most = trips.declared
    if facts.most_trips is not None and isinstance(most, int) and most > facts.most_trips:
        sentence = f"it runs up to {most} times, at most {facts.most_trips} are taken"
        yield Finding("trip-count", place.path, "Loop", sentence, sure, facts.otherwise)
    yield from _of_collected(place, form, trips, facts)
    yield from _of_carried(model, place, form, facts)
    if not facts.captures and form.captured:
        yield Finding("captures", place.path, "Loop", "its body reads values from outside", sure)


def _of_collected(
    place: Place, form: LoopForm, trips: TripCount, facts: LoopSupport
) -> Iterator[Finding]:
    if not form.collected or facts.collected == "any":
        return
    if facts.collected == "static" and trips.constant is None:
        sentence = "the length of what it collects is unknown before it runs"
        yield Finding("collected", place.path, "Loop", sentence, facts.confidence)
    elif facts.collected == "padded" and trips.conditional:
        sentence = "what it collects is padded to the trip count where it ends early"
        yield Finding(
            "collected", place.path, "Loop", sentence, facts.confidence, "answers wrongly"
        )


def _of_carried(
    model: Model, place: Place, form: LoopForm, facts: LoopSupport
) -> Iterator[Finding]:
    (body,) = place.scope.inner(place.index)
    for carried in form.carried:
        kinds = (
            model.types.within(body, carried.body_input),
            model.types.within(body, carried.body_output),
        )
        if any(kind is not None and kind.HasField("sequence_type") for kind in kinds):
            if not facts.sequences:
                sentence = "a Loop that carries a sequence is not taken"
                yield Finding("carried", place.path, "Loop", sentence, facts.confidence)
        elif not _agree(*kinds, facts.carried):
            sentence = f"a carried value is not known to keep the {facts.carried}"
            yield Finding("carried", place.path, "Loop", sentence, facts.confidence)


def _of_scan(model: Model, place: Place, profile: Profile) -> Iterator[Finding]:
    facts = profile.scan
    sure = facts.confidence
    if not facts.taken:
        yield Finding("scan", place.path, "Scan", "a Scan is not taken", sure)
        return
    opset = model.opset_at(place.scope)
    if opset not in facts.versions:
        sentence = f"a Scan of opset {opset} is not taken, but {facts.versions}"
        yield Finding("operator-version", place.path, "Scan", sentence, sure)
        return
    form = _form(model, place)
    if form is None:
        return
    if form.lengths and not facts.lengths:
        yield Finding("lengths", place.path, "Scan", "sequence_lens is not taken", sure)
    length = TripCount(Site.at(model, place), form).constant
    if facts.static and length is None:
        yield Finding("trip-count", place.path, "Scan", "its length is not static", sure)
    if facts.most is not None and length is not None and length > facts.most:
        sentence = f"it runs {length} times, at most {facts.most} are taken"
        yield Finding("trip-count", place.path, "Scan", sentence, sure)
    if not facts.symbols and any(isinstance(dim, str) for dim in _declared(form)):
        sentence = "its body declares sizes by symbols"
        yield Finding("symbols", place.path, "Scan", sentence, sure)
    if not facts.captures and _computed_captures(model, place, form):
        sentence = "its body reads values that are computed outside"
        yield Finding("captures", place.path, "Scan", sentence, sure)


def _declared(form: LoopForm) -> Iterator[Dim]:
    """The dims of the inputs and outputs that the body of a loop declares."""
    for value in (*form.body.input, *form.body.output):
        yield from dims_of(value.type) or ()


def _computed_captures(model: Model, place: Place, form: LoopForm) -> list[str]:
    constants = Constants(model, place.scope)
    return [name for name in form.captured if constants.tensor(name) is None]


def _form(model: Model, place: Place) -> LoopForm | None:
    """The loop taken apart; None where its callers choose its form."""
    try:
        return LoopForm.from_node(place.node, model.opset_at(place.scope))
    except BadModel:
        return None
