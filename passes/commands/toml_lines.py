"""Finds the line of a key in a TOML file: Python's parser reports lines only for syntax errors."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from passes.reports.json_values import Unreadable


def located(file: object, text: str, error: Unreadable, start: Sequence[str] = ()) -> str:
    """The sentence on a key, after the file and the line; `start` is the path of the table read."""
    line = line_of(text, (*start, *error.where))
    return f"{file}:{line}: {error}" if line else f"{file}: {error}"


def line_of(text: str, path: Sequence[str | int]) -> int:
    """The number of the line in which the value at a path begins to exist: that of its key in the
    statement after which the path is there. 0 where it is nowhere.

    Longer and longer parts of the file are parsed, which is quadratic: for error messages only.
    """
    lines = text.splitlines()
    start = 0
    for end in range(1, len(lines) + 1):
        try:
            found = tomllib.loads("\n".join(lines[:end]))
        except tomllib.TOMLDecodeError:
            continue
        if _has(found, path):
            return _key_in(lines[start:end], path) + start
        start = end
    return 0


def _has(value: Any, path: Sequence[str | int]) -> bool:
    for key in path:
        if isinstance(key, int):
            if not isinstance(value, list) or key >= len(value):
                return False
        elif not isinstance(value, dict) or key not in value:
            return False
        value = value[key]
    return True


def _key_in(statement: Sequence[str], path: Sequence[str | int]) -> int:
    """The line of a statement, from 1 on, that names the last key of a path."""
    names = [key for key in path if isinstance(key, str)]
    if names:
        word = re.compile(rf"(?<![\w-])[\"']?{re.escape(names[-1])}[\"']?(?![\w-])")
        for number, line in enumerate(statement, 1):
            if word.search(line.partition("#")[0]):
                return number
    return len(statement)
