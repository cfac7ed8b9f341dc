"""The sizes that Loops carry and keep in every iteration, of which onnx infers none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set

from onnx import GraphProto, ModelProto, ValueInfoProto

from passes.ir import scope as scoping
from passes.ir.model import Model
from passes.ir.operators import op_of
from passes.ir.scope import Key, Place
from passes.loops.form import LoopForm
from passes.types.inference import ValueTypes, light_copy, without_sizes, write_sizes
from passes.types.value_types import Dims, dims_of, elem_type_of, tensor_type

_MOST_ROUNDS = 64
#: A carried value: the key of the body, and its name there.
_State = tuple[Key, str]


def with_kept_sizes(proto: ModelProto) -> Model:
    """A light copy that declares the sizes that its Loops carry and keep, in bodies and outputs.

    All are assumed to keep those that they begin with; an iteration that starts with these must end
    with them, whatever is declared. By induction over the iterations, inner and outer ones, the
    sizes are then kept; else the assumption is made again without those that are not.
    """
    changing: set[tuple[_State, int]] = set()
    while True:
        plain = without_sizes(proto)
        sizes = _assumed(plain, changing)
        wrong = set(_changing(plain, sizes))
        if not wrong:
            copy = light_copy(proto)
            _declare(copy, sizes)
            return Model(copy)
        changing |= wrong


def _loops(proto: ModelProto) -> Iterator[tuple[Place, LoopForm, Key]]:
    """Yield the Loops outside of functions, outer ones first, with the keys of their bodies."""
    model = Model(proto)
    for place in scoping.walk_model(proto):
        if op_of(place.node) == "Loop" and isinstance(place.scope.outermost.owner, GraphProto):
            form = LoopForm.from_node(place.node, model.opset_at(place.scope))
            yield place, form, (*place.scope.key, place.index, "body")


def _assumed(proto: ModelProto, changing: Set[tuple[_State, int]]) -> dict[_State, Dims]:
    """The sizes that states begin with, which are declared in place; those of one may follow from
    those of another."""
    found: dict[_State, Dims] = {}
    for _ in range(_MOST_ROUNDS):
        types, before = ValueTypes(proto), dict(found)
        for place, form, key in _loops(proto):
            for carried in form.carried:
                state = (key, carried.body_input)
                initial = dims_of(types.of(place.scope, carried.initial))
                if initial is not None:
                    found[state] = tuple(
                        dim if isinstance(dim, int) and (state, axis) not in changing else None
                        for axis, dim in enumerate(initial)
                    )
        if found == before:
            break
        _declare(proto, found)
    return found


def _declare(proto: ModelProto, sizes: Mapping[_State, Dims]) -> None:
    """Declare these sizes in bodies, and of what the Loops return, in place."""
    types = ValueTypes(proto)
    for place, form, key in _loops(proto):
        outer = place.scope.owner
        assert isinstance(outer, GraphProto)
        for carried in form.carried:
            dims = sizes.get((key, carried.body_input))
            elem_type = elem_type_of(types.of(place.scope, carried.initial))
            inside = [one for one in form.body.input if one.name == carried.body_input]
            known = (*outer.value_info, *outer.output)
            outside = [value for value in known if value.name == carried.final]
            if dims is None or not elem_type:
                continue
            if carried.final and not outside:
                outside = [outer.value_info.add(name=carried.final)]
            for value in (*inside, *outside):
                _write(value, elem_type, dims)


def _write(value: ValueInfoProto, elem_type: int, dims: Dims) -> None:
    if dims_of(value.type) is None:
        value.type.CopyFrom(tensor_type(elem_type, (None,) * len(dims)))
    write_sizes(value.type, dims)


def _changing(proto: ModelProto, sizes: Mapping[_State, Dims]) -> Iterator[tuple[_State, int]]:
    """Yield the states and axes of which an iteration does not return the size."""
    types = ValueTypes(proto)
    for place, form, key in _loops(proto):
        body = next(iter(place.scope.inner(place.index)))
        for carried in form.carried:
            state = (key, carried.body_input)
            after = dims_of(types.of(body, carried.body_output)) or ()
            for axis, size in enumerate(sizes.get(state, ())):
                if isinstance(size, int) and after[axis : axis + 1] != (size,):
                    yield state, axis
