"""Writes a model: wholly or not at all, with the external data it refers to."""

from __future__ import annotations

import contextlib
import math
import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from google.protobuf.message import EncodeError, Message
from onnx import ModelProto, serialization

from passes.errors import BadModel, PassesError
from passes.ir.external_data import external_tensors
from passes.ir.model import Model
from passes.ir.protos import copied, copy_fields

Progress = Callable[[str], None]

_HEAVY = 1 << 24  # elements of weights that are written one by one
_MOST = (1 << 31) - 1  # bytes that protobuf reads
_LOCATION = b"location"
"""Contained in every file that refers to external data, in any format."""


class CannotSave(PassesError):
    """The file cannot be written; no part of it is left."""


def check_target(path: Path, *, force: bool = False) -> None:
    """Check that `path` may be written, before any work is done.

    Raises:
        CannotSave: it exists and `force` is off, it is a folder, or its folder does not exist.
    """
    try:
        sentence = _obstacle(path, force)
    except OSError as error:
        sentence = f"cannot be written ({error.strerror})"
    if sentence:
        raise CannotSave(f"{path}: {sentence}")


def _obstacle(path: Path, force: bool) -> str:
    with contextlib.suppress(FileNotFoundError):
        path.stat()  # a link that leads to itself
    if path.is_dir():
        return "is a folder"
    if path.exists() and not path.is_file():
        return "is no plain file"
    if path.exists() and not force:
        return "exists already (use --force to write over it)"
    if not path.parent.is_dir():
        return f"there is no folder {path.parent}"
    return ""


