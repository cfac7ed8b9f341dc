"""Reads what is known of operators from the tables of the parts of this tool."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, get_type_hints

from onnx import NodeProto, TensorProto, defs, helper

from passes.analysis.integers.folding import FOLDED
from passes.analysis.integers.integer_ops import FOLLOWED
from passes.analysis.sizes.sizes_through import has_size
from passes.converters import table
from passes.converters.document import explained, kind_of
from passes.converters.steps import STEPS, Refusal, Step, StepDown
from passes.errors import WrongUsage, nearest
from passes.ir.operators import op_of, plain_domain
from passes.ir.versions import OLDEST_OPSET
from passes.onnxruntime.element_types import signature
from passes.operators.table import TRAITS, traits_of
from passes.operators.traits import EVERY, Fails, Rounds, Traits, Word
from passes.streaming import stream as _rules
from passes.streaming.streamer import rule_of
from passes.support.operators import (
    Ability,
    AtTarget,
    ElementTypes,
    KnownOperator,
    Operators,
    Trait,
    VersionSteps,
)
from passes.targets import profile
from passes.targets.findings import unsupported
from passes.vectorize import TABLE as BATCHED
from passes.verify.prove import operators as _models
from passes.verify.prove.drawn.operators import way_of
from passes.verify.prove.evaluator import model_of
from passes.verify.reference import ops as _kernels
from passes.verify.reference.control_flow.table import CONTROL_FLOW
from passes.verify.reference.kernels import has_kernel
from passes.verify.reference.registry import LATEST, overridden, override

assert all((_rules, _models, _kernels))  # what is imported registers itself


class UnknownOperator(WrongUsage):
    """No operator has this name, or none is as old."""


@dataclass(frozen=True)
class _Looked:
    """An operator that is looked at, at an opset of its domain."""

    name: str
    opset: int

    @property
    def domain(self) -> str:
        return self.name.rpartition("::")[0]

    @cached_property
    def history(self) -> Sequence[defs.OpSchema]:
        """Its versions up to the opset, oldest first."""
        return [one for one in _documents().get(self.name, ()) if one.since_version <= self.opset]

    @cached_property
    def schema(self) -> defs.OpSchema | None:
        """The version in force, or the last one before it was deprecated."""
        return next((one for one in reversed(self.history) if not one.deprecated), None)

    @property
    def version(self) -> int:
        return self.schema.since_version if self.schema is not None else 0

    @cached_property
    def node(self) -> NodeProto:
        return helper.make_node(self.name.rpartition("::")[2], ["x"], ["y"], domain=self.domain)

    @cached_property
    def steps(self) -> Sequence[int]:
        """The versions that conversion leads to or away from."""
        versions = [one.since_version for one in self.history]
        return [one for one in versions if one > OLDEST_OPSET and not self.domain]


@cache
def _documents() -> dict[str, list[defs.OpSchema]]:
    found: dict[str, list[defs.OpSchema]] = {}
    for schema in sorted(defs.get_all_schemas_with_history(), key=lambda one: one.since_version):
        found.setdefault(_spelled(schema.domain, schema.name), []).append(schema)
    return found


@cache
def _profiles() -> Sequence[profile.Profile]:
    return [*map(profile.load, profile.names())]


@cache
def names() -> Sequence[str]:
    """All operators that the installed onnx or a table of this tool knows, ONNX's own first."""
    listed = {_named(name) for one in _profiles() for name in one.operators}
    every = {*_documents(), *TRAITS, *overridden(), *listed}
    return sorted(every, key=lambda name: ("::" in name, name))


def _named(written: str) -> str:
    """The name of an operator that is written with `.` or `::` after its domain."""
    domain, _, name = written.replace("::", ".").rpartition(".")
    return _spelled(domain, name)


def _spelled(domain: str, name: str) -> str:
    return op_of(NodeProto(op_type=name, domain=domain))


def known_operators(*, opset: int | None = None, domain: str | None = None) -> Operators:
    """What is known of all operators, or of those of a domain.

    `opset`: as they are at this opset of their domain, in place of the newest.

    Raises:
        UnknownOperator: there are none.
    """
    wanted = None if domain is None else plain_domain(domain)
    looked = [_Looked(name, LATEST if opset is None else opset) for name in names()]
    found = [_read(one) for one in looked if wanted in (None, one.domain) and _exists(one)]
    if not found:
        raise UnknownOperator(f"no operator of the domain {domain!r} is known")
    return Operators(found)


def known_operator(name: str, *, opset: int | None = None) -> KnownOperator:
    """What is known of an operator, `Add` or `com.microsoft::Attention`.

    `opset`: as it is at this opset of its domain, in place of the newest.

    Raises:
        UnknownOperator: there is none; the sentence names those most like it.
    """
    spelled = _named(name)
    if spelled not in names():
        raise UnknownOperator(f"there is no operator {name!r}; {nearest(spelled, names())}")
    looked = _Looked(spelled, LATEST if opset is None else opset)
    if not _exists(looked):
        first = _documents()[spelled][0].since_version
        raise UnknownOperator(f"{spelled} came with opset {first}, which is newer than {opset}")
    return _read(looked)


def _exists(of: _Looked) -> bool:
    return bool(of.history) or of.name not in _documents()


