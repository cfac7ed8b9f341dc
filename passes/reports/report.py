"""The report of a command, as data, as text and as JSON."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from passes.choices import LIFTED_BY, Lifts
from passes.engine.rounds import Refusal, Rewritten
from passes.engine.site import TOO_OLD
from passes.errors import count
from passes.ir.model import Model
from passes.ir.operators import op_of
from passes.ir.places import MAIN, loop_of
from passes.loops.alike import pattern_of
from passes.measuring.measured import Measured
from passes.proving.proof import Proof
from passes.rule import Edit
from passes.targets.finding import Finding, described
from passes.verify.compare.coverage import sentence
from passes.verify.compare.verdicts import Tried, Verification
from passes.writing.purposes import Extra

Outcome = Literal["rewritten", "refused"]
#: Lines of a short report that say what no case reached.
_FEW_UNREACHED = 3
#: The codes of rewrites that were made and left out: none vouches for it, the outcome is no model.
NOT_VERIFIED, INVALID = "not-verified", "invalid-outcome"
#: The codes of what applies and is not done.
_LEFT = frozenset({NOT_VERIFIED, INVALID, "few-iterations"})
#: The code of what keeps the iterations of a loop from running at once.
_IN_TURN = "carries"
#: Codes that tell nothing of a loop, unless a newer opset helps.
_OF_NO_USE = frozenset({TOO_OLD, "not-worth-it", "nothing-to-move"})
_LOOPS = frozenset({"Loop", "Scan"})
#: A name in a sentence.
_NAME = re.compile("'[^']*'")


@dataclass(frozen=True)
class Checked:
    """The verdict on one rewrite or on a whole model, in short.

    `alike`: in all compared cases both sides have the same `bits`, the same `values` (only signs
    of zeros differ), or are `near`.
    `same_as` is the path of a site whose rewrite is equal up to names, and was verified for both;
    `cases` are listed there alone.
    """

    verdict: str
    reason: str
    compared: Mapping[str, int] = field(default_factory=dict)
    crossed: Mapping[str, int] = field(default_factory=dict)
    max_absolute_error: float = 0.0
    max_relative_error: float = 0.0
    max_ulp_error: float = 0.0
    alike: str = "bits"
    not_run: Sequence[str] = ()
    notes: Sequence[str] = ()
    unreached: Sequence[str] = ()
    same_as: str = ""
    excuses: Mapping[str, int] = field(default_factory=dict)
    cases: Sequence[Tried] = field(default=(), repr=False)
    seconds: float = field(default=0.0, compare=False)

    @classmethod
    def of(cls, verification: Verification) -> Checked:
        """The short form of a verification."""
        tallies = verification.tallies.items()
        return cls(
            verification.verdict,
            verification.reason,
            {name: tally.compared for name, tally in tallies},
            {name: tally.crossed for name, tally in tallies if tally.crossed},
            _as_json(verification.errors.absolute),
            _as_json(verification.errors.relative),
            _as_json(verification.errors.ulp),
            verification.errors.alike.name.lower(),
            verification.cut,
            verification.notes,
            [sentence(did, path) for (_, did), path in verification.unreached.items()],
            excuses=verification.excuses,
            cases=verification.cases,
            seconds=round(verification.seconds, 3),
        )

    def __str__(self) -> str:
        cases = [
            f"{count} {'case' if count == 1 else 'cases'} in {name}"
            for name, count in self.compared.items()
            if count
        ]
        cases += [
            f"{count} with the new model in {name}, the original in reference"
            for name, count in self.crossed.items()
        ]
        if self.verdict == "mismatch":
            return f"differs: {self.reason}"
        if self.verdict != "verified":
            return f"{self.verdict} ({self.reason})"
        if not cases:
            return f"verified: {self.reason}"
        exact = {"bits": ", bit-equal", "values": ", equal but for signs of zero"}.get(
            self.alike, ""
        )
        where = f", at {self.same_as}, which is equal" if self.same_as else ""
        return f"verified: {', '.join(cases)}{exact}{where}"


@dataclass(frozen=True)
class Record:
    """One site that a rule considered; `loop` is the path of the innermost loop that it is or lies
    in, else that of the main graph or function, `value` the first output of that loop: paths may
    change from round to round. `regroups`: floats are summed in another order. `asked`: the rule
    was asked for, by its name or by the command. `lifted_by` are options by name, each of which
    would lift the refusal; None for a value that only the user knows."""

    rule: str
    path: str
    op: str
    outcome: Outcome
    note: str = ""
    code: str = ""
    sentence: str = ""
    culprits: Sequence[str] = ()
    optional: bool = False
    checked: Checked | None = None
    extras: Sequence[Extra] = ()
    loop: str = ""
    value: str = ""
    regroups: bool = False
    asked: bool = True
    lifted_by: Lifts = ()

    @classmethod
    def rewritten(cls, rewritten: Rewritten, checked: Checked | None) -> Record:
        """The record of a rewrite."""
        node, written = rewritten.node, rewritten.written
        loop, value = loop_of(rewritten.place)
        return cls(
            rewritten.rule.name,
            rewritten.path,
            op_of(node),
            "rewritten",
            written.note,
            checked=checked,
            extras=written.extras if isinstance(written, Edit) else (),
            loop=loop,
            value=value,
            regroups=isinstance(written, Edit) and written.regroups,
        )

    @classmethod
    def all_rewritten(cls, rewrites: Iterable[Rewritten]) -> Iterator[Record]:
        """The records of rewrites; those by one template in one graph differ in their paths."""
        known: dict[int, Record] = {}
        for one in rewrites:
            first = known.get(id(one.written))
            if first is None:
                known[id(one.written)] = record = cls.rewritten(one, None)
            else:
                record = object.__new__(cls)  # as `replace`, which takes six times as long
                vars(record).update(vars(first), path=one.path)
            yield record

    @classmethod
    def refused(cls, refusal: Refusal, *, asked: bool = True) -> Record:
        """The record of a refusal."""
        reason, place = refusal.reason, refusal.place
        loop, value = loop_of(place)
        return cls(
            rule=refusal.rule.name,
            path=place.path,
            op=op_of(place.node),
            outcome="refused",
            code=reason.code,
            sentence=reason.sentence,
            culprits=reason.culprits,
            optional=refusal.rule.optional,
            loop=loop,
            value=value,
            asked=asked,
            lifted_by=reason.lifted_by,
        )

    @property
    def tells(self) -> bool:
        """True if a refusal is of a rule that was asked for or that does apply, or would be lifted
        by an option."""
        return self.asked or bool(self.lifted_by) or self.code in _LEFT

    @classmethod
    def not_held(cls, path: str, kind: str, code: str, sentence: str) -> Record:
        """Return the record of a place that the IR version cannot hold; `kind` is its operator, or
        a description."""
        lifts = LIFTED_BY.get(code, ())
        return cls(
            *("ir-version", path, kind, "refused", ""), code, sentence, loop=MAIN, lifted_by=lifts
        )


@dataclass(frozen=True)
class Size:
    """The size of a model, bodies and functions included; `operators` counts each of them."""

    nodes: int
    loops: int
    operators: Mapping[str, int]

    @classmethod
    def of(cls, model: Model) -> Size:
        """Count."""
        operators = sum((counted for _, counted in model.operators), Counter[str]())
        loops = operators["Loop"] + operators["Scan"]
        return cls(operators.total(), loops, dict(sorted(operators.items())))


@dataclass(frozen=True)
class Advice:
    """A command line to try next, its effect, as far as that was tried, and how many times as fast
    as the original its outcome is, if that was measured."""

    command: str
    effect: str = ""
    gain: float | None = None

    def __str__(self) -> str:
        gain = "" if self.gain is None else f"{self.gain:.1f}x as fast as the original, measured"
        about = "; ".join(filter(None, (gain, self.effect)))
        return f"next: {self.command}" + (f"  ({about})" if about else "")


@dataclass(frozen=True)
class Spent:
    """Seconds of a run: to load the model, to rewrite it, checks included, of these in each rule,
    and to verify it."""

    loading: float = 0.0
    rewriting: float = 0.0
    rules: Mapping[str, float] = field(default_factory=dict)
    verifying: float = 0.0


@dataclass(frozen=True)
class Report:
    """The report on the effect of a command on a model.

    `opsets` are the versions before and after, `ir_versions` those of the IR, 0 where the command
    does not choose one, `sizes` how large the model was and is; nodes without a record were left as
    they are. `checked` is the verdict on the whole model, None where verification was off, `proof`
    that of the proof, None where none was asked for.
    `failure`: why there is no outcome, where no record tells it; `warnings`: what to know about the
    outcome; `notes`: what to know about the model as it was read; `bound`: how its signature is
    another one, a sentence for each input and output; `findings`: what keeps the outcome from its
    target, looked for under --strict; `measured`: its time, if that was asked for; `spent`: how
    long the command took; `advice`: what to do next, the most valuable first.
    """

    command: str
    file: str
    opsets: tuple[int, int]
    sizes: tuple[Size, Size]
    records: Sequence[Record] = ()
    checked: Checked | None = None
    failure: str = ""
    warnings: Sequence[str] = ()
    notes: Sequence[str] = ()
    ir_versions: tuple[int, int] = (0, 0)
    bound: Sequence[str] = ()
    findings: Sequence[Finding] = ()
    proof: Proof | None = None
    measured: Measured | None = None
    spent: Spent = field(default_factory=Spent, compare=False)
    advice: Sequence[Advice] = ()

    @property
    def rewrites(self) -> list[Record]:
        """The records of what was rewritten."""
        return [record for record in self.records if record.outcome == "rewritten"]

    @property
    def refusals(self) -> list[Record]:
        """The records of what was refused."""
        return [record for record in self.records if record.outcome == "refused"]

    @property
    def telling(self) -> list[Record]:
        """The refusals that tell why no more was done: of rules that were asked for, or that an
        option would lift; of a loop without any of these one, that its iterations must run in turn
        if there is such."""
        reasons = {one.loop: one for one in self.refusals if one.tells}
        loops = [one for one in self.refusals if one.op in _LOOPS and one.code not in _OF_NO_USE]
        for one in sorted(loops, key=lambda one: one.code != _IN_TURN):
            reasons.setdefault(one.loop, one)
        return [one for one in self.refusals if one.tells or one is reasons.get(one.loop)]

    @property
    def left_out(self) -> list[Record]:
        """The records of rewrites that were made and left out."""
        return [one for one in self.refusals if one.code in (NOT_VERIFIED, INVALID)]

    @property
    def refusal(self) -> str:
        """The first refusal that keeps the outcome from being produced, as a sentence."""
        first, *more = [record for record in self.refusals if not record.optional]
        others = f" (and {len(more)} more)" if more else ""
        place = ": ".join(part for part in (self.file, first.path) if part)
        return f"{place}: {first.sentence} [{first.code}]{others}"

    @property
    def unchanged(self) -> bool:
        """True if the model was left as it is."""
        versions = (self.opsets, self.ir_versions)
        same = all(before == after for before, after in versions)
        same = same and self.sizes[0] == self.sizes[1] and not self.bound
        return same and not self.records and not self.failure

    def to_json(self) -> str:
        """The report as JSON; the same model and options give the same text."""
        return json.dumps(asdict(self), indent=2, ensure_ascii=False, default=_plain) + "\n"

    def to_text(self, *, verbose: bool = False, written: str = "") -> str:
        """The report for people: a line a rule and loop, or, where it is `verbose`, a rewrite; then
        what was `written`, and what to do next."""
        lines = [self._headline(), *(f"  note: {note}" for note in self.notes)]
        lines += [f"  bound: {one}" for one in self.bound]
        lines += _rewrite_lines(self.records) if verbose else _summary_lines(self.records)
        lines += _step_lines(self.records)
        lines += _refusal_lines(self.refusals if verbose else self.telling, verbose)
        lines += [f"  in the way: {line}" for line in described(self.findings)]
        if self.checked is not None:
            lines.append(f"  whole model {self.checked}")
            lines += [f"          note: {note}" for note in self.checked.notes]
            lines += _unreached_lines(self.checked.unreached, verbose)
            if self.checked.not_run:
                lines.append(f"          out of time for: {', '.join(self.checked.not_run)}")
        if self.proof is not None:
            lines.append(f"  {self.proof.line}")
            lines += [f"          {one}" for one in self.proof.rests_on if verbose]
        if self.measured is not None:
            lines.append(f"  {self.measured.line}")
        return "\n".join([*lines, *filter(None, [written]), *map(str, self.advice)])

    def _headline(self) -> str:
        before, after = self.opsets
        name = self.file or "model"
        if self.unchanged and self.command != "verify":
            because = f", it is at opset {before}" if self.command == "upgrade" else ""
            return f"{name}: nothing to do{because}"
        if self.command == "verify":
            return f"{name}: opset {before}, against opset {after}"
        parts = [f"opset {_change(before, after)}"]
        if self.ir_versions[0] != self.ir_versions[1]:
            parts.append(f"IR version {_change(*self.ir_versions)}")
        return f"{name}: {', '.join(parts)}, {self._sizes()}"

    def _sizes(self) -> str:
        kinds = [
            ("node", [size.nodes for size in self.sizes]),
            ("loop", [size.loops for size in self.sizes]),
            ("operator", [len(size.operators) for size in self.sizes]),
        ]
        return ", ".join(
            f"{_change(before, after)} {kind}{'s' * (after != 1)}"
            for kind, (before, after) in kinds
        )


def _change(before: int, after: int) -> str:
    return f"{before}" if before == after else f"{before} -> {after}"


def _unreached_lines(unreached: Sequence[str], verbose: bool) -> list[str]:
    """Return lines on events of the original that no case reached; in short unless `verbose`."""
    shown = unreached if verbose else unreached[:_FEW_UNREACHED]
    more = len(unreached) - len(shown)
    lines = [f"          not tested: {place}" for place in shown]
    if more:
        lines[-1] += f" (and {more} more)"
    return lines


def _rewrite_lines(records: Sequence[Record]) -> list[str]:
    """A rewrite, how it was verified, and what its extra nodes are for."""
    lines = []
    for record in records:
        if record.outcome == "rewritten" and record.rule != "opset":
            lines.append(f"  {record.rule}: {record.path} ({record.op}), {record.note}")
            lines += [f"          {text}" for text in (record.checked, *record.extras) if text]
    return lines


def _summary_lines(records: Sequence[Record]) -> list[str]:
    """Return a line for each rule and loop, followed by the purposes of extra nodes."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        if record.outcome == "rewritten" and record.rule != "opset":
            groups.setdefault((record.rule, record.loop), []).append(record)
    alike: dict[tuple[str, str], list[str]] = {}
    for (rule, loop), group in groups.items():
        path, done = _group_line(loop, group)
        alike.setdefault((rule, done), []).append(path)
    lines = [f"  {rule}: {places_of(paths)}{done}" for (rule, done), paths in alike.items()]
    lines += [f"  {extra}" for extra in summed(records)]
    regrouped = {record.loop for record in records if record.regroups}
    if regrouped:
        places = count(len(regrouped), "loop")
        lines.append(f"  sums of floats are regrouped in {places} (--keep-order keeps the order)")
    return lines


