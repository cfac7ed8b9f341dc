"""The contents of the page of one model, as data."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from passes.errors import BadModel, End
from passes.ir.model import Model
from passes.reports.pages.errors import Errors, errors_of
from passes.reports.pages.lanes import Lane, lanes_of
from passes.reports.pages.refusals import Refusals, refusals_of
from passes.reports.pages.trials import Table, table_of
from passes.reports.report import Size
from passes.reports.text import described
from passes.verify.reproducer import AFTER, BEFORE

if TYPE_CHECKING:
    from passes.reports.precision import Casting
    from passes.reports.report_file import ReportFile

#: Bars that are shown of the rules and of the verification of their rewrites.
_MOST_BARS = 8
#: The look and the words of each end.
_VERDICTS = {
    End.WRITTEN: ("good", "Written and verified"),
    End.UNCHANGED: ("idle", "Nothing to do"),
    End.INCOMPLETE: ("refused", "Incomplete"),
    End.REFUSED: ("refused", "Refused"),
    End.UNVERIFIED: ("refused", "Not verified"),
    End.MISMATCH: ("bad", "Mismatch"),
}


def verdict_of(end: End) -> tuple[str, str]:
    """The class in the style sheet of what ended so, and the verdict in two words."""
    return _VERDICTS.get(end, ("bad", "Failed"))


@dataclass(frozen=True)
class Banner:
    """The verdict: its look, in two words, and in a sentence."""

    look: str
    verdict: str
    sentence: str


@dataclass(frozen=True)
class Number:
    """A number before and after; `after` is empty where there is no outcome."""

    name: str
    before: str
    after: str

    @property
    def changed(self) -> bool:
        """True if it differs."""
        return bool(self.after) and self.before != self.after


@dataclass(frozen=True)
class Bar:
    """Seconds of a part of the run, and its share of the longest one, in percent."""

    label: str
    seconds: float
    percent: float


@dataclass(frozen=True)
class Bars:
    """A group of bars."""

    title: str
    bars: Sequence[Bar]


@dataclass(frozen=True)
class Page:
    """The page of one model. `lines` are the commands that were run, `remarks` what else was found,
    `findings` are what is in the way at a target, `remedies` what clears it; `errors` those of
    `casts`."""

    file: str
    command: str
    lines: Sequence[str]
    banner: Banner
    numbers: Sequence[Number]
    lanes: Sequence[Lane]
    table: Table | None
    bars: Sequence[Bars]
    refusals: Sequence[Refusals]
    remarks: Sequence[str]
    findings: Sequence[str]
    remedies: Sequence[str]
    tools: str
    casts: Sequence[Casting] = ()
    errors: Errors | None = None

    @property
    def compares(self) -> bool:
        """True if any lane has two sides."""
        return any(lane.after is not None for lane in self.lanes)

    @property
    def loops(self) -> int:
        """The number of loops in all lanes."""
        return sum(len(lane.paths) for lane in self.lanes)


def page_of(report: ReportFile, remedies: Sequence[str] = ()) -> Page:
    """The page of a report; the model before and after is read from the files that it names. After
    a mismatch they are those of the reproducer, if the part of the model that differs has a loop.
    """
    before = _model(report.input[0].path if report.input else "")
    after = _model(report.output[0].path if report.output else "")
    if report.reproducer:
        sides = [_model(f"{Path(report.reproducer, name)}") for name in (BEFORE, AFTER)]
        if sides[0] is not None and Size.of(sides[0]).loops:
            before, after = sides
    if report.end is End.UNCHANGED and after is None:
        after = before
    records = report.records
    if report.end in (End.REFUSED, End.INCOMPLETE) and not report.output:  # no rewrite was kept
        records = [record for record in records if record.outcome == "refused"]
    files = [report.file or (report.input[0].path if report.input else "")]
    files += [report.output[0].path] if report.command == "verify" and report.output else []
    remarks = [*report.bound, *report.notes, *report.warnings, *report.remarks]
    if report.checked is not None:
        remarks += report.checked.notes
        remarks += [f"not tested: {one}" for one in report.checked.unreached]
    if report.within is not None:
        remarks += list(report.within.details(verbose=True))
    if report.proof is not None:
        remarks += [report.proof.line, *report.proof.rests_on]
    return Page(
        " ".join(files),
        report.command,
        _command_lines(report, files),
        _banner(report),
        _numbers(report, before, after),
        [] if before is None else lanes_of(before, after, records),
        table_of(records, report.checked),
        _bars(report),
        refusals_of(records, report.meanings),
        remarks,
        described(report.findings),
        remedies or [f"{one}".removeprefix("next: ") for one in report.advice],
        ", ".join(f"{name} {version}" for name, version in report.tools.items()),
        report.casts,
        None if report.within is None else errors_of(report.within),
    )


def _command_lines(report: ReportFile, files: Sequence[str]) -> list[str]:
    """The commands that were run, with their options; the first one names the files."""
    lines = []
    ran: list[tuple[str, Sequence[str]]] = [(one.command, one.flags) for one in report.commands]
    for command, flags in ran or [(report.command, ())]:
        lines.append(shlex.join(["passes", command, *files, *flags]))
        files = ()
    return lines


def _model(path: str) -> Model | None:
    """The model at a path; None where there is none that can be read any more."""
    try:
        return Model.load(Path(path)) if path else None
    except BadModel:
        return None


def _banner(report: ReportFile) -> Banner:
    look, verdict = verdict_of(report.end)
    checked = report.checked
    if report.command == "check":
        fits = not report.findings
        return Banner("good" if fits else "refused", "Fits" if fits else "In the way", report.error)
    if report.command == "verify" and checked is not None:
        words = {"verified": ("good", "Agree"), "mismatch": ("bad", "Mismatch")}
        look, verdict = words.get(checked.verdict, ("refused", "Not compared"))
        both = "Both agree: " if checked.verdict == "verified" else ""
        return Banner(look, verdict, f"{both}{checked.summary}.")
    if report.error:
        return Banner(look, verdict, report.error)
    if report.end is End.UNCHANGED:
        return Banner(look, verdict, "No rule of the command finds anything to do in this model.")
    if report.within is not None:
        return Banner(look, "Written", f"{report.within.sentence}.")
    proof = "" if report.proof is None else f"; {report.proof.short}"
    if checked is None:
        return Banner("refused", "Written, not verified", f"Verification was turned off{proof}.")
    if checked.verdict != "verified":
        return Banner("refused", "Written, not verified", f"{checked.summary}{proof}.")
    written = report.output[0].path if report.output else ""
    if report.proof is not None and report.proof.is_proven:
        verdict = "Written, verified and proven"
    return Banner(look, verdict, f"{written} agrees with the original: {checked.summary}{proof}.")


def _numbers(report: ReportFile, before: Model | None, after: Model | None) -> list[Number]:
    both = after is not None and report.end is not End.REFUSED

    def number(name: str, values: Sequence[int], text: Callable[[int], str]) -> Number:
        return Number(name, text(values[0]), text(values[1]) if both else "")

    def plain(value: int) -> str:
        return f"{value:,}"

    found = []
    if before is not None:
        sized = report if report.sizes else replace(report, sizes=[Size.of(before)] * 2)
        found += [number(f"{kind}s", values, plain) for kind, values in sized.numbers]
    found += [number(f"bytes of {one.before}", one.weights, plain) for one in report.casts]
    files = [sum(file.bytes for file in files) for files in (report.input, report.output)]
    if files[0]:
        found.append(number("bytes", [files[0], files[1] or files[0]], plain))
    if before is not None:
        sides = [before, after or before]
        found.append(number("opset", [side.opset() for side in sides], str))
        found.append(number("IR version", [side.proto.ir_version for side in sides], str))
    return found


def _bars(report: ReportFile) -> list[Bars]:
    """Return the seconds spent: by phase, by rule, and by the rewrites that were verified."""
    spent = report.spent
    regions: dict[str, float] = {}
    for record in report.records:
        if record.checked is not None and not record.checked.same_as:
            regions[record.rule] = regions.get(record.rule, 0.0) + record.checked.seconds
    whole = report.checked.seconds if report.checked is not None else 0.0
    known = spent.loading + spent.rewriting + spent.proving + spent.verifying
    phases = {
        "load": spent.loading,
        "rewrite": spent.rewriting,
        "prove": spent.proving,
        "verify rewrites": max(0.0, spent.verifying - whole),
        "verify the whole model": whole,
        "write, and the rest": max(0.0, report.seconds - known),
    }
    groups: list[tuple[str, Sequence[tuple[str, float]]]] = [
        ("phases", list(phases.items())),
        ("rules", list(spent.rules.items())),
        ("verification, by rule", sorted(regions.items(), key=lambda one: -one[1])),
    ]
    return [Bars(title, _scaled(pairs)) for title, pairs in groups if any(s for _, s in pairs)]


def _scaled(pairs: Sequence[tuple[str, float]]) -> list[Bar]:
    longest = max(seconds for _, seconds in pairs)
    shown = [(name, seconds) for name, seconds in pairs if seconds][:_MOST_BARS]
    return [Bar(name, seconds, round(100 * seconds / longest, 1)) for name, seconds in shown]
