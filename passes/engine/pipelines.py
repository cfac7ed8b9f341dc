"""Phases, a few rules that run together, and pipelines, the phases of each command."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from onnx import ModelProto

from passes.choices import Flag
from passes.engine.plugins import UnknownRule, rule
from passes.errors import nearest
from passes.ir import scope as scoping
from passes.ir.model import Model
from passes.ir.operators import op_of
from passes.ir.versions import SCAN_8


@dataclass(frozen=True)
class Phase:
    """Rules that run together, round after round, until none of them finds anything to do.

    On each site they are tried in their order. `converts`: they bring the whole model to a target
    opset, in one round. `when`: always, only where an opset was `asked` for, or as `needed`: there,
    and where the model holds a Scan-8, which the other rules do not support.
    """

    name: str
    rules: tuple[str, ...]
    converts: bool = False
    when: Literal["always", "asked", "needed"] = "always"

    def applies_to(self, model: Model, *, asked: bool) -> bool:
        """Whether the phase has anything to do with a model.

        `asked`: the user requested an opset.
        """
        match self.when:
            case "asked":
                return asked
            case "needed":
                return asked or (model.opset() <= SCAN_8 and _holds_scan(model.proto))
        return True


@dataclass(frozen=True)
class Pipeline:
    """Phases of which the first that may find something to do runs next, until none does.

    So earlier phases see each change first, and a second run finds nothing to do.

    `upgrades`: a Scan-8 is brought to a newer opset first, and any model if that was requested.
    `down`: the target may be older than the model. `flags` are options of the rules that are always
    on. `aims` are the rules that do what the pipeline is for, where the others only help; if none
    is named, all do.
    """

    phases: tuple[Phase, ...]
    flags: tuple[Flag, ...] = ()
    aims: tuple[str, ...] = ()
    upgrades: bool = True
    down: bool = False

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules of all phases, in order."""
        return tuple(name for phase in self.phases for name in phase.rules)


def _alone(name: str) -> Phase:
    return Phase(name, (name,))


# `scan-8` first: `opset` leaves a Scan of version 8 to it.
UPGRADE = Phase("upgrade", ("scan-8", "opset"), converts=True)
CONVERT = Phase("convert", ("scan-8", "opset", "element-types"), converts=True, when="asked")
_UPGRADE_FIRST = replace(UPGRADE, when="needed")

_SIMPLIFY = Phase(
    "simplify",
    (
        *("inline-if", "inline-loop", "prune-loop", "prune-if", "share-subexpressions"),
        *("drop-reshapes", "drop-empty-branch"),
    ),
)
_FOLD = _alone("fold-constants")
#: Folding fixes conditions and trip counts, so that more can be simplified.
_CLEAN = Phase("clean", (*_FOLD.rules, *_SIMPLIFY.rules))
_RAISE = Phase("count and raise", ("count-loop", "raise-loop"))
#: A loop around a cell goes first: the cell then does the work of all rows.
_APART = Phase("take apart", ("dissolve-map", "flatten-scan"))
#: While the products of a cell still stand in the body.
_FORMS = Phase("choose forms", ("recognize-cell", "regroup-sum"))
_BATCH = Phase("all at once", ("batch-outputs", "batch-inputs"))
_HOIST = _alone("hoist-invariants")
_CONSTANTS = _alone("hoist-constants")
#: In front of the steps: what a call gives an attribute may be what they depend on.
_INLINE = Phase("inline", ("inline-function",))

PIPELINES: dict[str, Pipeline] = {
    "upgrade": Pipeline((UPGRADE,), upgrades=False),
    "convert": Pipeline((_INLINE, CONVERT), upgrades=False, down=True),
    "lower": Pipeline((_alone("lower-scan"),)),
    "raise": Pipeline((_RAISE,), aims=("raise-loop",)),
    "unroll": Pipeline((_alone("unroll"),)),
    "peel": Pipeline((_alone("peel"),)),
    # equal constants of the main graph, too, which no loop reads
    "hoist": Pipeline((_FOLD, _HOIST, _CONSTANTS), flags=("all_constants",)),
    "simplify": Pipeline((_SIMPLIFY,)),
    # what is faster may only show at run time; weights stay where onnxruntime packs them
    "optimize": Pipeline(
        (_CLEAN, _RAISE, _APART, _FORMS, _BATCH, _HOIST, _CONSTANTS, _alone("sink-weights")),
        flags=("dispatch_on_size", "quicker", "near"),
        aims=("raise-loop",),
    ),
    "optimize-scan-only": Pipeline(
        (_CLEAN, _RAISE, _APART, _BATCH, _HOIST, _CONSTANTS), aims=("raise-loop",)
    ),
    # what moves out of a Loop is guarded by its trip count, which is computed in front of it anyway
    "optimize-loop-only": Pipeline(
        (_CLEAN, _APART, _BATCH, _alone("lower-scan"), _HOIST, _CONSTANTS), aims=("lower-scan",)
    ),
    # what moves out of a loop may be the trip count of another; an If is no better than a loop
    "optimize-no-control-flow": Pipeline(
        (_CLEAN, _alone("recognize-cell"), _alone("unroll"), _HOIST, _CONSTANTS),
        flags=("no_branches",),
        aims=("unroll", "inline-if"),
    ),
    "hoist-invariants": Pipeline((_HOIST,), upgrades=False),
    **{
        name: Pipeline((_alone(name),))
        for name in (
            *("batch-inputs", "batch-outputs", "dissolve-map", "flatten-scan"),
            *("recognize-cell", "regroup-sum"),
        )
    },
    "unroll-partial": Pipeline((_alone("lower-scan"), _alone("unroll-partial"))),
}

