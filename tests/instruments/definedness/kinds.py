"""The kinds of changes: values, sizes, bounds and captures, each at a node."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import AttributeProto, NodeProto, TensorProto, helper, numpy_helper

from passes.ir.operators import op_of
from passes.ir.scope import captures
from tests.instruments.definedness.change import Found, Site

#: Operators that are easily mistaken for each other.
_MISTAKEN = {
    "Less": ("LessOrEqual", "Greater"),
    "LessOrEqual": ("Less",),
    "Greater": ("GreaterOrEqual", "Less"),
    "GreaterOrEqual": ("Greater",),
    "Equal": ("LessOrEqual", "GreaterOrEqual"),
    "And": ("Or",),
    "Or": ("And", "Xor"),
    "Add": ("Sub", "Max"),
    "Sub": ("Add",),
    "Mul": ("Add",),
    "Div": ("Mul",),
    "Min": ("Max",),
    "Max": ("Min",),
    "ReduceMax": ("ReduceMin",),
    "ReduceSum": ("ReduceMax", "ReduceMean"),
    "Relu": ("Abs",),
    "Sigmoid": ("Tanh",),
    "Expand": ("Reshape",),
    "Reshape": ("Expand",),
}
_ORDERED = {"Sub", "Div", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "MatMul", "Pow"}
_NUMBERS = {AttributeProto.INT, AttributeProto.INTS}
#: Attributes of which another number is another operator, not another size.
_NAMES = {"to", "num_scan_inputs", "num_outputs", "hidden_size", "saturate"}
_MOST = 8  # elements of a constant that is changed


def operators(site: Site) -> Found:
    """Another operator, or its operands in another order."""
    node = site.node
    for other in _MISTAKEN.get(op_of(node), ()):
        yield f"{node.op_type} to {other}", lambda other=other: setattr(node, "op_type", other)
    if op_of(node) in _ORDERED or op_of(node) == "Concat":
        yield f"operands of {node.op_type}", lambda: _swap(node.input, 0, len(node.input) - 1)
    if op_of(node) == "Where":
        yield "branches of Where", lambda: _swap(node.input, 1, 2)
    if len(node.output) > 1 and all(node.output[:2]):
        yield f"outputs of {node.op_type}", lambda: _swap(node.output, 0, 1)


def shapes(site: Site) -> Found:
    """Other axes, permutations and directions, or an axis more or less."""
    node = site.node
    for attribute in node.attribute:
        if attribute.type not in _NUMBERS or attribute.name in _NAMES:
            continue
        name = f"{node.op_type}.{attribute.name}"
        if attribute.type == AttributeProto.INT:
            for by in (-1, 1):
                yield (f"{name} by {by}", lambda a=attribute, by=by: setattr(a, "i", a.i + by))
            continue
        if len(attribute.ints) > 1:
            yield f"{name} reversed", lambda a=attribute: _set(a.ints, list(a.ints)[::-1])
        for place in range(len(attribute.ints)):
            for by in (-1, 1):
                yield (
                    f"{name}[{place}] by {by}",
                    lambda a=attribute, p=place, by=by: _set(
                        a.ints, [n + by * (i == p) for i, n in enumerate(a.ints)]
                    ),
                )
    if op_of(node).startswith("Reduce") and "keepdims" not in {a.name for a in node.attribute}:
        kept = helper.make_attribute("keepdims", 0)
        yield f"{node.op_type}.keepdims", lambda: node.attribute.append(kept)
    if op_of(node) == "Scan":
        directions = helper.make_attribute("scan_input_directions", _directions(node))
        yield "a direction of Scan", lambda: _reverse(node, directions)


def bounds(site: Site) -> Found:
    """Another number in a constant."""
    node = site.node
    if op_of(node) == "Constant":
        for attribute in node.attribute:
            if attribute.type == AttributeProto.TENSOR:
                yield from _numbers("a constant", attribute.t)
            elif attribute.name in ("value_int", "value_ints"):
                yield (
                    f"{attribute.name} by 1",
                    lambda a=attribute: (
                        setattr(a, "i", a.i + 1)
                        if a.type == AttributeProto.INT
                        else _set(a.ints, [number + 1 for number in a.ints])
                    ),
                )
    if not site.place.index:
        for tensor in getattr(site.scope.owner, "initializer", ()):
            yield from _numbers(f"initializer {tensor.name}", tensor)


def captured(site: Site) -> Found:
    """Another value of the same type, read by a node or captured by a body."""
    node = site.node
    for position, name in enumerate(node.input):
        for other in site.like(name)[:3] if name else ():
            yield (
                f"{node.op_type} reads {other} for {name}",
                lambda p=position, o=other: _put(node.input, p, o),
            )
    for attribute in node.attribute:
        if attribute.type != AttributeProto.GRAPH:
            continue
        for name in captures(attribute.g):
            for other in site.like(name)[:3]:
                yield (
                    f"{node.op_type} captures {other} for {name}",
                    lambda a=attribute, n=name, o=(other): _rename(a.g.node, n, o),
                )


def ends(site: Site) -> Found:
    """An index one before or after, the last one again, an axis of size 1."""
    node = site.node
    if op_of(node) == "Gather":
        for by in (-1, 1):
            yield f"an index by {by}", lambda by=by: site.read(1, "Add", by)
        yield "an index of at least 0", lambda: site.read(1, "Max", 0)
        yield "an index of at most 2", lambda: site.read(1, "Min", 2)
        yield "an index of at most 100", lambda: site.read(1, "Min", 100)
    for position, name in enumerate(node.input):
        kind = site.kind_of(name) if name else None
        if kind is None or not kind[1] or op_of(node) in ("Loop", "If", "Constant"):
            continue
        for axis in range(kind[1]):
            for text, start, end in (
                ("one element", 0, 1),
                ("all but the last", 0, -1),
                ("all but the first", 1, 1 << 31),
                ("at most 4", 0, 4),
                ("at most 100", 0, 100),
            ):
                yield (
                    f"{node.op_type} reads {text} of {name}, axis {axis}",
                    lambda p=position, s=(start), e=end, a=axis: site.read(
                        p, "Slice", [s], [e], [a]
                    ),
                )


def _directions(node: NodeProto) -> list[int]:
    count = next(a.i for a in node.attribute if a.name == "num_scan_inputs")
    return [1] + [0] * (count - 1)


def _reverse(node: NodeProto, directions: AttributeProto) -> None:
    kept = [one for one in node.attribute if one.name != directions.name]
    had = len(kept) < len(node.attribute)
    del node.attribute[:]
    node.attribute.extend(kept if had else [*kept, directions])


def _numbers(name: str, tensor: TensorProto) -> Found:
    kinds = (TensorProto.INT64, TensorProto.FLOAT, TensorProto.BOOL)
    if tensor.data_type not in kinds or tensor.data_location == TensorProto.EXTERNAL:
        return
    value = numpy_helper.to_array(tensor)
    if not 0 < value.size <= _MOST:
        return
    for place in range(value.size):
        for by in (-1, 1) if tensor.data_type == TensorProto.INT64 else (1,):
            yield f"{name}[{place}] by {by}", lambda p=place, by=by: _add(tensor, p, by)
    if value.dtype == np.int64 and value.size == 1 and abs(int(value.ravel()[0])) > 1 << 20:
        yield f"{name} to 100", lambda: _add(tensor, 0, 100 - int(value.ravel()[0]))


def _add(tensor: TensorProto, place: int, by: int) -> None:
    value = numpy_helper.to_array(tensor).copy()
    flat = value.reshape(-1)
    flat[place] = not flat[place] if value.dtype == np.bool_ else flat[place] + by
    tensor.CopyFrom(numpy_helper.from_array(value, tensor.name))


def _swap(names: object, one: int, other: int) -> None:
    held = list(names)  # type: ignore[call-overload]
    held[one], held[other] = held[other], held[one]
    _set(names, held)


def _put(names: object, place: int, value: str) -> None:
    names[place] = value  # type: ignore[index]


def _set(repeated: object, values: list[int]) -> None:
    del repeated[:]  # type: ignore[attr-defined]
    repeated.extend(values)  # type: ignore[attr-defined]


def _rename(nodes: object, old: str, new: str) -> None:
    """Let the first node of a body that reads a captured value read another one."""
    for node in nodes:  # type: ignore[attr-defined]
        for place, name in enumerate(node.input):
            if name == old:
                node.input[place] = new
                return
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH and old in captures(attribute.g):
                _rename(attribute.g.node, old, new)
                return


KINDS: dict[str, Callable[[Site], Found]] = {
    "operator": operators,
    "shape": shapes,
    "bound": bounds,
    "capture": captured,
    "end or size 1": ends,
}
