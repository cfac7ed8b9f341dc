"""The result of a build: a row per model, and a summary that does not grow with their number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from html import escape
from math import ceil, isinf, log10
from typing import TYPE_CHECKING, Any

from passes.choices import ProofScope
from passes.errors import DONE, FAILED, MISMATCH, NOT_PRODUCED, USAGE, End, count
from passes.reports.json_values import as_json, read_as
from passes.reports.precision import Within
from passes.reports.proof import Proof
from passes.reports.report_file import ReportFile

if TYPE_CHECKING:
    from passes.commands.task import Done, Task

#: Rows that a summary shows of those that fail the build.
_SHOWN = 200
#: What proofs are called whose sizes differ.
_PROVEN = {
    ProofScope.all: "proven for all sizes",
    ProofScope.sizes: "proven at stated sizes",
    ProofScope.summation: "proven up to the order of summation",
}
#: What fails a build unless its configuration names something else.
FAILING = tuple(end for end in End if end not in (End.WRITTEN, End.UNCHANGED))
#: GitHub shows ten annotations of a kind for a step.
_ANNOTATIONS = 9


@dataclass(frozen=True)
class Row:
    """The result of a model: its `end`, the exit code and sentence of a command that ended so, the
    codes of the refusals that a report tells with their counts, whether the outcome was `cached`,
    its fixed dims, and the report file's content."""

    model: str
    output: str
    end: End
    exit_code: int
    error: str = ""
    codes: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    cached: bool = False
    remarks: Sequence[str] = ()
    report: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, task: Task, done: Done) -> Row:
        """The row of a task that came to an end by itself."""
        error = done.sentence
        if error and task.model not in error:
            error = f"{task.model}: {error}"
        return cls(
            task.model,
            done.output,
            done.end,
            done.exit_code,
            error,
            dict(Counter(one.code for one in done.report.telling)) if done.report else {},
            done.seconds,
            remarks=done.remarks,
            report=asdict(ReportFile.of(task, done)),
        )

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Row:
        """The row that a line of `results.jsonl` holds. Raises TypeError or ValueError."""
        return cls(**{**values, "end": End(values["end"])})

    def to_json(self) -> str:
        """That line, without its end, and without the cases of verifications, which take most of
        the room of a report."""
        report = self.report
        if report:
            records = [{**one, "checked": _short(one["checked"])} for one in report["records"]]
            report = {**report, "records": records, "checked": _short(report["checked"])}
        return as_json(asdict(replace(self, report=report)))

    @property
    def proof(self) -> str:
        """The kind of the proof, else the code of the obstacle, in words; empty where no proof was
        asked for."""
        proof = self.report.get("proof")
        if not proof:
            return ""
        known: Proof = read_as(Proof, proof)
        return f"not proven: {known.code}" if known.kind is None else _PROVEN[known.kind]

    @property
    def error_of_cast(self) -> str:
        """The power of ten that bounds the error of a cast; empty if there is none."""
        within = self.report.get("within")
        if not within:
            return ""
        known: Within = read_as(Within, within)
        if known.failure or isinf(known.error):
            return "not executed" if known.failure else "infinite"
        return f"within {_power_above(known.error)}"


def _power_above(error: float) -> str:
    """The smallest power of ten that is no smaller than an error."""
    return f"1e{ceil(log10(error))}" if error else "0"


def _short(checked: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    return None if checked is None else {**checked, "cases": ()}


#: Words with their counts, how a text and Markdown call them.
_Table = tuple[str, str, Sequence[tuple[str, int]]]


@dataclass
class Summary:
    """Counts of rows, and the first of those that fail the build: `failing` are their ends.
    `words` are other names of ends, for a command that builds nothing."""

    failing: Sequence[End] = FAILING
    words: Mapping[End, str] = field(default_factory=dict)
    ends: Counter[End] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    proofs: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    cached: int = 0
    seconds: float = 0.0
    failed: list[Row] = field(default_factory=list)
    exit_code: int = DONE

    def add(self, row: Row) -> None:
        """Count a row."""
        self.ends[row.end] += 1
        self.codes.update(row.codes)
        self.proofs.update(filter(None, [row.proof]))
        self.errors.update(filter(None, [row.error_of_cast]))
        self.cached += row.cached
        self.seconds += 0.0 if row.cached else row.seconds
        if row.end in self.failing:
            code = row.exit_code or NOT_PRODUCED
            self.exit_code = max(self.exit_code, code, key=_gravity)
            if len(self.failed) < _SHOWN:
                self.failed.append(replace(row, report={}))

    @property
    def total(self) -> int:
        """The number of rows."""
        return self.ends.total()

    @property
    def failures(self) -> int:
        """The number of rows that fail the build."""
        return sum(self.ends[end] for end in self.failing)

    def _tables(self) -> Iterator[_Table]:
        """The ends, the codes of refusals, the verdicts of proofs, and the errors of casts."""
        ends = [(self._word(end), self.ends[end]) for end in End if self.ends[end]]
        yield "", "| outcome | models |", ends
        code = "finding" if self.words else "refusal"
        yield f"{code}s:", f"| {code} | nodes |", self.codes.most_common()
        yield "proofs:", "| proof | models |", self.proofs.most_common()
        yield "casts:", "| error | models |", sorted(self.errors.items())

    def _word(self, end: End) -> str:
        return self.words.get(end, end)

    def to_text(self) -> str:
        """A table of ends and of the codes of refusals, in columns."""
        cached = f", {self.cached} from the cache" if self.cached else ""
        lines = [f"{count(self.total, 'model')}{cached}, {self.seconds:.1f} s of work"]
        for title, _, pairs in self._tables():
            width = max((len(name) for name, _ in pairs), default=0)
            lines += filter(None, [title * bool(pairs)])
            lines += [f"  {name:<{width}}  {number:>6}" for name, number in pairs]
        return "\n".join(lines)

    def to_markdown(self) -> str:
        """The same for the summary of a CI job, with the models that fail the build."""
        lines: list[str] = []
        for title, head, pairs in self._tables():
            quote = "`" * (title in ("refusals:", "findings:"))
            rows = [f"| {quote}{name}{quote} | {number} |" for name, number in pairs]
            lines += ["", head, "|---|---:|", *rows] if pairs or not title else []
        if self.failed:
            lines += ["", "| model | outcome | reason |", "|---|---|---|"]
            lines += [
                f"| {_cell(row.model)} | {self._word(row.end)} | {_cell(row.error)} |"
                for row in self.failed
            ]
            more = self.failures - len(self.failed)
            lines += ["", f"and {more} more"] if more else []
        return "\n".join(lines[1:]) + "\n"

    def annotations(self) -> list[str]:
        """Annotations of a GitHub workflow: the worst first, and one that counts the rest."""
        worst = sorted(self.failed, key=lambda row: -_gravity(row.exit_code))
        shown = worst[:_ANNOTATIONS]
        names = [_property(row.model) for row in shown]
        lines = [
            f"::error file={name},title={name}::{_data(row.error)}"
            for name, row in zip(names, shown, strict=True)
        ]
        rest = self.failures - len(shown)
        if rest:
            lines.append(f"::error title=passes::{rest} more models fail the build")
        return lines


def _gravity(code: int) -> int:
    """The severity of an exit code: a wrong rewrite is the worst, then failures, then refusals."""
    return (DONE, NOT_PRODUCED, FAILED, MISMATCH).index(FAILED if code == USAGE else code)


def _cell(text: str) -> str:
    """Lines of text in a cell of a table, in which names from models are no HTML."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    return "<br>".join(escape(line, quote=False).replace("|", "\\|") for line in lines)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