def save(
    model: ModelProto,
    path: Path,
    *,
    base_dir: Path | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> None:
    """Write `model` to `path`, in the format that its suffix names.

    External data under `base_dir` stays where it is if `path` lies beside it; elsewhere it is
    copied under new names (never linked: onnx rejects such files), synced before the model
    appears. The model is written beside its place and renamed, so there is never half a file.

    Raises:
        CannotSave: `path` exists and `force` is off, or the folder or disk refuses.
    """
    check_target(path, force=force)
    stale = _own_copies(path)
    copied: list[Path] = []
    try:
        moved = _with_data_beside(model, path, base_dir, copied, progress)
        with replacing(path) as out:
            out.writelines(_serialized(moved, path))
    except BaseException as error:  # an interrupt leaves no copies behind, either
        for file in copied:
            file.unlink(missing_ok=True)
        if not isinstance(error, OSError | ValueError | EncodeError):
            raise
        reason = getattr(error, "strerror", None) or error
        raise CannotSave(f"{path}: cannot be written ({reason})") from error
    for file in stale - _own_copies(path) if stale else ():
        file.unlink(missing_ok=True)
    _sync_folder(path.parent)


def _own_copies(path: Path) -> set[Path]:
    """The weights that were copied for the model at `path`, if there is one."""
    try:
        if _LOCATION not in path.read_bytes():
            return set()  # what is replaced needs not be looked into
    except OSError:
        return set()
    try:
        tensors = list(external_tensors(Model.load(path).proto))
    except BadModel:
        return set()  # what is replaced was no model
    entries = (entry for tensor in tensors for entry in tensor.external_data)
    names = {entry.value for entry in entries if entry.key == "location"}
    ours = re.compile(rf"{re.escape(path.stem)}(-\d+)?\..")
    return {path.parent / name for name in names if ours.match(name)}


def _serialized(model: ModelProto, path: Path) -> Iterator[bytes]:
    """Yield the parts of a file, in order."""
    name = serialization.registry.get_format_from_file_extension(path.suffix) or "protobuf"
    elements = sum(math.prod(weight.dims) for weight in model.graph.initializer)
    if name == "protobuf" and elements > _HEAVY:
        yield from in_parts(model)
        return
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The onnxtxt format is experimental")
        data = serialization.registry.get(name).serialize_proto(model)
    yield data if isinstance(data, bytes) else data.encode()


def in_parts(model: ModelProto) -> Iterator[bytes]:
    """Yield the bytes of a model, one weight of the main graph at a time: protobuf would take
    twice the size of the model to make them at once."""
    (before, after), (head, tail) = _around(model, "graph"), _around(model.graph, "initializer")
    weights = model.graph.initializer
    headers = [_header(model.graph, "initializer", weight.ByteSize()) for weight in weights]
    size = sum(map(len, [head, tail, *headers])) + sum(weight.ByteSize() for weight in weights)
    graph = _header(model, "graph", size)
    if sum(map(len, [before, graph, after])) + size > _MOST:
        raise EncodeError("a model of more than 2 GiB")
    yield from (before, graph, head)
    for header, weight in zip(headers, weights, strict=True):
        yield header
        yield weight.SerializeToString()
    yield from (tail, after)


def _around(message: Message, name: str) -> tuple[bytes, bytes]:
    """What is serialized before a field of a message, and after it: protobuf orders the fields."""
    numbers = {field.number: field.name for field in message.DESCRIPTOR.fields}
    names = [numbers[number] for number in sorted(numbers)]
    parts = []
    for without in (names[names.index(name) :], names[: names.index(name) + 1]):
        part = type(message)()
        copy_fields(message, part, without)
        parts.append(part.SerializeToString())
    return parts[0], parts[1]


def _header(message: Message, name: str, size: int) -> bytes:
    """What protobuf writes before a field that is a message of so many bytes."""
    number = message.DESCRIPTOR.fields_by_name[name].number
    return bytes([number << 3 | 2]) + _varint(size)


def _varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first, with a bit that tells whether more follow."""
    more = number >> 7
    return bytes([number & 127 | 128]) + _varint(more) if more else bytes([number])


@contextlib.contextmanager
def replacing(path: Path, prefix: str = "") -> Iterator[BinaryIO]:
    """A file that takes the place of `path` once it is written, wholly or not at all; until then
    its name has the `prefix`."""
    descriptor, temporary = tempfile.mkstemp(prefix=prefix or f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, _mode(path))
        os.replace(temporary, path)
    except BaseException:  # an interrupt leaves no temporary file behind, either
        Path(temporary).unlink(missing_ok=True)
        raise


def _mode(path: Path) -> int:
    """The permissions of the file that is replaced, else what the user's mask gives."""
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _sync_folder(folder: Path) -> None:
    """Make the new names last; where a system cannot do that to a folder, they are there anyway."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _with_data_beside(
    model: ModelProto,
    path: Path,
    base_dir: Path | None,
    files: list[Path],
    progress: Progress | None,
) -> ModelProto:
    """The model with its external data in the folder of `path`; `files` collects new files."""
    if base_dir is None or base_dir.resolve() == path.parent.resolve():
        return model
    if not any(True for _ in external_tensors(model)):
        return model
    moved = copied(model)
    places: dict[str, str] = {}
    for tensor in external_tensors(moved):
        for entry in tensor.external_data:
            if entry.key == "location":
                if entry.value not in places:
                    places[entry.value] = _copied(entry.value, path, base_dir, files, progress)
                entry.value = places[entry.value]
    return moved


def _copied(
    location: str, path: Path, base_dir: Path, copied: list[Path], progress: Progress | None
) -> str:
    source = base_dir / location
    target = _free_name(path, source)
    if progress is not None:
        progress(f"copying {source.stat().st_size} bytes of weights to {target.name}")
    with open(source, "rb") as reading, open(target, "xb") as writing:
        copied.append(target)  # from here on it is ours
        shutil.copyfileobj(reading, writing, 1 << 20)
        writing.flush()
        os.fsync(writing.fileno())
    return target.name


def _free_name(path: Path, source: Path) -> Path:
    number = 0
    while True:
        suffix = f"-{number}" if number else ""
        candidate = path.parent / f"{path.stem}{suffix}.{source.name}"
        if not candidate.exists():
            return candidate
        number += 1
