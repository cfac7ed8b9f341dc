"""Takes the constants out of a body and of the bodies nested in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from onnx import GraphProto, NodeProto, TensorAnnotation, TensorProto

from passes.ir import scope as scoping
from passes.ir.boundary import keep_outputs
from passes.ir.constants import constant_tensor, sparse_constant
from passes.ir.operators import is_onnx_domain, op_of
from passes.ir.protos import replace_all
from passes.ir.versions import RESIZE_OF_SCALES_OR_SIZES
from passes.onnxruntime.bodies import may_collect_strings
from passes.onnxruntime.packing import counts, read_too_far

#: Resize's inputs, of which just one is given.
_SCALES, _SIZES = 2, 3


class Destination(Protocol):
    """The place outside to which constants move. Each method returns the name of the constant
    there, or "" if it must stay in its body."""

    def tensor(self, tensor: TensorProto, annotated: bool) -> str:
        """A dense constant; `annotated`: it has a quantization annotation."""
        ...

    def node(self, node: NodeProto) -> str:
        """A Constant node that is not a dense tensor: sparse, or an attribute of the surrounding
        function."""
        ...


@dataclass(frozen=True)
class Lifting:
    """Moves constants to the `outside`; `annotations` are those of the constants that moved.

    `opset` is that of the bodies. `keep_packed`: large weights stay that
    onnxruntime would not find there.
    """

    outside: Destination
    opset: int
    keep_packed: bool = False
    annotations: list[TensorAnnotation] = field(default_factory=list)

    def take_from(self, node: NodeProto, level: int = 1, *, texts_stay: bool = False) -> None:
        """Move the constants of the bodies of a node, if these can read outer values.

        The outside is `level` levels further out. Strings stay in a Loop that collects some.
        """
        texts_stay = texts_stay or may_collect_strings(node)
        for _, graph in scoping.subgraphs(node) if is_onnx_domain(node.domain) else ():
            self.take(graph, level=level, texts_stay=texts_stay)

    def take(
        self, graph: GraphProto, *, nested: bool = True, level: int = 1, texts_stay: bool = False
    ) -> None:
        """Move the constants of a graph, which captures them now, innermost bodies first.

        Unread constants are dropped. The outside is `level` levels further out. `nested`: what the
        graph returns is computed by its nodes, since onnxruntime cannot return an outer value.
        """
        for node in graph.node:
            self.take_from(node, level + 1, texts_stay=texts_stay)
        found = constants_of(graph)
        if not found:
            return
        if self.opset >= RESIZE_OF_SCALES_OR_SIZES:
            _leave_out_empty(graph, found)
        read = scoping.all_reads(graph.node) | scoping.ends(graph)
        annotated = {annotation.tensor_name for annotation in graph.quantization_annotation}
        near = read_too_far(graph, level) if self.keep_packed else {}
        outside = {
            name: self._name_outside(constant, name in annotated)
            for name, constant in found.items()
            if name in read and not _stays(constant, near.get(name), texts_stay)
        }
        mapping = {name: new for name, new in outside.items() if new}
        _remove(graph, {name for name in found if name not in read or name in mapping})
        self._move_annotations(graph, mapping)
        returned = scoping.output_names(graph)
        scoping.rename_captures(graph, mapping)
        if nested:
            for value, name in zip(graph.output, returned, strict=True):
                value.name = name
            keep_outputs(graph, mapping)

    def _name_outside(self, constant: TensorProto | NodeProto, annotated: bool) -> str:
        if isinstance(constant, TensorProto):
            return self.outside.tensor(constant, annotated)
        return self.outside.node(constant)

    def _move_annotations(self, graph: GraphProto, mapping: Mapping[str, str]) -> None:
        kept: list[TensorAnnotation] = []
        for annotation in graph.quantization_annotation:
            renamed = scoping.renamed_annotation(annotation, mapping)
            (self.annotations if annotation.tensor_name in mapping else kept).append(renamed)
        replace_all(graph.quantization_annotation, kept)


def _leave_out_empty(graph: GraphProto, found: Mapping[str, TensorProto | NodeProto]) -> None:
    """Remove an empty input from Resize, which has one of `scales` and `sizes`: onnx's checker
    counts both as given unless it sees that one is empty, which it does not outside of a body."""
    tensors = {
        name: constant for name, constant in found.items() if isinstance(constant, TensorProto)
    }
    empty = {name for name, tensor in tensors.items() if 0 in tensor.dims}
    for node in graph.node:
        if op_of(node) != "Resize" or len(node.input) <= _SIZES:
            continue
        if node.input[_SIZES] in empty:
            del node.input[_SIZES]
        elif node.input[_SIZES] and node.input[_SCALES] in empty:
            node.input[_SCALES] = ""


def constants_of(graph: GraphProto) -> dict[str, TensorProto | NodeProto]:
    """The constants that a graph itself holds: initializers, sparse ones, Constant nodes."""
    found: dict[str, TensorProto | NodeProto] = {
        tensor.name: tensor for tensor in graph.initializer
    }
    for sparse in graph.sparse_initializer:
        found[sparse.values.name] = sparse_constant(sparse, sparse.values.name)
    for node in filter(is_constant, graph.node):
        tensor = constant_tensor(node)
        found[node.output[0]] = node if tensor is None else tensor
    return found


def _stays(constant: TensorProto | NodeProto, least: int | None, texts_stay: bool) -> bool:
    if not isinstance(constant, TensorProto):
        return False
    is_text = constant.data_type == TensorProto.STRING
    return counts(constant, least) or (is_text and texts_stay)


def is_constant(node: NodeProto) -> bool:
    """Return whether a node is a Constant, of any spelling."""
    return op_of(node) == "Constant"


def _remove(graph: GraphProto, gone: set[str]) -> None:
    """Drop initializers and Constants."""
    if not gone:
        return
    scoping.drop_constants(graph, gone)
    nodes = [node for node in graph.node if not (is_constant(node) and node.output[0] in gone)]
    replace_all(graph.node, nodes)
