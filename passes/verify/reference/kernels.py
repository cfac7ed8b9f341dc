"""Chooses the code that runs a node: control flow, a function, an override of ours, or onnx's
kernel."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import AttributeProto, NodeProto, numpy_helper
from onnx.reference.op_run import OpRun, RuntimeContextError
from onnx.reference.ops import load_op

from passes.ir.attributes import has
from passes.ir.external_data import is_external
from passes.ir.operators import called_key, op_of
from passes.ir.protos import copied
from passes.verify.executor import CannotRun, ModelFailed, Value
from passes.verify.reference.calls import function_call, schema_call
from passes.verify.reference.control_flow.table import CONTROL_FLOW
from passes.verify.reference.evaluator import Evaluator
from passes.verify.reference.failures import described, failure
from passes.verify.reference.machine import Frame, Kernel, Machine
from passes.verify.reference.registry import (
    ByFunctionBody,
    Function,
    KernelCall,
    onnx_kernel,
    override,
    short_cut,
)
from passes.verify.reference.roundings import rounds_as, sums
from passes.verify.reference.weights import array_of


def kernel_for(node: NodeProto, evaluator: Evaluator) -> Kernel:
    """Return the kernel of a node.

    A node without an implementation gets a kernel that raises `CannotRun` once it is reached: it
    may be in a branch that is never taken. Raises `ModelFailed` for a malformed node.
    """
    function = evaluator.machine.library.find(node)
    if function is not None:
        return function_call(node, function, evaluator)
    try:
        kernel = _operator(node, evaluator)
        if op_of(node) == "Where":
            return _noting_the_mask(kernel, node, evaluator)
        if op_of(node) in _CELLS:
            kernel = _noting_no_steps(kernel, evaluator)
        return _in_one_order(kernel) if sums(rounds_as(node)) else kernel
    except CannotRun as reason:
        return _refusing(str(reason))
    except (ModelFailed, RecursionError):
        raise
    except Exception as error:  # whatever onnx raises of a node that it cannot make a kernel of
        raise failure(node, error) from error


def _noting_the_mask(kernel: Kernel, node: NodeProto, evaluator: Evaluator) -> Kernel:
    """The kernel of a Where that notes whether its mask holds everywhere, nowhere or in part."""
    machine = evaluator.machine
    key = functools.cache(lambda: evaluator.key_of(node))  # once the evaluator knows where it is

    def noting(operands: list[Value], frame: Frame) -> Sequence[Any]:
        mask, place = operands[0], key()
        if isinstance(mask, np.ndarray) and mask.size and place is not None:
            on = bool(mask.all())
            machine.reached.add((place, "on" if on else "partly" if mask.any() else "off"))
        return kernel(operands, frame)

    return noting


def _in_one_order(kernel: Kernel) -> Kernel:
    """The kernel on operands that lie in memory one element after the other: numpy adds up a
    transposed view in another order than its copy, and approximates some functions otherwise."""

    def ordered(operands: list[Value], frame: Frame) -> Sequence[Any]:
        return kernel(list(map(_contiguous, operands)), frame)

    return ordered


def _contiguous(value: Value) -> Value:
    if not isinstance(value, np.ndarray) or value.flags.c_contiguous:
        return value
    return value.copy(order="C")


#: The recurrent operators, and the position of sequence_lens: its own, as its kernels are.
_CELLS, _LENGTHS = ("RNN", "GRU", "LSTM"), 4


def _noting_no_steps(kernel: Kernel, evaluator: Evaluator) -> Kernel:
    """The kernel of a recurrent operator that notes whether it reads no element, or a row has
    length 0: onnxruntime's answer is what its memory held then, or zeros."""
    machine = evaluator.machine

    def noting(operands: list[Value], frame: Frame) -> Sequence[Any]:
        x, lengths = operands[0], operands[_LENGTHS] if len(operands) > _LENGTHS else None
        empty = isinstance(x, np.ndarray) and not x.size
        machine.idle_cell |= empty
        machine.idle |= empty or (isinstance(lengths, np.ndarray) and not lengths.all())
        return kernel(operands, frame)

    return noting


def _operator(node: NodeProto, evaluator: Evaluator) -> Kernel:
    domain, op, _ = called_key(node)
    if domain == "" and op in CONTROL_FLOW:
        return CONTROL_FLOW[op](node, evaluator)
    version = evaluator.versions.get(domain)
    if version is None:
        raise ModelFailed(f"{described(node)}: the model imports no opset of {domain!r}")
    own = _override(op_of(node), version)
    if own is not None:
        return _calling(own, KernelCall(_with_values_inside(node, evaluator), version), evaluator)
    kernel_class = _kernel_class(domain, op, version)
    if kernel_class is None:
        return schema_call(node, version, evaluator)
    kernel = onnx_kernel(kernel_class, _with_values_inside(node, evaluator), evaluator.versions)
    if draws_anew(node):
        return numbered(kernel, evaluator.machine)
    run: Callable[..., Sequence[Any]] = short_cut(kernel)
    return lambda operands, frame: run(*operands)


