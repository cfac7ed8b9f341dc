"""What to do next: the options that lift refusals, tried on the model; nothing is executed."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from passes.binding.dims import dims_of_inputs
from passes.binding.values import read
from passes.commands.declaring import flags_of, options_of
from passes.commands.options import Options
from passes.commands.pipeline import Pipeline
from passes.commands.registry import command_named, command_of
from passes.errors import NotProduced, PassesError
from passes.ir.model import Model
from passes.reports.report import Advice, Record, Report
from passes.session import Result, Source
from passes.targets.deciding import deciding

#: The most that is advised and tried, and nodes of a model on which anything is.
_MOST, _TRIES, _MOST_NODES = 3, 4, 1_000
_OPTIMIZE = "optimize"
#: The size at which a free dim is tried.
_LENGTH = 256
#: An error of a cast below which nothing is advised.
_LARGE_ERROR = 1e-2
#: A measured gain that is no more than noise.
_NOISE = 1.05
#: Options that are promises of the user, which come last.
_PROMISES = frozenset({"assume", "dims", "values", "max_trips"})

#: Measures how many times as fast as the original an outcome is.
Gain = Callable[[Result], float | None]


@dataclass(frozen=True)
class _Way:
    """Options that would lift refusals."""

    options: Options
    promised: bool
    refusals: list[Record] = field(default_factory=list)


def lifting(options: Options, lift: Mapping[str, Any]) -> Options | None:
    """The options of a command with those that would lift a refusal; None if it has no such option,
    only the user knows its value, or they do not go together."""
    if "allow_reassociation" in lift and getattr(options, "keep_order", False):
        lift = {"keep_order": False}
    if "allow_reassociation" in lift and (options.certify or options.require_proof):
        return None  # which other sums would not pass
    wanted: dict[str, Any] = {}
    for name, value in lift.items():
        own = getattr(options, name, None)
        if isinstance(value, Mapping):
            value = {**(own or {}), **value}
        wanted[name] = (*own, *value) if isinstance(own, tuple) else value
    known = wanted.keys() <= options_of(type(options)).keys() and None not in wanted.values()
    try:
        return replace(options, **wanted) if known else None
    except ValueError:
        return None


def foreseen(source: Source, options: Options) -> tuple[Report, Result | None]:
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


def advised(
    path: Path, options: Options, report: Report, written: str = "", gain: Gain | None = None
) -> Report:
    """The report of a command on a file, with what to do next; no option is said to lift a refusal
    if it was tried in vain. `gain` measures what is tried, `written` is where the outcome is."""
    found, helped = list[Advice](), set[int]()
    present = (report.measured and report.measured.gain) or 1.0
    for way in _ways(path, options, report.refusals):
        effect, faster = "", None
        if report.sizes[0].nodes <= _MOST_NODES:
            try:
                after, result = foreseen(path, way.options)
            except PassesError:
                continue
            refusing = [one.rule for one in way.refusals]
            effect = _effect([one for one in _more(report, after) if one in refusing])
            faster = gain(result) if effect and gain is not None and result is not None else None
            if not effect or (faster is not None and faster < present / _NOISE):
                continue
        helped.update(map(id, way.refusals))
        effect += "; a promise of yours" * way.promised
        found.append(Advice(_line(path, way.options), effect.removeprefix("; "), faster))
    found.sort(key=lambda one: -(one.gain or present))
    last = _afterwards(path, options, report, written)
    records = [
        replace(one, lifted_by=()) if one.lifted_by and id(one) not in helped else one
        for one in report.records
    ]
    return replace(report, records=records, advice=[*found[: _MOST - len(last)], *last])


def optimizing(path: Path, nodes: int, rules: Sequence[str]) -> Sequence[Advice]:
    """What to do with a model of so many nodes, if `optimize` changes it, or would with other
    options; `rules` are those that rewrite a loop by themselves, which decide for a large model."""
    options = command_named(_OPTIMIZE).options()
    if nodes > _MOST_NODES:
        return [Advice(_line(path, options))] * (not {*options.schedule.rules}.isdisjoint(rules))
    try:
        report, _ = foreseen(path, options)
    except PassesError:
        return ()
    effect = _effect([*dict.fromkeys(one.rule for one in report.rewrites)])
    own = [Advice(_line(path, options), effect)] if effect else []
    return [*own, *advised(path, options, report).advice][:_MOST]


def _afterwards(path: Path, options: Any, report: Report, written: str) -> list[Advice]:
    """What to run after `optimize`, on its outcome, and after `cast`, if its error is large."""
    within = report.within
    if within is not None and within.bound is None and within.error > _LARGE_ERROR:
        effect = "keeps as much in float32 as that takes"
        return [Advice(_line(path, replace(options, max_error=_LARGE_ERROR)), effect)]
    if not written or command_of(options).name != _OPTIMIZE:
        return []
    if options.profile is not None:
        check = shlex.join(["passes", "check", written, "--target", options.target])
        return [Advice(check, "tells whether it fits")]
    measure = shlex.join(["passes", "measure", f"{path}", written])
    wanted = report.rewrites and report.measured is None
    return [Advice(measure, "tells the gain; so does --measure")] if wanted else []


def _ways(path: Path, options: Options, refusals: Sequence[Record]) -> list[_Way]:
    """The ways of lifting refusals: promises last, those that lift most first."""
    ways: dict[tuple[str, ...], _Way] = {}
    model = Model.load(path) if any(one.lifted_by for one in refusals) else None
    for record in refusals:
        for given in (given for lift in record.lifted_by for given in _filled(lift, model)):
            changed = lifting(options, given)
            if changed is not None and changed != options:
                way = _Way(changed, not _PROMISES.isdisjoint(given))
                ways.setdefault(tuple(flags_of(changed)), way).refusals.append(record)
    return sorted(ways.values(), key=lambda way: (way.promised, -len(way.refusals)))[:_TRIES]


def _filled(lift: Mapping[str, Any], model: Model | None) -> Iterator[Mapping[str, Any]]:
    """Options with values for those that only the user knows, as far as the model names any."""
    if model is not None and lift == {"dims": None}:
        yield from ({"dims": {name: _LENGTH}} for name in dims_of_inputs(model))
    elif model is not None and lift == {"values": None}:
        known = (one for one in deciding(model) if one.values)
        yield from ({"values": {one.name: read(one.values[0])}} for one in known)
    else:
        yield lift


def _more(before: Report, after: Report) -> list[str]:
    """The rules that rewrite more in another run."""
    counts = Counter(one.rule for one in after.rewrites)
    return [*(counts - Counter(one.rule for one in before.rewrites))]


def _effect(rules: Sequence[str]) -> str:
    more = f" and {len(rules) - _MOST} more" if len(rules) > _MOST else ""
    return f"lets {', '.join(rules[:_MOST])}{more} apply" if rules else ""


def _line(path: Path, options: Options) -> str:
    return shlex.join(["passes", command_of(options).name, f"{path}", *flags_of(options)])
