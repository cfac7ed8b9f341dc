"""Finds the commands that clear the findings of a model at a target, by trying; nothing is
executed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any

from passes.binding.dims import dims_of_inputs
from passes.binding.inputs import Binding, with_sizes
from passes.choices import DEFAULT_OPSET, LIFTED_BY, Assumption, Form, Half, Signature, Target
from passes.commands.declaring import options_of
from passes.commands.pipeline import Pipeline
from passes.commands.registry import command_named
from passes.errors import PassesError
from passes.ir.model import Model
from passes.operators.cells import RECURRENT
from passes.reports.advice import foreseen
from passes.targets.deciding import deciding
from passes.targets.findings import TargetFindings, check
from passes.targets.profile import Profile, elements
from passes.types.value_types import dims_of

#: The codes of findings that a change of control flow may clear.
_CONTROL_FLOW = frozenset(
    {
        *("if", "if-branches", "loop", "scan", "trip-count", "collected", "carried", "captures"),
        *("lengths", "symbols", "sequence", "optional", "operator"),
    }
)
#: Those that shapes in bodies may clear.
_DECLARED = frozenset({"if-branches", "carried", "symbols"})
_TYPE = "type"
_OPSET = frozenset({"opset", "operator-version", "operator", _TYPE, "attribute"})
#: Opsets that are tried, newest first, beside the ends of what the target takes.
_TRIED = (21, 18, 17, 16, 13, 11)
_INT32: dict[str, Any] = {"int32": True}
#: Inputs and outputs of the model are cast, too.
_SIGNATURE: dict[str, Any] = {"io": str(Signature.cast)}
#: How many iterations are written out to try whether any number of them would do.
_FEW = 2


class RemedyKind(StrEnum):
    """The demand that a remedy makes on the user: none, other roundings, another precision, or a
    promise."""

    EXACT = "exact"
    REGROUPS = "regroups sums"
    PRECISION = "changes precision"
    PROMISE = "needs a promise of yours"


#: A command that is tried, and its options.
_Step = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Remedy:
    """A command that clears findings: `cleared` by their codes."""

    command: str
    options: Mapping[str, Any]
    kind: RemedyKind
    cleared: Mapping[str, int]

    @property
    def step(self) -> tuple[str, Mapping[str, Any]]:
        """The step of a pipeline."""
        return self.command, self.options

    def __str__(self) -> str:
        words = [self.command]
        declared = options_of(command_named(self.command).options)
        for name, value in self.options.items():
            flag = f"--{declared[name].key}"
            values = value if isinstance(value, tuple) else (value,)
            words += [flag] if value is True else [f"{flag} {one}" for one in values]
        return " ".join(words)


@dataclass(frozen=True)
class Remedies:
    """Remedies, in the order in which they are taken, what is in the way after those that are
    `exact`, and the others that would clear more; `missing` are values that only the user knows."""

    taken: Sequence[Remedy]
    left: TargetFindings
    offered: Sequence[Remedy] = ()
    missing: Sequence[str] = ()


@dataclass(frozen=True)
class _State:
    """A model on its way, with what is in the way of it; `bound`: some of its inputs are."""

    model: Model
    checked: TargetFindings
    bound: bool

    @classmethod
    def of(cls, model: Model, profile: Profile, bound: bool) -> _State:
        """The state of a model, with the sizes declared that an outcome has where inputs are
        bound."""
        if bound:
            model = Model(with_sizes(model.proto, model)[0], model.path)
        return cls(model, check(model, profile), bound)


def plan(model: Model, profile: Profile, bound: Binding, max_trips: int | None = None) -> Remedies:
    """Return the remedies for the findings of a valid model whose inputs are bound first. The user
    may promise `max_trips`, the most iterations of any Loop.

    Raises:
        WrongUsage: its inputs cannot be bound so.
    """
    given = bound.of(model) if bound else model
    state = _State.of(given, profile, bool(bound))
    taken: list[Remedy] = []
    promise = {} if max_trips is None else {"max_trips": max_trips}
    for steps in (partial(_candidates, promise=promise), _opsets, _declaring):
        for command, options in steps(state, profile):
            following = _after(state, (command, options), profile)
            if following is None:
                continue
            cleared = _cleared(state.checked, following.checked)
            if sum(cleared.values()) > 0 and len(following.checked.findings) < len(
                state.checked.findings
            ):
                kind = RemedyKind.PROMISE if "max_trips" in options else RemedyKind.EXACT
                taken.append(Remedy(command, options, kind, cleared))
                state = following
            if state.checked.fits:
                break
    return Remedies(taken, state.checked, list(_offered(state, profile, promise)), _missing(state))


def _candidates(state: _State, profile: Profile, promise: Mapping[str, int]) -> Iterator[_Step]:
    """Commands that may clear something, in an order in which they can follow each other; what
    was promised is kept for where exact ones do not suffice."""
    codes = {finding.code for finding in state.checked.findings}
    if "function" in codes:
        yield "convert", {"inline": ("all",)}
    old = any((one.code, one.op) == ("operator-version", "Scan") for one in state.checked.findings)
    if old or "lengths" in codes:
        most = profile.opset.max
        to = {} if most is None or most > DEFAULT_OPSET else {"opset": most}
        ways = [("upgrade", {**to, **way}) for way in ({}, {"batch": "mask"})]
        yield from _best(state, profile, ways)
    if "sequence" in codes:
        yield "simplify", {"rules": ("collect-sequence",)}
    if codes & {"trip-count", "collected"}:
        yield "simplify", {"rules": ("count-loop",)}
        yield "simplify", {"rules": ("bound-loop",)}
    yield from _declaring(state, profile)
    if "captures" in codes and profile.scan.taken and not profile.scan.captures:
        yield "simplify", {"rules": ("carry-captures",)}
    if any(one.code == "attribute" and one.op in RECURRENT for one in state.checked.findings):
        yield "simplify", {"rules": ("forward-cell",)}
    recurrent = [one for one in state.checked.findings if one.op in RECURRENT]
    if any(one.code != "operator-version" for one in recurrent):
        yield from _best(state, profile, [("expand", {"form": form}) for form in Form])
    if _TYPE in codes:
        yield "cast", _INT32
    if codes & _CONTROL_FLOW:
        yield from (("optimize", {"target": target}) for target in _forms(profile))
        if promise:
            yield "optimize", {"target": str(Target.no_control_flow), **promise}


def _declaring(state: _State, profile: Profile) -> Iterator[_Step]:
    """The command that declares shapes, where they may clear something."""
    if any(finding.code in _DECLARED for finding in state.checked.findings):
        yield "simplify", {"rules": ("declare-shapes",)}


def _forms(profile: Profile) -> Iterator[str]:
    """Forms of control flow that a target may take, the one that keeps most of it first."""
    yield from dict.fromkeys(map(str, (profile.form, Target.no_control_flow)))


def _opsets(state: _State, profile: Profile) -> Iterator[_Step]:
    """Conversions to opsets that the target takes, those that clear most first."""
    codes = {finding.code for finding in state.checked.findings}
    if not codes & _OPSET and "ir-version" not in codes:
        return
    own = state.model.newest_opset
    known = {*_TRIED, own, profile.opset.min, profile.opset.max or own}
    opsets = sorted((one for one in known if one in profile.opset and one >= 7), reverse=True)
    older: dict[str, Any] = {}
    if profile.ir_version.max is not None:
        older = {"ir_version": min(profile.ir_version.max, int(state.model.proto.ir_version))}
    yield from _best(
        state,
        profile,
        [("convert", {"opset": opset, **more}) for more in ({}, older) for opset in opsets],
    )


def _best(state: _State, profile: Profile, steps: Sequence[_Step]) -> Iterator[_Step]:
    """The one that leaves the fewest findings, without those that declared shapes may clear; the
    first of equal ones; none if all are refused."""
    tried = [(step, _after(state, step, profile)) for step in steps]
    counted = [
        (sum(one.code not in _DECLARED for one in after.checked.findings), step)
        for step, after in tried
        if after is not None
    ]
    if counted:
        yield min(counted, key=lambda one: one[0])[1]


def _offered(state: _State, profile: Profile, promise: Mapping[str, int]) -> Iterator[Remedy]:
    """Commands that would clear more, if the user allows it."""
    codes = {one.code for one in state.checked.findings}
    asked: list[tuple[RemedyKind, list[_Step], Mapping[str, str]]] = []
    if codes & _CONTROL_FLOW:
        asked += _on_control_flow(profile, promise)
    if _TYPE in codes:
        asked.append((RemedyKind.PRECISION, [*_casts(profile)], {}))
        promised = {**_INT32, "assume": (str(Assumption.int32_inputs),)}
        asked.append((RemedyKind.PROMISE, [("cast", promised)], {}))
    for kind, steps, shown in asked:
        tried = [(one, after) for one in steps if (after := _after(state, one, profile))]
        if tried:
            (command, options), best = min(tried, key=lambda one: len(one[1].checked.findings))
            if len(best.checked.findings) < len(state.checked.findings):
                cleared = _cleared(state.checked, best.checked)
                yield Remedy(command, {**options, **shown}, kind, cleared)


def _on_control_flow(
    profile: Profile, promise: Mapping[str, int]
) -> Iterator[tuple[RemedyKind, list[_Step], Mapping[str, str]]]:
    """Yield what may clear control flow, with options that are shown in place of those tried."""
    asked: dict[RemedyKind, list[Mapping[str, Any]]] = {
        RemedyKind.REGROUPS: [*LIFTED_BY["reassociation"]],
        RemedyKind.PROMISE: [{"assume": ("non-empty",)}, {"assume": ("valid-inputs", "non-empty")}],
    }
    offers = [(kind, ways, dict[str, str]()) for kind, ways in asked.items()]
    if not promise:  # how often, only the user knows
        offers.append((RemedyKind.PROMISE, [{"max_trips": _FEW}], {"max_trips": "N"}))
    flat = str(Target.no_control_flow)
    for kind, ways, shown in offers:
        steps: list[_Step] = [
            ("optimize", {"target": form, **(promise if form == flat else {}), **options})
            for options in ways
            for form in ([flat] if "max_trips" in options else _forms(profile))
        ]
        yield kind, steps, shown


def _casts(profile: Profile) -> Iterator[_Step]:
    """Casts to types that the target takes, those that change least first: without inputs and
    outputs, with them, and of what would keep its precision."""
    refused = elements(profile.refused_types)
    ways: Sequence[dict[str, Any]] = ({}, _SIGNATURE, {**_SIGNATURE, "half": ("*",)})
    for to in (str(half) for half in Half if elements([half]).isdisjoint(refused)):
        yield from (("cast", {"to": to, **way}) for way in ways)


def _missing(state: _State) -> list[str]:
    """Options that fix what the model leaves open, if Ifs, loops or dims are in the way."""
    codes = {finding.code for finding in state.checked.findings}
    found = [f"{one}" for one in deciding(state.model)] if codes & {"if", "if-branches"} else []
    if codes & {"dynamic-dim", "if", "if-branches", "loop", "scan", "trip-count", "collected"}:
        found += [f"--dim {name}=SIZE" for name in dims_of_inputs(state.model)]
        found += [f"--shape {shape}" for shape in _open_shapes(state.model)]
    return found


def _open_shapes(model: Model) -> Iterator[str]:
    """Shapes of inputs that have dims without a name."""
    for value in model.proto.graph.input:
        dims = dims_of(value.type)
        if dims is not None and None in dims:
            sizes = ",".join("SIZE" if dim is None else "?" for dim in dims)
            yield f"{value.name}={sizes}"


def _after(state: _State, step: _Step, profile: Profile) -> _State | None:
    """The model after a command, unverified; None where that is refused."""
    command, options = step
    try:
        _, result = foreseen(state.model.proto, command_named(command).options(**options))
    except PassesError:
        return None
    made = None if result is None else Model(result.model, state.model.path)
    return None if made is None else _State.of(made, profile, state.bound)


def _cleared(before: TargetFindings, after: TargetFindings) -> dict[str, int]:
    """Return the number of cleared findings for each code."""
    counts = [
        {code: sum(one.code == code for one in side.findings) for code in _codes(before)}
        for side in (before, after)
    ]
    fewer = {code: counts[0][code] - counts[1][code] for code in counts[0]}
    return {code: count for code, count in fewer.items() if count > 0}


def _codes(checked: TargetFindings) -> list[str]:
    return list(dict.fromkeys(finding.code for finding in checked.findings))


def fixing(plan_: Remedies, bound: Mapping[str, Any], **common: Any) -> Pipeline:
    """The pipeline that takes the remedies of a plan, verified as a whole; the inputs are `bound`
    by the options of its first command."""
    steps = [(one.command, {**one.options, **common}) for one in plan_.taken]
    command, options = steps[0] if steps else ("simplify", common)
    return Pipeline([(command, {**options, **bound}), *steps[1:]])
