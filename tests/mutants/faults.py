"""Faults: one small change to the source of a module each, at a line that runs."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

#: Ops and what they are easily mistaken for.
_MISTAKEN = {
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
    """A changed module: its whole new source, and what was changed where."""

    module: str
    line: int
    what: str
    source: str

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
            yield Fault(module, line, f"{what}: {before[:60]!r}", _with(tree, node, changed))


def _texts(tree: ast.Module) -> set[int]:
    """What only people read: docstrings, and what is said of a refusal."""
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise | ast.JoinedStr):
            found.update(id(inner) for inner in ast.walk(node))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            found.update((id(node), id(node.value)))
    return found


def _changes(node: ast.AST) -> Iterator[tuple[str, Callable[[ast.AST], ast.AST]]]:
    """What may go wrong at a node, and how it is changed in place."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        yield "off by one", lambda one: ast.Constant(one.value + 1)  # type: ignore[attr-defined]
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield "the other flag", lambda one: ast.Constant(not one.value)  # type: ignore[attr-defined]
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in _MISTAKEN:
        yield "another op", lambda one: ast.Constant(_MISTAKEN[one.value])  # type: ignore[attr-defined]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        yield "wrong sign", _other_sign
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARED:
        yield "another comparison", _other_comparison
    if isinstance(node, ast.BoolOp):
        yield "any instead of all, or all instead of any", _other_junction
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "forgotten not", lambda one: one.operand  # type: ignore[attr-defined]
    if isinstance(node, ast.Call) and len(node.args) >= 3 and _writes(node):
        yield "swapped inputs", _swapped
    if isinstance(node, ast.If) and not node.orelse:
        yield "forgotten case", lambda one: ast.Pass()
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield "forgotten step", lambda one: ast.Pass()


def _writes(node: ast.Call) -> bool:
    first = node.args[0]
    return isinstance(first, ast.Constant) and isinstance(first.value, str)


def _other_sign(one: ast.AST) -> ast.AST:
    assert isinstance(one, ast.BinOp)
    one.op = ast.Sub() if isinstance(one.op, ast.Add) else ast.Add()
    return one


def _other_comparison(one: ast.AST) -> ast.AST:
    assert isinstance(one, ast.Compare)
    one.ops[0] = _COMPARED[type(one.ops[0])]()
    return one


def _other_junction(one: ast.AST) -> ast.AST:
    assert isinstance(one, ast.BoolOp)
    one.op = ast.Or() if isinstance(one.op, ast.And) else ast.And()
    return one


def _swapped(one: ast.AST) -> ast.AST:
    assert isinstance(one, ast.Call)
    one.args[-2:] = [one.args[-1], one.args[-2]]
    return one


def _with(tree: ast.Module, node: ast.AST, change: Callable[[ast.AST], ast.AST]) -> str:
    """The source of a module in which one node is another."""
    marked = id(node)
    memo: dict[int, ast.AST] = {}
    whole = copy.deepcopy(tree, memo)  # type: ignore[arg-type]
    target = memo[marked]

    class Replace(ast.NodeTransformer):
        def visit(self, one: ast.AST) -> ast.AST:
            return change(one) if one is target else self.generic_visit(one)

    return ast.unparse(ast.fix_missing_locations(Replace().visit(whole)))
