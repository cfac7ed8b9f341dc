"""The library functions behind the commands."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TypedDict, Unpack

from passes.assumptions import ASSUMPTIONS
from passes.session import Progress, Result, Session, Source, Verifying

#: The opset that `upgrade` goes to where none is named: the newest that onnxruntime loads.
DEFAULT_OPSET = 26
#: The ways of upgrading a Scan-8; see `python -m passes explain scan-8`.
BATCH_STRATEGIES = ("auto", "vectorize", "nest", "unroll")
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
    opset: int = DEFAULT_OPSET,
    **options: Unpack[Options],
) -> Result:
    """Write out every iteration of the loops whose trip count is static.

    `dims` fixes symbolic dims of the whole model first, `{"batch": 4}`; the outcome is compared
    with the model so fixed. Loops that stay are in the report's refusals; what all of them
    together write is at most `max_nodes` nodes. With a `factor`, loops do that many iterations at
    a time, whatever their trip count. The other arguments and errors are those of `lower`, and:

    Raises:
        UnknownDim: no input has a dim of a name in `dims`.
        ValueError: the factor is less than 1.
    """
    if factor is not None and factor < 1:
        raise ValueError(f"factor is {factor}, it must be 1 or more")
    own: dict[str, object] = {
        "only": tuple(only),
        "max_nodes": max_nodes,
        "dims": tuple((dims or {}).items()),
    }
    if factor is not None:
        return _session("unroll-partial", opset, {**own, "factor": factor}, options).run(model)
    return _session("unroll", opset, own, options).run(model)


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
