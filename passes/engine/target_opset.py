"""The opset that a model goes to, and whether it can go there."""

from __future__ import annotations

import onnx

from passes.choices import DEFAULT_OPSET
from passes.errors import PassesError
from passes.ir.model import Model
from passes.onnxruntime.releases import Release


class UnknownOpset(PassesError):
    """The opset that was asked for is newer than the installed onnx."""


class TooNew(PassesError):
    """The model is newer than what was asked for: models only go to newer opsets."""


def target_opset(model: Model, asked: int | None) -> int:
    """The opset of what is converted: what was asked for, else none older than the model's."""
    return max(DEFAULT_OPSET, model.newest_opset) if asked is None else asked


def check_known(asked: int | None) -> None:
    """See that the installed onnx knows the opset that was asked for.

    Raises:
        UnknownOpset: it does not.
    """
    newest = onnx.defs.onnx_opset_version()
    if asked is not None and asked > newest:
        raise UnknownOpset(
            f"opset {asked} is not known: the installed onnx knows opsets to {newest}"
        )


def check_reachable(model: Model, asked: int | None, release: Release | None) -> None:
    """See that the model, which is valid, is not newer than what was asked for.

    Raises:
        TooNew: it is.
    """
    newest = model.newest_opset
    if asked is not None and newest > asked:
        limit = f"{release} loads opset {asked}" if release else f"opset {asked} was asked for"
        part = "the model" if model.opset() == newest else "a function of the model"
        raise TooNew(f"{part} is at opset {newest}, but {limit}: models only go to newer opsets")
    declared = int(model.proto.ir_version)
    if release is not None and declared > release.ir_version:
        raise TooNew(
            f"the model is of IR version {declared}, but {release} loads IR version "
            f"{release.ir_version}: models only go to newer IR versions"
        )
