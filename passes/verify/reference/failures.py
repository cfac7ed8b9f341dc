"""Whose fault an exception of a kernel is: the model's, or the executor's."""

from __future__ import annotations

from onnx import NodeProto

from passes.ir.operators import op_of
from passes.verify.executor import CannotRun, ModelFailed

#: What numpy and the kernels raise when operands do not fit: any runtime would refuse them.
_MODEL = (ValueError, IndexError, AssertionError, ArithmeticError, RuntimeError)
#: What onnx's kernels raise for a case that is not implemented, or does not fit in memory.
_EXECUTOR = (NotImplementedError, MemoryError)


def failure(node: NodeProto, error: Exception) -> ModelFailed | CannotRun:
    """The exception to raise when running `node` raised `error`.

    A `TypeError`, `KeyError` and the like from inside a kernel is no statement on the model:
    it is taken for a gap in the kernel.
    """
    root = root_cause(error)
    sentence = f"{described(node)} failed: {reason(root)}"
    unwritten = "not implemented" in str(root) or "not supported" in str(root)
    if isinstance(root, _EXECUTOR) or unwritten:
        return CannotRun(sentence)
    if isinstance(root, _MODEL):
        return ModelFailed(sentence)
    return CannotRun(sentence)


def described(node: NodeProto) -> str:
    """A node as it is named in a sentence: `Gather 'pick'`."""
    name = node.name or next((output for output in node.output if output), "")
    return f"{op_of(node)} {name!r}"


def root_cause(error: BaseException) -> BaseException:
    """Return the exception that was raised first: kernels wrap errors of numpy in their own."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def reason(error: BaseException) -> str:
    """One line of why."""
    first = str(error).strip().split("\n", 1)[0]
    return f"{first[:300]}" if first else type(error).__name__
