"""Phases, a few rules that run together, and schedules, the phases that a command runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from onnx import ModelProto

from passes.choices import Flag, RuleOptions
from passes.engine.plugins import UnknownRule, rule
from passes.engine.rounds import Round
from passes.engine.target_opset import check_reachable, loadable
from passes.errors import nearest
from passes.ir import scope as scoping
from passes.ir.model import Model
from passes.ir.operators import op_of
from passes.ir.versions import SCAN_8
from passes.onnxruntime.releases import Release

if TYPE_CHECKING:
    from passes.reports.report import Report


@dataclass(frozen=True)
class Phase:
    """Rules that run together, round after round, until none of them finds anything to do.

    On each site they are tried in their order. `converts`: they bring the whole model to a target
    opset, in one round. `when`: always, only where an opset was `asked` for, or as `needed`: there,
    and where the model holds a Scan-8, which the other rules do not support. `first`: before all
    other phases, once.
    """

    name: str
    rules: tuple[str, ...]
    converts: bool = False
    when: Literal["always", "asked", "needed"] = "always"
    first: bool = False

    def applies_to(self, model: Model, *, asked: bool) -> bool:
        """Return whether the phase has anything to do with a model.

        `asked`: the user requested an opset.
        """
        match self.when:
            case "asked":
                return asked
            case "needed":
                return asked or (model.opset() <= SCAN_8 and _holds_scan(model.proto))
        return True

    def rounds(
        self, model: Model, options: RuleOptions, fixpoint: Callable[[Model], list[Round]]
    ) -> list[Round]:
        """Run the rules on a model, by `fixpoint`; the last round has the outcome."""
        return fixpoint(model)


@dataclass(frozen=True)
class _Inlining(Phase):
    """Inlines the functions that the options choose; the outcome is without these."""

    def rounds(
        self, model: Model, options: RuleOptions, fixpoint: Callable[[Model], list[Round]]
    ) -> list[Round]:
        from passes.rules.inline_function.chosen import chosen, with_imports, without_uncalled

        functions = chosen(model.proto, options)
        if not functions:
            return []
        start = with_imports(model.proto, functions)
        rounds = fixpoint(model if start is model.proto else Model(start, model.path))
        if not rounds[-1].refused:
            rounds[-1].proto = without_uncalled(rounds[-1].proto, functions)
        return rounds


@dataclass(frozen=True)
class Schedule:
    """Phases by priority: the first that can still change the model runs next.

    So earlier phases see each change first, and a second run finds nothing to do. `flags` are
    options of the rules that are always on. `aims` are the rules that do what the schedule is for,
    where the others only help; if none is named, all do, but those that run first.
    """

    name: str
    phases: tuple[Phase, ...]
    flags: tuple[Flag, ...] = ()
    aims: tuple[str, ...] = ()

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules of all phases but those that run first, in order."""
        return tuple(name for phase in self.phases if not phase.first for name in phase.rules)

    def aims_of(self, rules: Sequence[str] = ()) -> frozenset[str]:
        """The rules, or of those that were named, that must not refuse under --strict."""
        return frozenset(rules or self.aims or self.rules)

    def accept(
        self, model: Model, asked: int | None, release: Release | None, options: RuleOptions
    ) -> None:
        """Check that the model can be converted to what was `asked` for.

        Raises:
            TooNew: the model is newer.
        """
        check_reachable(model, loadable(model, asked, release), release)

    def finish(
        self,
        original: ModelProto,
        proto: ModelProto,
        report: Report,
        options: RuleOptions,
        release: Release | None,
    ) -> tuple[ModelProto, Report]:
        """The outcome as it is to be written, and its report."""
        return proto, report


