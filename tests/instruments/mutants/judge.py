"""Whether a model that the verification let pass is wrong, on other inputs than it had drawn."""

from __future__ import annotations

from collections.abc import Sequence

import onnx
from onnx import ModelProto

#: Seeds of further draws; the tool itself draws with seed 0.
_SEEDS = range(1, 9)


def difference(
    before: ModelProto, made: bytes, assumed: Sequence[str], seeds: Sequence[int] = _SEEDS
) -> str:
    """The sentence that says how they differ; empty where nothing was found."""
    from passes.verify.reference import ReferenceExecutor
    from tests.verification import verify

    after = onnx.load_from_string(made)
    for seed in seeds:
        found = verify(
            before,
            after,
            executors=[ReferenceExecutor()],
            seed=seed,
            exact=False,
            budget=20,
            lenient=bool(assumed),
        )
        if found.verdict == "mismatch":
            return found.reason
    return ""