def places_of(paths: Sequence[str]) -> str:
    """A path, or the number of several and a pattern that they match."""
    return f"{len(paths)} x {pattern_of(paths)}" if len(paths) > 1 else paths[0]


def summed(records: Sequence[Record]) -> list[Extra]:
    """The extra nodes of all records, summed for each purpose."""
    extras: Counter[tuple[str, str]] = Counter()
    for record in records:
        for extra in record.extras:
            extras[extra.purpose, extra.option] += extra.nodes
    return [Extra(count, *purpose) for purpose, count in extras.items()]


def _group_line(loop: str, group: Sequence[Record]) -> tuple[str, str]:
    """Return the path of what a rule rewrote in a loop, and what it did there."""
    first, *others = group
    path = loop if others else first.path
    if not others:
        done = f" ({first.op}), {first.note}"
    elif all(record.path == loop for record in group):
        done = f" ({first.op}), {len(group)} times"
    else:
        done = f", {len(group)} nodes"
    verdicts = Counter(record.checked.verdict for record in group if record.checked is not None)
    if len(verdicts) < 2:
        return path, done + "".join(f"; {verdict}" for verdict in verdicts)
    return path, f"{done}; " + ", ".join(f"{n} {verdict}" for verdict, n in verdicts.items())


def _refusal_lines(refusals: Sequence[Record], verbose: bool) -> list[str]:
    """A refusal; those of one code, rule and loop are one unless it is `verbose`, and those of
    several rules or loops whose sentences differ in names alone."""
    groups: dict[tuple[str | int, ...], list[Record]] = {}
    more: dict[int, str] = {}
    for number, record in enumerate(refusals):
        key = (number,) if verbose else (record.rule, record.loop, record.code)
        groups.setdefault(key, []).append(record)
    alike: dict[tuple[str | int, ...], list[Record]] = {}
    for number, (first, *others) in enumerate(groups.values()):
        same = (first.code, first.op, len(others))
        alike.setdefault((*same, number * verbose, _NAME.sub("", first.sentence)), []).append(first)
        more[id(first)] = f" (and {len(others)} more)" if others else ""
    return [
        f"  refused {places_of([*dict.fromkeys(one.path for one in equal)])} ({equal[0].op}): "
        f"{pattern_of([one.sentence for one in equal])}{more[id(equal[0])]} "
        f"[rule {', '.join(dict.fromkeys(one.rule for one in equal))}, code {equal[0].code}]"
        for equal in alike.values()
    ]


def _step_lines(records: Sequence[Record]) -> list[str]:
    counted = Counter(
        record.note
        for record in records
        if record.outcome == "rewritten" and record.rule == "opset"
    )
    return [f"  opset: {count} x {note}" for note, count in sorted(counted.items())]


def _as_json(error: float) -> float:
    """Return an error as JSON can hold it: the difference of doubles may be infinite."""
    return min(float(error), sys.float_info.max)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple | set | frozenset) else str(value)
