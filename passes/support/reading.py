"""Reads what is known of operators from the tables of the parts of this tool."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, get_type_hints

from onnx import NodeProto, defs, helper

from passes.analysis.integers.integer_ops import FOLLOWED
from passes.analysis.sizes.sizes_through import has_size
from passes.converters import table
from passes.converters.document import told
from passes.converters.steps import STEPS, Refusal, Step, StepDown
from passes.errors import WrongUsage, nearest
from passes.ir.operators import op_of, plain_domain
from passes.ir.versions import OLDEST_OPSET
from passes.operators.element_types import signature
from passes.operators.folding import FOLDED
from passes.operators.table import TRAITS, traits_of
from passes.operators.traits import EVERY, Fails, Rounds, Traits, Word
from passes.proving import operators as _models
from passes.proving.drawn.operators import is_of_terms
from passes.proving.symbolic_evaluator import model_of
from passes.streaming import stream as _rules
from passes.streaming.streamer import rule_of
from passes.support.operators import (
    Ability,
    ElementTypes,
    KnownOperator,
    Operators,
    Trait,
    VersionStep,
)
from passes.targets import profile
from passes.targets.findings import unsupported
from passes.types.value_types import element
from passes.vectorize import TABLE as BATCHED
from passes.verify.reference import ops as _kernels
from passes.verify.reference.control_flow.table import CONTROL_FLOW
from passes.verify.reference.kernels import has_kernel
from passes.verify.reference.registry import LATEST, overridden, override

assert all((_rules, _models, _kernels))  # what is imported registers itself


class UnknownOperator(WrongUsage):
    """No operator has this name, or none is as old."""


@dataclass(frozen=True)
class _Looked:
    """An operator, its versions up to an opset of its domain, oldest first, the last one of them
    that is not deprecated, and an opset at which that is in force."""

    name: str
    node: NodeProto
    history: Sequence[defs.OpSchema]
    schema: defs.OpSchema | None
    opset: int

    @property
    def version(self) -> int:
        return self.schema.since_version if self.schema is not None else 0

    @property
    def changes(self) -> Sequence[int]:
        """The versions that conversion leads to, and away from."""
        versions = [one.since_version for one in self.history]
        return [one for one in versions if one > OLDEST_OPSET and not self.node.domain]


def _looked(name: str, opset: int) -> _Looked:
    history = [one for one in _documents().get(name, ()) if one.since_version <= opset]
    valid = [one for one in history if not one.deprecated]
    gone = [one.since_version - 1 for one in history if one.deprecated]
    domain, _, bare = name.rpartition("::")
    node = helper.make_node(bare, ["x"], ["y"], domain=domain)
    return _Looked(name, node, history, valid[-1] if valid else None, min([opset, *gone]))


@cache
def _documents() -> dict[str, list[defs.OpSchema]]:
    found: dict[str, list[defs.OpSchema]] = {}
    for schema in sorted(defs.get_all_schemas_with_history(), key=lambda one: one.since_version):
        found.setdefault(_named(f"{schema.domain}::{schema.name}"), []).append(schema)
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
    return op_of(NodeProto(op_type=name, domain=domain))


def known_operators(
    name: str = "", *, opset: int | None = None, domain: str | None = None
) -> Operators:
    """What is known of an operator, `Add` or `com.microsoft::Attention`, or of all.

    `opset`: as of this opset of their domain, in place of the newest. `domain`: only those of it,
    `ai.onnx` for ONNX's own.

    Raises:
        UnknownOperator: there is none; the sentence names those most like it.
    """
    every = (_looked(one, LATEST if opset is None else opset) for one in names())
    known = [one for one in every if one.history or one.name not in _documents()]
    within = None if domain is None else plain_domain(domain)
    asked = _named(f"{domain}::{name}" if domain and name else name)
    found = [one for one in known if asked in ("", one.name) and within in (None, one.node.domain)]
    if not found:
        what = f"operator {asked!r}" if name else f"operator of the domain {domain!r}"
        at = "" if opset is None else f" at opset {opset}"
        near = nearest(asked or f"{domain}", (one.name for one in known))
        raise UnknownOperator(f"there is no {what}{at}; {near}")
    return Operators([*map(_read, found)])


def _read(of: _Looked) -> KnownOperator:
    return KnownOperator(
        of.name,
        of.version,
        bool(of.history) and of.history[-1].deprecated,
        [one.since_version for one in of.history],
        [*_steps(of)],
        [*_traits(TRAITS[of.name])] if of.name in TRAITS else [],
        [Ability(part.__name__.strip("_"), *part(of)) for part in _PARTS],
        [*_types(of)],
        {one.name: unsupported(of.name, of.version, one) for one in _profiles()},
    )


def _traits(row: Traits) -> Iterator[Trait]:
    """The cells of a row that tell something."""
    for column, kind in get_type_hints(Traits, include_extras=True).items():
        value = getattr(row, column)
        if isinstance(value, Word):
            if value.meaning:
                yield Trait(column, value, value.meaning)
        elif value != getattr(Traits, column):
            yield Trait(column, _written(value), *kind.__metadata__)


def _written(value: str | bool | int | Sequence[int]) -> str:
    if isinstance(value, str | int):
        return f"{value}".replace("True", "yes").replace("False", "-")
    return "all" if value == EVERY else ", ".join(map(str, value))


def _steps(of: _Looked) -> Iterator[VersionStep]:
    for version in of.changes:
        if up := STEPS.get((of.name, version)):
            yield VersionStep(version, "up", told(up))
        yield VersionStep(version, "down", told(table.step_down(of.name, version)))


def _types(of: _Looked) -> Iterator[ElementTypes]:
    known = signature(of.name, of.version)
    formals = () if known is None else (*known.inputs, *known.outputs)
    for one in {formal.variable: formal for formal in formals if formal.valid}.values():
        yield ElementTypes(one.variable, "takes", [*map(element, sorted(one.valid))])
        if lacked := [*map(element, sorted(one.always_lacked))]:
            yield ElementTypes(one.variable, "lacks", lacked)


#: Whether a part can do something, a note, and the source of it.
_Answer = tuple[bool, str, str] | tuple[bool, str]


def _by(function: Callable[..., object] | None, how: str, otherwise: str) -> _Answer:
    """The answer of a part with a function for the operator, or with none."""
    if function is None:
        return False, otherwise
    file = f"{function.__module__.replace('.', '/')}.py"
    return True, how, file.replace("passes/converters", "converters")


def _converted(of: _Looked, steps: Iterable[Step | StepDown | None], ends: str) -> _Answer:
    """The answer of conversion that takes these steps until one is refused."""
    if of.node.domain:
        return False, "opsets of other domains are not converted"
    refused = next((one for one in steps if isinstance(one, Refusal)), None)
    return (True, ends) if refused is None else (False, f"from {refused.version}: {told(refused)}")


def _up(of: _Looked) -> _Answer:
    """Its nodes are converted to every newer opset, unless a node uses what an adapter refuses."""
    return _converted(of, (STEPS.get((of.name, one)) for one in of.changes), "by every step")


def _down(of: _Looked) -> _Answer:
    """The same for every older opset, from 7 on."""
    left = [version for version in reversed(of.changes) if version <= of.version]
    steps = (table.step_down(of.name, version) for version in left)
    return _converted(of, steps, f"to opset {OLDEST_OPSET}")


def _by_row(of: _Looked, holds: bool) -> _Answer:
    return holds, "" if of.name in TRAITS else "has no row in passes/operators"


def _safe(of: _Looked) -> _Answer:
    """It fails on no values of the right types and shapes, so rules may run it on others."""
    return _by_row(of, traits_of(of.node).fails is Fails.NEVER)


def _exact(of: _Looked) -> _Answer:
    """It rounds nothing."""
    return _by_row(of, traits_of(of.node).rounds is Rounds.NEVER)


def _batches(of: _Looked) -> _Answer:
    """It runs for all rows, or all iterations, at once, which the upgrade of a Scan-8,
    `batch-inputs` and `dissolve-map` need of each operator in a body."""
    if of.name not in BATCHED and of.schema is not None and not of.schema.max_input:
        return True, "has no inputs"
    return _by(BATCHED.get(of.name), "by a rule", "refused: no-batching-rule")


def _streams(of: _Looked) -> _Answer:
    """`stream` takes it where it reads frames."""
    return _by(rule_of(of.node), "by a rule", "refused: reads frames, and has no rule for these")


def _executes(of: _Looked) -> _Answer:
    """The reference executor runs it, so rewrites of it are verified without onnxruntime, too."""
    own = CONTROL_FLOW.get(of.name) or override(of.name, of.opset)
    schema: Any = of.schema  # onnx's type stubs leave out what it knows of its function
    if own is None and has_kernel(of.node, of.opset):
        return True, "by onnx's kernel"
    if own is None and schema and (schema.has_function or schema.has_context_dependent_function):
        return True, "by the function of its document"
    return _by(own, "by a kernel of its own", "not compared, unless onnxruntime runs it")


def _proves(of: _Looked) -> _Answer:
    """`prove` has a model of it for all sizes; of others it assumes that equal inputs give equal
    outputs."""
    return _by(model_of(of.name), "by a model", "only that equal inputs give equal outputs")


def _drawn(of: _Looked) -> _Answer:
    """`prove` has a model of it at drawn sizes; of others it tries the kernel, or the function."""
    return is_of_terms(of.name), ""


def _folds(of: _Looked) -> _Answer:
    """Its outputs are computed before the model runs, if its inputs are constant integers."""
    return of.name in FOLDED, ""


def _integers(of: _Looked) -> _Answer:
    """Sums of sizes are followed through it."""
    return of.name in FOLLOWED, ""


def _sizes(of: _Looked) -> _Answer:
    """The sizes of its output may be known from those of its inputs."""
    return has_size(of.node), ""


#: What answers for each part, in the order of the columns.
_PARTS: Sequence[Callable[[_Looked], _Answer]] = (
    *(_up, _down, _safe, _exact, _batches, _streams, _executes, _proves, _drawn),
    *(_folds, _integers, _sizes),
)


def meanings() -> Mapping[str, str]:
    """What it means that a part can do something with an operator, by column."""
    return {part.__name__.strip("_"): " ".join((part.__doc__ or "").split()) for part in _PARTS}
