"""Carried values that only count: i0 + k * step in iteration k, and those that never change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from passes.analysis.integers.affine import ITERATION, LIMITS, Affine, Atom, Ints
from passes.analysis.integers.integers import Integers
from passes.analysis.trip_count.float_steps import float_step
from passes.analysis.trip_count.trip_count import TripCount
from passes.loops.form import Carried, LoopForm
from passes.rule import Site
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


def unchanged(form: LoopForm) -> dict[str, Carried]:
    """Return the carried values, by body input, that every iteration passes on unchanged."""
    source = form.index.source
    return {
        carried.body_input: carried
        for carried in form.carried
        if source(carried.body_output) == carried.body_input
    }


def inductions(site: Site, form: LoopForm, *, rounding: bool = False) -> list[Induction]:
    """The carried integers that grow by a constant step, in every iteration; if `rounding`, also
    those of which that is not known because they round after some."""
    start = Integers(site)
    known = _iteration(form)
    initial: dict[str, Ints] = {}
    same = unchanged(form)
    for carried in form.carried:
        value = start.outside(carried.initial) if _may_count(site, carried) else None
        if value is not None and value.single is not None:
            initial[carried.body_input] = value
            fixed = carried.body_input in same and value.single.number is not None
            own = replace(value, items=(_own(carried, value),))
            known[carried.body_input] = value if fixed else own
    body = Integers(site, form.body, known)
    found = []
    for carried in form.carried:
        begun = initial.get(carried.body_input)
        if begun is None:
            continue
        after = body.wrapping(carried.body_output)
        if after is None or after.single is None:
            found += _by_floats(body, carried, begun)
            continue
        step = (after.single - _own(carried, begun)).wrapped(begun.elem_type).number
        if step is not None and (after.rank, after.elem_type) == (begun.rank, begun.elem_type):
            found.append(Induction(carried, begun, step))
    longest = TripCount(site, form).size.most
    return [one for one in found if rounding or one.exact is None or longest <= one.exact]


def _by_floats(body: Integers, carried: Carried, begun: Ints) -> list[Induction]:
    """A counter that takes its step as a float, from a constant on."""
    first = None if begun.single is None else begun.single.number
    step = float_step(body, carried, begun.elem_type, begun.rank)
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
    for name, carried in unchanged(form).items():
        known.setdefault(name, Integers(site).outside(carried.initial))
    return Integers(site, form.body, known)
