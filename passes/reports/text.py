"""A report as text: a headline, what was rewritten and refused, verdicts, and what to do next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from passes.errors import count
from passes.loops.alike import pattern_of
from passes.reports.words import and_more, change, grouped, places_of, without_names

if TYPE_CHECKING:
    from passes.reports.precision import Casting
    from passes.reports.report import Checked, Finding, Record, Report

#: Lines of a short report that say what no case reached.
_FEW_UNREACHED = 3


def text_of(report: Report, verbose: bool, written: str) -> str:
    """The report for people, as `Report.to_text` tells."""
    rewrites = [one for one in report.rewrites if one.rule != "opset"]
    steps = Counter(one.note for one in report.rewrites if one.rule == "opset")
    lines = [_headline(report), *(f"  note: {note}" for note in report.notes)]
    lines += [f"  bound: {one}" for one in report.bound]
    lines += [f"  {line}" for one in report.casts for line in _kept(one, verbose)]
    lines += _each(rewrites) if verbose else _in_short(report, rewrites)
    lines += [f"  opset: {number} x {note}" for note, number in sorted(steps.items())]
    lines += _refused(report.refusals if verbose else report.telling, verbose)
    lines += [f"  in the way: {line}" for line in described(report.findings)]
    if report.checked is not None:
        exact = all(one.is_exact for one in report.casts)
        lines += _verified(report.checked, verbose, "" if exact else "all but the cast")
    if report.within is not None:
        lines += [f"  {line}" for line in report.within.lines(verbose)]
    if report.proof is not None:
        lines += [] if report.proof.is_proven else [f"  {report.proof.line}"]
        lines += [f"  {one}" for one in report.proof.rests_on if verbose]
    if report.measured is not None:
        lines.append(f"  {report.measured.line}")
    return "\n".join([*lines, *filter(None, [written]), *map(str, report.advice)])


def _headline(report: Report) -> str:
    before, after = report.opsets
    name = report.file or "model"
    if report.command == "verify":
        return f"{name}: opset {before}, against opset {after}"
    if report.unchanged:
        because = f", it is at opset {before}" if report.command == "upgrade" else ""
        return f"{name}: nothing to do{because}"
    parts = [one.summary for one in report.casts if one.changes]
    parts.append(f"opset {change(before, after)}")
    if report.ir_versions[0] != report.ir_versions[1]:
        parts.append(f"IR version {change(*report.ir_versions)}")
    parts += [f"{change(*sizes)} {kind}{'s' * (sizes[1] != 1)}" for kind, sizes in report.numbers]
    proof = "" if report.proof is None else f"; {report.proof.short}"
    return f"{name}: {', '.join(parts)}{proof}"


def _each(rewrites: Iterable[Record]) -> Iterator[str]:
    """A rewrite, how it was verified, and what its extra nodes are for."""
    for one in rewrites:
        yield f"  {one.rule}: {one.path} ({one.op}), {one.note}"
        yield from (f"          {text}" for text in (one.checked, *one.extras) if text)


def _in_short(report: Report, rewrites: Iterable[Record]) -> Iterator[str]:
    """A line for each rule and loop, followed by the purposes of extra nodes."""
    by_loop = grouped(rewrites, lambda one: (one.rule, one.loop))
    done = [(group[0].rule, *_done(group)) for group in by_loop]
    for alike in grouped(done, lambda one: (one[0], one[2])):
        rule, _, what = alike[0]
        yield f"  {rule}: {places_of([path for _, path, _ in alike])}{what}"
    yield from (f"  {extra}" for extra in report.extras)
    regrouped = {record.loop for record in report.records if record.regroups}
    if regrouped:
        places = count(len(regrouped), "loop")
        yield f"  sums of floats are regrouped in {places} (--keep-order keeps the order)"


def _done(group: Sequence[Record]) -> tuple[str, str]:
    """The path of what a rule rewrote in a loop, and what it did there."""
    first, *others = group
    path = first.loop if others else first.path
    if not others:
        done = f" ({first.op}), {first.note}"
    elif all(record.path == first.loop for record in group):
        done = f" ({first.op}), {len(group)} times"
    else:
        done = f", {len(group)} nodes"
    verdicts = Counter(record.checked.verdict for record in group if record.checked is not None)
    if len(verdicts) < 2:
        return path, done + "".join(f"; {verdict}" for verdict in verdicts)
    return path, f"{done}; " + ", ".join(f"{n} {verdict}" for verdict, n in verdicts.items())


def _refused(refusals: Sequence[Record], verbose: bool) -> Iterator[str]:
    """A line for each refusal; those of one code, rule and loop are one unless it is `verbose`, and
    those of several rules or loops whose sentences differ in names alone."""

    def likeness(group: Sequence[Record]) -> tuple[str | int, ...]:
        first = group[0]
        return first.code, first.op, len(group), without_names(first.sentence)

    by_loop = grouped(refusals, id if verbose else lambda one: (one.rule, one.loop, one.code))
    for alike in grouped(by_loop, id if verbose else likeness):
        firsts = [group[0] for group in alike]
        rules = dict.fromkeys(one.rule for one in firsts)
        yield (
            f"  refused {places_of([*dict.fromkeys(one.path for one in firsts)])} ({firsts[0].op}):"
            f" {pattern_of([one.sentence for one in firsts])}{and_more(len(alike[0]) - 1)}"
            f" [rule {', '.join(rules)}, code {firsts[0].code}]"
        )


def _verified(checked: Checked, verbose: bool, part: str) -> Iterator[str]:
    """The verdict on the whole model, or on a part of what was done to it, and events of the
    original that no case reached, in short unless it is `verbose`."""
    yield f"  {part or 'whole model'} {checked}"
    yield from (f"          note: {note}" for note in checked.notes)
    shown = checked.unreached if verbose else checked.unreached[:_FEW_UNREACHED]
    lines = [f"          not tested: {place}" for place in shown]
    if lines:
        lines[-1] += and_more(len(checked.unreached) - len(shown))
    yield from lines
    if checked.not_run:
        yield f"          out of time for: {', '.join(checked.not_run)}"


def _kept(cast: Casting, verbose: bool) -> Iterator[str]:
    """A line for each reason for which nodes keep their type, with them all if it is `verbose`."""
    for one in cast.kept if verbose else cast.folded:
        places = ", ".join(one.paths) if verbose else one.places
        yield f"stays {cast.before}: {places} ({one.listed}): {one.sentence} [{one.code}]"


def described(findings: Iterable[Finding]) -> list[str]:
    """A line for findings that differ in their places only: where they are, what is wrong, and how
    sure that is."""
    return [_found(group) for group in grouped(findings, lambda one: one.kind)]


def _found(group: Sequence[Finding]) -> str:
    first = group[0]
    sure = first.confidence + (", answers wrongly" if first.otherwise != "refuses" else "")
    op = f" ({first.op})" if first.op else ""
    text = f"{first.sentence} [{first.code}, {sure}]"
    if len(group) == 1:
        return f"{first.path}{op}: {text}"
    folders = {finding.folder for finding in group}
    places = f"under {folders.pop()}" if len(folders) == 1 else f"as {first.path}"
    return f"{len(group)} x {first.op or first.code}, {places}: {text}"
