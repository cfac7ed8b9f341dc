"""The nodes that take the place of one, written one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import NodeProto, TensorProto, helper

from passes.converters.writing.conversion import Conversion

#: The float types that every version takes.
FLOATS = (TensorProto.FLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE)


@dataclass
class Replacement:
    """Nodes in the opset of `ctx`, in order; each reads what those before it give."""

    node: NodeProto
    ctx: Conversion
    nodes: list[NodeProto] = field(default_factory=list)

    def op(self, op: str, *inputs: str, outputs: Sequence[str] = (), **attributes: Any) -> str:
        """Write a node; the name of its first output, a fresh one where `outputs` says none."""
        return self.adopt(self.ctx.node(op, inputs, outputs, **attributes))

    def last(self, op: str, *inputs: str, **attributes: Any) -> list[NodeProto]:
        """All nodes, with that which gives what the old one gave."""
        self.op(op, *inputs, outputs=self.node.output, **attributes)
        return self.nodes

    def copy(self, op: str | None, *inputs: str, **attributes: Any) -> str:
        """The old node with other inputs, as another op where one is named; its new output."""
        outputs = [self.ctx.fresh(f"{self.node.output[0]}_inner")]
        return self.adopt(
            self.ctx.changed(self.node, op=op, inputs=inputs, outputs=outputs, **attributes)
        )

    def adopt(self, node: NodeProto) -> str:
        """Take a node; the name of its first output."""
        self.nodes.append(node)
        return str(node.output[0])

    def both(self, op: str, a: str, b: str) -> str:
        """An op on two values; the one that there is where the other is empty."""
        return self.op(op, a, b) if a and b else a or b

    def cast(self, name: str, elem_type: int, to: int, outputs: Sequence[str] = ()) -> str:
        """A value as another element type; itself where it has that and needs no other name."""
        if elem_type == to:
            return self.op("Identity", name, outputs=outputs) if outputs else name
        return self.op("Cast", name, outputs=outputs, to=to)

    def casts(self, to: int, *names: str) -> list[str]:
        """Values, each cast to a type."""
        return [self.op("Cast", name, to=to) for name in names]

    def ints(self, *values: int) -> str:
        """The name of a fixed int64 tensor (n)."""
        return self.ctx.value(np.array(values, np.int64), "ints")

    def number(self, value: float, elem_type: int) -> str:
        """The name of a fixed scalar."""
        return self.ctx.value(np.array(value, helper.tensor_dtype_to_np_dtype(elem_type)), "number")

    def fixed(self, value: npt.ArrayLike, dtype: npt.DTypeLike, hint: str = "number") -> str:
        """The name of a fixed tensor; a number is first rounded to float, as an attribute is."""
        with np.errstate(over="ignore"):  # what float16 cannot hold is infinite
            return self.ctx.value(np.asarray(value).astype(np.float32).astype(dtype), hint)


def through_float(
    node: NodeProto, ctx: Conversion, float_type: int = TensorProto.FLOAT
) -> Sequence[NodeProto]:
    """The node between a Cast to `float_type` and one back, which rounds towards zero.

    Its first input and its output are of one integer type, which is known.
    """
    elem_type = ctx.known_elem_type(node.input[0])
    written = Replacement(node, ctx)
    (wide,) = written.casts(float_type, node.input[0])
    return written.last("Cast", written.copy(None, wide, *node.input[1:]), to=elem_type)
