"""Files of models, with their weights: sizes and digests."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

#: Bytes that are read at a time.
_CHUNK = 1 << 20


@dataclass(frozen=True)
class File:
    """A file: its path, its size in bytes, and its SHA-256 in hexadecimal digits."""

    path: str
    bytes: int
    sha256: str

    @classmethod
    def of(cls, path: Path) -> File:
        """Read a file. Raises OSError where that cannot be."""
        return cls(str(path), path.stat().st_size, digest(path))


def digest(path: Path) -> str:
    """The SHA-256 of a file. Raises OSError where it cannot be read."""
    found = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            found.update(chunk)
    return found.hexdigest()


def files_of(model: Path, read: Callable[[Path], File] = File.of) -> tuple[File, ...]:
    """A model file, and those with its weights; what cannot be read is left out."""
    return tuple(_read(model, read))


def _read(model: Path, read: Callable[[Path], File]) -> Iterator[File]:
    from passes.errors import BadModel
    from passes.ir.external_data import external_files
    from passes.ir.model import Model

    try:
        yield read(model)
        if b"location" not in model.read_bytes():
            return  # it refers to no external data, whatever its format
        for file in sorted(external_files(Model.load(model).proto, model.parent)):
            yield read(file)
    except (OSError, BadModel):
        return
