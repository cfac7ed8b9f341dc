"""The value of one node on constants, as the reference executor computes it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, ValueInfoProto, helper, numpy_helper

from passes.ir.attributes import has_references
from passes.ir.operators import op_of
from passes.operators.exactness import Array, is_exact, may_be_exact
from passes.types.value_types import dims_of, elem_type_of
from passes.verify.executor import CannotRun, ModelFailed
from passes.verify.reference import ReferenceExecutor

#: Ops whose output is at most as large as their input times its rank, whatever its shape.
_CHOOSING = ("Compress", "NonZero")
_IR_VERSION = 10


class TooLarge(Exception):
    """The outputs take more bytes than are allowed; `size` where it is known."""

    def __init__(self, size: int) -> None:
        super().__init__(f"{size} bytes")
        self.size = size


def evaluated(
    node: NodeProto, inputs: Mapping[str, Array], opset: int, most: int
) -> list[Array] | None:
    """The outputs of a node without bodies, in order; None where they are unknown.

    Raises:
        ModelFailed: the node fails on these inputs.
        TooLarge: the outputs take more than `most` bytes.
    """
    model = _model(node, inputs, opset)
    types = _types(model, node)
    if types is None or not _fits(node, inputs, types, most):
        return None
    try:
        outcome = ReferenceExecutor().run(model, {})
    except CannotRun:
        return None
    values = [outcome.outputs[name] for name in node.output if name]
    arrays = [value for value in values if isinstance(value, np.ndarray)]
    if len(arrays) != len(values) or not _as_inferred(arrays, types):
        return None
    return arrays


def known_output(
    name: str, node: NodeProto, value: Callable[[str], Array | None], opset: int, most: int
) -> Array | None:
    """The output `name` of a node without bodies; None unless its inputs are known and it gives
    the same bits in every executor."""
    if not node.input or not may_be_exact(node):
        return None
    if has_references(node):
        return None
    inputs = {operand: value(operand) for operand in node.input if operand}
    known = {operand: one for operand, one in inputs.items() if one is not None}
    if len(known) < len(inputs):
        return None
    try:
        outputs = evaluated(node, known, opset, most)
    except (ModelFailed, TooLarge):
        return None
    if outputs is None or not is_exact(node, [known.get(one) for one in node.input], outputs):
        return None
    written = [output for output in node.output if output]
    return dict(zip(written, outputs, strict=True))[name]


def _model(node: NodeProto, inputs: Mapping[str, Array], opset: int) -> ModelProto:
    constants = [numpy_helper.from_array(value, name) for name, value in inputs.items()]
    outputs = [ValueInfoProto(name=name) for name in node.output if name]
    graph = helper.make_graph([node], "folded", [], outputs, constants)
    imports = [helper.make_opsetid(node.domain, opset)]
    with_constants: ModelProto = helper.make_model(
        graph, ir_version=_IR_VERSION, opset_imports=imports
    )
    return with_constants


def _types(model: ModelProto, node: NodeProto) -> list[ValueInfoProto] | None:
    """The inferred types of the outputs; None where inference fails."""
    try:
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=True, strict_mode=True)
    except (onnx.shape_inference.InferenceError, RuntimeError, ValueError):
        return None
    found = list(inferred.graph.output)
    return found if all(elem_type_of(value.type) for value in found) else None


def _fits(
    node: NodeProto, inputs: Mapping[str, Array], types: Sequence[ValueInfoProto], most: int
) -> bool:
    """Return whether the sizes of all outputs are known.

    Raises:
        TooLarge: and above `most` bytes.
    """
    if op_of(node) in _CHOOSING:
        return True
    total = 0
    for value in types:
        dims = dims_of(value.type)
        sizes = [dim for dim in dims or () if isinstance(dim, int)]
        if dims is None or len(sizes) != len(dims):
            return False
        item = np.dtype(helper.tensor_dtype_to_np_dtype(elem_type_of(value.type))).itemsize
        total += math.prod(sizes) * item
    if total > most:
        raise TooLarge(total)
    return True


def _as_inferred(arrays: Sequence[Array], types: Sequence[ValueInfoProto]) -> bool:
    kinds = [helper.np_dtype_to_tensor_dtype(array.dtype) for array in arrays]
    return kinds == [elem_type_of(value.type) for value in types]


__all__ = ["ModelFailed", "TooLarge", "evaluated", "known_output"]
