"""Writes pages: the templates filled in, with their styles and scripts inlined."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from passes.reports.measured import seconds_text
from passes.reports.pages.drawing import Drawing, shortened
from passes.reports.pages.page import Page

_CODE = re.compile(r"`([^`]+)`")
_ASSETS = ("report.css", "report.js", "lanes.js", "dagre.min.js")


def as_html(page: Page, back: str = "") -> str:
    """The page of one model; `back` is the address of the page of the batch, if it is of one."""
    return filled("report.html", {"page": page, "back": back})


def write(path: str | os.PathLike[str], text: str) -> None:
    """Write a page. Raises OSError where that cannot be."""
    Path(path).write_text(text, encoding="utf-8", errors="replace")


def filled(template: str, values: Mapping[str, Any]) -> str:
    """A template with values."""
    return _environment().get_template(f"{template}.j2").render(**values)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("passes.reports.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    assets = resources.files("passes.reports.pages") / "assets"
    texts = {name: (assets / name).read_text(encoding="utf-8") for name in _ASSETS}
    environment.globals["assets"] = texts
    environment.filters["data"] = _data
    environment.filters["short"] = shortened
    environment.filters["ticks"] = _ticks
    environment.filters["seconds"] = _seconds
    environment.filters["time"] = seconds_text
    return environment


def _data(drawing: Drawing | None) -> dict[str, Any] | None:
    """Return a drawing as compact data for the script of the page, with short names."""
    return None if drawing is None else data_of(drawing, shortened)


def data_of(drawing: Drawing, named: Callable[[str], str] = str) -> dict[str, Any]:
    """A drawing as compact data for the script that draws it."""
    return {
        "marks": [
            [mark.kind, mark.label, named(mark.name), mark.box, mark.twin, int(mark.moved)]
            for mark in drawing.marks
        ],
        "arrows": [[one.source, one.target, int(one.back)] for one in drawing.arrows],
        "boxes": [[box.title, box.parent, int(box.loop)] for box in drawing.boxes],
    }


def _ticks(text: str) -> Markup:
    """Return a text, escaped, with backticks as code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))


def _seconds(value: float) -> str:
    """Seconds, with as many digits as help."""
    if not value:
        return "0 s"
    return f"{value:.0f} s" if value >= 10 else f"{value:.2g} s" if value >= 1 else f"{value:.3f} s"
