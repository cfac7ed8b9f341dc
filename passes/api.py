"""The library functions behind the commands."""

from __future__ import annotations

import os
from collections.abc import Sequence

from passes.assumptions import ASSUMPTIONS
from passes.session import Progress, Result, Session, Source, Verifying

#: The opset that `upgrade` goes to where none is named.
DEFAULT_OPSET = 26
#: The ways of upgrading a Scan-8; see `python -m passes explain scan-8`.
BATCH_STRATEGIES = ("auto", "vectorize", "nest", "unroll")
EXECUTORS = ("reference", "onnxruntime", "both")


def upgrade(
    model: Source,
    *,
    opset: int = DEFAULT_OPSET,
    batch: str = "auto",
    verify: bool = True,
    executor: str = "both",
    inputs: str | os.PathLike[str] | None = None,
    verify_budget: float = 60.0,
    seed: int = 0,
    allow_unverified: bool = False,
    assume: Sequence[str] = (),
    progress: Progress | None = None,
) -> Result:
    """Upgrade a model to `opset`: Scan-8 with its batch and sequence_lens, and all else.

    `model` is a path or a ModelProto, which is not changed. `batch` says how a Scan-8 is
    rewritten (auto, vectorize, nest, unroll). `executor` (reference, onnxruntime, both) runs the
    model before and after, on `inputs` (an .npz or a folder of test data) and on drawn ones, for
    at most `verify_budget` seconds. `assume=["valid-inputs"]` leaves out the guards that make the
    new model fail where the old one would have, `"non-empty"` what handles sizes of 0.

    Raises:
        BadModel: the input is no valid model.
        NotProduced: a node cannot be brought to `opset`; `.report` lists all of them.
        NotVerified: no case of a rewrite could be compared.
        Mismatch: a rewrite disagrees with the original.
        ValueError: `batch`, `executor` or an assumption is none of those above.
    """
    if batch not in BATCH_STRATEGIES:
        raise ValueError(f"batch is {batch!r}, not one of {', '.join(BATCH_STRATEGIES)}")
    options = {"batch": batch, "assume": tuple(assume)}
    verifying = _verifying(verify, executor, verify_budget, seed, inputs, allow_unverified, assume)
    return Session("upgrade", opset, options, verifying, progress).run(model)


def lower(
    model: Source,
    *,
    only: Sequence[str] = (),
    opset: int = DEFAULT_OPSET,
    verify: bool = True,
    executor: str = "both",
    inputs: str | os.PathLike[str] | None = None,
    verify_budget: float = 60.0,
    seed: int = 0,
    allow_unverified: bool = False,
    assume: Sequence[str] = (),
    progress: Progress | None = None,
) -> Result:
    """Turn every Scan into a Loop; a model with a Scan-8 is upgraded to `opset` first.

    `only` are patterns for the paths of the Scans to lower (`main/*/scan_0`); the other
    arguments, and what is raised, are those of `upgrade`.
    """
    options = {"only": tuple(only), "assume": tuple(assume)}
    verifying = _verifying(verify, executor, verify_budget, seed, inputs, allow_unverified, assume)
    return Session("lower", opset, options, verifying, progress).run(model)


def raise_(
    model: Source,
    *,
    only: Sequence[str] = (),
    opset: int = DEFAULT_OPSET,
    verify: bool = True,
    executor: str = "both",
    inputs: str | os.PathLike[str] | None = None,
    verify_budget: float = 60.0,
    seed: int = 0,
    allow_unverified: bool = False,
    assume: Sequence[str] = (),
    progress: Progress | None = None,
) -> Result:
    """Turn Loops into Scans, and whiles into fors, where that is proven.

    Loops that stay are in the report's refusals. Arguments, and what is raised, are those of
    `lower`.
    """
    options = {"only": tuple(only), "assume": tuple(assume)}
    verifying = _verifying(verify, executor, verify_budget, seed, inputs, allow_unverified, assume)
    return Session("raise", opset, options, verifying, progress).run(model)


def _verifying(
    verify: bool,
    executor: str,
    budget: float,
    seed: int,
    inputs: str | os.PathLike[str] | None,
    allow_unverified: bool,
    assume: Sequence[str],
) -> Verifying | None:
    """How to verify, None for not at all.

    Raises:
        ValueError: `executor` or an assumption is none that is known.
    """
    if executor not in EXECUTORS:
        raise ValueError(f"executor is {executor!r}, not one of {', '.join(EXECUTORS)}")
    if not set(assume) <= set(ASSUMPTIONS):
        raise ValueError(f"assume is {list(assume)}, not among {', '.join(ASSUMPTIONS)}")
    if not verify:
        return None
    return Verifying(executor, budget, seed, inputs, allow_unverified, tuple(assume))
