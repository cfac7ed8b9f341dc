"""Files whose bytes were damaged: cut short, flipped, overwritten, repeated."""

from __future__ import annotations

import random
from collections.abc import Callable

Damage = Callable[[random.Random, bytearray], None]


def truncated(rng: random.Random, data: bytearray) -> None:
    del data[rng.randrange(len(data)) :]


def flipped(rng: random.Random, data: bytearray) -> None:
    for _ in range(rng.choice((1, 1, 2, 8, 64))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def overwritten(rng: random.Random, data: bytearray) -> None:
    """A few bytes become others, that mean large numbers where they are a length or a dim."""
    start = rng.randrange(len(data))
    data[start : start + rng.randrange(1, 10)] = rng.choice(
        (b"\xff" * 9 + b"\x7f", b"\x80" * 4, b"\x00" * 8, rng.randbytes(8))
    )


def missing(rng: random.Random, data: bytearray) -> None:
    start = rng.randrange(len(data))
    del data[start : start + rng.randrange(1, 40)]


def repeated(rng: random.Random, data: bytearray) -> None:
    start = rng.randrange(len(data))
    data[start:start] = data[start : start + rng.randrange(1, 200)]


def nested(rng: random.Random, data: bytearray) -> None:
    """Hundreds of Ifs in each other are added: deeper than protobuf itself would write."""
    graph = _field(2, b"innermost")
    for level in range(rng.choice((10, 30, 60, 200, 500, 5000))):
        branch = _field(1, b"then_branch") + b"\xa0\x01\x05" + _field(6, graph)
        name = f"y{level}".encode()
        node = _field(1, b"deep") + _field(2, name) + _field(4, b"If") + _field(5, branch)
        graph = _field(1, node) + _field(2, b"g") + _field(12, _field(1, name))
    data += _field(7, graph)  # one more graph of the model is merged with the first


def _field(number: int, content: bytes) -> bytes:
    """A field of a message, in protobuf's encoding."""
    length, rest = b"", len(content)
    while rest > 0x7F:
        length += bytes((rest & 0x7F | 0x80,))
        rest >>= 7
    return bytes((number << 3 | 2,)) + length + bytes((rest,)) + content


DAMAGES: tuple[Damage, ...] = (truncated, flipped, overwritten, missing, repeated, nested)


def damaged(rng: random.Random, data: bytes) -> tuple[str, bytes]:
    """What was done, and the bytes."""
    damage, copy = rng.choice(DAMAGES), bytearray(data)
    damage(rng, copy)
    return damage.__name__, bytes(copy)
