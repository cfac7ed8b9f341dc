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
    if executor not in ("reference", "onnxruntime", "both"):
        raise ValueError(f"executor is {executor!r}, not reference, onnxruntime or both")
    if not set(assume) <= set(ASSUMPTIONS):
        raise ValueError(f"assume is {list(assume)}, not among {', '.join(ASSUMPTIONS)}")
    verifying = Verifying(executor, verify_budget, seed, inputs, allow_unverified, tuple(assume))
    session = Session(
        command="upgrade",
        target=opset,
        options={"batch": batch, "assume": tuple(assume)},
        verifying=verifying if verify else None,
        progress=progress,
    )
    return session.run(model)
