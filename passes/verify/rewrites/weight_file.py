"""Large weights in a file of their own while a model is verified: no copy of the model holds them,
and what runs it maps them."""

from __future__ import annotations

import contextlib
import math
from pathlib import Path

from onnx import ModelProto, TensorProto

from passes.ir import scope as scoping
from passes.ir.data_file import DataFile
from passes.ir.external_data import external_tensors, is_external
from passes.ir.protos import with_initializers
from passes.ir.versions import FREE_INITIALIZERS

#: Elements of a weight that is written to the file.
_LARGE = 1 << 18


class WeightFile:
    """The file of a verification of `model`, in a folder that is removed in the end.

    A model with external data stays as it is: there can be one folder of such data only.
    """

    def __init__(self, model: ModelProto, base_dir: Path | None) -> None:
        self._file: DataFile | None = None
        self.base_dir = base_dir
        large = any(map(_is_large, model.graph.initializer))
        if large and not any(True for _ in external_tensors(model)):
            with contextlib.suppress(OSError):  # there is no room: then there is no file
                self._file = DataFile()
                self.base_dir = self._file.folder
        self._lean: dict[int, tuple[ModelProto, ModelProto]] = {}

    def __enter__(self) -> WeightFile:
        return self

    def __exit__(self, *failure: object) -> None:
        if self._file is not None:
            self._file.remove()

    def model(self, model: ModelProto) -> ModelProto:
        """The model with its large weights in the file: one and the same for one model, which must
        not change any more; itself where it has none."""
        if self._file is None:
            return model
        if id(model) not in self._lean:
            self._lean[id(model)] = (model, self._without_weights(model))
        return self._lean[id(model)][1]

    def _without_weights(self, model: ModelProto) -> ModelProto:
        defaults = scoping.input_names(model.graph) if model.ir_version >= FREE_INITIALIZERS else ()
        tensors = [
            tensor if tensor.name in defaults else self.tensor(tensor)
            for tensor in model.graph.initializer
        ]
        if not any(map(is_external, tensors)):
            return model
        return with_initializers(model, tensors)

    def tensor(self, tensor: TensorProto) -> TensorProto:
        """The tensor with its data in the file; itself where it is small, or the disk is full."""
        if self._file is None or not _is_large(tensor):
            return tensor
        try:
            return self._file.tensor(tensor, tensor.raw_data)
        except OSError:
            return tensor


def _is_large(tensor: TensorProto) -> bool:
    return math.prod(tensor.dims) >= _LARGE and tensor.HasField("raw_data")
