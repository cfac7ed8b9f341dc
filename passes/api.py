"""The library functions behind the commands."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TypedDict, Unpack

from passes.assumptions import ASSUMPTIONS
from passes.session import Progress, Result, Session, Source, Verifying

#: The opset that `upgrade` goes to where none is named: the newest that onnxruntime loads.
DEFAULT_OPSET = 26
#: The most that moves out of one loop where nothing else is said: 256 MiB.
MOST_BYTES = 1 << 28
#: The ways of upgrading a Scan-8; see `python -m passes explain scan-8`.
BATCH_STRATEGIES = ("auto", "vectorize", "nest", "unroll")
#: How an iteration is written that may not take place, and which one is peeled.
BOUNDED_STRATEGIES = ("auto", "select", "if")
PEELED = ("first", "last")
#: What `optimize` can make a model fit for.
TARGETS = ("onnxruntime", "no-control-flow", "loop-only", "scan-only")
EXECUTORS = ("reference", "onnxruntime", "both")


class Options(TypedDict, total=False):
    """What every rewriting function takes by keyword.

    `verify` (on by default) executes before and after: `executor` (reference, onnxruntime, both)
    runs both models on `inputs` (an .npz or a folder of test data) and on inputs drawn from
    `seed`, for at most `verify_budget` seconds (60). `allow_unverified` lets rewrites pass that
    could not be compared. `assume=["valid-inputs"]` leaves out the guards that make the new
    model fail where the old one would have, `"non-empty"` what handles sizes of 0. `progress` is
    told what goes on.
    """

    verify: bool
    executor: str
    inputs: str | os.PathLike[str] | None
    verify_budget: float
    seed: int
    allow_unverified: bool
    assume: Sequence[str]
    progress: Progress | None


def upgrade(
    model: Source,
    *,
    opset: int = DEFAULT_OPSET,
    batch: str = "auto",
    **options: Unpack[Options],
) -> Result:
    """Upgrade a model to `opset`: Scan-8 with its batch and sequence_lens, and all else.

    `model` is a path or a ModelProto, which is not changed. `batch` says how a Scan-8 is
    rewritten (auto, vectorize, nest, unroll); for the other options see `Options`.

    Raises:
        BadModel: the input is no valid model.
        NotProduced: a node cannot be brought to `opset`; `.report` lists all of them.
        NotVerified: no case of a rewrite could be compared.
        Mismatch: a rewrite disagrees with the original.
        ValueError: an option has a value that is not known.
    """
    if batch not in BATCH_STRATEGIES:
        raise ValueError(f"batch is {batch!r}, not one of {', '.join(BATCH_STRATEGIES)}")
    return _session("upgrade", opset, {"batch": batch}, options).run(model)


def lower(
    model: Source,
    *,
    only: Sequence[str] = (),
    opset: int = DEFAULT_OPSET,
    **options: Unpack[Options],
) -> Result:
    """Turn every Scan into a Loop; a model with a Scan-8 is upgraded to `opset` first.

    `only` are patterns for the paths of the loops to rewrite (`main/*/scan_0`). Raises what
    `upgrade` raises.
    """
    return _session("lower", opset, {"only": tuple(only)}, options).run(model)


def raise_(
    model: Source,
    *,
    only: Sequence[str] = (),
    opset: int = DEFAULT_OPSET,
    **options: Unpack[Options],
) -> Result:
    """Turn Loops into Scans, and whiles into fors, where that is proven.

    Loops that stay are in the report's refusals. Arguments and errors are those of `lower`.
    """
    return _session("raise", opset, {"only": tuple(only)}, options).run(model)


def unroll(
    model: Source,
    *,
    only: Sequence[str] = (),
    max_nodes: int = 100_000,
    dims: Mapping[str, int] | None = None,
    factor: int | None = None,
    max_trips: int | None = None,
    bounded: str = "auto",
    check_output: str | None = None,
    peel: str | None = None,
    opset: int = DEFAULT_OPSET,
    **options: Unpack[Options],
) -> Result:
    """Write out every iteration of the loops whose trip count is static, or bounded.

    `dims` fixes symbolic dims of the whole model first, `{"batch": 4}`; the outcome is compared
    with the model so fixed. Loops that stay are in the report's refusals; what all of them
    together write is at most `max_nodes` nodes. With a `factor`, loops do that many iterations at
    a time, whatever their trip count. `peel` (first, last) writes out that one iteration only.

    `max_trips` promises that no Loop runs more often: one whose trip count is not known is written
    out so often. Where that is not enough the outcome fails, or says so in one more output,
    `check_output`, a bool. `bounded` says how an iteration that may not take place is written
    (auto, select, if). The other arguments and errors are those of `lower`, and:

    Raises:
        UnknownDim: no input has a dim of a name in `dims`.
        NameTaken: a value of the model is called as the `check_output` is to be.
        ValueError: an option has a value that is not known, or does not go with the others.
    """
    check_unrolling(factor, max_trips, bounded, check_output, peel)
    own: dict[str, object] = {
        "only": tuple(only),
        "max_nodes": max_nodes,
        "dims": tuple((dims or {}).items()),
        "bounded": bounded,
        "max_trips": max_trips,
        "check_output": check_output,
    }
    if peel is not None:
        return _session("peel", opset, {**own, "peel": peel}, options).run(model)
    if factor is not None:
        return _session("unroll-partial", opset, {**own, "factor": factor}, options).run(model)
    return _session("unroll", opset, own, options).run(model)


def check_unrolling(
    factor: int | None,
    max_trips: int | None,
    bounded: str,
    check_output: str | None,
    peel: str | None,
) -> None:
    """See that the options of `unroll` make sense together.

    Raises:
        ValueError: they do not.
    """
    for name, number in (("factor", factor), ("max_trips", max_trips)):
        if number is not None and number < 1:
            raise ValueError(f"{name} is {number}, it must be 1 or more")
    if bounded not in BOUNDED_STRATEGIES:
        raise ValueError(f"bounded is {bounded!r}, not one of {', '.join(BOUNDED_STRATEGIES)}")
    if peel not in (None, *PEELED):
        raise ValueError(f"peel is {peel!r}, not one of {', '.join(PEELED)}")
    whole = {"factor": factor, "peel": peel, "max_trips": max_trips}
    said = [name for name, value in whole.items() if value is not None]
    if len(said) > 1:
        raise ValueError(f"{said[0]} and {said[1]} do not go together")
    if check_output is not None and (max_trips is None or not check_output):
        raise ValueError("check_output is the name of an output that goes with max_trips")


def hoist(
    model: Source,
    *,
    only: Sequence[str] = (),
    rules: Sequence[str] = (),
    skip: Sequence[str] = (),
    max_bytes: int = MOST_BYTES,
    opset: int = DEFAULT_OPSET,
    **options: Unpack[Options],
) -> Result:
    """Move out of loops and branches what is the same every time, and constants to the top.

    What moves out of a loop and lives on while it runs is at most `max_bytes` bytes. Of the
    `rules` that are named only those run, rules of other commands and distributions behind the
    command's own; those in `skip` do not. What is refused is in the report's refusals. The other
    arguments and errors are those of `lower`, and:

    Raises:
        UnknownRule: there is no rule of a name, or only `upgrade` can run it.
    """
    own = {**_chosen(only, rules, skip), "max_bytes": max_bytes}
    return _session("hoist", opset, own, options).run(model)


def simplify(
    model: Source,
    *,
    only: Sequence[str] = (),
    rules: Sequence[str] = (),
    skip: Sequence[str] = (),
    opset: int = DEFAULT_OPSET,
    **options: Unpack[Options],
) -> Result:
    """Drop what loops and branches do in vain or twice, and those that are none.

    Arguments and errors are those of `hoist`.
    """
    return _session("simplify", opset, _chosen(only, rules, skip), options).run(model)


def optimize(
    model: Source,
    *,
    target: str = "onnxruntime",
    only: Sequence[str] = (),
    rules: Sequence[str] = (),
    skip: Sequence[str] = (),
    dims: Mapping[str, int] | None = None,
    max_nodes: int = 100_000,
    max_bytes: int = MOST_BYTES,
    allow_reassociation: bool = False,
    opset: int = DEFAULT_OPSET,
    **options: Unpack[Options],
) -> Result:
    """Make the control flow of a model quick, or what a runtime can take.

    `target` is one of `TARGETS`: `onnxruntime` raises Loops to Scans, moves work out of them, and
    simplifies what is left; `scan-only` does the same, for runtimes without Loop; `loop-only`
    leaves no Scan; `no-control-flow` unrolls loops and inlines Ifs, up to `max_nodes` nodes.
    `dims` fixes symbolic dims of the whole model first. With `allow_reassociation`, a loop that
    only sums, multiplies or compares floats becomes an op that does so in another order. Loops
    that stay what they are are in the report's refusals. The other arguments and errors are those
    of `hoist`, and:

    Raises:
        UnknownDim: no input has a dim of a name in `dims`.
        ValueError: there is no such target.
    """
    if target not in TARGETS:
        raise ValueError(f"target is {target!r}, not one of {', '.join(TARGETS)}")
    command = "optimize" if target == TARGETS[0] else f"optimize-{target}"
    own = {
        **_chosen(only, rules, skip),
        "dims": tuple((dims or {}).items()),
        "max_nodes": max_nodes,
        "max_bytes": max_bytes,
        "allow_reassociation": allow_reassociation,
    }
    if target == "no-control-flow":
        own |= {"flat": True, "bounded": "select"}  # to unroll into Ifs would not do away with it
    return _session(command, opset, own, options).run(model)


def _chosen(only: Sequence[str], rules: Sequence[str], skip: Sequence[str]) -> dict[str, object]:
    return {"only": tuple(only), "rules": tuple(rules), "skip": tuple(skip)}


def _session(command: str, opset: int, own: dict[str, object], options: Options) -> Session:
    """The session of a command.

    Raises:
        ValueError: the executor or an assumption is none that is known.
    """
    assume = tuple(options.get("assume", ()))
    if not set(assume) <= set(ASSUMPTIONS):
        raise ValueError(f"assume is {list(assume)}, not among {', '.join(ASSUMPTIONS)}")
    progress = options.get("progress")
    return Session(command, opset, {**own, "assume": assume}, _verifying(options), progress)


def _verifying(options: Options) -> Verifying | None:
    """How to verify, None for not at all."""
    executor = options.get("executor", "both")
    if executor not in EXECUTORS:
        raise ValueError(f"executor is {executor!r}, not one of {', '.join(EXECUTORS)}")
    if not options.get("verify", True):
        return None
    return Verifying(
        executor=executor,
        budget=options.get("verify_budget", 60.0),
        seed=options.get("seed", 0),
        inputs=options.get("inputs"),
        allow_unverified=options.get("allow_unverified", False),
        assume=tuple(options.get("assume", ())),
    )
