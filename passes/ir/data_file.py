"""A file of external data in a temporary folder: no copy of a model holds the weights that are in
it, and what runs the model maps them."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import TensorProto

_NAME, _PAGE = "weights", 4096


class DataFile:
    """The file, in a `folder` that is removed with this object, or by `remove`.

    Raises:
        OSError: the folder cannot be made.
    """

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="passes-"))
        self.remove = weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        self._offsets: dict[str, int] = {}
        self._end = 0

    def tensor(self, like: TensorProto, data: bytes | memoryview | npt.NDArray[Any]) -> TensorProto:
        """A tensor with the name, the type and the dims of another one, and with its data in the
        file, which has equal data once.

        Raises:
            OSError: the disk is full.
        """
        if isinstance(data, np.ndarray):
            little = data.astype(data.dtype.newbyteorder("<"), copy=False)
            data = np.ascontiguousarray(little).reshape(-1).view(np.uint8).data
        digest = hashlib.sha256(data).hexdigest()
        if digest not in self._offsets:
            self._append(data, digest)
        made = TensorProto(name=like.name, data_type=like.data_type, dims=like.dims)
        made.data_location = TensorProto.EXTERNAL
        # the checksum tells apart what other such files have at this place
        place = {"location": _NAME, "offset": self._offsets[digest], "length": len(data)}
        for key, value in {**place, "checksum": digest}.items():
            made.external_data.add(key=key, value=f"{value}")
        return made

    def _append(self, data: bytes | memoryview, digest: str) -> None:
        with (self.folder / _NAME).open("ab") as file:
            file.truncate(self._end)  # up to the next page, or what a full disk left of the last
            file.write(data)
        self._offsets[digest] = self._end
        self._end += -(-len(data) // _PAGE) * _PAGE