#: Dropout draws when it trains.
RANDOM = frozenset(
    {
        "Bernoulli",
        "Dropout",
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
    }
)


def draws_anew(node: NodeProto) -> bool:
    """Return whether `node` draws random numbers without a seed of its own."""
    return op_of(node) in RANDOM and not has(node, "seed")


def numbered(kernel: OpRun, machine: Machine) -> Callable[[list[Value], Frame], Sequence[Any]]:
    """The kernel of a random node: the k-th draw of a run has seed k.

    So a rewrite that neither drops, doubles nor reorders draws compares equal.
    """
    run: Callable[..., Sequence[Any]] = kernel.run

    def draw(operands: list[Value], frame: Frame) -> Sequence[Any]:
        machine.draws += 1
        setattr(kernel, "seed", machine.draws)  # noqa: B010 (not declared by onnx)
        like = operands[0] if operands else None
        if isinstance(like, np.ndarray) and like.ndim == 0:  # onnx's kernels draw no scalars
            return [np.reshape(value, ()) for value in run(like.reshape(1), *operands[1:])]
        return run(*operands)

    return draw


def _override(op: str, version: int) -> Function | None:
    """Our kernel of an operator; the modules that have them are loaded when one is asked
    for, which takes 0.1 s."""
    from passes.verify.reference import ops  # noqa: F401 (the kernels register themselves)

    return override(op, version)


def has_kernel(node: NodeProto, version: int) -> bool:
    """Return whether an operator has a kernel at an opset; others run by their schema's function,
    or not at all."""
    domain, op, _ = called_key(node)
    if _override(op_of(node), version) is not None:
        return True
    try:
        return _kernel_class(domain, op, version) is not None
    except CannotRun:
        return False


@functools.lru_cache(maxsize=4096)
def _kernel_class(domain: str, op_type: str, version: int) -> type[OpRun] | None:
    """Return the class of an operator at an opset; None if its schema defines it by a function.

    Raises `CannotRun` when there is none.
    """
    spelled = f"{domain}.{op_type}" if domain else op_type
    missing = CannotRun(f"no kernel for {spelled} at opset {version}")
    load = _loaders().get(domain)
    if load is None:
        raise missing
    try:
        return load(domain, op_type, version)
    except (_InFunctionBody, RuntimeContextError):
        return None
    except (NotImplementedError, RuntimeError, ValueError) as error:  # by onnx's look-up
        raise missing from error


class _InFunctionBody(Exception):
    """Raised out of onnx's look-up when it starts to expand a schema's function."""


class _NoEvaluator:
    """Stands in for the evaluator with which onnx's look-up would run a schema's function."""

    def __init__(self, *_: Any) -> None:
        raise _InFunctionBody


@functools.cache
def _loaders() -> dict[str, Callable[[str, str, int], type[OpRun]]]:
    """Return the functions that find the class of an operator, by domain."""
    from onnx.reference.ops import aionnx_preview_training, aionnxml

    return {
        "": functools.partial(load_op, evaluator_cls=_NoEvaluator),
        "ai.onnx.ml": aionnxml.load_op,
        "ai.onnx.preview.training": aionnx_preview_training.load_op,
    }


def _with_values_inside(node: NodeProto, evaluator: Evaluator) -> NodeProto:
    """The node, its external tensor attributes (a Constant's value) replaced by their data."""
    if not any(_external(attribute) for attribute in node.attribute):
        return node
    copy = copied(node)
    for attribute in copy.attribute:
        if _external(attribute):
            value = array_of(attribute.t, evaluator.machine.base_dir)
            inline = numpy_helper.from_array(value, attribute.t.name)
            attribute.t.CopyFrom(inline)
    return copy


def _external(attribute: AttributeProto) -> bool:
    return attribute.type == AttributeProto.TENSOR and is_external(attribute.t)


def _calling(function: Function, call: KernelCall, evaluator: Evaluator) -> Kernel:
    by_body = functools.cache(lambda: schema_call(call.node, call.version, evaluator))

    def kernel(operands: list[Value], frame: Frame) -> Sequence[Any]:
        try:
            results = function(call, *operands)
        except ByFunctionBody:
            return by_body()(operands, frame)
        return results if isinstance(results, tuple) else (results,)

    return kernel


def _refusing(sentence: str) -> Kernel:
    def kernel(operands: list[Value], frame: Frame) -> Sequence[Any]:
        raise CannotRun(sentence)

    return kernel
