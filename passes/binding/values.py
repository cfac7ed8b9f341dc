"""Values that users give for inputs: read, stored such that they compare and pickle, and
printed."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import TypeProto

from passes.errors import WrongUsage

_PLAIN = (bool, int, float, complex, str)


class BadValueFile(WrongUsage):
    """A file that is to hold a value cannot be read, or is no .npy."""


@dataclass(frozen=True, eq=False)
class Held:
    """An array that is not changed any more; equal to one of the same dtype, shape and bits."""

    array: npt.NDArray[Any]

    @property
    def _identity(self) -> tuple[object, ...]:
        return (self.array.dtype.str, self.array.dtype.name, self.array.shape, self.array.tobytes())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Held) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    def __str__(self) -> str:
        """Its type and the digest of its content."""
        sizes = f"[{','.join(map(str, self.array.shape))}]" if self.array.ndim else ""
        digest = hashlib.sha256(self.array.tobytes()).hexdigest()
        return f"{self.array.dtype.name}{sizes}, sha256 {digest}"


#: A value as options store it: a Python number, bool or string, tuples of them, or an array.
Stored = Any


def held(value: Any) -> Stored:
    """A value as it is stored.

    Raises:
        TypeError: it is no number, bool, string or array, nor lists of them.
    """
    if isinstance(value, Held):
        return value
    if isinstance(value, np.generic | np.ndarray):
        array = np.array(value, order="C")
        if array.dtype.kind in "OUST":
            return held(array.astype(object).tolist())
        array = array.astype(array.dtype.newbyteorder("="))
        array.setflags(write=False)
        return Held(array)
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        inner = tuple(held(one.item() if isinstance(one, np.generic) else one) for one in value)
        if any(isinstance(one, Held) for one in inner):
            raise TypeError("a list of arrays is no value; one array is")
        return inner
    raise TypeError(f"{value!r} is no number, bool, string or array")


def printed(value: Stored) -> Any:
    """A value for reports and the keys of caches, which tell different ones apart."""
    if isinstance(value, tuple):
        return [printed(one) for one in value]
    plain = isinstance(value, bool | int | str) or (
        isinstance(value, float) and math.isfinite(value)
    )
    return value if plain else str(value)


def read(text: str, folder: Path = Path()) -> Stored:
    """The value that a text names: a number, bool, string or list as in JSON, another string as it
    is, or the content of a .npy file, as `@file.npy`, relative to a folder.

    Raises:
        BadValueFile: the file cannot be read, or is no .npy.
    """
    if text.startswith("@"):
        return held(_loaded(Path(os.path.normpath(folder / text.removeprefix("@")))))
    try:
        return held(json.loads(text))
    except (ValueError, TypeError):
        return text


def parsed(text: str) -> tuple[str, Stored]:
    """The name and the value of `sr=16000`.

    Raises:
        ValueError: it is not of that form.
        BadValueFile: it names a file that cannot be read, or is no .npy.
    """
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise ValueError(f"{text!r} is not of the form NAME=VALUE")
    return name, read(value)


def as_array(value: Stored, type_: TypeProto) -> npt.NDArray[Any]:
    """A value as an array of the declared dtype; its shape is its own.

    Raises:
        ValueError: it is none of this dtype: a sentence without a subject.
    """
    from passes.types.dtypes import as_declared, is_float, numpy_dtype

    wanted = numpy_dtype(type_.tensor_type.elem_type)
    name = "string" if wanted.kind == "O" else wanted.name
    if isinstance(value, Held):
        array = np.asarray(as_declared(value.array, type_))
        if array.dtype != wanted:
            raise ValueError(f"is {name}, {array.dtype} is given")
        return array
    kinds: tuple[type, ...] = (int,)
    if wanted.kind in "bO":
        kinds = (bool,) if wanted.kind == "b" else (str,)
    elif wanted.kind == "c":
        kinds = (int, float, complex)
    elif is_float(wanted):
        kinds = (int, float)
    shape = _shape(value)
    leaves = list(_leaves(value))
    for leaf in leaves:
        if not isinstance(leaf, kinds) or (isinstance(leaf, bool) and bool not in kinds):
            raise ValueError(f"is {name}, {leaf!r} is given")
        if not _fits(leaf, wanted):
            raise ValueError(f"is {name}, which cannot hold {leaf!r}")
    return np.array(leaves, wanted).reshape(shape)


def _fits(leaf: Any, wanted: np.dtype[Any]) -> bool:
    """Return whether a dtype holds a number as it is, or rounded."""
    try:
        with np.errstate(all="ignore"):
            return _kept(leaf, np.array(leaf, wanted).item())
    except OverflowError:
        return False


def _kept(leaf: Any, stored: Any) -> bool:
    """Return whether a number was stored as it is: whole numbers exactly, others but for
    rounding."""
    if isinstance(leaf, str | bool) or isinstance(stored, int):
        return bool(leaf == stored)
    if isinstance(leaf, complex) or isinstance(stored, complex):
        return bool(np.isfinite(complex(leaf)) == np.isfinite(complex(stored)))
    return math.isfinite(leaf) == math.isfinite(stored) and math.isnan(leaf) == math.isnan(stored)


def _shape(value: Stored) -> tuple[int, ...]:
    if not isinstance(value, tuple):
        return ()
    inner = {_shape(one) for one in value}
    if len(inner) > 1:
        raise ValueError("is a tensor, lists of different lengths are given")
    return (len(value), *(next(iter(inner), ())))


def _leaves(value: Stored) -> Iterator[Any]:
    if isinstance(value, tuple):
        for one in value:
            yield from _leaves(one)
    else:
        yield value


def _loaded(path: Path) -> npt.NDArray[Any]:
    try:
        array = np.load(path, allow_pickle=False)
    except OSError as error:
        raise BadValueFile(f"{path}: cannot be read ({error.strerror or error})") from error
    except (ValueError, EOFError) as error:
        raise BadValueFile(f"{path}: is no .npy file") from error
    if not isinstance(array, np.ndarray):
        array.close()
        raise BadValueFile(f"{path}: is an .npz file; one array is wanted, as an .npy")
    return array
