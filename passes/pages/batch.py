"""The page of a batch: a table of models, each with a page of its own in a folder beside it."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from passes.builds.report_file import ReportFile
from passes.builds.rows import FAILING, Row
from passes.builds.task import CannotWrite, End
from passes.pages.page import page_of
from passes.pages.writing import as_batch_html, as_html, write

_LOOKS = {End.WRITTEN: "good", End.UNCHANGED: "idle", End.INCOMPLETE: "refused"}
_REFUSED = (End.REFUSED, End.UNVERIFIED)


@dataclass(frozen=True)
class Line:
    """A model of a batch: what became of it, and the address of its page, empty where none is.
    `nodes` are counted before and after, -1 where that is not known."""

    model: str
    end: str
    look: str
    seconds: float
    cached: bool
    nodes: tuple[int, int]
    codes: Sequence[str]
    sentence: str
    address: str


@dataclass(frozen=True)
class BatchPage:
    """The page of a batch: how many models fail it, how many there are of each end, the seconds of
    work, and the models."""

    failed: int
    ends: Mapping[str, int]
    codes: Mapping[str, int]
    seconds: float
    cached: int
    lines: Sequence[Line]


@dataclass
class BatchPages:
    """Writes the pages of a batch as its rows come, and at the end that of the batch, to `path`;
    `failing` are the ends that fail it."""

    path: Path
    failing: Sequence[End] = FAILING
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
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                write(place, as_html(page_of(ReportFile.read(row.report)), back))
            except OSError as error:
                raise CannotWrite(f"{place}: cannot be written ({error.strerror})") from error
        self.lines.append(_line(row, address))

    def finish(self) -> None:
        """Write the page of the batch. Raises CannotWrite."""
        lines = sorted(self.lines, key=lambda line: (line.end not in self.failing, line.model))
        codes = Counter(code for line in lines for code in line.codes)
        page = BatchPage(
            sum(line.end in self.failing for line in lines),
            {str(end): count for end in End if (count := sum(one.end == end for one in lines))},
            dict(codes.most_common()),
            sum(line.seconds for line in lines if not line.cached),
            sum(line.cached for line in lines),
            lines,
        )
        try:
            write(self.path, as_batch_html(page))
        except OSError as error:
            raise CannotWrite(f"{self.path}: cannot be written ({error.strerror})") from error


def _name(model: str) -> str:
    """The name of the page of a model, another one for each path."""
    return f"{Path(model).stem[:60]}.{hashlib.sha256(model.encode()).hexdigest()[:8]}.html"


def _line(row: Row, address: str) -> Line:
    sizes = [one["nodes"] for one in row.report.get("sizes") or ()]
    nodes = (sizes[0], sizes[1] if row.output else -1) if sizes else (-1, -1)
    look = "refused" if row.end in _REFUSED else _LOOKS.get(row.end, "bad")
    sentence = row.error.removeprefix(f"{row.model}: ")
    return Line(
        row.model,
        str(row.end),
        look,
        row.seconds,
        row.cached,
        nodes,
        list(row.codes),
        sentence,
        address,
    )
