"""The schedule of each command: the rules that run together, and which of them run first."""

from __future__ import annotations

from dataclasses import replace

from passes.converters import phases as converting
from passes.engine.schedules import Phase, Schedule
from passes.precision import casting
from passes.rules.inline_function import chosen as inlining


def _alone(name: str) -> Phase:
    return Phase(name, (name,))


# `scan-8` first: `opset` leaves a Scan of version 8 to it.
UPGRADE = Phase("upgrade", ("scan-8", "opset"), converts=True, finish=converting.finish)
_CONVERT = Phase(
    "convert",
    ("scan-8", "opset", "element-types"),
    converts=True,
    start=converting.if_asked,
    finish=converting.finish,
)
#: Where the other rules need it, or where the user asks for an opset.
_FIRST = replace(UPGRADE, start=converting.if_needed, first=True)

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
_INLINE = Phase(
    "inline", ("inline-function",), start=inlining.with_imports, finish=inlining.without_uncalled
)

_ALL = (
    Schedule("upgrade", (UPGRADE,)),
    Schedule(
        "convert",
        (_INLINE, _CONVERT),
        accept=inlining.check_named,
        deliver=converting.at_ir_version,
    ),
    # the cast itself is no rule: it gives types to all values at once
    Schedule(
        "cast",
        (_INLINE, replace(UPGRADE, name="upgrade if too old", start=converting.if_too_old)),
        deliver=casting.deliver,
    ),
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
