"""The result of a build: a row per model, and a summary that does not grow with their number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from passes.builds.pool import Ended
from passes.builds.report_file import ReportFile
from passes.builds.task import Done, End, Task
from passes.choices import ProofScope
from passes.errors import DONE, FAILED, MISMATCH, NOT_PRODUCED
from passes.proving.scope import Scope
from passes.reports.json_values import as_json

#: Rows that a summary shows of those that fail the build.
_SHOWN = 200
#: What fails a build unless its configuration names something else.
FAILING = tuple(end for end in End if end not in (End.WRITTEN, End.UNCHANGED))


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

    def to_json(self) -> str:
        """A line of `results.jsonl`, without its end."""
        return as_json(asdict(replace(self, report=_without_cases(self.report))))

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Row:
        """The row that such a line holds. Raises TypeError or ValueError where it is none."""
        return cls(**{**values, "end": End(values["end"])})


def _without_cases(report: Mapping[str, Any]) -> Mapping[str, Any]:
    """A report without the cases of its verifications, which take most of its room."""
    if not report:
        return report

    def short(checked: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        return None if checked is None else {**checked, "cases": ()}

    records = [{**one, "checked": short(one["checked"])} for one in report["records"]]
    return {**report, "records": records, "checked": short(report["checked"])}


def row_of(task: Task, done: Done) -> Row:
    """The row of a task that came to an end by itself."""
    report = done.report
    error = done.sentence
    if error and task.model not in error:
        error = f"{task.model}: {error}"
    codes = Counter(record.code for record in report.telling) if report is not None else {}
    return Row(
        task.model,
        done.output,
        done.end,
        done.exit_code,
        error,
        dict(codes),
        done.seconds,
        remarks=done.remarks,
        report=asdict(ReportFile.of(task, done)),
    )


def proof_of(row: Row) -> str:
    """`proven`, with the scope unless that is everything, or why not, with the code; empty where no
    proof was asked for."""
    proof = row.report.get("proof")
    if not proof:
        return ""
    kind = Scope(proof["scope"]["method"], regrouped=proof["scope"]["regrouped"]).kind
    scope = f"({kind})" if proof["verdict"] == "proven" and kind != ProofScope.all else ""
    return " ".join(filter(None, (proof["verdict"], proof["code"], scope)))


def row_of_ended(task: Task, ended: Ended) -> Row:
    """The row of a task that was ended, or whose process died."""
    sentence = f"{task.model}: {ended.sentence}"
    return Row(task.model, "", ended.end, FAILED, sentence, seconds=round(ended.seconds, 3))


@dataclass
class Summary:
    """Counts of rows, and the first of those that fail the build: `failing` are their ends."""

    failing: Sequence[End] = FAILING
    ends: Counter[End] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    proofs: Counter[str] = field(default_factory=Counter)
    cached: int = 0
    seconds: float = 0.0
    failed: list[Row] = field(default_factory=list)
    exit_code: int = DONE

    def add(self, row: Row) -> None:
        """Count a row."""
        self.ends[row.end] += 1
        self.codes.update(row.codes)
        self.proofs.update(filter(None, [proof_of(row)]))
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

    def to_text(self) -> str:
        """A table of ends and of the codes of refusals, in columns."""
        cached = f", {self.cached} from the cache" if self.cached else ""
        models = "1 model" if self.total == 1 else f"{self.total} models"
        lines = [f"{models}{cached}, {self.seconds:.1f} s of work"]
        lines += _columns([(str(end), self.ends[end]) for end in End if self.ends[end]])
        if self.codes:
            lines += ["refusals:", *_columns(self.codes.most_common())]
        if self.proofs:
            lines += ["proofs:", *_columns(self.proofs.most_common())]
        return "\n".join(lines)

    def to_markdown(self) -> str:
        """The same for the summary of a CI job, with the models that fail the build."""
        ends = [(str(end), self.ends[end]) for end in End if self.ends[end]]
        lines = ["| outcome | models |", "|---|---:|", *(f"| {name} | {n} |" for name, n in ends)]
        if self.codes:
            lines += ["", "| refusal | nodes |", "|---|---:|"]
            lines += [f"| `{code}` | {n} |" for code, n in self.codes.most_common()]
        if self.proofs:
            lines += ["", "| proof | models |", "|---|---:|"]
            lines += [f"| {verdict} | {n} |" for verdict, n in self.proofs.most_common()]
        if self.failed:
            lines += ["", "| model | outcome | reason |", "|---|---|---|"]
            lines += [
                f"| {_cell(row.model)} | {row.end} | {_cell(row.error)} |" for row in self.failed
            ]
            more = sum(self.ends[end] for end in self.failing) - len(self.failed)
            lines += ["", f"and {more} more"] if more else []
        return "\n".join(lines) + "\n"

    def annotations(self) -> list[str]:
        """Annotations of a GitHub workflow: the worst first, and one that counts the rest."""
        worst = sorted(self.failed, key=lambda row: -_gravity(row.exit_code))
        shown = worst[:_ANNOTATIONS]
        lines = [f"::error title={_property(row.model)}::{_data(row.error)}" for row in shown]
        rest = sum(self.ends[end] for end in self.failing) - len(shown)
        if rest:
            lines.append(f"::error title=passes::{rest} more models fail the build")
        return lines


#: GitHub shows ten annotations of a kind for a step.
_ANNOTATIONS = 9


def _gravity(code: int) -> int:
    """Return the severity of an exit code: a wrong rewrite is the worst, then failures, then
    refusals."""
    return (DONE, NOT_PRODUCED, FAILED, MISMATCH).index(code) if code != 2 else 2


def _columns(pairs: Sequence[tuple[str, int]]) -> list[str]:
    width = max(len(name) for name, _ in pairs)
    return [f"  {name:<{width}}  {count:>6}" for name, count in pairs]


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
