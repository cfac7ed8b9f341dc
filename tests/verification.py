"""`verify` with its terms, inputs and limits given by keyword, which is how tests read best."""

from __future__ import annotations

import dataclasses
from typing import Any

from onnx import ModelProto

from passes.verify import verification
from passes.verify.compare.verdicts import Verification
from passes.verify.requirements import Inputs, Limits, Models, Requirements

__all__ = ["Verification", "verify"]


def verify(before: ModelProto, after: ModelProto, **options: Any) -> Verification:
    """The verdict on two models; `options` are fields of the terms, of their inputs and limits."""

    def fields(kind: Any) -> dict[str, Any]:
        names = [field.name for field in dataclasses.fields(kind) if field.name in options]
        return {name: options.pop(name) for name in names}

    models = Models(before, after, **fields(Models))
    terms = Requirements(
        **fields(Requirements), inputs=Inputs(**fields(Inputs)), limits=Limits(**fields(Limits))
    )
    assert not options, options
    return verification.verify(models, terms)
