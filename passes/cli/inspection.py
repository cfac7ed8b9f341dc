"""The command `inspect`: every loop of a model, and what the rules say of it."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from onnx import ModelProto
from rich.table import Table
from rich.text import Text

from passes.analysis.trip_count import facts
from passes.check import load_checked
from passes.choices import RuleOptions
from passes.engine.fixpoint import Engine
from passes.engine.pipelines import PIPELINES
from passes.engine.plugins import load_rules, rule
from passes.engine.rounds import Round
from passes.engine.stage import rules_of
from passes.engine.target_opset import check_known, check_reachable, target_opset
from passes.errors import BadModel, ChosenByCaller
from passes.ir import scope as scoping
from passes.ir.model import Model
from passes.ir.names import Names
from passes.ir.operators import op_of
from passes.ir.places import is_loop
from passes.ir.scope import Key, Place
from passes.loops.form import Kind, LoopForm
from passes.onnxruntime.releases import Release
from passes.rule import Site


@dataclass(frozen=True)
class Loop:
    """A loop as `inspect` shows it. `rules` says what each rule that considers it would do."""

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


def inspect_model(
    source: ModelProto | str | os.PathLike[str],
    asked: int | None,
    options: RuleOptions,
    release: Release | None = None,
) -> list[Loop]:
    """Every loop of a model, innermost first.

    Raises:
        BadModel: the input is no valid model.
        UnknownOpset: the installed onnx does not know the opset that was asked for.
        TooNew: the model is newer than that, or than what the release loads.
    """
    check_known(asked)
    model, found = load_checked(source)
    check_reachable(model, asked, release)
    if not any(is_loop(place.node) for place in found.places):
        return []
    places = [place for place in scoping.walk_model(model.proto) if is_loop(place.node)]
    said = _by_place(_rounds(model, target_opset(model, asked), options))
    return [_loop(model, place, said[(*place.scope.key, place.index)]) for place in places]


def _rounds(model: Model, target: int, options: RuleOptions) -> list[Round]:
    """What the upgrade, and every rule about loops by itself, would do."""
    stages = [stage for pipeline in PIPELINES.values() for stage in pipeline]
    alone = dict.fromkeys(name for stage in stages if not stage.converts for name in stage.rules)
    (upgrade,) = PIPELINES["upgrade"]
    engines = [Engine(rules_of(upgrade), target, options)]
    engines += [Engine([rule(name)], None, options) for name in alone if name in load_rules()]
    return [engine.round(model) for engine in engines]


def _loop(model: Model, place: Place, said: Sequence[str]) -> Loop:
    *_, outermost = place.scope.chain()
    opset = model.opset(outermost.owner)
    try:
        form = LoopForm.from_node(place.node, opset)
    except ChosenByCaller as error:
        op = f"{op_of(place.node)} (opset {opset})"
        return Loop(place.path, op, [], [], [], "?", [], [], 0, [*said, error.sentence])
    except BadModel as error:
        raise error.at(path=place.path, file=model.file) from error
    site = Site(model, place, opset, opset, Names(), model.types)
    return Loop(
        path=place.path,
        op=_op(form, opset),
        carried=[one.body_input for one in form.carried],
        scanned=[_scanned(one.body_input, one.axis, one.reversed) for one in form.scanned],
        collected=[_scanned(one.body_output, one.axis, one.reversed) for one in form.collected],
        trip_count=str(facts.trip_count(site, form)),
        captured=form.captured,
        recurrences=[sorted(group) for group in facts.recurrences(form)],
        invariant_nodes=len(facts.invariant_nodes(form)),
        rules=said or ["stays as it is"],
    )


def _op(form: LoopForm, opset: int) -> str:
    if form.kind is Kind.SCAN_8:
        return "Scan-8 with sequence_lens" if form.lengths else "Scan-8"
    return f"{form.operator} (opset {opset})"


def _scanned(name: str, axis: int, backwards: bool) -> str:
    return f"{name} (axis {axis}{', reversed' if backwards else ''})"


def _by_place(rounds: Sequence[Round]) -> dict[Key, list[str]]:
    """What the rules say of each node, by where it stands."""
    said: dict[Key, list[str]] = defaultdict(list)
    for round_ in rounds:
        for done in round_.rewritten:
            said[(*done.scope.key, done.index)].append(f"{done.rule.name}: {done.edit.note}")
        for one in round_.refused:
            sentence = f"{one.rule.name}: refuses, {one.reason.sentence} [{one.reason.code}]"
            said[(*one.place.scope.key, one.place.index)].append(sentence)
    return said


def to_json(loops: Sequence[Loop]) -> str:
    """The loops as JSON."""
    return json.dumps([asdict(loop) for loop in loops], indent=2, ensure_ascii=False) + "\n"


def to_table(loops: Sequence[Loop]) -> Table:
    """The loops as a table for people."""
    table = Table(show_lines=True)
    for title in ("loop", "op", "trips", "carried", "scanned", "collected", "captured", "rules"):
        table.add_column(title, overflow="fold")
    for loop in loops:
        table.add_row(
            # as Text: in a plain string, square brackets are markup
            *map(Text, (loop.path, loop.op, loop.trip_count)),
            *(Text("\n".join(cell)) for cell in (loop.carried, loop.scanned, loop.collected)),
            *(Text("\n".join(cell)) for cell in (loop.captured, loop.rules)),
        )
    return table
