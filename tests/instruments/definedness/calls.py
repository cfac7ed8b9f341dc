"""The kinds of changes that suit operators of which nothing is modelled but that equal calls are
equal, and loops and branches around them."""

from __future__ import annotations

from collections.abc import Callable

from onnx import (
    AttributeProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
    helper,
    numpy_helper,
)

from passes.ir.operators import op_of
from passes.ir.places import is_loop
from passes.ir.versions import OLDEST_OPSET
from tests.instruments.definedness.change import Found, Site

#: Words that attributes choose from; each is replaced by the others of its line.
_WORDS = (
    (b"SAME_UPPER", b"SAME_LOWER", b"VALID", b"NOTSET"),
    (b"nearest", b"linear", b"cubic", b"bilinear", b"bicubic"),
    (b"asymmetric", b"half_pixel", b"align_corners", b"pytorch_half_pixel"),
    (b"floor", b"ceil", b"round_prefer_floor", b"round_prefer_ceil"),
    (b"none", b"add", b"mul", b"max", b"min"),
    (b"constant", b"reflect", b"edge", b"wrap"),
    (b"zeros", b"border", b"reflection"),
    (b"avg", b"max"),
    (b"none", b"tanh"),
    (b"forward", b"reverse"),
    (b"stretch", b"not_larger", b"not_smaller"),
)
_NUMBERS = {TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64, TensorProto.INT32}


def attributes(site: Site) -> Found:
    """Another word, number or list in an attribute, or its default."""
    node = site.node
    for attribute in node.attribute:
        name = f"{node.op_type}.{attribute.name}"
        if attribute.type in (AttributeProto.GRAPH, AttributeProto.TENSOR):
            continue
        yield f"{name} left out", lambda a=attribute: node.attribute.remove(a)
        if attribute.type == AttributeProto.STRING:
            for words in _WORDS:
                for word in words if attribute.s in words else ():
                    yield f"{name} to {word!r}", lambda a=attribute, w=word: setattr(a, "s", w)
        elif attribute.type == AttributeProto.FLOAT:
            for change, to in (("doubled", 2 * attribute.f), ("to 0.5", 0.5)):
                yield f"{name} {change}", lambda a=attribute, t=to: setattr(a, "f", t)
        elif attribute.type == AttributeProto.FLOATS and attribute.floats:
            yield f"{name}[0] by 0.5", lambda a=attribute: _add_first(a)


def operands(site: Site) -> Found:
    """Operands of equal types swapped, one left out, or the first one read twice."""
    node = site.node
    kinds = [site.kind_of(name) if name else None for name in node.input]
    for place, kind in enumerate(kinds):
        if place and node.input[place]:
            yield f"{node.op_type} without {node.input[place]}", lambda p=place: _leave(node, p)
        for other in range(place + 1, len(kinds)):
            if kind is None or kinds[other] != kind or node.input[place] == node.input[other]:
                continue
            text = f"{node.op_type} reads {node.input[place]} for {node.input[other]}"
            yield f"{text} and back", lambda p=place, o=other: _exchange(node, p, o)
            yield text, lambda p=place, o=other: node.input.__setitem__(o, node.input[p])


def alike(site: Site) -> Found:
    """What another node of the same operator gives, or another output of the node that is read."""
    node = site.node
    made = {
        name: one
        for scope in site.scope.chain()
        for one in scope.owner.node
        for name in one.output
        if name
    }
    seen = set(site.visible())
    for place, name in enumerate(node.input):
        maker = made.get(name)
        if maker is None:
            continue
        others = [
            other
            for other, one in made.items()
            if other != name and other in seen and op_of(one) == op_of(maker)
        ]
        for other in [one for one in others if site.kind_of(one) == site.kind_of(name)][:4]:
            yield (
                f"{node.op_type} reads {other} for {name}, of {maker.op_type}, too",
                lambda p=place, o=other: node.input.__setitem__(p, o),
            )