@dataclass(frozen=True)
class _Converting(Schedule):
    """Converts a model down, too, and its IR version."""

    def accept(
        self, model: Model, asked: int | None, release: Release | None, options: RuleOptions
    ) -> None:
        """Check that the model has the functions that are to be inlined.

        Raises:
            UnknownFunction: it does not.
        """
        from passes.rules.inline_function.chosen import check_named

        check_named(model.proto, options)

    def finish(
        self,
        original: ModelProto,
        proto: ModelProto,
        report: Report,
        options: RuleOptions,
        release: Release | None,
    ) -> tuple[ModelProto, Report]:
        """Return the outcome at its IR version, and the report with that version.

        Raises:
            NotProduced: it holds what that version cannot.
        """
        from passes.converters.ir_version import fit
        from passes.converters.stamp import limits, newer_domains
        from passes.not_produced import NotProduced
        from passes.reports.report import Record

        asked, drop = options.ir_version, options.drop_metadata
        fitted = fit(original, proto, asked, exact=release is None, drop=drop)
        before, after = report.opsets
        undeclared = limits(proto, after) if after < before else []
        refused = [
            *fitted.refused,
            *(("main", "graph", "no-equivalent", one) for one in undeclared),
        ]
        newer = newer_domains(proto, after) if after < before else ()
        report = replace(
            report,
            ir_versions=(original.ir_version, fitted.version),
            records=[*report.records, *(Record.not_held(*one) for one in refused)],
            notes=[*report.notes, *fitted.notes, *newer],
        )
        if refused:
            raise NotProduced(report.refusal, report)
        return fitted.model, report


def _alone(name: str) -> Phase:
    return Phase(name, (name,))


# `scan-8` first: `opset` leaves a Scan of version 8 to it.
UPGRADE = Phase("upgrade", ("scan-8", "opset"), converts=True)
CONVERT = Phase("convert", ("scan-8", "opset", "element-types"), converts=True, when="asked")
#: Where the other rules need it, or where the user asks for an opset.
_FIRST = replace(UPGRADE, when="needed", first=True)

_SIMPLIFY = Phase(
    "simplify",
    (
        *("inline-if", "inline-loop", "prune-loop", "prune-if", "share-subexpressions"),
        *("drop-copies", "drop-reshapes", "drop-empty-branch"),
    ),
)
_FOLD = _alone("fold-constants")
#: Folding fixes conditions and trip counts, so that more can be simplified.
_CLEAN = Phase("clean", (*_FOLD.rules, *_SIMPLIFY.rules))
_RAISE = Phase("count and raise", ("count-loop", "raise-loop"))
#: A loop around a cell goes first: the cell then does the work of all rows.
_APART = Phase("take apart", ("split-state", "dissolve-map", "flatten-scan"))
#: While the products of a cell still stand in the body.
_FORMS = Phase(
    "choose forms", ("recognize-cell", "recognize-attention", "run-in-blocks", "regroup-sum")
)
_BATCH = Phase("all at once", ("batch-outputs", "batch-inputs"))
_HOIST = _alone("hoist-invariants")
_CONSTANTS = _alone("hoist-constants")
#: What only onnxruntime has becomes loops, which the phases behind it rewrite.
_EXPAND = Phase("expand", ("expand-attention", "expand-cell"))
#: An RNN that is quicker as a Scan.
_CELLS = _alone("expand-cell")
#: In front of `unroll`, which writes out as many iterations.
_BOUND = _alone("bound-loop")
#: What is written has types in its bodies, too, which other runtimes may need.
_DECLARE = _alone("declare-shapes")
#: In front of `unroll`, for the length of a sequence may be a trip count.
_SEQUENCES = _alone("drop-sequences")
#: In front of the steps: what a call gives an attribute may be what they depend on.
_INLINE = _Inlining("inline", ("inline-function",))

