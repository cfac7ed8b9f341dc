"""Looks at a model for the page: its loops, drawings of its graphs, its nodes and values."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from onnx import AttributeProto, TensorProto, helper

from passes.check import load_checked
from passes.choices import RuleOptions
from passes.commands.schedules import SCHEDULES
from passes.engine.target_opset import target_opset
from passes.errors import BadModel, PassesError
from passes.inspection.inspecting import (
    WantedGroups,
    ask,
    inspect_model,
    next_steps,
    rules_of,
    value_of,
)
from passes.inspection.inspection import Answer, Inspection
from passes.ir.constants import Constants
from passes.ir.external_data import byte_size, external_tensors
from passes.ir.graph_index import OUTPUT
from passes.ir.model import Model
from passes.ir.operators import op_of
from passes.ir.places import Key, Place, Scope, scopes, subgraphs
from passes.ir.scope import free_names, output_names
from passes.reports.pages.drawing import Origins, shortened
from passes.reports.pages.lanes import sketched
from passes.reports.pages.writing import data_of
from passes.types.signature import describe, feedable

#: Nodes of a drawing, nodes around one, nodes that are found, kinds of loops that the rules are
#: asked about unasked, and elements of weights that are shown.
_MOST, _NEAR, _FOUND, ASKED, _ELEMENTS = 150, 40, 50, 40, 8
#: Bytes of weights whose range is computed.
_MOST_BYTES = 1 << 28
_TEXT = 300


class NotThere(PassesError):
    """The model has no such graph, node or value."""


def _text(key: Key) -> str:
    """The key of a graph or node as a text, as `0/3/body`."""
    return "/".join(map(str, key))


@dataclass
class Look:
    """A model that is looked at. Graphs are named by texts, as `0/3/body`: the body of the fourth
    node of the main graph; a node by its graph and position, as `0/3`."""

    model: Model
    answered: dict[str, Sequence[Answer]] = field(default_factory=dict)

    @classmethod
    def at(cls, path: Path, *, alone: bool) -> Look:
        """A model in a file, which has no other files beside it if it is `alone`.

        Raises:
            BadModel: it is invalid, or has weights in other files, and is alone.
        """
        try:
            model = Model.load(path)
        except BadModel as error:
            if not alone or "external data" not in error.sentence:
                raise
            raise _without_weights(path) from error
        if alone and any(external_tensors(model.proto)):  # in a file of a name that exists
            raise _without_weights(path)
        return cls(load_checked(model)[0])

    @cached_property
    def graphs(self) -> dict[str, Scope]:
        """Every graph, by its key."""
        found, waiting = {}, deque(scopes(self.model.proto))
        while waiting:
            scope = waiting.popleft()
            found[_text(scope.key)] = scope
            for index in self.model.index(scope.owner).holders:
                waiting += scope.inner(index)
        return found

    @cached_property
    def inspection(self) -> Inspection:
        """The loops and Ifs; no rule is asked."""
        return inspect_model(self.model, None, RuleOptions(), None, WantedGroups(every_rule=None))

    def overview(self) -> dict[str, Any]:
        """The model in numbers, its signature, the groups of loops, each with the key of the first,
        and its graphs and functions by their paths."""
        found, proto = self.inspection, self.model.proto
        keys = {place.path: _text((*place.scope.key, place.index)) for place in self._holders()}
        own = [one for one in self.graphs.values() if one.outer is None]
        return {
            **asdict(replace(found, file="")),
            "keys": [keys[group.paths[0]] for group in found.groups],
            "inputs": [describe(one) for one in feedable(proto)],
            "outputs": [describe(one) for one in proto.graph.output],
            "graphs": [[_text(one.key), one.path, len(one.owner.node)] for one in own],
            "asked": ASKED,
        }

    def answers(self, node: str) -> list[dict[str, Any]]:
        """What each rule would do with a loop or If, or why it does not."""
        if node not in self.answered:
            place = self._place(node)
            opset, rules = target_opset(self.model, None), rules_of(SCHEDULES)
            found = ask(self.model, [place], rules, opset, RuleOptions())
            self.answered[node] = found.get((*place.scope.key, place.index), ())
        return [asdict(one) for one in self.answered[node]]

    def next(self, file: str) -> list[dict[str, Any]]:
        """What to run next, by the answers so far; `file` stands for the model in commands."""
        path = str(self.model.path)
        keys: Sequence[str] = self.overview()["keys"]
        groups = [
            replace(group, answers=self.answered.get(key, ()))
            for group, key in zip(self.inspection.groups, keys, strict=True)
        ]
        found = replace(self.inspection, groups=groups)
        advice = next_steps(path, found, None, None, RuleOptions())
        return [asdict(replace(one, command=one.command.replace(path, file))) for one in advice]

    def drawing(self, graph: str, *, at: str = "", near: str = "") -> dict[str, Any]:
        """A graph: the loop or If `at` a node of it, with its bodies; or the nodes around the one
        that makes the value `near`; or its first nodes."""
        scope = self._scope(graph)
        nodes, origins = self.model.index(scope.owner).nodes, Origins()
        if at:
            node = self._place(at).node
            sketch = sketched(self.model, scope, [node], node.output, origins, _MOST)
        else:
            shown = [nodes[index] for index in self._around(scope, near)] if near else nodes
            results = output_names(scope.owner)
            sketch = sketched(self.model, scope, shown, results, origins, _MOST, folded=True)
        drawing = sketch.finished({}, ())
        around = (
            f"{len(shown):,} of {len(nodes):,} nodes are drawn, those nearest to it" if near else ""
        )
        return {**data_of(drawing), "cut": around or drawing.cut, "path": scope.path}

    def _around(self, scope: Scope, name: str) -> list[int]:
        """The positions of the nodes around the one that makes a value, or those that read it."""
        index = self.model.index(scope.owner)
        start = [index.positions[name]] if name in index.positions else index.readers.get(name, [])
        found, waiting = dict.fromkeys(one for one in start if one != OUTPUT), deque(start)
        while waiting and len(found) < _NEAR:
            at = waiting.popleft()
            if at == OUTPUT:
                continue
            made = [index.positions.get(one) for one in free_names(index.nodes[at])]
            read = [one for name in index.writes[at] for one in index.readers.get(name, ())]
            for one in (*made, *read):
                if one is not None and one != OUTPUT and one not in found and len(found) < _NEAR:
                    found[one] = None
                    waiting.append(one)
        return sorted(found)

    def nodes(self, text: str) -> dict[str, Any]:
        """The nodes whose operator, path or values contain a text, exact operators first."""
        wanted, found = text.lower(), []
        for graph, scope in self.graphs.items():
            index = self.model.index(scope.owner)
            for at, (op, names) in enumerate(zip(index.ops, index.writes, strict=True)):
                path = Place(index.nodes[at], at, scope).path
                if any(wanted in one.lower() for one in (op, path, *names)):
                    name = next(filter(None, names), "")
                    found.append({"op": op, "path": path, "graph": graph, "name": name})
        found.sort(key=lambda one: one["op"].lower() != wanted)
        return {"total": len(found), "nodes": found[:_FOUND]}

    def value(self, graph: str, name: str) -> dict[str, Any]:
        """A value that a graph, or one in it, has or sees: its type, the node that makes it, its
        weights, and how many nodes read it.

        Raises:
            NotThere: there is none.
        """
        scope = self._home(graph, name)
        index = self.model.index(scope.owner)
        at = index.positions.get(name)
        made = None if at is None else self._node(Place(index.nodes[at], at, scope))
        return {
            **self._short(scope, name),
            "graph": _text(scope.key),
            "in": scope.path,
            "node": made,
            "readers": len(index.readers.get(name, ())),
        }

    def _home(self, graph: str, name: str) -> Scope:
        """The scope that defines a value which a graph sees, or one of the graphs in it."""
        below = [one for key, one in self.graphs.items() if f"{key}/".startswith(f"{graph}/")]
        inner = (one for one in below if self.model.defines(one.owner, name))
        home = next(inner, None) or self.model.home(self._scope(graph), name)
        if home is None:
            raise NotThere(f"the model has no value {name!r}")
        return home

    def _node(self, place: Place) -> dict[str, Any]:
        node, scope = place.node, place.scope
        key = (*scope.key, place.index)
        bodies = [[name, _text((*key, name)), len(one.node)] for name, one in subgraphs(node)]
        held = (AttributeProto.GRAPH, AttributeProto.GRAPHS)
        plain = [one for one in node.attribute if one.type not in held]
        return {
            "op": op_of(node),
            "path": place.path,
            "key": _text(key),
            "holds": bool(bodies) and op_of(node) in ("Scan", "Loop", "If"),
            "doc": node.doc_string[:_TEXT],
            "attributes": [shortened(f"{helper.printable_attribute(one)}", _TEXT) for one in plain],
            "bodies": bodies,
            "inputs": [self._short(scope, name) for name in node.input],
            "outputs": [{"name": name, "type": self._type(scope, name)} for name in node.output],
        }

    def _short(self, scope: Scope, name: str) -> dict[str, Any]:
        """A value with its type, and what it holds, if it is constant."""
        tensor = Constants(self.model, scope).tensor(name) if name else None
        known: dict[str, Any] = {"name": name, "type": self._type(scope, name)}
        return known if tensor is None else {**known, "weights": self._weights(tensor)}

    def _type(self, scope: Scope, name: str) -> str:
        return value_of(self.model, scope, name).type if name else ""

    def _weights(self, tensor: TensorProto) -> str:
        """The range and the first elements of a constant."""
        size = byte_size(tensor)
        if size > _MOST_BYTES:
            return f"{size:,} bytes"
        array = self.model.read(tensor)
        first = ", ".join(f"{one:.5g}" if _is_float(one) else f"{one}" for one in _first(array))
        more = ", ..." * (array.size > _ELEMENTS)
        if array.dtype.kind in "OSUbc" or array.size <= _ELEMENTS:
            return f"[{first}{more}]"
        wide = array.astype(np.float64)
        told = f"{wide.min():.5g} to {wide.max():.5g}, mean {wide.mean():.5g}, {size:,} bytes"
        return f"[{first}{more}], {told}"

    def _scope(self, graph: str) -> Scope:
        if graph not in self.graphs:
            raise NotThere(f"the model has no graph {graph!r}")
        return self.graphs[graph]

    def _place(self, node: str) -> Place:
        graph, _, at = node.rpartition("/")
        scope = self._scope(graph)
        if not at.isdecimal() or int(at) >= len(scope.owner.node):
            raise NotThere(f"the model has no node {node!r}")
        return Place(scope.owner.node[int(at)], int(at), scope)

    def _holders(self) -> Iterator[Place]:
        """The nodes with bodies, last ones first: of two with one path, the first is kept."""
        for scope in reversed([*self.graphs.values()]):
            index = self.model.index(scope.owner)
            yield from (Place(index.nodes[at], at, scope) for at in reversed([*index.holders]))


def _first(array: Any) -> list[Any]:
    return [*array.reshape(-1)[:_ELEMENTS]]


def _is_float(value: Any) -> bool:
    return not isinstance(value, int | str | bytes | bool | np.integer | np.bool_)


def _without_weights(path: Path) -> BadModel:
    sentence = "has weights in other files, which an upload lacks"
    return BadModel(
        f"{sentence} (`passes view {path.name}` in its folder reads them)", file=str(path)
    )
