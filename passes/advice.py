"""What to do next: the options that lift refusals, tried on the model; nothing is executed."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from passes.binding.dims import dims_of_inputs
from passes.binding.values import read
from passes.commands.declaring import flags_of, options_of
from passes.commands.options import Options
from passes.commands.pipeline import Pipeline
from passes.commands.registry import command_of
from passes.commands.rewriting import Optimize
from passes.errors import BadModel, PassesError
from passes.ir.model import Model
from passes.not_produced import NotProduced
from passes.report import Advice, Record, Report, places_of
from passes.session import Result, Source
from passes.targets.deciding import deciding

#: The most that is advised, that is tried, and nodes of all models on which anything is.
_MOST, _TRIES, _MOST_NODES = 3, 4, 2_000
#: The values at which promises are tried: of a free dim, and of a bound of trip counts.
_LENGTH, _TRIPS = 256, 2
#: A measured gain that is no more than noise.
_NOISE = 1.05
#: Options that are promises of the user, which come last, and those whose value a user must find.
_PROMISES = frozenset({"assume", "dims", "values", "max_trips"})
_LEFT_OPEN = frozenset({"inputs", "max_bytes", "max_nodes", "max_trips", "verify_budget"})

#: Measures how many times as fast as the original an outcome is.
Gain = Callable[[Result], float | None]


@dataclass(frozen=True)
class _Way:
    """Options that would lift refusals, as they are shown, and as they are tried, if they are."""

    flags: Sequence[str]
    tried: Options | None
    promised: bool
    refusals: list[Record] = field(default_factory=list)


def lifting(options: Options, lift: Mapping[str, Any]) -> Options | None:
    """The options of a command with those that would lift a refusal; None if it has no such option,
    or they do not go together."""
    declared = options_of(type(options))
    if "keep_order" in declared and "allow_reassociation" in lift:
        lift = {"keep_order": False}  # sums are regrouped by default
    wanted = {}
    for name, value in lift.items():
        if name not in declared:
            return None
        own = getattr(options, name)
        if isinstance(value, Mapping):
            value = {**(own or {}), **value}
        elif isinstance(value, tuple):
            value = tuple(dict.fromkeys((*own, *value)))
        wanted[name] = own if value is None else value
    try:
        return replace(options, **wanted)
    except ValueError:
        return None


def advised(
    path: Path, options: Options, report: Report, written: str = "", gain: Gain | None = None
) -> Report:
    """The report of a command on a file, with what to do next; no option is said to lift a refusal
    if it was tried in vain. `gain` measures what is tried, `written` is where the outcome is."""
    advice = list[tuple[float, Advice]]()
    helped = set[int]()
    present = (report.measured.gain if report.measured else None) or 1.0
    tries = _MOST_NODES // (report.sizes[0].nodes + 1)
    for way in _ways(path, options, report.refusals)[:_TRIES]:
        effect, faster = "", None
        if way.tried is not None and tries > 0:
            tries -= 1
            effect, result = _effect(path, way, report)
            if effect and result is not None and gain is not None:
                faster = gain(result)
            if not effect or (faster is not None and faster < present / _NOISE):
                continue
        helped.update(map(id, way.refusals))
        command = shlex.join(["passes", command_of(options).name, f"{path}", *way.flags])
        effect += "; a promise of yours" * (bool(effect) and way.promised)
        if faster is not None and faster < present * _NOISE:
            faster, effect = None, f"{effect}; no gain on drawn inputs, --inputs gives your own"
        advice.append((-(faster or present), Advice(command, effect, faster)))
    after = _afterwards(path, options, report, written)
    first = [one for _, one in sorted(advice, key=lambda pair: pair[0])][: _MOST - len(after)]
    records = [
        replace(one, lifted_by=()) if one.lifted_by and id(one) not in helped else one
        for one in report.records
    ]
    return replace(report, records=records, advice=[*first, *after])


def optimizing(path: Path, nodes: int, rules: Collection[str]) -> list[Advice]:
    """What to do with a model of so many nodes, if `optimize` changes it, or would with other
    options; `rules` are those that rewrite a loop by themselves, which decide for a large model."""
    options = Optimize()
    command = shlex.join(["passes", "optimize", f"{path}"])
    if nodes > _MOST_NODES:
        return [Advice(command)] * any(rule in options.schedule.rules for rule in rules)
    try:
        report, _ = tried(path, options)
    except PassesError:
        return []
    done = [*dict.fromkeys(one.rule for one in report.rewrites)]
    more = f" and {len(done) - _MOST} more" if len(done) > _MOST else ""
    own = [Advice(command, ", ".join(done[:_MOST]) + more)] if done else []
    return [*own, *advised(path, options, report).advice][:_MOST]


def _afterwards(path: Path, options: Options, report: Report, written: str) -> list[Advice]:
    """What to run on an outcome of `optimize`."""
    name = options.schedule.name
    if not written or not name.startswith("optimize"):
        return []
    if options.profile is not None:
        check = ["passes", "check", written, "--target", getattr(options, "target", "")]
        return [Advice(shlex.join(check), "tells whether it fits")]
    if not report.rewrites or report.measured is not None:
        return []
    measure = shlex.join(["passes", "measure", f"{path}", written])
    return [Advice(measure, "tells the gain; so does --measure")]


def _ways(path: Path, options: Options, refusals: Sequence[Record]) -> list[_Way]:
    """The ways of lifting refusals: promises last, those that lift most first."""
    lifts = [(record, lift) for record in refusals for lift in record.lifted_by]
    if not lifts:
        return []
    try:
        model = Model.load(path)
    except BadModel:  # the file has changed
        return []
    declared = options_of(type(options))
    ways: dict[tuple[str, ...], _Way] = {}
    for record, lift in lifts:
        for given in _filled(lift, model):
            changed = lifting(options, given)
            if changed is None:
                continue
            left = [declared[name] for name in lift if lift[name] is None and name in _LEFT_OPEN]
            if changed == options and not left:
                continue
            shown = [word for one in left for word in (f"--{one.key}", one.help.metavar or "N")]
            flags = (*flags_of(options), *shown) if left else tuple(flags_of(changed))
            way = _Way(
                flags, None if changed == options else changed, not _PROMISES.isdisjoint(lift)
            )
            ways.setdefault(flags, way).refusals.append(record)
    return sorted(ways.values(), key=lambda way: (way.promised, -len(way.refusals)))


def _filled(lift: Mapping[str, Any], model: Model) -> Iterator[Mapping[str, Any]]:
    """Options with values for those that only the user knows, as far as the model names any."""
    match lift:
        case {"dims": None}:
            yield from ({"dims": {name: _LENGTH}} for name in dims_of_inputs(model))
        case {"values": None}:
            known = (one for one in deciding(model) if one.values)
            yield from ({"values": {one.name: read(one.values[0])}} for one in known)
        case {"max_trips": None}:
            yield {"max_trips": _TRIPS}
        case _:
            yield lift


def _effect(path: Path, way: _Way, report: Report) -> tuple[str, Result | None]:
    """What the rules that refused rewrite with other options, empty if nothing, and the outcome,
    None if there is none; it is not verified."""
    assert way.tried is not None
    try:
        after, result = tried(path, way.tried)
    except PassesError:
        return "", None
    more = Counter(one.rule for one in after.rewrites)
    more.subtract(one.rule for one in report.rewrites)
    rules = dict.fromkeys(one.rule for one in way.refusals if more[one.rule] > 0)
    known = {(one.rule, one.path) for one in report.rewrites}
    new = [one for one in after.rewrites if (one.rule, one.path) not in known]
    paths = [one.path for one in new if one.rule in rules]
    if not rules or not paths:
        return "", result
    verb = "rewrites" if len(rules) == 1 else "rewrite"
    return f"{', '.join(rules)} {verb} {places_of([*dict.fromkeys(paths)])}", result


def tried(source: Source, options: Options) -> tuple[Report, Result | None]:
    """The report of a command on a model, and its outcome, if there is one, without verification.

    Raises:
        PassesError: it is no valid model, or the options do not fit it.
    """
    off: dict[str, Any] = {"verify": False, "prove": False, "require_proof": None, "certify": False}
    try:
        result = Pipeline([replace(options, **off)]).run(source)
        return result.report, result
    except NotProduced as error:
        return error.report, None