#: (earlier, later): a pipeline that holds both must have them in this order: loops are
#: recognized as they were written, work moves out of Scans without unused values and nodes,
#: and constants go last, since in a body they tell more about the shapes there.
_ORDER = (
    ("scan-8", "opset"),
    ("count-loop", "raise-loop"),
    ("raise-loop", "batch-inputs"),
    ("raise-loop", "flatten-scan"),
    ("prune-loop", "flatten-scan"),
    ("flatten-scan", "recognize-cell"),
    ("flatten-scan", "lower-scan"),
    ("prune-loop", "batch-inputs"),
    ("prune-loop", "recognize-cell"),
    ("raise-loop", "recognize-cell"),
    ("recognize-cell", "batch-inputs"),
    ("recognize-cell", "regroup-sum"),
    ("regroup-sum", "batch-inputs"),
    ("regroup-sum", "hoist-invariants"),
    ("recognize-cell", "unroll"),
    ("batch-inputs", "lower-scan"),
    ("batch-inputs", "hoist-invariants"),
    ("hoist-invariants", "hoist-constants"),
    ("fold-constants", "hoist-invariants"),
    ("fold-constants", "hoist-constants"),
    ("lower-scan", "hoist-constants"),
    ("unroll", "hoist-constants"),
    ("hoist-constants", "sink-weights"),
)


def steps_of(
    pipeline: str, rules: Sequence[str] = (), skip: Sequence[str] = ()
) -> tuple[tuple[Phase, ...], ...]:
    """The steps of a pipeline, in order, each of phases that run until none finds
    anything to do.

    Of `rules`, if some are named, those of the pipeline run in its order, and the others, each
    in a step of its own, after them; those in `skip` do not run. A Scan-8 is brought to a newer
    opset in any case.

    Raises:
        UnknownRule: there is no rule of a name, only `upgrade` can run it, or one that is to be
            skipped would not run.
        ValueError: two rules stand in an order that does not work.
    """
    for name in (*rules, *skip):
        if rule(name).name in UPGRADE.rules:
            raise UnknownRule(f"the rule {name!r} belongs to the command upgrade")
    own = PIPELINES[pipeline]
    for name in skip:
        if name not in own.rules and name not in rules:
            known = sorted({*own.rules, *rules}.difference(UPGRADE.rules))
            raise UnknownRule(
                f"the rule {name!r} is none of {pipeline}, which cannot skip it; "
                f"{nearest(name, known)}"
            )
    chosen = tuple(_chosen(phase, rules, skip) for phase in own.phases)
    others = [name for name in dict.fromkeys(rules) if name not in {*own.rules, *skip}]
    steps = [
        (_UPGRADE_FIRST,) if own.upgrades else (),
        tuple(phase for phase in chosen if phase.rules),
        *((_alone(name),) for name in others),
    ]
    check_order([name for step in steps for phase in step for name in phase.rules])
    return tuple(step for step in steps if step)


def aims_of(pipeline: str, rules: Sequence[str] = ()) -> frozenset[str]:
    """The rules of a pipeline, or of those that were named, that must not refuse under --strict."""
    own = PIPELINES[pipeline]
    return frozenset(rules or own.aims or own.rules)


def _chosen(phase: Phase, rules: Sequence[str], skip: Sequence[str]) -> Phase:
    if phase.converts:
        return phase
    kept = [name for name in phase.rules if name not in skip and (not rules or name in rules)]
    return replace(phase, rules=tuple(kept))


def check_order(names: Sequence[str]) -> None:
    """Check that rules which depend on each other stand in the order that works."""
    for earlier, later in _ORDER:
        if {earlier, later} <= set(names) and names.index(earlier) > names.index(later):
            raise ValueError(f"the rule {earlier!r} must run before {later!r}")


def _holds_scan(model: ModelProto) -> bool:
    return any(
        op_of(node) == "Scan"
        for _, owner in scoping.owners(model)
        for graph in scoping.graphs_below(owner)
        for node in graph.node
    )
