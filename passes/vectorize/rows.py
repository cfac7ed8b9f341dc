"""A body made ready for vectorising: functions inlined, names unique, every value typed.

The types are those of one row, without the new leading axis.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt
import onnx
import onnx.inliner
from onnx import GraphProto, ModelProto, TensorProto, TypeProto, numpy_helper

from passes.analysis.safety.shapes_fit import Known
from passes.ir import scope as scoping
from passes.ir.boundary import Outer, close
from passes.ir.constants import constant_tensor
from passes.ir.external_data import byte_size
from passes.ir.names import Names
from passes.ir.protos import replace_all
from passes.types.type_tables import TypeTable, inferred

_MOST_CONSTANT_BYTES = 1 << 16  # rules read shapes, axes and paddings, not weights


@dataclass(frozen=True)
class Rows:
    """A body whose names are unique at every depth, and the types of its values in one row."""

    graph: GraphProto
    types: Mapping[str, TypeProto]
    constants: Mapping[str, npt.NDArray[Any]]

    def known(self, opset: int, *, trusted: bool = True) -> Known:
        """Return the facts about its values; `trusted`: sizes of one symbol are equal."""
        return Known.of_types(opset, self.types, self.constants.get, trusted=trusted)


def prepare(
    body: GraphProto,
    captured: Mapping[str, Outer],
    model: ModelProto,
    names: Names,
    is_visible: Callable[[str], bool] | None = None,
) -> Rows:
    """Make `body` ready; `model` gives opset imports and functions.

    Captured names stay. Names that are used twice, or that mean something outside (`is_visible`),
    are made fresh, since what was a body's input may be written by a node now; inputs and outputs
    keep their order.
    """
    imports, functions = model.opset_import, model.functions
    alone = ModelProto(
        ir_version=model.ir_version, opset_import=imports, functions=functions, graph=body
    )
    alone.graph.name = body.name or "body"
    close(alone.graph, captured)
    if alone.functions:
        alone = onnx.inliner.inline_local_functions(alone)
    _make_unique(alone.graph, names, set(captured), is_visible)
    types: dict[str, TypeProto] = {}
    for graph in scoping.graphs_below(inferred(alone).graph):
        assert isinstance(graph, GraphProto)
        types.update(TypeTable(graph).known)
    graph = alone.graph
    fixed = ((name, one) for name, one in captured.items() if isinstance(one, TensorProto))
    constants = {name: numpy_helper.to_array(one) for name, one in fixed} | _constants(graph)
    del graph.input[len(body.input) :]
    own = [tensor for tensor in graph.initializer if tensor.name not in captured]
    replace_all(graph.initializer, own)
    return Rows(graph, types, constants)


def _constants(graph: GraphProto) -> dict[str, npt.NDArray[Any]]:
    """The small constants of a body, at every depth."""
    found: dict[str, npt.NDArray[Any]] = {}
    for inner in scoping.graphs_below(graph):
        assert isinstance(inner, GraphProto)
        tensors = filter(None, map(constant_tensor, inner.node))
        for tensor in (*inner.initializer, *tensors):
            inline = tensor.data_location != TensorProto.EXTERNAL
            if inline and byte_size(tensor) <= _MOST_CONSTANT_BYTES:
                found[tensor.name] = numpy_helper.to_array(tensor)
    return found


def _make_unique(
    graph: GraphProto,
    names: Names,
    captured: set[str],
    is_visible: Callable[[str], bool] | None,
) -> None:
    seen: set[str] = set()

    def fresh(name: str) -> str:
        if name in captured and name not in seen:  # of the body itself, which comes first
            seen.add(name)
            return name
        if name in seen or (is_visible is not None and is_visible(name)):
            return names.fresh(name)
        seen.add(name)
        return name

    scoping.rename_all(graph, fresh)
    _name_nodes_apart(graph)


def _name_nodes_apart(graph: GraphProto) -> None:
    """Give every node a name of its own: bodies may be merged into one graph."""
    nodes = [node for inner in scoping.graphs_below(graph) for node in inner.node if node.name]
    names = Names(node.name for node in nodes)
    seen: set[str] = set()
    for node in nodes:
        if node.name in seen:
            node.name = names.fresh(node.name)
        seen.add(node.name)
