"""The operator of a node, its domain included, and the function that it may call."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, Protocol, TypeVar

from onnx import FunctionProto, NodeProto

from passes.ir.versions import SCAN_8

#: The long spelling of ONNX's domain.
SPELLED_OUT = "ai.onnx"


def is_onnx_domain(domain: str) -> bool:
    """Return whether `domain` is the standard one, which has two spellings."""
    return domain in ("", SPELLED_OUT)


def plain_domain(domain: str) -> str:
    """The domain, the standard one as the empty string."""
    return "" if is_onnx_domain(domain) else domain


class Operation(Protocol):
    """Something that names an operator: a node, or a draft of one."""

    @property
    def op_type(self) -> str: ...
    @property
    def domain(self) -> str: ...


def op_of(node: Operation) -> str:
    """The operator of a node: `Add` for ONNX's own, `my::Add` for that of another domain.

    Only this module reads `op_type`: an operator of another domain may have the name of one of
    ONNX's and compute something else.
    """
    domain = node.domain
    if not domain or is_onnx_domain(domain):
        return node.op_type
    return f"{domain}::{node.op_type}"


def bare_op(node: Operation) -> str:
    """The operator without its domain."""
    return node.op_type


def ops_of(nodes: Iterable[NodeProto]) -> list[str]:
    """The operators of nodes; faster than asking each."""
    return [op_of(node) if node.domain else node.op_type for node in nodes]


#: The operators of the standard domain that have bodies.
HOLDERS = frozenset(("If", "Loop", "Scan", "SequenceMap"))
#: Those of them whose bodies take and give what the node does; SequenceMap's take elements.
CONTROL_FLOW = HOLDERS - {"SequenceMap"}


def is_scan_9(node: NodeProto, opset: int) -> bool:
    """Return whether a node is a Scan of version 9 or later, which has no batch axis."""
    return op_of(node) == "Scan" and opset > SCAN_8


def is_loop_9(node: NodeProto, opset: int) -> bool:
    """Return whether a node is a Loop, or a Scan of version 9 or later."""
    return op_of(node) == "Loop" or is_scan_9(node, opset)


#: What identifies a function: domain, name, overload.
FunctionKey = tuple[str, str, str]


def function_key(function: FunctionProto) -> FunctionKey:
    """The key of a function, the standard domain as the empty string."""
    return plain_domain(function.domain), function.name, function.overload


def called_key(node: NodeProto) -> FunctionKey:
    """The key of the function that a node calls, if its operator is a function of the model."""
    return plain_domain(node.domain), node.op_type, node.overload


F = TypeVar("F", bound=Callable[..., Any])


class Registry(dict[str, F], Generic[F]):
    """The function of each operator, as `op_of` names it."""

    def enter(self, *ops: str) -> Callable[[F], F]:
        """Enter the decorated function for some operators.

        Raises:
            ValueError: an operator has a function already.
        """

        def add(function: F) -> F:
            if twice := self.keys() & set(ops):
                raise ValueError(f"{', '.join(sorted(twice))}: entered twice")
            self.update(dict.fromkeys(ops, function))
            return function

        return add
