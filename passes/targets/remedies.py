"""What clears what is in the way of a model at a target: found by trying, nothing is executed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from passes.binding import Binding, with_sizes
from passes.choices import Target
from passes.commands.declaring import options_of
from passes.commands.pipeline import Pipeline
from passes.commands.registry import command_named
from passes.dims import dims_of_inputs
from passes.errors import PassesError
from passes.ir.model import Model
from passes.targets.deciding import deciding
from passes.targets.findings import Checked, check
from passes.targets.profile import Profile
from passes.types.value_types import dims_of

#: The codes of findings that a change of control flow may clear.
_CONTROL_FLOW = frozenset(
    {
        *("if", "if-branches", "loop", "scan", "trip-count", "collected", "carried", "captures"),
        "lengths",
        *("sequence", "optional", "operator"),
    }
)
_OPSET = frozenset({"opset", "operator-version", "operator", "type", "attribute"})
#: Opsets that are tried, newest first, beside the ends of what the target takes.
_TRIED = (21, 18, 17, 16, 13, 11)


class Kind(StrEnum):
    """What a remedy asks of the user: nothing, other roundings, or a promise."""

    EXACT = "exact"
    REGROUPS = "regroups sums"
    PROMISE = "needs a promise of yours"


@dataclass(frozen=True)
class Remedy:
    """A command that clears findings: `cleared` by their codes."""

    command: str
    options: Mapping[str, Any]
    kind: Kind
    cleared: Mapping[str, int]

    @property
    def step(self) -> tuple[str, Mapping[str, Any]]:
        """The step of a pipeline."""
        return self.command, self.options

    def __str__(self) -> str:
        said = [self.command]
        declared = options_of(command_named(self.command).options)
        for name, value in self.options.items():
            flag = f"--{declared[name].key}"
            values = value if isinstance(value, tuple) else (value,)
            said += [flag] if value is True else [f"{flag} {one}" for one in values]
        return " ".join(said)


@dataclass(frozen=True)
class Plan:
    """Remedies, in the order in which they are taken, what is in the way after those that are
    `exact`, and the others that would clear more; `missing` are values that only the user knows."""

    taken: Sequence[Remedy]
    left: Checked
    offered: Sequence[Remedy] = ()
    missing: Sequence[str] = ()


@dataclass(frozen=True)
class _State:
    """A model on its way, with what is in the way of it; `bound`: some of its inputs are."""

    model: Model
    checked: Checked
    bound: bool

    @classmethod
    def of(cls, model: Model, profile: Profile, bound: bool) -> _State:
        """The state of a model, with the sizes declared that an outcome has where inputs are
        bound."""
        if bound:
            model = Model(with_sizes(model.proto, model)[0], model.path)
        return cls(model, check(model, profile), bound)


def plan(model: Model, profile: Profile, bound: Binding) -> Plan:
    """What clears the findings of a valid model whose inputs are bound first.

    Raises:
        WrongUsage: its inputs cannot be bound so.
    """
    given = bound.of(model) if bound else model
    state = _State.of(given, profile, bool(bound))
    taken: list[Remedy] = []
    for command, options in _candidates(state, profile):
        following = _after(state, (command, options), profile)
        if following is None:
            continue
        cleared = _cleared(state.checked, following.checked)
        if sum(cleared.values()) > 0 and len(following.checked.findings) < len(
            state.checked.findings
        ):
            taken.append(Remedy(command, options, Kind.EXACT, cleared))
            state = following
        if state.checked.fits:
            break
    for command, options in _opsets(state, profile):
        following = _after(state, (command, options), profile)
        if following is not None and len(following.checked.findings) < len(state.checked.findings):
            cleared = _cleared(state.checked, following.checked)
            taken.append(Remedy(command, options, Kind.EXACT, cleared))
            state = following
            break
    return Plan(taken, state.checked, list(_offered(state, profile)), _missing(state))


def _candidates(state: _State, profile: Profile) -> Iterator[tuple[str, dict[str, Any]]]:
    """Commands that may clear something, in an order in which they can follow each other."""
    codes = {finding.code for finding in state.checked.findings}
    if "function" in codes:
        yield "convert", {"inline": ("all",)}
    if "lengths" in codes:
        yield "upgrade", {}
    if "sequence" in codes:
        yield "simplify", {"rules": ("collect-sequence",)}
    if codes & _CONTROL_FLOW:
        yield from (("optimize", {"target": target}) for target in _forms(profile))


def _forms(profile: Profile) -> Iterator[str]:
    """Forms of control flow that a target may take, the one that keeps most of it first."""
    yield from dict.fromkeys(map(str, (profile.form, Target.no_control_flow)))


def _opsets(state: _State, profile: Profile) -> Iterator[tuple[str, dict[str, Any]]]:
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
    counted = []
    for opset in opsets:
        for more, options in enumerate(({"opset": opset}, {"opset": opset, **older})):
            step: tuple[str, dict[str, Any]] = ("convert", options)
            following = _after(state, step, profile)
            if following is not None:
                counted.append(((len(following.checked.findings), more, -opset), step))
    if counted:
        yield min(counted, key=lambda one: one[0])[1]


def _offered(state: _State, profile: Profile) -> Iterator[Remedy]:
    """Commands that would clear more, if the user allows it."""
    if state.checked.fits or not {one.code for one in state.checked.findings} & _CONTROL_FLOW:
        return
    asked: dict[Kind, list[dict[str, Any]]] = {
        Kind.REGROUPS: [{"allow_reassociation": True}],
        Kind.PROMISE: [{"assume": ("non-empty",)}, {"assume": ("valid-inputs", "non-empty")}],
    }
    for kind, ways in asked.items():
        steps = [
            ("optimize", {"target": form, **options})
            for options in ways
            for form in _forms(profile)
        ]
        tried = [(one, after) for one in steps if (after := _after(state, one, profile))]
        if tried:
            step, best = min(tried, key=lambda one: len(one[1].checked.findings))
            if len(best.checked.findings) < len(state.checked.findings):
                yield Remedy(*step, kind, _cleared(state.checked, best.checked))


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


def _after(state: _State, step: tuple[str, dict[str, Any]], profile: Profile) -> _State | None:
    """The model after a command, unverified; None where that is refused."""
    command, options = step
    pipeline = Pipeline([(command, {**options, "verify": False})])
    try:
        result = pipeline.run(state.model.proto)
        return _State.of(Model(result.model, state.model.path), profile, state.bound)
    except PassesError:
        return None


def _cleared(before: Checked, after: Checked) -> dict[str, int]:
    """How many findings of each code are gone."""
    counts = [
        {code: sum(one.code == code for one in side.findings) for code in _codes(before)}
        for side in (before, after)
    ]
    fewer = {code: counts[0][code] - counts[1][code] for code in counts[0]}
    return {code: count for code, count in fewer.items() if count > 0}


def _codes(checked: Checked) -> list[str]:
    return list(dict.fromkeys(finding.code for finding in checked.findings))


def fixing(plan_: Plan, bound: Mapping[str, Any], **common: Any) -> Pipeline:
    """The pipeline that takes the remedies of a plan, verified as a whole; the inputs are `bound`
    by the options of its first command."""
    steps = [(one.command, {**one.options, **common}) for one in plan_.taken]
    command, options = steps[0] if steps else ("simplify", common)
    return Pipeline([(command, {**options, **bound}), *steps[1:]])
