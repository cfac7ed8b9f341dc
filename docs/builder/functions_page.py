"""The functions of the library that are made of commands, in the place of `::: passes.NAME`."""

from __future__ import annotations

import inspect
import re

import passes

_NAMED = re.compile(r"^::: passes\.(\w+)$", re.MULTILINE)
_OPTION = re.compile(r"^    (\w+): (.*)$", re.MULTILINE)


def filled(markdown: str) -> str:
    """A page with what `help` shows of each function that it names."""
    return _NAMED.sub(lambda name: documented(name[1]), markdown)


def documented(name: str) -> str:
    """A heading, the signature, the text, and lists of the options and the errors."""
    function = getattr(passes, name)
    call = f"passes.{name}{inspect.signature(function)}"
    text = _OPTION.sub(r"- `\1`: \2", inspect.getdoc(function) or "")
    text = re.sub(r"^(Options|Raises):$", r"\1:\n", text, flags=re.MULTILINE)
    return f"### passes.{name}\n\n```text\n{call}\n```\n\n{text}"
