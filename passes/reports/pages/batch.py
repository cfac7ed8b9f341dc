"""The page of a batch: a table of models, each with a page of its own in a folder beside it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import quote

from passes.errors import writing
from passes.reports.pages.page import page_of, verdict_of
from passes.reports.pages.writing import as_html, filled, write
from passes.reports.report_file import ReportFile
from passes.reports.summary import Row, Summary


@dataclass(frozen=True)
class Line:
    """A model of a batch: its row, without the report, and the address of its page, empty where
    none is. `nodes` are counted before and after, -1 where that is not known; `proof` is empty
    where none was asked for."""

    row: Row
    nodes: tuple[int, int]
    address: str
    proof: str

    @property
    def look(self) -> str:
        """The class of its outcome in the style sheet."""
        return verdict_of(self.row.end)[0]

    @property
    def sentence(self) -> str:
        """Why it did not get there, without the model's path."""
        return self.row.error.removeprefix(f"{self.row.model}: ")


@dataclass
class BatchPages:
    """Writes the pages of a batch as its rows come, and at the end that of the batch, to `path`;
    `summary` counts the rows."""

    path: Path
    summary: Summary
    lines: list[Line] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        """The folder of the pages of single models."""
        return self.path.with_name(f"{self.path.stem}.pages")

    def add(self, row: Row) -> None:
        """Write the page of a model.

        Raises:
            CannotWrite: it cannot be written.
        """
        address = ""
        if row.report:
            place = self.folder / _name(row.model)
            address = f"{quote(self.folder.name)}/{quote(place.name)}"
            back = f"../{quote(self.path.name)}"
            with writing(place):
                self.folder.mkdir(parents=True, exist_ok=True)
                write(place, as_html(page_of(ReportFile.read(row.report)), back))
        self.lines.append(_line(row, address))

    def finish(self) -> None:
        """Write the page of the batch. Raises CannotWrite."""
        failing = self.summary.failing
        lines = sorted(self.lines, key=lambda line: (line.row.end not in failing, line.row.model))
        with writing(self.path):
            write(self.path, filled("batch.html", {"summary": self.summary, "lines": lines}))


def _name(model: str) -> str:
    """The name of the page of a model, another one for each path."""
    return f"{Path(model).stem[:60]}.{hashlib.sha256(model.encode()).hexdigest()[:8]}.html"


def _line(row: Row, address: str) -> Line:
    sizes = [one["nodes"] for one in row.report.get("sizes") or ()]
    nodes = (sizes[0], sizes[1] if row.output else -1) if sizes else (-1, -1)
    return Line(replace(row, report={}), nodes, address, row.proof)
