"""What an operator is, is said in `passes/operators`: lists of operators elsewhere become fewer."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path

from onnx import defs

import passes
from passes import converters

_ROOMS = [Path(room) for package in (passes, converters) for room in package.__path__]
_OPERATORS = {schema.name for schema in defs.get_all_schemas_with_history()}
#: From how many operators on a list counts.
_FEW = 3
#: The lists, and the names in them. They may only fall, but for algorithms with a rule for each
#: operator, as the bounds on rounding are.
_TABLES, _NAMES = 56, 326


@dataclass(frozen=True)
class Table:
    """A list of operators: a value of a module, or the arguments of a decorator."""

    file: Path
    line: int
    name: str
    names: tuple[str, ...]
    explained: bool

    def __str__(self) -> str:
        return f"{self.file.name}:{self.line}: {self.name} ({len(self.names)} operators)"


@cache
def tables() -> tuple[Table, ...]:
    """Every list of operators outside of their own room."""
    files = sorted(set(chain.from_iterable(room.rglob("*.py") for room in _ROOMS)))
    outside = (path for path in files if path.parent.name != "operators" or "proving" in path.parts)
    return tuple(chain.from_iterable(map(_tables_in, outside)))


def _tables_in(path: Path) -> Iterator[Table]:
    text = path.read_text("utf-8")
    lines, tree = text.splitlines(), ast.parse(text)
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            commented = lines[node.lineno - 2].startswith("#")
            names = _named(node.value)
            yield from _table(path, node, ast.unparse(target), names, commented)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            for decorator in node.decorator_list:
                names = _named(decorator)
                yield from _table(path, node, node.name, names, bool(ast.get_docstring(node)))


def _table(
    path: Path, node: ast.stmt, name: str, names: tuple[str, ...], explained: bool
) -> Iterator[Table]:
    if len(set(names)) >= _FEW:
        yield Table(path, node.lineno, name, names, explained)


def _named(node: ast.AST) -> tuple[str, ...]:
    """The operators that are named in an expression, alone or in a text."""
    texts = (one.value for one in ast.walk(node) if isinstance(one, ast.Constant))
    words = chain.from_iterable(text.split() for text in texts if isinstance(text, str))
    return tuple(word for word in words if word.rpartition("::")[2] in _OPERATORS)


def test_lists_of_operators_become_fewer() -> None:
    found = len(tables()), sum(len(table.names) for table in tables())
    assert found == (_TABLES, _NAMES), (
        f"{found[0]} lists of operators with {found[1]} names, not {_TABLES} with {_NAMES}: "
        "if there are more, make a column of `passes/operators`; if there are fewer, lower the "
        "numbers in this test"
    )


def test_each_list_of_operators_tells_what_it_is() -> None:
    assert not [str(table) for table in tables() if not table.explained]
