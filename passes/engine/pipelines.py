"""Named lists of stages, and the rules of each in the order in which they are tried."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from passes.engine.plugins import UnknownRule, rule
from passes.engine.stage import Stage
from passes.errors import nearest

# `scan-8` first: `opset` leaves a Scan of version 8 to it.
_UPGRADE = Stage(("scan-8", "opset"), converts=True)
_UPGRADE_FIRST = Stage(_UPGRADE.rules, converts=True, as_needed=True)

_RAISE = Stage(("count-loop", "raise-loop"))
_SIMPLIFY = Stage(
    (
        *("inline-if", "inline-loop", "prune-loop", "prune-if", "share-subexpressions"),
        *("drop-reshapes", "drop-empty-branch"),
    )
)
_BATCH = (Stage(("dissolve-map",)), Stage(("batch-outputs",)), Stage(("batch-inputs",)))
#: Behind what dissolves, and in front of cells, of which one then does the work of all rows.
_FLATTEN = Stage(("flatten-scan",))
_FOLD = Stage(("fold-constants",))
_HOIST = (_FOLD, Stage(("hoist-invariants",)), _FOLD, Stage(("hoist-constants",)))
#: Equal constants of the main graph, too, which no loop reads.
_HOIST_ALL = replace(_HOIST[-1], flags=frozenset({"all_constants"}))
_CELLS = Stage(("recognize-cell",))
_REGROUP = Stage(("regroup-sum",))  # what is no cell then has less to do in the loop
_NO_BRANCHES = frozenset({"no_branches"})  # where an If is no better than the loop
_CELLS_ALONE = replace(_CELLS, flags=_NO_BRANCHES)
_HOIST_ALONE = replace(_HOIST[1], flags=_NO_BRANCHES)
_HOIST_NEAR = replace(_HOIST[-1], flags=frozenset({"near"}))  # onnxruntime finds its weights
_SHARE = Stage(("share-subexpressions",))  # once more, for what reads the same constants now
#: What is folded fixes conditions; in what goes then, loops may dissolve that did not before.
_AGAIN = (_FOLD, Stage(("dissolve-map", *_SIMPLIFY.rules)))
#: Without loops and branches; what is moved out of them may tell how often others run.
_FLAT = (Stage(("unroll", "inline-if")), _FOLD, _SIMPLIFY)
#: From whatever there is to few and small bodies; sizes that are known are no work for a loop.
_OPTIMIZE = (_SIMPLIFY, _RAISE, _FOLD, _SIMPLIFY, _BATCH[0], _FLATTEN, *_BATCH[1:], *_AGAIN)
#: Without what was moved out of them, loops may dissolve or go that could not before.
_MOVED = (
    *(_HOIST[1], _AGAIN[1], *_BATCH[1:]),
    *(replace(_HOIST[1], then=(_FOLD, _HOIST[1])), _FOLD),
)
_LAST = (_HOIST[-1], _SIMPLIFY)
#: What is quicker may only show when the model runs; a Loop of a few iterations may be as it is.
_BY_SIZE, _QUICKER = frozenset({"by_size"}), frozenset({"quicker"})


def _timed(stage: Stage) -> Stage:
    """A stage whose rules ask what takes less time in onnxruntime."""
    flags = _BY_SIZE if "dissolve-map" in stage.rules else frozenset()
    if not {"raise-loop", "inline-loop"}.isdisjoint(stage.rules):
        flags |= _QUICKER
    return replace(stage, flags=flags)


_OPTIMIZE_SIZED = tuple(map(_timed, (*_OPTIMIZE, *_MOVED)))
_AT_CELLS = _OPTIMIZE_SIZED.index(_BATCH[-1])  # products still stand in the body
_ONNXRUNTIME = (
    *_OPTIMIZE_SIZED[:_AT_CELLS],
    _CELLS,
    _REGROUP,
    *_OPTIMIZE_SIZED[_AT_CELLS:],
)


def _once_more(stage: Stage, stages: tuple[Stage, ...]) -> Stage:
    """A stage of some for what only what became of other loops allows to, such as to raise them,
    and what the stages behind it make of that."""
    return replace(stage, then=stages[stages.index(stage) + 1 :])


PIPELINES: dict[str, tuple[Stage, ...]] = {
    "upgrade": (_UPGRADE,),
    "lower": (_UPGRADE_FIRST, Stage(("lower-scan",))),
    "raise": (_UPGRADE_FIRST, _RAISE),
    "unroll": (_UPGRADE_FIRST, Stage(("unroll",))),
    "peel": (_UPGRADE_FIRST, Stage(("peel",))),
    "hoist": (_UPGRADE_FIRST, *_HOIST[:-1], _HOIST_ALL),
    "simplify": (_UPGRADE_FIRST, _SIMPLIFY),
    "optimize": (
        _UPGRADE_FIRST,
        *_ONNXRUNTIME,
        _once_more(_timed(_RAISE), _ONNXRUNTIME),
        _once_more(_FLATTEN, _ONNXRUNTIME),
        _HOIST_NEAR,
        _timed(_SIMPLIFY),
        Stage(("sink-weights",)),
    ),
    "optimize-scan-only": (
        _UPGRADE_FIRST,
        *_OPTIMIZE,
        *_MOVED,
        _once_more(_RAISE, (*_OPTIMIZE, *_MOVED)),
        _once_more(_FLATTEN, (*_OPTIMIZE, *_MOVED)),
        *_LAST,
    ),
    "optimize-loop-only": (
        _UPGRADE_FIRST,
        _SIMPLIFY,
        *_BATCH,
        *_AGAIN,
        Stage(("lower-scan",)),
        _FOLD,
        _SIMPLIFY,
        _HOIST[1],
        _BATCH[1],  # what a Loop costs is another matter
        *_MOVED,
        *_LAST,
    ),
    "optimize-no-control-flow": (
        _UPGRADE_FIRST,
        _SIMPLIFY,
        _CELLS_ALONE,
        *_FLAT,
        _HOIST_ALONE,
        *_FLAT,
        _HOIST_ALONE,
        *_HOIST[2:],
        _SHARE,
    ),
    "hoist-invariants": (Stage(("hoist-invariants",)),),
    "batch-inputs": (_UPGRADE_FIRST, Stage(("batch-inputs",))),
    "batch-outputs": (_UPGRADE_FIRST, Stage(("batch-outputs",))),
    "dissolve-map": (_UPGRADE_FIRST, Stage(("dissolve-map",))),
    "flatten-scan": (_UPGRADE_FIRST, Stage(("flatten-scan",))),
    "recognize-cell": (_UPGRADE_FIRST, Stage(("recognize-cell",))),
    "regroup-sum": (_UPGRADE_FIRST, Stage(("regroup-sum",))),
    "unroll-partial": (_UPGRADE_FIRST, Stage(("lower-scan",)), Stage(("unroll-partial",))),
}

#: What a pipeline sets out to do, where its other rules only help.
_AIMS = {
    "raise": ("raise-loop",),
    "optimize": ("raise-loop",),
    "optimize-scan-only": ("raise-loop",),
    "optimize-loop-only": ("lower-scan",),
    "optimize-no-control-flow": ("unroll", "inline-if"),
}

#: (earlier, later): a pipeline that holds both must have the one in front of the other: loops are
#: recognized as they were written, work moves out of Scans that carry and compute nothing in vain,
#: and constants go last, for in a body they tell more of the shapes there.
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


def stages_of(
    pipeline: str, rules: Sequence[str] = (), skip: Sequence[str] = ()
) -> tuple[Stage, ...]:
    """The stages of a pipeline.

    Of `rules`, where some are named, those of the pipeline run in its order, and the others, each
    a stage of its own, behind them; those in `skip` do not run. What brings a Scan-8 to a newer
    opset runs in any case.

    Raises:
        UnknownRule: there is no rule of a name, only `upgrade` can run it, or one that is to be
            skipped would not run.
        ValueError: two rules stand in an order that does not work.
    """
    for name in (*rules, *skip):
        if rule(name).name in _UPGRADE.rules:
            raise UnknownRule(f"the rule {name!r} belongs to the command upgrade")
    stages = PIPELINES[pipeline]
    own = {name for stage in stages for name in stage.rules}
    for name in skip:
        if name not in own and name not in rules:
            known = sorted({*own, *rules}.difference(_UPGRADE.rules))
            raise UnknownRule(
                f"the rule {name!r} is none of {pipeline}, which cannot skip it; "
                f"{nearest(name, known)}"
            )
    chosen = tuple(_chosen(stage, rules, skip) for stage in stages)
    others = tuple(Stage((name,)) for name in dict.fromkeys(rules) if name not in {*own, *skip})
    left = (stage for stage in (*chosen, *others) if stage.rules)
    chosen = tuple(stage for stage, _ in groupby(left))  # what lay between two may be gone
    check_order([name for stage in chosen for name in stage.rules])
    return chosen


def aims_of(pipeline: str, rules: Sequence[str] = ()) -> frozenset[str]:
    """The rules of a pipeline, or of those that were named, that must not refuse under --strict."""
    own = tuple(name for stage in PIPELINES[pipeline] for name in stage.rules)
    return frozenset(rules or _AIMS.get(pipeline, own))


def _chosen(stage: Stage, rules: Sequence[str], skip: Sequence[str]) -> Stage:
    if stage.converts:
        return stage
    kept = [name for name in stage.rules if name not in skip and (not rules or name in rules)]
    then = tuple(_chosen(one, rules, skip) for one in stage.then)
    return replace(stage, rules=tuple(kept), then=tuple(one for one in then if one.rules))


def check_order(names: Sequence[str]) -> None:
    """See that rules which depend on each other stand in the order that works."""
    for earlier, later in _ORDER:
        if {earlier, later} <= set(names) and names.index(earlier) > names.index(later):
            raise ValueError(f"the rule {earlier!r} must run before {later!r}")
