"""What operators require of the sizes of their operands, also where no contract states the sizes of
what they return."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

from passes.ir.attributes import attribute, attributes
from passes.ir.operators import Registry, op_of
from passes.operators.cells import INITIAL_C, INITIAL_H, LENGTHS, RECURRENT, R, W, X
from passes.operators.contract import Need, Operands, Size, Sum, joined
from passes.operators.contracts import contract_of
from passes.operators.table import UNKNOWN, traits_of

_NEEDS: Registry[Callable[[Operands], Iterable[Need]]] = Registry()


def needs_of(given: Operands) -> Sequence[Need]:
    """The requirements of a node, as far as they are stated; some may name axes that an operand
    lacks."""
    contract = contract_of(given)
    if contract is not None:
        return contract.needs
    # most operators with several operands, of which nothing else is known, broadcast them
    own = _NEEDS.get(op_of(given.node), _broadcast if traits_of(given.node) == UNKNOWN else None)
    return [] if own is None else list(own(given))


def _dims(given: Operands, place: int) -> Sequence[int]:
    known = given.dims(given.node.input[place]) if given.has(place) else None
    return [size for size in known or () if isinstance(size, int)]


@_NEEDS.enter("LayerNormalization", "PRelu")
def _broadcast(given: Operands) -> Iterable[Need]:
    """Sizes at the same axis, counted from the last, are equal, or one of them is 1."""
    shapes = [_dims(given, place) for place in range(len(given.node.input))]
    return joined(*([Size(n, axis) for axis in range(len(one))] for n, one in enumerate(shapes)))[1]


@_NEEDS.enter("ConvTranspose")
def _channels_of_weights(given: Operands) -> Iterator[Need]:
    yield Need(Size(0, 1), "equal", Size(1, 0))


@_NEEDS.enter("Reshape")
def _reshape(given: Operands) -> Iterator[Need]:
    """The elements fill the new shape."""
    shape, kept = _dims(given, 0), [*(given.numbers(1, "shape") or ())]
    if not attribute(given.node, "allowzero", 0):
        for axis, own in enumerate(shape[: len(kept)]):
            kept[axis] = kept[axis] or own
    wanted = math.prod(size for size in kept if size != -1)
    for axis in reversed(range(len(shape))):
        others = math.prod([*shape[:axis], *shape[axis + 1 :]])
        if wanted <= 0 or others <= 0:
            continue
        if -1 in kept:
            yield Need(Size(0, axis), "multiple", wanted // math.gcd(wanted, others))
        elif wanted % others == 0:
            yield Need(Size(0, axis), "equal", wanted // others)


@_NEEDS.enter(*RECURRENT)
def _recurrent(given: Operands) -> Iterator[Need]:
    """The widths of the weights, and one row of states and lengths for each of the inputs."""
    rows = 0 if attribute(given.node, "layout", 0) else 1
    yield Need(Size(X, 2), "equal", Size(W, 2))
    yield Need(Size(LENGTHS, 0), "equal", Size(X, rows))
    for state in (INITIAL_H, INITIAL_C):
        yield Need(Size(state, rows), "equal", Size(X, rows))
        yield Need(Size(state, 2), "equal", Size(R, 2))
        yield Need(Size(state, 1 - rows), "equal", Size(W, 0))


@_NEEDS.enter("Attention")
def _attention(given: Operands) -> Iterator[Need]:
    """As many values as keys, in the past, too, and a mask for all of them."""
    yield Need(Size(2, -2), "equal", Size(1, -2))
    yield Need(Size(5, -2), "equal", Size(4, -2))
    yield from (Need(Size(place, 0), "equal", Size(0, 0)) for place in (1, 2, 4, 5))
    mask = _dims(given, 3)
    if mask and mask[-1] != 1:
        past = [Size(4, -2)] if given.has(4) else []
        yield Need(Size(3, -1), "equal", Sum([Size(1, -2), *past]))
    if len(mask) > 1 and mask[-2] != 1:
        yield Need(Size(3, -2), "equal", Size(0, -2))
    if len(mask) == len(_dims(given, 0)) == 4 and mask[0] != 1:
        yield Need(Size(3, 0), "equal", Size(0, 0))


@_NEEDS.enter("BatchNormalization", "InstanceNormalization")
def _channels(given: Operands) -> Iterator[Need]:
    yield from (Need(Size(0, 1), "equal", Size(n, 0)) for n in range(1, len(given.node.input)))


@_NEEDS.enter("STFT")
def _stft(given: Operands) -> Iterator[Need]:
    length = given.numbers(3, "") or _dims(given, 2)[:1]
    if len(length) == 1:
        yield Need(Size(0, 1), "least", length[0])


@_NEEDS.enter("Scan")
def _scan(given: Operands) -> Iterator[Need]:
    """All scanned inputs have one length."""
    count = attribute(given.node, "num_scan_inputs", 1)
    first = len(given.node.input) - count
    axes = attributes(given.node, "scan_input_axes") or [0] * count
    for place in range(1, count):
        yield Need(Size(first + place, axes[place]), "equal", Size(first, axes[0]))
