"""Types in the body of a Loop: which carried values keep theirs in every iteration, and whether the
shapes are those that are declared."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property

from onnx import TypeProto

from passes.analysis.bodies.body_inference import BodyInference
from passes.analysis.bodies.iteration_reads import Read
from passes.analysis.integers.affine import Atom
from passes.analysis.integers.integers import Integers
from passes.analysis.sizes.made_up_sizes import is_definite
from passes.ir.graph_index import OUTPUT
from passes.ir.operators import op_of
from passes.ir.scope import Key, Place
from passes.ir.site import Site, Slot
from passes.loops.form import Carried, LoopForm
from passes.types.value_types import Dim, Dims, dims_of, elem_type_of, tensor_type

_MOST_ROUNDS = 16


@dataclass(frozen=True)
class Change:
    """A carried value whose shape is not the same before and after an iteration."""

    before: Dims | None
    after: Dims | None

    @property
    def known(self) -> bool:
        """True if the shapes certainly differ: in rank, or in a number."""
        if self.before is None or self.after is None:
            return False
        if len(self.before) != len(self.after):
            return True
        return any(
            isinstance(old, int) and isinstance(new, int) and old != new
            for old, new in zip(self.before, self.after, strict=True)
        )


@dataclass(frozen=True)
class BodyTypes:
    """The types that hold in every iteration, by name, and the carried values that change."""

    types: Mapping[str, TypeProto]
    changes: Mapping[str, Change]
    invariant: frozenset[Dim]  # symbols that are the same size in every iteration
    sizes: Mapping[Dim, Atom]  # what some of them are the sizes of
    _certain: Callable[[], Mapping[str, TypeProto] | None]

    @cached_property
    def certain(self) -> Mapping[str, TypeProto] | None:
        """The types that hold whatever the body declares; None where that makes no difference."""
        return self._certain()

    def elem_type(self, name: str) -> int:
        """The element type of a value of the body, 0 where it is unknown."""
        return elem_type_of(self.types.get(name))

    def dims(self, name: str) -> Dims | None:
        """The dims of a value of the body."""
        return dims_of(self.types.get(name))

    def certainly(self, name: str, known: TypeProto) -> TypeProto:
        """A type of a value, without the sizes that only the body declares.

        onnxruntime accepts other sizes in a Loop, but not in an If or a Scan that declares them.
        """
        dims = dims_of(known)
        if self.certain is None or dims is None:
            return known
        sure = dims_of(self.certain.get(name))
        if sure is None or len(sure) != len(dims):
            sure = (None,) * len(dims)
        pairs = zip(dims, sure, strict=True)
        sizes = (None if isinstance(dim, int) and dim != size else dim for dim, size in pairs)
        return tensor_type(elem_type_of(known), tuple(sizes))


def body_types(
    site: Site, form: LoopForm, reads: Sequence[Read], checked: Collection[str] = ()
) -> BodyTypes:
    """Infer the body until the shapes of the carried values no longer change.

    The types of the slices that iterations read are known. The shapes of
    `checked` carried values (body inputs) are compared at run time.

    A dim that one iteration changes is widened to an unknown size, and the body
    inferred again, since other shapes may depend on it. Where that is inconclusive, the shapes that
    the body declares count; symbols, however, only if they follow from those of what the body
    reads: they are promises, and a model may break its own.
    """
    inference = BodyInference(site, form, reads, Integers(site))
    broken = _Broken(replace(inference, promised=True, sizes={}), checked)

    def stays(carried: Carried, before: Dims | None, after: Dims | None) -> bool:
        if carried.body_input in checked:
            return before is not None
        if not inference.declared_alike(carried) or _differ(before, after):
            return False
        return not inference.only_promised(carried) or carried.body_input not in broken.promises

    types, dims, changes = _fixpoint(inference, stays)
    stable = [
        dims[carried.body_input] for carried in form.carried if carried.body_input not in changes
    ]
    captured = [inference.outer(name) for name in form.captured]
    known = {dim for shape in (*stable, *captured) for dim in shape or () if isinstance(dim, str)}
    bare = replace(inference, declaring=False, sizes={})
    return BodyTypes(
        types, changes, frozenset(known), inference.sizes, lambda: _certain(bare, types, dims)
    )


def _certain(
    bare: BodyInference, types: Mapping[str, TypeProto], dims: Mapping[str, Dims | None]
) -> Mapping[str, TypeProto] | None:
    """The types that hold whatever the body declares; None where it declares only what is known.

    `bare` infers without the declared sizes.
    """
    firsts = [(bare.first(carried), dims[carried.body_input]) for carried in bare.form.carried]
    if not all(_knows_all(first, shape) for first, shape in firsts):
        return _fixpoint(bare, lambda carried, before, after: False)[0]
    known = bare.run(dims)
    if all(_knows_all(dims_of(known.get(name)), dims_of(type_)) for name, type_ in types.items()):
        return None
    return known


def _knows_all(known: Dims | None, declared: Dims | None) -> bool:
    """Return whether all declared sizes of a shape are known."""
    sizes = dict(enumerate(known or ()))
    return all(
        sizes.get(axis) == dim for axis, dim in enumerate(declared or ()) if isinstance(dim, int)
    )


def may_change(site: Site, form: LoopForm) -> Set[str]:
    """The carried values of a Loop (body inputs) whose shape is not proven to stay the same.

    Dims of one symbol count as one size only where that is inferred.
    """
    inference = BodyInference(site, form, (), Integers(site))
    _, _, changes = _fixpoint(inference, lambda carried, before, after: False)
    return changes.keys()


def proven_types(site: Site, form: LoopForm) -> tuple[Mapping[str, TypeProto], Mapping[Dim, Atom]]:
    """The types of values of the body of a Loop that hold in every iteration, whatever it
    declares, and what the symbols in them are the sizes of; none where a rank rests on what it
    declares."""
    bare = BodyInference(site, form, (), Integers(site), declaring=False)
    for state in form.carried:
        declared, initial = bare.declared(state.body_input), bare.outer(state.initial)
        if declared is not None and len(declared) != (-1 if initial is None else len(initial)):
            return {}, {}
    types, dims, _ = _fixpoint(bare, lambda carried, before, after: False)
    for state in form.carried:
        before, after = dims[state.body_input], dims_of(types.get(state.body_output))
        if before != bare.widen(state.body_input, before, after):
            return {}, {}  # it took too many rounds
    return types, bare.sizes


_Stays = Callable[[Carried, Dims | None, Dims | None], bool]


def _fixpoint(
    inference: BodyInference, stays: _Stays
) -> tuple[dict[str, TypeProto], dict[str, Dims | None], dict[str, Change]]:
    """The types of the body, the shapes of carried values, and the changes of those that change.

    `stays` is called where a shape is not inferred to be the same after an iteration.
    """
    carried = inference.form.carried
    dims = {state.body_input: inference.first(state) for state in carried}
    changes: dict[str, Change] = {}
    for _ in range(_MOST_ROUNDS):
        types = inference.run(dims)
        widened = False
        for state in carried:
            before, after = dims[state.body_input], dims_of(types.get(state.body_output))
            if (before is not None and before == after) or stays(state, before, after):
                continue
            changes.setdefault(state.body_input, Change(before, after))
            wider = inference.widen(state.body_input, before, after)
            widened |= wider != before
            dims[state.body_input] = wider
        if not widened:
            break
    return types, dims, changes


@dataclass(frozen=True)
class _Broken:
    """Finds shapes that a body promises and does not keep, at least not provably."""

    inference: BodyInference
    checked: Collection[str]

    @cached_property
    def promises(self) -> Set[str]:
        """The carried values whose shape changes, though equal symbols are assumed to be equal."""
        _, _, changes = _fixpoint(
            self.inference, lambda carried, before, after: carried.body_input in self.checked
        )
        return changes.keys()


def _differ(before: Dims | None, after: Dims | None) -> bool:
    """Return whether two shapes certainly differ: in rank, or in a size."""
    if before is None or after is None:
        return False
    if len(before) != len(after):
        return True
    return any(
        old != new and is_definite(old) and is_definite(new)
        for old, new in zip(before, after, strict=True)
    )


_KEEPING: Slot[dict[tuple[Key, int], bool]] = Slot()


def are_shapes_proven(site: Site) -> bool:
    """Return whether the Loops around a site keep the shapes of what they carry, and declare in
    their bodies only what follows from outside: onnxruntime accepts other sizes there."""
    around = (place for place in site.scope.holders() if op_of(place.node) == "Loop")
    return all(_keeps_shapes(site, loop) for loop in around)


def _keeps_shapes(site: Site, loop: Place) -> bool:
    """Return whether all sizes in the body of a Loop that are known hold whatever it declares."""
    found = site.memory.once(_KEEPING, dict)
    key = (loop.scope.key, loop.index)
    if key not in found:
        form = LoopForm.from_node(loop.node, site.opset)
        outside = replace(site, place=loop)
        types = body_types(outside, form, ())
        growing = {carried.body_input for carried in form.carried if _only_grows(form, carried)}
        ranks = all(
            (dims := dims_of(outside.type_of(carried.initial))) is not None
            and len(dims) == len(types.dims(carried.body_input) or ())
            for carried in form.carried
            if carried.body_input not in growing
        )
        found[key] = ranks and types.changes.keys() <= growing and types.certain is None
    return found[key]


def _only_grows(form: LoopForm, carried: Carried) -> bool:
    """Return whether a carried value is a sequence that nodes of the body insert into, and none
    reads."""
    pending, inserts = [carried.body_input], False
    while pending:
        for position in form.index.readers.get(pending.pop(), ()):
            node = None if position == OUTPUT else form.body.node[position]
            if node is not None and op_of(node) != "SequenceInsert":
                return False
            inserts |= node is not None
            pending += [] if node is None else node.output
    return inserts
