"""The kinds of changes that concern what runs, and what fails: iterations, guards, obligations."""

from __future__ import annotations

from collections.abc import Callable

from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, helper

from passes.ir.operators import op_of
from passes.ir.places import inner_nodes, is_loop
from passes.ir.scope import free_names, input_names
from tests.instruments.definedness.change import Found, Site, whole

_FLOAT, _INT64, _BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def iterations(site: Site) -> Found:
    """An iteration more or less, another end."""
    node = site.node
    if op_of(node) != "Loop":
        return
    if node.input[0]:
        for by in (-1, 1):
            yield f"trips by {by}", lambda by=by: site.read(0, "Add", by)
        for operator, most in (("Min", 1), ("Min", 100), ("Max", 1)):
            yield f"{operator} of trips and {most}", lambda o=operator, m=most: site.read(0, o, m)
    if len(node.input) > 1 and node.input[1]:
        yield "no initial condition", lambda: node.input.__setitem__(1, "")
        yield "the initial condition negated", lambda: site.read(1, "Not")
    body = _body(node)
    cond_in, cond_out = body.input[1].name, body.output[0].name
    for name, first in (("never ended by its condition", cond_in), ("ended at once", "")):
        yield name, lambda first=first: _end(body, cond_out, first)


def guards(site: Site) -> Found:
    """A condition, or one side of a choice, left out."""
    node = site.node
    if op_of(node) in ("And", "Or", "Max", "Min", "Mod", "Clip") and len(node.input) > 1:
        yield f"{node.op_type} dropped", lambda: _become(node, node.input[0])
        if op_of(node) in ("And", "Or", "Max", "Min"):
            yield f"{node.op_type} dropped, second", lambda: _become(node, node.input[1])
    if op_of(node) == "Where":
        for place in (1, 2):
            yield f"Where dropped, {place}", lambda p=place: _become(node, node.input[p])
    if op_of(node) in ("Not", "Relu", "Abs", "Expand", "Identity"):
        yield f"{node.op_type} dropped", lambda: _become(node, node.input[0])
    if op_of(node) == "If":
        for attribute in node.attribute:
            yield f"If to its {attribute.name}", lambda a=attribute: _inline(site, a.g)


def obligations(site: Site) -> Found:
    """A node that may fail, and that nobody reads."""
    values = {name: site.kind_of(name) for name in site.visible()[:24]}
    indices = [name for name, kind in values.items() if kind == (_INT64, 0)][:3]
    rows = [name for name, kind in values.items() if kind and kind[0] == _FLOAT and kind[1]][:3]
    where = f"before {site.node.op_type}"
    for row in rows:
        for index in indices:
            node = helper.make_node("Gather", [row, index], ["mutated"])
            yield f"{row}[{index}] unread {where}", lambda node=node: site.insert(node)
        made = (
            whole("mutated_0", 0),
            helper.make_node("Gather", [row, "mutated_0"], ["mutated"]),
        )
        yield f"{row}[0] unread {where}", lambda made=made: site.insert(*made)
        for other in rows:
            if other < row:
                node = helper.make_node("Add", [row, other], ["mutated"])
                yield f"{row} + {other} unread {where}", lambda node=node: site.insert(node)
        axes = whole("mutated_0", [0])
        squeezed = helper.make_node("Squeeze", [row, "mutated_0"], ["mutated"])
        yield f"{row} squeezed unread {where}", lambda a=axes, s=squeezed: site.insert(a, s)


def moved(site: Site) -> Found:
    """A node of a body before the body, or a node in a branch that a condition chooses."""
    node = site.node
    for attribute in node.attribute if is_loop(node) or op_of(node) == "If" else ():
        if attribute.type != AttributeProto.GRAPH:
            continue
        seen = set(site.visible()) - set(input_names(attribute.g))
        for index, inner in enumerate(attribute.g.node):
            if set(free_names(inner)) <= seen and inner.output and op_of(inner) != "Constant":
                yield (
                    f"{inner.op_type} moved out of {attribute.name}",
                    lambda a=attribute, i=(index): _out(site, a.g, i),
                )
            if op_of(inner) == "Constant":
                seen.update(inner.output)
    if any(inner_nodes(node)) or len(node.output) != 1 or op_of(node) == "Constant":
        return
    conditions = [name for name in site.visible() if site.kind_of(name) == (_BOOL, 0)]
    same = [name for name in node.input if name and _is_same(site, name)]
    for condition in conditions[:2]:
        for name in same[:2]:
            yield (
                f"{node.op_type} only if {condition}, else {name}",
                lambda c=condition, n=name: _guard(site, c, n),
            )


def _is_same(site: Site, name: str) -> bool:
    return site.kind_of(name) is not None and site.kind_of(name) == site.kind_of(
        site.node.output[0]
    )


def _body(node: NodeProto) -> GraphProto:
    return next(one.g for one in node.attribute if one.type == AttributeProto.GRAPH)


def _end(body: GraphProto, old: str, first: str) -> None:
    """End a body by another condition: its own input, or at once."""
    if first:
        made = helper.make_node("Identity", [first], ["mutated"])
    else:
        made = helper.make_node(
            "Constant", [], ["mutated"], value=helper.make_tensor("", _BOOL, [], [False])
        )
    body.node.append(made)
    body.output[0].name = "mutated"


def _become(node: NodeProto, name: str) -> None:
    """Let a node give a value as it is."""
    node.op_type = "Identity"
    del node.input[:], node.attribute[:]
    node.input.append(name)


def _inline(site: Site, graph: GraphProto) -> None:
    nodes = list(graph.node)
    made = [
        helper.make_node("Identity", [inner.name], [outer])
        for inner, outer in zip(graph.output, site.node.output, strict=True)
        if outer
    ]
    site.scope.outermost.owner.initializer.extend(graph.initializer)  # type: ignore[union-attr]
    site.replace(*nodes, *made)


def _out(site: Site, graph: GraphProto, index: int) -> None:
    """Move a node out of a body, with the constants that it reads."""
    node = graph.node[index]
    names = set(free_names(node))
    taken = [
        place
        for place, one in enumerate(graph.node)
        if place == index or (op_of(one) == "Constant" and names & set(one.output))
    ]
    nodes = [NodeProto.FromString(graph.node[place].SerializeToString()) for place in taken]
    for place in reversed(taken):
        del graph.node[place]
    site.insert(*nodes)


def _guard(site: Site, condition: str, name: str) -> None:
    """Compute a node in a branch only; the other branch gives one of its inputs."""
    kind = site.kind_of(name)
    assert kind is not None
    output = site.node.output[0]
    inner = NodeProto.FromString(site.node.SerializeToString())
    inner.output[0] = "mutated_then"
    made = helper.make_node("Identity", [name], ["mutated_else"])
    branches = {
        f"{branch}_branch": helper.make_graph(
            [node], branch, [], [helper.make_tensor_value_info(node.output[0], kind[0], None)]
        )
        for branch, node in (("then", inner), ("else", made))
    }
    site.replace(helper.make_node("If", [condition], [output], **branches))


FAILING: dict[str, Callable[[Site], Found]] = {
    "iterations": iterations,
    "guard": guards,
    "unread obligation": obligations,
    "moved": moved,
}