_ALL = (
    Schedule("upgrade", (UPGRADE,)),
    _Converting("convert", (_INLINE, CONVERT)),
    Schedule("lower", (_FIRST, _alone("lower-scan"))),
    Schedule("raise", (_FIRST, _RAISE), aims=("count-loop", "raise-loop")),
    Schedule("unroll", (_FIRST, _alone("unroll"))),
    Schedule("expand", (_FIRST, _CELLS)),
    Schedule("peel", (_FIRST, _alone("peel"))),
    # equal constants of the main graph, too, which no loop reads
    Schedule("hoist", (_FIRST, _FOLD, _HOIST, _CONSTANTS), flags=("all_constants",)),
    Schedule("simplify", (_FIRST, _SIMPLIFY)),
    # what is faster may only show at run time; weights stay where onnxruntime packs them
    Schedule(
        "optimize",
        (
            *(_FIRST, _CELLS, _CLEAN, _RAISE, _APART, _FORMS, _BATCH, _HOIST, _CONSTANTS),
            _alone("sink-weights"),
        ),
        flags=(
            *("dispatch_on_size", "weigh_few_iterations", "keep_packed_weights"),
            *("lacking_cells", "quicker_cells"),
        ),
        aims=("raise-loop",),
    ),
    Schedule(
        "optimize-scan-only",
        (_FIRST, _EXPAND, _CLEAN, _RAISE, _APART, _BATCH, _HOIST, _CONSTANTS, _DECLARE),
        flags=("lacking_cells",),
        aims=("raise-loop",),
    ),
    # what moves out of a Loop is guarded by its trip count, which is computed before it anyway
    Schedule(
        "optimize-loop-only",
        (
            *(_FIRST, _EXPAND, _CLEAN, _APART, _BATCH, _alone("lower-scan")),
            *(_HOIST, _CONSTANTS, _DECLARE),
        ),
        flags=("lacking_cells",),
        aims=("lower-scan",),
    ),
    # what moves out of a loop may be the trip count of another; an If is no better than a loop
    Schedule(
        "optimize-no-control-flow",
        (
            *(
                _FIRST,
                _EXPAND,
                _CLEAN,
                _alone("recognize-cell"),
                _SEQUENCES,
                _BOUND,
                _alone("unroll"),
            ),
            *(_alone("collect-sequence"), _alone("select-branches"), _HOIST, _CONSTANTS, _DECLARE),
        ),
        flags=("no_branches", "lacking_cells"),
        aims=("unroll", "inline-if", "select-branches", "drop-sequences"),
    ),
    Schedule("hoist-invariants", (_HOIST,)),
    *(
        Schedule(name, (_FIRST, _alone(name)))
        for name in (
            *("batch-inputs", "batch-outputs", "dissolve-map", "flatten-scan"),
            *("collect-sequence", "drop-sequences", "recognize-attention", "recognize-cell"),
            *("bound-loop", "carry-captures", "declare-shapes", "expand-attention", "expand-cell"),
            *("forward-cell", "regroup-sum", "run-in-blocks"),
            *("select-branches", "reroll", "split-state"),
        )
    ),
    Schedule("unroll-partial", (_FIRST, _alone("lower-scan"), _alone("unroll-partial"))),
)
#: The built-in schedules, by name.
SCHEDULES: dict[str, Schedule] = {schedule.name: schedule for schedule in _ALL}

#: (earlier, later): a schedule that holds both must have them in this order: loops are
#: recognized as they were written, work moves out of Scans without unused values and nodes,
#: and constants come last: in a body they tell more about its shapes.
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
    ("run-in-blocks", "batch-inputs"),
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
    ("unroll", "select-branches"),
    ("hoist-constants", "sink-weights"),
)


def steps_of(
    schedule: Schedule, rules: Sequence[str] = (), skip: Sequence[str] = ()
) -> tuple[tuple[Phase, ...], ...]:
    """The steps of a schedule, in order, each of phases that run until none finds
    anything to do.

    Of `rules`, if some are named, those of the schedule run in its order, and the others, each
    in a step of its own, after them; those in `skip` do not run. A Scan-8 is brought to a newer
    opset in any case.

    Raises:
        UnknownRule: there is no rule of a name, only `upgrade` can run it, or one that is to be
            skipped would not run.
        ValueError: two rules are in an order that does not work.
    """
    for name in (*rules, *skip):
        if rule(name).name in UPGRADE.rules:
            raise UnknownRule(f"the rule {name!r} belongs to the command upgrade")
    for name in skip:
        if name not in schedule.rules and name not in rules:
            known = sorted({*schedule.rules, *rules}.difference(UPGRADE.rules))
            raise UnknownRule(
                f"the rule {name!r} is none of {schedule.name}, which cannot skip it; "
                f"{nearest(name, known)}"
            )
    chosen = [_chosen(phase, rules, skip) for phase in schedule.phases]
    others = [name for name in dict.fromkeys(rules) if name not in {*schedule.rules, *skip}]
    steps = [
        *((phase,) for phase in chosen if phase.first),
        tuple(phase for phase in chosen if phase.rules and not phase.first),
        *((_alone(name),) for name in others),
    ]
    check_order([name for step in steps for phase in step for name in phase.rules])
    return tuple(step for step in steps if step)


def _chosen(phase: Phase, rules: Sequence[str], skip: Sequence[str]) -> Phase:
    if phase.converts:
        return phase
    kept = [name for name in phase.rules if name not in skip and (not rules or name in rules)]
    return replace(phase, rules=tuple(kept))


def check_order(names: Sequence[str]) -> None:
    """Check that rules which depend on each other are in the order that works."""
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