def _read(of: _Looked) -> KnownOperator:
    refusals = {one.name: unsupported(of.name, of.version, one) for one in _profiles()}
    return KnownOperator(
        of.name,
        of.version,
        bool(of.history) and of.history[-1].deprecated,
        [VersionSteps(one.since_version, *_steps(of, one.since_version)) for one in of.history],
        [*_traits(TRAITS[of.name])] if of.name in TRAITS else [],
        [Ability(name, *answer(of)) for name, answer in _ABILITIES.items()],
        [*_types(of)],
        [AtTarget(*one) for one in refusals.items()],
    )


def _traits(row: Traits) -> Iterator[Trait]:
    """The cells of a row that tell something."""
    for column, kind in get_type_hints(Traits, include_extras=True).items():
        value, default = getattr(row, column), getattr(Traits, column)
        if isinstance(value, Word):
            if value.meaning:
                yield Trait(column, value, value.meaning)
        elif value != default:
            yield Trait(column, _written(value), *kind.__metadata__)


def _written(value: str | bool | int | Sequence[int]) -> str:
    if isinstance(value, bool):
        return "yes" if value else "-"
    if isinstance(value, str | int):
        return f"{value}"
    return "all" if value == EVERY else ", ".join(map(str, value))


def _steps(of: _Looked, version: int) -> tuple[str, str]:
    if version not in of.steps:
        return "", ""
    up = STEPS.get((of.name, version))
    return _told(up) if up else "", _told(table.step_down(of.name, version))


def _told(step: Step | StepDown) -> str:
    return ": ".join(filter(None, (kind_of(step), explained(step))))


def _types(of: _Looked) -> Iterator[ElementTypes]:
    known = signature(of.name, of.version)
    formals = () if known is None else (*known.inputs, *known.outputs)
    for one in {formal.variable: formal for formal in formals if formal.valid}.values():
        yield ElementTypes(one.variable, _spelled_out(one.valid), _spelled_out(one.always_lacked))


def _spelled_out(types: Iterable[int]) -> Sequence[str]:
    return [TensorProto.DataType.Name(one).lower() for one in sorted(types)]


#: Whether a part can do something, a note, and the source of it.
_Answer = tuple[bool, str, str] | tuple[bool, str]
_OTHER_DOMAIN = (False, "opsets of other domains are not converted")


def _by(function: Callable[..., object] | None, how: str, otherwise: str) -> _Answer:
    """The answer of a part with a function for the operator, or with none."""
    if function is None:
        return False, otherwise
    file = f"{function.__module__.replace('.', '/')}.py"
    return True, how, file.replace("passes/converters", "converters")


def _up(of: _Looked) -> _Answer:
    steps = [STEPS[of.name, one] for one in of.steps if (of.name, one) in STEPS]
    refused = next((one for one in steps if isinstance(one, Refusal)), None)
    if of.domain:
        return _OTHER_DOMAIN
    return (True, "by every step") if refused is None else (False, _told(refused))


def _down(of: _Looked) -> _Answer:
    left = [version for version in reversed(of.steps) if version <= of.version]
    steps = (table.step_down(of.name, version) for version in left)
    refused = next((one for one in steps if isinstance(one, Refusal)), None)
    if of.domain:
        return _OTHER_DOMAIN
    if refused is None:
        return True, f"to opset {OLDEST_OPSET}"
    return False, f"to opset {refused.version}; {_told(refused)}"


def _batches(of: _Looked) -> _Answer:
    if of.name not in BATCHED and of.schema is not None and not of.schema.max_input:
        return True, "has no inputs"
    return _by(BATCHED.get(of.name), "by a rule", "refused: no-batching-rule")


def _executes(of: _Looked) -> _Answer:
    last = of.history[-1] if of.history else None
    opset = last.since_version - 1 if last is not None and last.deprecated else of.opset
    own = CONTROL_FLOW.get(of.name) or override(of.name, opset)
    if own is not None:
        return _by(own, "by a kernel of its own", "")
    if has_kernel(of.node, opset):
        return True, "by onnx's kernel"
    schema: Any = of.schema  # onnx's type stubs leave out what it knows of its function
    if schema is not None and (schema.has_function or schema.has_context_dependent_function):
        return True, "by the function of its document"
    return False, "not compared, unless onnxruntime runs it"


def _drawn(of: _Looked) -> _Answer:
    return (
        (True, way_of(of.name))
        if way_of(of.name)
        else (False, "tried by its kernel or its function")
    )


def _told_by_row(holds: Callable[[Traits], bool]) -> Callable[[_Looked], _Answer]:
    """An answer that a row of the table of operators gives."""
    otherwise = "has no row in passes/operators"
    return lambda of: (holds(traits_of(of.node)), "" if of.name in TRAITS else otherwise)


#: The answers of all parts, by the name of the column.
_ABILITIES: dict[str, Callable[[_Looked], _Answer]] = {
    "up": _up,
    "down": _down,
    "safe": _told_by_row(lambda row: row.fails is Fails.NEVER),
    "exact": _told_by_row(lambda row: row.rounds is Rounds.NEVER),
    "batches": _batches,
    "streams": lambda of: _by(
        rule_of(of.node), "by a rule", "refused: reads frames, and has no rule for these"
    ),
    "executes": _executes,
    "proves": lambda of: _by(
        model_of(of.name), "for all sizes", "only that equal inputs give equal outputs"
    ),
    "drawn": _drawn,
    "folds": lambda of: (of.name in FOLDED, ""),
    "integers": lambda of: (of.name in FOLLOWED, ""),
    "sizes": lambda of: (has_size(of.node), ""),
}
