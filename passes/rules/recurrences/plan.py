"""In which form each state of a loop runs over blocks, and in which order the states do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from onnx import TensorProto

from passes.bodies.time_body import TimeBody
from passes.loops.form import Carried, Kind
from passes.rules.recurrences.forms import ElementForm, MatrixForm
from passes.rules.recurrences.index_notation import NotLinear, Summand
from passes.rules.recurrences.linear_states import LOG_ADD_EXP, LinearState, Read, StateFinder
from passes.types.value_types import elem_type_of

#: The types of matrices that onnxruntime multiplies, of elements that are added, and of elements.
_PRODUCTS = (TensorProto.FLOAT, TensorProto.DOUBLE)
_NUMBERS = (*_PRODUCTS, TensorProto.INT32, TensorProto.INT64)
_ELEMENTS = (*_NUMBERS, TensorProto.BOOL)

#: As many states may feed each other.
_MOST_COUPLED = 2

Form = MatrixForm | ElementForm


@dataclass(frozen=True)
class Stage:
    """States whose factors depend on states of earlier stages alone."""

    finder: StateFinder
    forms: tuple[Form, ...]

    @property
    def reads(self) -> list[str]:
        """The values read of the states."""
        return [name for form in self.forms for name in form.reads]


def stages(body: TimeBody) -> tuple[Stage, ...]:
    """The stages of a loop: with vectors as matrices of one column, if there are matrices.

    Raises:
        NotLinear: a state has no form.
    """
    found = _stages(body, vectors=True)
    forms = [form for stage in found for form in stage.forms if isinstance(form, MatrixForm)]
    return found if any(form.columns for form in forms) else _stages(body, vectors=False)


def _stages(body: TimeBody, *, vectors: bool) -> tuple[Stage, ...]:
    form = body.form
    unsolved = {carried.body_input: carried for carried in form.carried}
    if form.kind is not Kind.SCAN or not form.carried or not form.scanned:
        raise NotLinear
    found = []
    while unsolved:
        finder = StateFinder.of(body, unsolved)
        tried = (_form(finder, carried, vectors=vectors) for carried in unsolved.values())
        forms = tuple(form for form in tried if form is not None)
        if not forms:
            forms = (_coupled(finder, unsolved),)
        found.append(Stage(finder, forms))
        for state in (state for one in forms for state in one.states):
            del unsolved[state.carried.body_input]
    return tuple(found)


def has_linear_matrix(body: TimeBody) -> bool:
    """Return whether a state, were the other ones known, is a matrix that is linear in itself."""
    forms = (
        _form(StateFinder.of(body, [carried.body_input]), carried, vectors=True)
        for carried in body.form.carried
    )
    return any(isinstance(form, MatrixForm) and form.columns for form in forms)


def _state(finder: StateFinder, carried: Carried) -> LinearState | None:
    try:
        return finder.state(carried)
    except NotLinear:
        return None


def _form(finder: StateFinder, carried: Carried, *, vectors: bool) -> Form | None:
    """The form of a state; None where it depends on others in another way."""
    form = finder.body.form
    kind = _kind(finder, carried)
    if kind not in _ELEMENTS or not finder.keeps_shape(carried):
        return None
    others = [other.body_output for other in form.carried if other is not carried]
    wanted = [*others, *(one.body_output for one in form.collected if one.tensor)]
    before, after = carried.body_input, finder.after(carried)

    try:
        largest, operator = finder.largest(carried)
        return replace(_by_element(finder, largest, {}, wanted), tropical=operator)
    except NotLinear:
        pass
    try:
        summed, safe = finder.log_sum(carried)
        logs = _by_element(finder, summed, {}, wanted)
        return replace(logs, tropical=LOG_ADD_EXP, bounded=not safe)
    except NotLinear:
        pass
    state = _state(finder, carried)
    if state is None or not state.decays or not (state.updates or state.decays != (Summand(),)):
        return None
    reads, whole = finder.reads(state)
    used = _used(finder, wanted, {*reads, before, after})
    try:
        if whole & used:
            raise NotLinear
        found = MatrixForm.of(finder.notation, state, _in_order(reads, used))
        vector = not (found.columns or found.correction)
        if (vector and not vectors) or kind not in _PRODUCTS:
            raise NotLinear
    except NotLinear:
        return None if state.corrections else _by_element(finder, state, reads, wanted)
    return found


def _by_element(
    finder: StateFinder, state: LinearState, reads: dict[str, Read], wanted: Sequence[str]
) -> ElementForm:
    """The form of a state whose elements are independent, read by rows alone if possible."""
    before, after = state.carried.body_input, finder.after(state.carried)
    used = _used(finder, wanted, {*reads, before, after})
    rows = _in_order(reads, used)
    if rows and before not in used and after not in used:
        try:
            form = MatrixForm.of(finder.notation, state, rows, decays=False)
            return ElementForm((state,), (state.decays,), ("",), ("",), matrix=form)
        except NotLinear:
            pass
    used = _used(finder, wanted, {before, after})
    first, then = (name if name in used else "" for name in (before, after))
    return ElementForm((state,), (state.decays,), (first,), (then,))


def _coupled(finder: StateFinder, unsolved: Mapping[str, Carried]) -> ElementForm:
    """The form of states that feed each other, element by element.

    Raises:
        NotLinear: there are none, or too many.
    """
    first = next(iter(unsolved))
    group, pending = dict[str, tuple[LinearState, dict[str, tuple[Summand, ...]]]](), [first]
    while pending:
        name = pending.pop()
        if name in group:
            continue
        if len(group) == _MOST_COUPLED or _kind(finder, unsolved[name]) not in _NUMBERS:
            raise NotLinear
        if not finder.keeps_shape(unsolved[name]):
            raise NotLinear
        group[name] = finder.coupled(unsolved[name])
        pending += group[name][1]
    own = [state.carried for state, _ in group.values()]
    befores, afters = [one.body_input for one in own], [finder.after(one) for one in own]
    form = finder.body.form
    wanted = [other.body_output for other in form.carried if other not in own]
    wanted += [one.body_output for one in form.collected if one.tensor]
    used = _used(finder, wanted, {*befores, *afters})
    return ElementForm(
        tuple(state for state, _ in group.values()),
        tuple(feeds.get(name, ()) for _, feeds in group.values() for name in group),
        tuple(name if name in used else "" for name in befores),
        tuple(name if name in used else "" for name in afters),
    )


def _in_order(reads: dict[str, Read], used: set[str]) -> Sequence[Read]:
    return [read for name, read in reads.items() if name in used]


def _kind(finder: StateFinder, carried: Carried) -> int:
    return elem_type_of(finder.body.rows.types.get(carried.body_input))


def _used(finder: StateFinder, wanted: Iterable[str], stop: set[str]) -> set[str]:
    """The values that these depend on, up to those in `stop`."""
    return finder.body.needs(wanted, stop=stop).names
