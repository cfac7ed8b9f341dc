"""What operator a node runs, its domain included, and which function it may call."""

from __future__ import annotations

from typing import Protocol

from onnx import FunctionProto, NodeProto


def is_onnx_domain(domain: str) -> bool:
    """Whether `domain` is the standard one, which has two spellings."""
    return domain in ("", "ai.onnx")


def plain_domain(domain: str) -> str:
    """The domain, the standard one as the empty string."""
    return "" if is_onnx_domain(domain) else domain


class Operation(Protocol):
    """What names an operator: a node, or one in the making."""

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
    return node.op_type if is_onnx_domain(domain) else f"{domain}::{node.op_type}"


#: What tells functions apart: domain, name, overload.
FunctionKey = tuple[str, str, str]


def function_key(function: FunctionProto) -> FunctionKey:
    """The key of a function, the standard domain as the empty string."""
    return plain_domain(function.domain), function.name, function.overload


def called_key(node: NodeProto) -> FunctionKey:
    """The key of the function that a node calls, if its operator is a function of the model."""
    return plain_domain(node.domain), node.op_type, node.overload