def states(site: Site) -> Found:
    """A state that is not changed, that is read from before the loop, or whose end is its begin."""
    node = site.node
    if not is_loop(node):
        return
    body = next(one.g for one in node.attribute if one.type == AttributeProto.GRAPH)
    outer, inner, updated = (2, 2, 1) if op_of(node) == "Loop" else (0, 0, 0)
    scanned = next((one.i for one in node.attribute if one.name == "num_scan_inputs"), 0)
    outer += op_of(node) == "Scan" and len(node.input) > len(body.input)  # opset 8 has lengths
    for number, initial in enumerate(node.input[outer : len(node.input) - scanned]):
        name, state = body.input[inner + number].name, body.output[updated + number]
        if not initial:
            continue
        yield f"{name} is not changed", lambda n=name, s=state: _unchanged(body, n, s)
        yield f"{name} is read from before", lambda n=name, i=initial: _rename(body, n, i)
        if number < len(node.output) and node.output[number]:
            yield (
                f"{node.output[number]} is {initial}",
                lambda n=number, i=initial: _replaced(site, n, i),
            )


def weights(site: Site) -> Found:
    """Another last or middle number of an array of any size."""
    if op_of(site.node) == "Constant":
        for attribute in site.node.attribute:
            if attribute.type == AttributeProto.TENSOR:
                yield from _numbers("a constant", attribute.t)
    if not site.place.index:
        for tensor in getattr(site.scope.owner, "initializer", ()):
            yield from _numbers(f"initializer {tensor.name}", tensor)


def opsets(model: ModelProto) -> Found:
    """The same nodes in another opset."""
    for entry in model.opset_import:
        if entry.domain in ("", "ai.onnx"):
            for by in (-8, -4, -2, -1, 1, 2, 4, 8):
                version = entry.version + by
                if version >= OLDEST_OPSET:
                    yield (
                        f"opset {version} for {entry.version}",
                        lambda e=entry, v=version: setattr(e, "version", v),
                    )


def _numbers(name: str, tensor: TensorProto) -> Found:
    if tensor.data_type not in _NUMBERS or tensor.data_location == TensorProto.EXTERNAL:
        return
    count = numpy_helper.to_array(tensor).size
    for place in sorted({count // 2, count - 1}) if count else ():
        yield f"{name}, number {place}", lambda p=place: _add(tensor, p)


def _add(tensor: TensorProto, place: int) -> None:
    value = numpy_helper.to_array(tensor).copy()
    value.reshape(-1)[place] += 1
    tensor.CopyFrom(numpy_helper.from_array(value, tensor.name))


def _add_first(attribute: AttributeProto) -> None:
    attribute.floats[0] += 0.5


def _leave(node: NodeProto, place: int) -> None:
    node.input[place] = ""
    while node.input and not node.input[-1]:
        del node.input[-1]


def _exchange(node: NodeProto, one: int, other: int) -> None:
    node.input[one], node.input[other] = node.input[other], node.input[one]


def _unchanged(body: GraphProto, name: str, state: ValueInfoProto) -> None:
    body.node.append(helper.make_node("Identity", [name], ["mutated"]))
    state.name = "mutated"


def _rename(body: GraphProto, old: str, new: str) -> None:
    """Let the nodes of a body, though not those of bodies within, read another value."""
    for node in body.node:
        for place, name in enumerate(node.input):
            if name == old:
                node.input[place] = new


def _replaced(site: Site, number: int, initial: str) -> None:
    output = site.node.output[number]
    site.node.output[number] = "mutated"
    node = NodeProto.FromString(site.node.SerializeToString())
    site.replace(node, helper.make_node("Identity", [initial], [output]))


CALLS: dict[str, Callable[[Site], Found]] = {
    "attribute": attributes,
    "operands": operands,
    "alike": alike,
    "state": states,
    "weight": weights,
}
