"""Models of onnxscript: Python functions with for, while, break and if, written out as ONNX."""

# ruff: noqa: F821, SIM108, UP037 - onnxscript reads this text: "T" and "C" are sizes
from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import onnxscript
from case import Case, draw
from onnx import ModelProto
from onnxscript import FLOAT, INT64, OnnxFunction, opset15, opset16, opset17, opset18, script
from onnxscript.values import Opset

OPSETS = {15: opset15, 16: opset16, 17: opset17, 18: opset18}
LOCAL = Opset("golden.functions", 1)
Maker = Callable[[Opset], OnnxFunction]


def cases() -> Iterator[Case]:
    """Every onnxscript model."""
    x = draw(40, 4, 3)
    count, limit = np.array(3, np.int64), np.array(9.0, np.float32)
    yield _case(for_given, x, count)
    yield _case(for_reading, x)
    yield _case(for_nested, x, count)
    yield _case(while_limited, abs(x), limit)
    yield _case(break_early, abs(x), count, limit)
    yield _case(branch, x)
    yield _case(branch_in_loop, x, count)
    yield _case(grown, x, count)
    yield _case(calling, x, count)
    yield _case(changed_operators, x, count)


def _case(make: Maker, *inputs: np.ndarray) -> Case:
    def export(opset: int) -> ModelProto:
        model: ModelProto = make(OPSETS[opset]).to_model_proto(ir_version=8)
        return model

    found = make(opset15)(*inputs)
    outputs = [value.value if isinstance(value, onnxscript.tensor.Tensor) else np.asarray(value)
               for value in (found if isinstance(found, tuple) else (found,))]  # fmt: skip
    return Case(make.__name__, export, list(inputs), outputs, tuple(OPSETS))


def for_given(op: Opset) -> OnnxFunction:
    """A loop whose length is an input."""

    @script(default_opset=op)
    def function(x: FLOAT["T", "C"], n: INT64) -> FLOAT["T", "C"]:
        for i in range(n):
            x = x * 0.5 + op.CastLike(i, x)
        return x

    return function


def for_reading(op: Opset) -> OnnxFunction:
    """Each row read by the iteration, and added up."""

    @script(default_opset=op)
    def function(x: FLOAT["T", "C"]) -> FLOAT["C"]:
        rows = op.Squeeze(op.Shape(x, start=0, end=1))
        total = op.ReduceSum(x * 0.0, op.Constant(value_ints=[0]), keepdims=0)
        for i in range(rows):
            total = total + op.Gather(x, i, axis=0)
        return total

    return function


def for_nested(op: Opset) -> OnnxFunction:
    """A loop in a loop."""

    @script(default_opset=op)
    def function(x: FLOAT["T", "C"], n: INT64) -> FLOAT["T", "C"]:
        for i in range(n):
            for j in range(n):
                x = x + op.CastLike(i - j, x) * 0.25
            x = x * 0.5
        return x

    return function


def while_limited(op: Opset) -> OnnxFunction:
    """A while that depends on the data."""

    @script(default_opset=op)
    def function(x: FLOAT["T", "C"], limit: FLOAT) -> FLOAT["T", "C"]:
        more = op.ReduceSum(x, keepdims=0) < limit
        while more:
            x = x * 2.0 + 1.0
            more = op.ReduceSum(x, keepdims=0) < limit
        return x

    return function


def break_early(op: Opset) -> OnnxFunction:
    """A for that a value may end."""

    @script(default_opset=op)
    def function(x: FLOAT["T", "C"], n: INT64, limit: FLOAT) -> FLOAT["T", "C"]:
        for _i in range(n):
            x = x * 1.5
            done = op.ReduceSum(x, keepdims=0) > limit
            if done:
                break
        return x

    return function


def branch(op: Opset) -> OnnxFunction:
    """Branches in branches."""

    @script(default_opset=op)
    def function(x: FLOAT["T", "C"]) -> FLOAT["T", "C"]:
        if op.ReduceSum(x, keepdims=0) > 0.0:
            if op.ReduceL1(x, keepdims=0) > 9.0:
                y = x * 2.0
            else:
                y = x + 1.0
        else:
            y = op.Neg(x)
        return y

    return function


def branch_in_loop(op: Opset) -> OnnxFunction:
    """A branch in each iteration."""

    @script(default_opset=op)
    def function(x: FLOAT["T", "C"], n: INT64) -> FLOAT["T", "C"]:
        for i in range(n):
            if op.Mod(i, op.Constant(value_int=2)) == 0:
                y = x + 1.0
            else:
                y = x * 0.5
            x = op.Identity(y)
        return x

    return function


def grown(op: Opset) -> OnnxFunction:
    """A carried value that gets longer, and a sequence of pieces."""

    @script(default_opset=op)
    def function(x: FLOAT["T", "C"], n: INT64) -> FLOAT["N", "C"]:
        pieces = op.SequenceEmpty()
        for i in range(n):
            pieces = op.SequenceInsert(pieces, x + op.CastLike(i, x))
        return op.ConcatFromSequence(op.SequenceInsert(pieces, x), axis=0)

    return function


def calling(op: Opset) -> OnnxFunction:
    """A function that calls another, in a loop."""

    @script(LOCAL, default_opset=op)
    def scale(value: FLOAT[...], factor: FLOAT[...]) -> FLOAT[...]:
        return op.Clip(value * factor, -2.0, 2.0) - op.ReduceMean(value, axes=[1], keepdims=1)

    @script(default_opset=op)
    def function(x: FLOAT["T", "C"], n: INT64) -> FLOAT["T", "C"]:
        for i in range(n):
            x = scale(x, op.CastLike(i, x) * 0.5)
        return x

    return function


def changed_operators(op: Opset) -> OnnxFunction:
    """Operators that newer opsets changed, in a body."""

    @script(default_opset=op)
    def function(x: FLOAT["T", "C"], n: INT64) -> FLOAT["T", "C"]:
        for _i in range(n):
            left, right = op.Split(op.Transpose(x), op.Constant(value_ints=[1, 2]), axis=0)
            joined = op.Transpose(op.Concat(right, left, axis=0))
            padded = op.Pad(joined, op.Constant(value_ints=[0, 1, 0, 1]))
            x = op.Softmax(op.Slice(padded, [1], [4], [1]), axis=1) * 2.0
        return x

    return function
