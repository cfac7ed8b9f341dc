"""Steps of Softmax, LogSoftmax and Hardmax."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import NodeProto

from converters.conversion import Conversion
from converters.steps import adapter, identical
from passes.ir.operators import op_of
from passes.ir.versions import ZERO_IS_A_SIZE

_OPS = ("Softmax", "LogSoftmax", "Hardmax")


def one_axis(node: NodeProto, at: Conversion) -> Sequence[NodeProto]:
    """It runs along `axis` only, where it ran over all axes from `axis` on; the default moved.

    Version 11 sees the input as a matrix (d_0*...*d_axis-1, d_axis*...*d_n) and takes its rows.
    One axis is enough where all others of a row have size 1; else the input really becomes that
    matrix, and its shape is restored, whatever its rank.
    """
    axis = _only_axis(node, at)
    if axis is not None:
        return [at.changed(node, axis=axis)]
    x = node.input[0]
    matrix = at.node("Flatten", [x])
    matrix.attribute.extend(one for one in node.attribute if one.name == "axis")
    main = at.changed(
        node,
        inputs=[matrix.output[0]],
        outputs=[at.fresh(f"{node.output[0]}_rows")],
        axis=-1,
    )
    shape = at.node("Shape", [x])
    return [matrix, main, shape, _reshape(at, main.output[0], shape.output[0], node.output[0])]


for _op in _OPS:
    identical(_op, 11)  # a negative axis is new
    adapter(_op, 13)(one_axis)


def _only_axis(node: NodeProto, at: Conversion) -> int | None:
    """The one axis along which a row of the matrix runs, None where there may be several."""
    if at.refers(node, "axis"):
        return None
    axis: int = at.attribute(node, "axis", 1)
    dims = at.dims_of(node.input[0])
    if dims is None:
        return -1 if axis == -1 else None
    if not -len(dims) <= axis < len(dims):
        raise at.refused("invalid-node", f"axis {axis} of {op_of(node)} is none of {dims}")
    first = axis % len(dims)
    wide = [one for one in range(first, len(dims)) if dims[one] != 1]
    if len(wide) > 1:
        return None
    return axis if not wide or wide == [first] else wide[0]


def _reshape(at: Conversion, x: str, shape: str, output: str) -> NodeProto:
    """A Reshape to exactly `shape`: from version 14 on, a 0 in it can mean an empty axis."""
    if at.site.target >= ZERO_IS_A_SIZE:
        return at.later(ZERO_IS_A_SIZE).node("Reshape", [x, shape], [output], allowzero=1)
    return at.node("Reshape", [x, shape], [output])
