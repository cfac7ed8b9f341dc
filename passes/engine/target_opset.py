"""The opset that a model is converted to, and whether that is possible."""

from __future__ import annotations

import onnx

from passes.choices import DEFAULT_OPSET
from passes.errors import PassesError, WrongUsage
from passes.ir.model import Model
from passes.onnxruntime.releases import Release


class UnknownOpset(WrongUsage):
    """The requested opset is newer than the installed onnx."""


class TooNew(PassesError):
    """The model is newer than what was requested, and the command does not go down."""


def target_opset(model: Model, asked: int | None, default: int = DEFAULT_OPSET) -> int:
    """The opset to convert to: the requested one, else none older than the model's."""
    return max(default, model.newest_opset) if asked is None else asked


def loadable(model: Model, asked: int | None, release: Release | None) -> int | None:
    """The requested opset, or the newest at which the release has kernels for the model."""
    if release is None:
        return asked
    return release.opset_for(op for _, operators in model.operators for op in operators)


def check_known(asked: int | None) -> None:
    """Check that the installed onnx knows the requested opset.

    Raises:
        UnknownOpset: it does not.
    """
    newest = onnx.defs.onnx_opset_version()
    if asked is not None and asked > newest:
        raise UnknownOpset(f"opset {asked} is unknown: the installed onnx knows opsets to {newest}")


def check_reachable(model: Model, asked: int | None, release: Release | None) -> None:
    """Check that the model, which is valid, is not newer than what was requested.

    Raises:
        TooNew: it is.
    """
    asked, newest = loadable(model, asked, release), model.newest_opset
    if asked is not None and newest > asked:
        limit = f"{release} loads opset {asked}" if release else f"opset {asked} was asked for"
        if release is not None and asked < release.opset:
            limit = f"{release} has kernels for all its operators at opset {asked} only"
        part = "the model" if model.opset() == newest else "a function of the model"
        raise TooNew(
            f"{part} is at opset {newest}, but {limit}; `passes convert` writes older opsets"
        )
    declared = int(model.proto.ir_version)
    if release is not None and declared > release.ir_version:
        raise TooNew(
            f"the model is of IR version {declared}, but {release} loads IR version "
            f"{release.ir_version}; `passes convert` writes older IR versions"
        )
