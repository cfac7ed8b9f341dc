"""The command `inspect`: every loop of a model, and what the rules say of it."""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass

from onnx import GraphProto, ModelProto, ValueInfoProto
from rich.table import Table
from rich.text import Text

from passes.analysis.bodies import body_facts
from passes.analysis.trip_count.trip_count import TripCount
from passes.check import load_checked
from passes.choices import RuleOptions
from passes.engine.fixpoint import Engine
from passes.engine.plugins import load_rules
from passes.engine.rounds import Round
from passes.engine.schedules import SCHEDULES, UPGRADE
from passes.engine.target_opset import check_known, check_reachable, loadable, target_opset
from passes.errors import BadModel, ChosenByCaller
from passes.ir import scope as scoping
from passes.ir.constants import Constants
from passes.ir.model import Model
from passes.ir.names import Names
from passes.ir.operators import op_of
from passes.ir.places import is_loop
from passes.ir.protos import named
from passes.ir.scope import Key, Place
from passes.loops.form import Kind, LoopForm
from passes.onnxruntime.releases import Release
from passes.rule import Site
from passes.types.likeness import digest_up_to_names

#: Bytes of a constant beyond which its elements make no difference to what rules answer.
_SMALL = 1 << 12


@dataclass(frozen=True)
class Loop:
    """A loop as `inspect` shows it. `rules` says what each rule that considers it would do.

    `equal_to` is the path of a loop of the same graph that differs in names at most, as do the
    types and small constants of what both read: the rules are asked about that one alone.
    """

    path: str
    op: str
    carried: Sequence[str]
    scanned: Sequence[str]
    collected: Sequence[str]
    trip_count: str
    captured: Sequence[str]
    recurrences: Sequence[Sequence[str]]
    invariant_nodes: int
    rules: Sequence[str]
    equal_to: str = ""


def inspect_model(
    source: ModelProto | str | os.PathLike[str],
    asked: int | None,
    options: RuleOptions,
    release: Release | None = None,
) -> list[Loop]:
    """Every loop of a model, innermost first.

    Raises:
        BadModel: the input is no valid model.
        UnknownOpset: the installed onnx does not know the requested opset.
        TooNew: the model is newer than that, or than what the release loads.
    """
    check_known(asked)
    model, found = load_checked(source)
    asked = loadable(model, asked, release)
    check_reachable(model, asked, release)
    if not any(is_loop(place.node) for place in found.places):
        return []
    places = [place for place in scoping.walk_model(model.proto) if is_loop(place.node)]
    firsts: dict[Hashable, Place] = {}
    likes = [firsts.setdefault(_likeness(model, place), place) for place in places]
    declared = _by_place(_asked(model, list(firsts.values()), target_opset(model, asked), options))
    bodies: dict[Key, _Body] = {}
    return [
        _loop(model, place, like, declared, bodies)
        for place, like in zip(places, likes, strict=True)
    ]


def _likeness(model: Model, place: Place) -> Hashable:
    """The same for loops of one graph that differ in names at most."""
    names = scoping.free_names(place.node)
    graph = GraphProto(node=[place.node])
    constants = Constants(model, place.scope)
    for name in names:
        graph.input.add(name=name, type=model.types.of(place.scope, name))
        tensor = constants.tensor(name)
        if tensor is not None and tensor.ByteSize() <= _SMALL:
            graph.initializer.append(named(tensor, name))
    graph.output.extend(ValueInfoProto(name=name) for name in place.node.output if name)
    return place.scope.key, digest_up_to_names(ModelProto(graph=graph))


def _asked(model: Model, places: Sequence[Place], target: int, options: RuleOptions) -> list[Round]:
    """What the upgrade, and every rule about loops by itself, would do."""
    known = load_rules()
    alone = dict.fromkeys(name for pipeline in SCHEDULES.values() for name in pipeline.rules)
    rules = [known[name] for name in alone if name in known and name not in UPGRADE.rules]
    upgrades = [known[name] for name in UPGRADE.rules]
    upgraded = Engine(upgrades, target, options).round(model)
    return [upgraded, Engine(rules, None, options).ask(model, places)]


