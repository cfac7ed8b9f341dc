"""The library's functions: one for each command, made of its options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from passes.binding.values import held
from passes.choices import DEFAULT_OPSET, PROOF_BUDGET, Batch, Executors, RuleOptions
from passes.commands.options import ExecutingBoth
from passes.commands.registry import function_of
from passes.commands.rewriting import (
    Convert,
    Expand,
    Hoist,
    Lower,
    Optimize,
    Raise,
    Reroll,
    Simplify,
    Unroll,
    Upgrade,
)
from passes.inspection.inspecting import inspect_model
from passes.inspection.inspection import Inspection
from passes.inspection.lowest import Lowest, find_lowest
from passes.reports.proof import Proof
from passes.session import Source, loaded

__all__ = [
    "DEFAULT_OPSET",
    "convert",
    "expand",
    "hoist",
    "inspect",
    "lower",
    "lowest_opset",
    "optimize",
    "prove",
    "raise_",
    "reroll",
    "simplify",
    "unroll",
    "upgrade",
]

upgrade = function_of(Upgrade, "upgrade")
convert = function_of(Convert, "convert")
lower = function_of(Lower, "lower")
raise_ = function_of(Raise, "raise_")
expand = function_of(Expand, "expand")
reroll = function_of(Reroll, "reroll")
unroll = function_of(Unroll, "unroll")
hoist = function_of(Hoist, "hoist")
simplify = function_of(Simplify, "simplify")
optimize = function_of(Optimize, "optimize")


def lowest_opset(model: Source, *, inline: Sequence[str] = ()) -> Lowest:
    """Return whether a model can be written in each opset from its own down to 7, and what stops
    it.

    Nothing is executed, so no outcome is verified, and nothing is written. `inline` is that of
    `convert`.

    Raises:
        BadModel: the input is no valid model.
        UnknownFunction: the model has no function of a name in `inline`.
    """
    return find_lowest(model, RuleOptions(inline=tuple(inline) or ("unsupported",)))


def inspect(model: Source, *, opset: int | None = None, batch: str = Batch.auto) -> Inspection:
    """Return the loops and Ifs of a model, in groups that are alike, with the answers of each rule.

    Nothing is executed and the model stays as it is. `opset` and `batch` are those of `upgrade`.

    Raises:
        BadModel: the input is no valid model.
        UnknownOpset: the installed onnx does not know the opset.
        TooNew: the model is newer than the opset.
    """
    return inspect_model(model, opset, RuleOptions(batch=batch))


def prove(
    before: Source,
    after: Source,
    *,
    budget: float = PROOF_BUDGET,
    executor: str = Executors.both,
    verify_budget: float = 60.0,
    seed: int = 0,
    assume: Sequence[str] = (),
    max_trips: int | None = None,
    check_output: str = "",
    dims: Mapping[str, int | str] | None = None,
    shapes: Mapping[str, tuple[int | None, ...]] | None = None,
    values: Mapping[str, Any] | None = None,
) -> Proof:
    """Prove that a model answers as another one does, for all inputs, sizes and trip counts.

    Where that fails within `budget` seconds, both are executed on the inputs on which what was not
    proven depends, for `verify_budget` seconds: if they differ, the verdict is `disproven`.
    The other options are those of the command that made `after`: the proof may use what they
    promise, and inputs that break it are not executed.

    Raises:
        BadModel: one of them is no valid model.
        DoesNotFit: a dim, shape or value does not fit the original.
        NoExecutor: only onnxruntime was requested, and it is not installed.
        TypeError, ValueError: the executor, its budget or the seed cannot have this value.
    """
    from passes.proving.judging import Executing, judge
    from passes.proving.promises import Promises, bound

    held_values = {name: held(value) for name, value in (values or {}).items()}
    promised = RuleOptions(
        tuple(assume),
        dims=dims or {},
        shapes=shapes or {},
        values=held_values,
        max_trips=max_trips,
        check_output=check_output,
    )
    old, new = bound(promised, *(loaded(side)[0] for side in (before, after)))
    asked = ExecutingBoth(executor=executor, verify_budget=verify_budget, seed=seed)
    executing = Executing(asked.executor, asked.verify_budget, asked.seed)
    return judge(old, new, budget, executing, Promises.of([promised])).proof
