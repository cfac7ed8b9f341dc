"""Carried values that only count: i0 + k * step in iteration k, by whole numbers or floats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from onnx import NodeProto, TensorProto

from passes.analysis.integers.affine import (
    ITERATION,
    LIMITS,
    Affine,
    Atom,
    Ints,
    number_of,
    single_of,
)
from passes.analysis.integers.integers import Integers
from passes.analysis.trip_count.trip_count import TripCount
from passes.ir.attributes import attribute
from passes.ir.operators import op_of
from passes.ir.site import Site
from passes.loops.form import Carried, LoopForm
from passes.operators.table import traits_of
from passes.types.value_types import dims_of, elem_type_of


@dataclass(frozen=True)
class Induction:
    """A carried integer: `initial` + k * `step` when iteration k begins, wrapping as its type
    does. Its step may round after some iterations: it is `exact` in so many, always if None."""

    carried: Carried
    initial: Ints
    step: int
    exact: int | None = None

    @property
    def value(self) -> Ints:
        """The number as a function of the iteration number."""
        (begun,) = self.initial.items
        return replace(self.initial, items=(begun + Affine.of(ITERATION).times(self.step),))

    @property
    def after(self) -> Ints:
        """The number when the iteration ends."""
        (now,) = self.value.items
        return replace(self.initial, items=(now + self.step,))


def inductions(site: Site, form: LoopForm, *, rounding: bool = False) -> list[Induction]:
    """The carried integers that grow by a constant step, in every iteration; if `rounding`, also
    those of which that is not known because they round after some."""
    start = Integers(site)
    known = _iteration(form)
    initial: dict[str, Ints] = {}
    for carried in form.carried:
        value = start.outside(carried.initial) if _may_count(site, carried) else None
        if value is not None and single_of(value) is not None:
            initial[carried.body_input] = value
            fixed = carried.body_input in form.unchanged and number_of(value) is not None
            own = replace(value, items=(_own(carried, value),))
            known[carried.body_input] = value if fixed else own
    body = Integers(site, form.body, known)
    found = []
    for carried in form.carried:
        begun = initial.get(carried.body_input)
        if begun is None:
            continue
        after = body.wrapping(carried.body_output)
        single = single_of(after)
        if after is None or single is None:
            found += _by_floats(body, carried, begun)
            continue
        step = (single - _own(carried, begun)).wrapped(begun.elem_type).number
        if step is not None and (after.rank, after.elem_type) == (begun.rank, begun.elem_type):
            found.append(Induction(carried, begun, step))
    longest = TripCount(site, form).size.most
    return [one for one in found if rounding or one.exact is None or longest <= one.exact]


def _by_floats(body: Integers, carried: Carried, begun: Ints) -> list[Induction]:
    """A counter that takes its step as a float, from a constant on."""
    first = number_of(begun)
    step = _float_step(body, carried, begun.elem_type, begun.rank)
    if first is None or step is None:
        return []
    return [Induction(carried, begun, step.step, step.exact_from(first))]


def _iteration(form: LoopForm) -> dict[str, Ints | None]:
    """The iteration number, as the body declares it."""
    return {form.iteration: Ints((Affine.of(ITERATION),), form.iteration_rank)}


def _own(carried: Carried, begun: Ints) -> Affine:
    """A carried value, as each iteration gets it."""
    return Affine.of(Atom(("carried", carried.body_input), within=LIMITS[begun.elem_type]))


def _may_count(site: Site, carried: Carried) -> bool:
    known = site.type_of(carried.initial)
    return elem_type_of(known) in LIMITS and dims_of(known) in ((), (1,))


def integers_of(
    site: Site, form: LoopForm, counters: Sequence[Induction] | None = None
) -> Integers:
    """The integers in the body, as functions of the iteration number; of the carried ones those
    of the `counters`, by default of all that are exact."""
    known = _iteration(form)
    for induction in inductions(site, form) if counters is None else counters:
        known[induction.carried.body_input] = induction.value
        if induction.exact is not None:  # what floats compute is not followed
            known[induction.carried.body_output] = induction.after
    for name, carried in form.unchanged.items():
        known.setdefault(name, Integers(site).outside(carried.initial))
    return Integers(site, form.body, known)


#: Up to where a float holds every whole number.
_EXACT: dict[int, int] = {TensorProto.FLOAT: 1 << 24, TensorProto.DOUBLE: 1 << 53}
_SIGNS = {"Add": 1, "Sub": -1}
_UNITS = ("Mul", "Div")


@dataclass(frozen=True)
class _FloatStep:
    """A whole `step`, exact as long as neither the counter nor any sum exceeds a limit: as many
    iterations as `exact_from` returns."""

    step: int
    limit: int

    def exact_from(self, first: int) -> int:
        """Return the number of iterations that count exactly, from a first number on."""
        return max(0, (self.limit - abs(first)) // abs(self.step)) if self.step else 0


def _float_step(body: Integers, carried: Carried, elem_type: int, rank: int) -> _FloatStep | None:
    """The step of a counter of this type and rank by floats; None where it is none.

    It is `Cast (Add (Mul (Cast (c), 1), 1))`, as paddle writes it. A float holds each whole number
    up to its limit; beyond it the sum rounds, and the counter may stay the same.
    """
    node = _computing(body, carried.body_output)
    if node is None or op_of(node) != "Cast" or attribute(node, "to", 0) != elem_type:
        return None
    name, step, beside = node.input[0], 0, 0
    while (node := _computing(body, name)) is not None and op_of(node) != "Cast":
        found = _operand(body, node, rank)
        if found is None:
            return None
        name, number = found
        step += number
        beside += abs(number)
    limit = 0 if node is None else _EXACT.get(attribute(node, "to", 0), 0)
    if node is None or not limit or node.input[0] != carried.body_input:
        return None
    return _FloatStep(step, limit - beside + abs(step))


def _computing(body: Integers, name: str) -> NodeProto | None:
    """Return the node of the body that computes a value, skipping nodes that only pass it on."""
    node = body.source(name) if body.is_own(name) else None
    while node is not None and traits_of(node).hands_on:
        name = node.input[0]
        node = body.source(name) if body.is_own(name) else None
    return node


def _operand(body: Integers, node: NodeProto, rank: int) -> tuple[str, int] | None:
    """Return the operand to which a node adds a whole number, and that number: 0 if it multiplies
    by 1."""
    if op_of(node) not in (*_SIGNS, *_UNITS):
        return None
    swaps = op_of(node) in ("Add", "Mul")
    for name, other in (node.input, reversed(node.input)) if swaps else (node.input,):
        array = body.constant_inside(other)
        if array is None or array.size != 1 or array.ndim > rank or array.dtype.kind != "f":
            continue
        number = float(array.item())
        if op_of(node) in _UNITS:
            return (name, 0) if number == 1 else None
        small = abs(number) < _EXACT[TensorProto.FLOAT] and number == int(number)
        return (name, _SIGNS[op_of(node)] * int(number)) if small else None
    return None