@dataclass(frozen=True)
class _Body:
    """What loops share whose bodies differ in names at most: the positions of carried values that
    feed each other, and how many nodes are invariant."""

    recurrences: Sequence[Sequence[int]]
    invariant_nodes: int

    @classmethod
    def of(cls, form: LoopForm) -> _Body:
        position = {carried.body_input: position for position, carried in enumerate(form.carried)}
        groups = [[position[name] for name in group] for group in body_facts.recurrences(form)]
        return cls(groups, len(body_facts.invariant_nodes(form)))


def _loop(
    model: Model,
    place: Place,
    like: Place,
    rules_by_site: Mapping[Key, Sequence[str]],
    bodies: dict[Key, _Body],
) -> Loop:
    opset = model.opset_at(place.scope)
    key = (*like.scope.key, like.index)
    rules = rules_by_site.get(key, []) if like is place else []
    try:
        form = LoopForm.from_node(place.node, opset)
    except ChosenByCaller as error:
        op = f"{op_of(place.node)} (opset {opset})"
        return Loop(place.path, op, [], [], [], "?", [], [], 0, [*rules, error.sentence])
    except BadModel as error:
        raise error.at(path=place.path, file=model.file) from error
    site = Site(model, place, opset, opset, Names(), model.types)
    if key not in bodies:
        bodies[key] = _Body.of(form)
    carried = [state.body_input for state in form.carried]
    return Loop(
        path=place.path,
        op=_op(form, opset),
        carried=carried,
        scanned=[
            _scanned(scanned.body_input, scanned.axis, scanned.reversed) for scanned in form.scanned
        ],
        collected=[
            _scanned(collected.body_output, collected.axis, collected.reversed)
            for collected in form.collected
        ],
        trip_count=str(TripCount(site, form)),
        captured=form.captured,
        recurrences=[sorted(carried[at] for at in group) for group in bodies[key].recurrences],
        invariant_nodes=bodies[key].invariant_nodes,
        rules=[] if like is not place else rules or ["stays as it is"],
        equal_to="" if like is place else like.path,
    )


def _op(form: LoopForm, opset: int) -> str:
    if form.kind is Kind.SCAN_8:
        return "Scan-8 with sequence_lens" if form.lengths else "Scan-8"
    return f"{form.operator} (opset {opset})"


def _scanned(name: str, axis: int, backwards: bool) -> str:
    return f"{name} (axis {axis}{', reversed' if backwards else ''})"


def _by_place(rounds: Sequence[Round]) -> dict[Key, list[str]]:
    """What the rules say of each node, by where it stands."""
    declared: dict[Key, list[str]] = defaultdict(list)
    for round_ in rounds:
        for done in round_.rewritten:
            declared[(*done.scope.key, done.index)].append(f"{done.rule.name}: {done.edit.note}")
        for refusal in round_.refused:
            sentence = (
                f"{refusal.rule.name}: refuses, {refusal.reason.sentence} [{refusal.reason.code}]"
            )
            declared[(*refusal.place.scope.key, refusal.place.index)].append(sentence)
    return declared


def to_json(loops: Sequence[Loop]) -> str:
    """The loops as JSON."""
    return json.dumps([asdict(loop) for loop in loops], indent=2, ensure_ascii=False) + "\n"


def to_table(loops: Sequence[Loop]) -> Table:
    """The loops as a table for people."""
    table = Table(show_lines=True)
    for title in ("loop", "op", "trips", "carried", "scanned", "collected", "captured", "rules"):
        table.add_column(title, overflow="fold")
    equal = Counter(loop.equal_to for loop in loops)
    for loop in loops:
        if loop.equal_to:
            continue
        others = equal[loop.path]
        path = f"{loop.path}\n(and {others} equal to it)" if others else loop.path
        table.add_row(
            # as Text: in a plain string, square brackets are markup
            *map(Text, (path, loop.op, loop.trip_count)),
            *(Text("\n".join(cell)) for cell in (loop.carried, loop.scanned, loop.collected)),
            *(Text("\n".join(cell)) for cell in (loop.captured, loop.rules)),
        )
    return table
