"""Kernels of our own, by operator and opset, and what they know of the node they run."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import AttributeProto, NodeProto, defs, helper
from onnx.reference.op_run import OpRun
from onnx.reference.ops import load_op
from onnx.reference.ops._op import (
    OpRunBinary,
    OpRunBinaryNum,
    OpRunBinaryNumpy,
    OpRunUnary,
    OpRunUnaryNum,
)

from passes.ir.operators import op_of
from passes.ir.protos import changed
from passes.verify.executor import Value

#: Newer than every opset.
LATEST = 10**6

#: Takes the call, then one value per input of the node (None where omitted).
Function = Callable[..., Any]


class ByFunctionBody(Exception):
    """Raised by a kernel of ours for operands for which the document's function body counts."""


class KernelCall:
    """A node at an opset: attributes with the defaults of that opset, in the standard domain."""

    def __init__(self, node: NodeProto, version: int) -> None:
        self.node = node
        self.version = version
        self.outputs = len(node.output)
        self.attributes: dict[str, Any] = dict(_defaults(op_of(node), version))
        for attribute in node.attribute:
            self.attributes[attribute.name] = _plain(attribute)
        self._onnx: dict[tuple[int, tuple[Any, ...]], Callable[..., Any]] = {}

    def get(self, name: str, default: Any = None) -> Any:
        """An attribute: as given, else the default of the opset, else `default`."""
        return self.attributes.get(name, default)

    def onnx(self, *operands: Value, version: int | None = None, **changes: Any) -> Any:
        """Return the result of onnx's kernel for these operands, as a tuple.

        `version` asks for the kernel of another opset; `changes` are attributes that replace
        the node's, None removing one.
        """
        version = self.version if version is None else version
        key = (version, tuple((name, repr(value)) for name, value in sorted(changes.items())))
        if key not in self._onnx:
            self._onnx[key] = _onnx_kernel(changed(self.node, changes), version)
        return self._onnx[key](*operands)


_KERNELS: dict[str, list[tuple[int, int, Function]]] = {}


def implements(
    *op_types: str, since: int = 1, until: int = LATEST
) -> Callable[[Function], Function]:
    """Registers a function as the kernel of operators from opset `since` to `until`."""

    def register(function: Function) -> Function:
        for op_type in op_types:
            _KERNELS.setdefault(op_type, []).append((since, until, function))
        return function

    return register


def override(op_type: str, version: int) -> Function | None:
    """Our kernel of an operator at an opset; None where onnx's own is right."""
    for since, until, function in _KERNELS.get(op_type, ()):
        if since <= version <= until:
            return function
    return None


def overridden() -> dict[str, list[tuple[int, int, Function]]]:
    """The whole table: per operator, ranges of opsets with their kernels."""
    return {op_type: list(entries) for op_type, entries in sorted(_KERNELS.items())}


@functools.lru_cache(maxsize=1024)
def _defaults(op_type: str, version: int) -> tuple[tuple[str, Any], ...]:
    if "::" in op_type:
        return ()
    schema = defs.get_schema(op_type, version, "")
    return tuple(
        (name, _plain(attribute.default_value))
        for name, attribute in schema.attributes.items()
        if attribute.default_value.type != AttributeProto.UNDEFINED
    )


def _plain(attribute: AttributeProto) -> Any:
    value = helper.get_attribute_value(attribute)
    if attribute.type == AttributeProto.STRING:
        return value.decode()
    if attribute.type == AttributeProto.STRINGS:
        return [entry.decode() for entry in value]
    if attribute.type in (AttributeProto.INTS, AttributeProto.FLOATS):
        return list(value)
    return value


def _onnx_kernel(node: NodeProto, version: int) -> Callable[..., Any]:
    return short_cut(onnx_kernel(load_op("", op_of(node), version), node, {"": version}))


def short_cut(kernel: OpRun) -> Callable[..., Any]:
    """Return what an onnx kernel runs, without the layers around it: they only check, which takes
    longer than most operators do. If something may be wrong, the whole kernel runs, and reports it
    in its own words."""
    run: Callable[..., Any] = kernel.run
    around = type(kernel).run
    if around not in _SAME_TYPE or kernel.has_subgraph or kernel.has_linked_attribute:
        return run
    binary, same_type = isinstance(kernel, OpRunBinary), _SAME_TYPE[around]
    names = kernel.attributes_names_ if around is OpRun.run else ()
    compute = _computing(kernel)

    def shorter(*operands: Any) -> Any:
        if operands and type(operands[0]) is not np.ndarray:
            return run(*operands)
        if binary and not _are_alike(operands):
            return run(*operands)
        try:
            if names:
                results = compute(*operands, **{name: getattr(kernel, name) for name in names})
            else:
                results = compute(*operands)
            results = _tuple_of(results)
        except Exception:  # whatever it is, `run` reports it in its own words
            return run(*operands)
        if same_type and results[0].dtype != operands[0].dtype:
            return run(*operands)
        return results

    return shorter


def _computing(kernel: OpRun) -> Callable[..., Any]:
    """Return the function that computes the outputs of an onnx kernel: a numpy function alone, if
    that is all it is."""
    compute: Callable[..., Any] = kernel._run
    if type(kernel)._run is not OpRunBinaryNumpy._run:
        return compute
    function = vars(kernel)["numpy_fct"]
    return lambda one, other: (function(one, other),)


def _are_alike(operands: Sequence[Any]) -> bool:
    """Return whether there are two arrays, of one dtype."""
    if len(operands) != 2 or type(operands[1]) is not np.ndarray:
        return False
    return bool(operands[0].dtype == operands[1].dtype)


#: The layers around kernels of onnx, and whether they demand that the dtype of the first operand is
#: that of the result.
_SAME_TYPE = {
    OpRun.run: False,
    OpRunUnary.run: False,
    OpRunUnaryNum.run: True,
    OpRunBinary.run: False,
    OpRunBinaryNum.run: True,
}


def onnx_kernel(kernel_class: type[OpRun], node: NodeProto, opsets: Mapping[str, int]) -> OpRun:
    """onnx's kernel of a node. It checks what it returns up to three times, which takes longer
    than most kernels do; once must be enough."""
    kernel = kernel_class(node, run_parameters(opsets))
    vars(kernel)["_check_and_fix_outputs"] = _tuple_of
    return kernel


def _tuple_of(results: object) -> tuple[Any, ...]:
    if not isinstance(results, tuple):
        raise TypeError(f"a kernel returned no tuple, but {type(results).__name__}")
    if len(results) == 1 and type(results[0]) is np.ndarray:
        return results
    return tuple([one if type(one) is np.ndarray else _value_of(one) for one in results])


def _value_of(result: object) -> Any:
    """A result that is perhaps no array; scalars become one."""
    if isinstance(result, _SCALARS):
        return np.array(result)
    if isinstance(result, np.ndarray | list | dict):
        return result
    raise TypeError(f"a kernel returned a {type(result).__name__}, which is no value of ONNX")


_SCALARS = (np.generic, bool, int, float, str)


def run_parameters(opsets: Mapping[str, int]) -> dict[str, Any]:
    """Return the context that onnx's kernels expect; they hold no bodies here, so no evaluator."""
    return {
        "log": _no_log,
        "opsets": dict(opsets),
        "verbose": 0,
        "new_ops": {},
        "existing_functions": {},
        "evaluator_cls": None,
    }


def _no_log(*_: Any) -> None:
    """Discard the log that onnx's kernels write at every run."""
