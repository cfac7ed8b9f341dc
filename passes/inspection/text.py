"""The findings of `inspect` as text: a verdict, the tree, totals, and the next command."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from passes.errors import count

if TYPE_CHECKING:
    from passes.inspection.inspection import Answer, Group, Inspection

#: Groups from which on each is a line.
_MANY = 8
#: How many trip counts of a group are shown.
_FEW = 3
#: A bound of this size is no bound: exporters write it where only the condition ends a loop.
_ENDLESS = 2**31 - 1
_OUTCOMES = ("rewrites", "refuses")


def text_of(found: Inspection, verbose: bool, width: int) -> str:
    """Return the lines, none of them wider than `width` unless a word is."""
    lines = [_verdict(found), *(f"note: {note}" for note in found.notes)]
    depths: list[int] = []
    for group in found.groups:
        depths.append(0 if group.above < 0 else depths[group.above] + 1)
        indent = "    " * depths[-1]
        if not verbose and len(found.groups) >= _MANY:
            lines.append(_cut(f"{indent}{_head(group)}; {_codes(group.answers)}", width))
            continue
        lines += _filled(indent, _head(group), width)
        for what, text in _details(group) if verbose else _summary(group):
            lines += _filled(f"{indent}  {what}{': ' * bool(what)}", text, width)
    if not found.groups and (found.loops or found.ifs):
        lines.append("none of them matches")
    if found.left_out:
        kinds = count(found.left_out, "more kind")
        lines.append(f"{kinds}: -v shows all, --loop PATTERN some of them")
    if len(found.groups) > 1:
        for outcome in _OUTCOMES:
            lines += _filled(f"in all, {outcome}: ", _totals(found.groups, outcome), width)
    lines += map(str, found.advice)
    return "\n".join(lines)


def _verdict(found: Inspection) -> str:
    loops = count(found.loops, "loop")
    if found.loop_kinds < found.loops:
        loops += f" of {count(found.loop_kinds, 'kind')}"
    others = ((found.ifs, "If"), (found.sequences, "sequence"), (found.functions, "function"))
    parts = [
        *(f"opset {found.opset}", f"IR {found.ir_version}", _long(found.nodes, "node"), loops),
        *(count(number, noun) for number, noun in others if number),
    ]
    if found.external_bytes:
        parts.append(f"{_long(found.external_bytes, 'byte')} in other files")
    return f"{found.file or 'model'}: {', '.join(parts)}"


def _long(number: int, noun: str) -> str:
    return count(number, noun).replace(f"{number}", f"{number:,}")


def _head(group: Group) -> str:
    """Return the members, the pattern, the operator, the trip counts and the size of the body."""
    members = f"{len(group.paths)} x " if len(group.paths) > 1 else ""
    parts = [f"{group.op}-{group.version}{' with sequence_lens' * group.lengths}"]
    if group.trip_counts:
        shown = [_iterations(one) for one in group.trip_counts[:_FEW]]
        more = ", ..." * (len(group.trip_counts) > _FEW)
        one = group.trip_counts == ["1"]
        parts.append(f"{' or '.join(shown)}{more} iteration{'s' * (not one)}")
    body = "body" if group.trip_counts else "branches"
    parts.append(f"{count(group.nodes, 'node')} in the {body}")
    return f"{members}{group.pattern}: {', '.join(parts)}"


def _iterations(trip_count: str) -> str:
    most = trip_count.removeprefix("<= ")
    endless = trip_count != most and most.isdecimal() and int(most) >= _ENDLESS
    if endless or trip_count in ("dynamic", "?"):
        return "an unknown number of"
    return trip_count.replace("<= ", "at most ")


def _summary(group: Group) -> Iterator[tuple[str, str]]:
    """Yield the types of its values and the answers, in short."""
    values = []
    for what, own in group.values:
        kinds = Counter(one.described for one in own).items()
        texts = ", ".join(f"{number} x {kind}" if number > 1 else kind for kind, number in kinds)
        values += [f"{what} {texts}"] if texts else []
    if group.captured:
        values.append(f"reads {count(len(group.captured), 'outer value')}")
    yield "", "; ".join(values)
    yield "unreadable", group.unreadable
    for outcome in _OUTCOMES:
        answers = [one for one in group.answers if one.outcome == outcome]
        yield outcome, "; ".join(map(_shortly, answers))


def _details(group: Group) -> Iterator[tuple[str, str]]:
    """Yield every name, type, path and answer, each under a label."""
    if len(group.paths) > 1:
        yield "paths", ", ".join(group.paths)
    for what, values in (*group.values, ("reads", group.captured)):
        yield what, ", ".join(f"{value.name} {value.described}" for value in values)
    yield "depend on each other", "; ".join(", ".join(one) for one in group.recurrences)
    if group.invariant_nodes:
        yield "the same in each iteration", count(group.invariant_nodes, "node")
    yield "unreadable", group.unreadable
    for one in group.answers:
        refused = f"refuses, {one.sentence} [{one.code}]"
        yield one.rule, one.note if one.outcome == "rewrites" else refused


def _shortly(answer: Answer) -> str:
    if answer.outcome == "refuses":
        return f"{answer.rule} [{answer.code}]"
    note = answer.note.partition(",")[0]
    return f"{answer.rule} ({note})" if note else answer.rule


def _codes(answers: Sequence[Answer]) -> str:
    texts = (one.rule + (f" [{one.code}]" if one.code else "") for one in answers)
    return "; ".join(texts) or "no rule applies"


def _totals(groups: Iterable[Group], outcome: str) -> str:
    """Return how many loops and Ifs each rule rewrites, or refuses by each code."""
    counted: Counter[str] = Counter()
    for group in groups:
        for one in group.answers:
            if one.outcome == outcome:
                counted[_codes([one])] += len(group.paths)
    return "; ".join(f"{number} x {rule}" for rule, number in counted.most_common())


def _filled(label: str, text: str, width: int) -> list[str]:
    """Return a text in lines after a label; none where it is empty."""
    if not text:
        return []
    indent = " " * (len(label) - len(label.lstrip()) + 4)
    return textwrap.wrap(
        label + text,
        width,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
    )


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else f"{line[: width - 3]}..."
