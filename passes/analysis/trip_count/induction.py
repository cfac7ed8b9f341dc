"""Carried values that only count: i0 + k * step in iteration k, and those that never change."""

from __future__ import annotations

from dataclasses import dataclass, replace

from passes.analysis.integers.affine import ITERATION, LIMITS, Affine, Atom, Ints
from passes.analysis.integers.integers import Integers
from passes.ir.operators import op_of
from passes.loops.form import Carried, LoopForm
from passes.rule import Site
from passes.types.value_types import dims_of, elem_type_of


@dataclass(frozen=True)
class Induction:
    """A carried whole number: `initial` + k * `step` when iteration k begins, if it wraps then as
    its type does."""

    carried: Carried
    initial: Ints
    step: int

    @property
    def value(self) -> Ints:
        """The number in terms of the iteration."""
        (begun,) = self.initial.items
        return replace(self.initial, items=(begun + Affine.of(ITERATION).times(self.step),))


def unchanged(form: LoopForm) -> dict[str, Carried]:
    """The carried values, by body input, that every iteration hands on as they are."""
    producers = {name: node for node in form.body.node for name in node.output}
    found = {}
    for one in form.carried:
        name = one.body_output
        while (node := producers.get(name)) is not None and op_of(node) == "Identity":
            name = node.input[0]
        if name == one.body_input:
            found[name] = one
    return found


def inductions(site: Site, form: LoopForm) -> list[Induction]:
    """The carried whole numbers that grow by a constant step."""
    start = Integers(site)
    known = _iteration(form)
    initial: dict[str, Ints] = {}
    same = unchanged(form)
    for one in form.carried:
        value = start.outside(one.initial) if _may_count(site, one) else None
        if value is not None and value.single is not None:
            initial[one.body_input] = value
            fixed = one.body_input in same and value.single.number is not None
            own = replace(value, items=(_own(one, value),))
            known[one.body_input] = value if fixed else own
    body = Integers(site, form.body, known)
    found = []
    for one in form.carried:
        begun = initial.get(one.body_input)
        after = body.wrapping(one.body_output) if begun is not None else None
        if begun is None or after is None or after.single is None:
            continue
        step = (after.single - _own(one, begun)).wrapped(begun.elem_type).number
        if step is not None and (after.rank, after.elem_type) == (begun.rank, begun.elem_type):
            found.append(Induction(one, begun, step))
    return found


def _iteration(form: LoopForm) -> dict[str, Ints | None]:
    """The iteration number, as the body declares it."""
    return {form.iteration: Ints((Affine.of(ITERATION),), form.iteration_rank)}


def _own(one: Carried, begun: Ints) -> Affine:
    """What is carried, as any iteration finds it."""
    return Affine.of(Atom(("carried", one.body_input), within=LIMITS[begun.elem_type]))


def _may_count(site: Site, one: Carried) -> bool:
    known = site.type_of(one.initial)
    return elem_type_of(known) in LIMITS and dims_of(known) in ((), (1,))


def integers_of(site: Site, form: LoopForm) -> Integers:
    """Whole numbers in the body, in terms of the iteration number."""
    known = _iteration(form)
    for one in inductions(site, form):
        known[one.carried.body_input] = one.value
    for name, carried in unchanged(form).items():
        known.setdefault(name, Integers(site).outside(carried.initial))
    return Integers(site, form.body, known)
