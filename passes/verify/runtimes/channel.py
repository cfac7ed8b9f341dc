"""Length-prefixed messages over a pair of pipes, between a process and the worker it started.

Both ends are this program, of one version: the messages are pickles of plain values and arrays.
"""

from __future__ import annotations

import pickle
import struct
from typing import IO, Any

_LENGTH = struct.Struct("<Q")
#: The exceptions of unpickling, according to the documentation of `pickle`.
_UNREADABLE = (pickle.UnpicklingError, AttributeError, EOFError, ImportError, IndexError)


class Garbled(Exception):
    """The received bytes are no message."""


def send(stream: IO[bytes], message: Any) -> None:
    """Write one message and flush. Raises OSError if the other end is closed."""
    body = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    stream.write(_LENGTH.pack(len(body)))
    stream.write(body)
    stream.flush()


def receive(stream: IO[bytes]) -> Any:
    """Read one message.

    Raises EOFError if the other end is closed, Garbled if it sent no message.
    """
    (length,) = _LENGTH.unpack(_exactly(stream, _LENGTH.size))
    body = _exactly(stream, length)
    try:
        return pickle.loads(body)
    except _UNREADABLE as error:
        raise Garbled(str(error)) from error


def _exactly(stream: IO[bytes], count: int) -> bytes:
    data = stream.read(count)
    if len(data) != count:
        raise EOFError(f"{count} bytes expected, {len(data)} came")
    return data
