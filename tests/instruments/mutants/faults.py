"""Faults: one small change to the source of a module each, at a line that runs."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

#: Ops and what they are easily mistaken for.
MISTAKEN = {
    "Add": "Sub", "Sub": "Add", "Mul": "Add", "And": "Or", "Or": "And", "Max": "Min", "Min": "Max",
    "Less": "LessOrEqual", "LessOrEqual": "Less", "Greater": "GreaterOrEqual",
    "GreaterOrEqual": "Greater", "ReduceMax": "ReduceMin", "ReduceMin": "ReduceMax",
    "ReduceSum": "ReduceMax", "ReduceProd": "ReduceSum", "CumSum": "Identity",
    "ArgMax": "ArgMin", "Ceil": "Floor", "Floor": "Ceil", "Transpose": "Identity",
}  # fmt: skip
_COMPARED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip


@dataclass(frozen=True)
class Fault:
    """A changed module: its whole new source, which is made when it is asked for, and what was
    changed where."""

    module: str
    line: int
    what: str
    changed: Callable[[], str] = field(repr=False, compare=False)

    @property
    def source(self) -> str:
        """The whole new source."""
        return self.changed()

    def __str__(self) -> str:
        return f"{self.module}:{self.line}: {self.what}"


def faults(module: str, source: str, lines: Collection[int]) -> Iterator[Fault]:
    """Every fault that can be seeded into these lines."""
    tree = ast.parse(source)
    kept = _texts(tree)
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if line not in lines or id(node) in kept:
            continue
        for what, changed in _changes(node):
            before = ast.unparse(node)
            yield Fault(
                module, line, f"{what}: {before[:60]!r}", partial(_with, tree, node, changed)
            )


def _texts(tree: ast.Module) -> set[int]:
    """What only people read: docstrings, and what is said of a refusal."""
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise | ast.JoinedStr):
            found.update(id(inner) for inner in ast.walk(node))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            found.update((id(node), id(node.value)))
    return found


def _changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """What may go wrong at a node, and what stands there then."""
    match node:
        case ast.Constant(value=bool(flag)):
            yield "the other flag", ast.Constant(not flag)
        case ast.Constant(value=int(number)):
            yield "off by one", ast.Constant(number + 1)
        case ast.Constant(value=str(op)) if op in MISTAKEN:
            yield "another op", ast.Constant(MISTAKEN[op])
        case ast.BinOp(left, ast.Add(), right):
            yield "wrong sign", ast.BinOp(left, ast.Sub(), right)
        case ast.BinOp(left, ast.Sub(), right):
            yield "wrong sign", ast.BinOp(left, ast.Add(), right)
        case ast.Compare(left, [first, *more], others) if type(first) in _COMPARED:
            ops = [_COMPARED[type(first)](), *more]
            yield "another comparison", ast.Compare(left, ops, others)
        case ast.BoolOp(junction, parts):
            other = ast.Or() if isinstance(junction, ast.And) else ast.And()
            yield "any instead of all, or all instead of any", ast.BoolOp(other, parts)
        case ast.UnaryOp(ast.Not(), operand):
            yield "forgotten not", operand
        case ast.Call(function, [ast.Constant(value=str()), _, _, *_] as args, keywords):
            swapped = [*args[:-2], args[-1], args[-2]]
            yield "swapped inputs", ast.Call(function, swapped, keywords)
        case ast.If(orelse=[]):
            yield "forgotten case", ast.Pass()
        case ast.Expr(ast.Call()):
            yield "forgotten step", ast.Pass()


def _with(tree: ast.Module, node: ast.AST, changed: ast.AST) -> str:
    """The source of a module in which one node is another."""
    memo: dict[int, Any] = {}
    whole = copy.deepcopy(tree, memo)
    target = memo[id(node)]

    class Replace(ast.NodeTransformer):
        def visit(self, one: ast.AST) -> ast.AST:
            return changed if one is target else self.generic_visit(one)

    return ast.unparse(ast.fix_missing_locations(Replace().visit(whole)))
