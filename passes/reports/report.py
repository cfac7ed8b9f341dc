"""The report of a command, as data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from passes.choices import LIFTED_BY, Lifts
from passes.errors import count
from passes.ir.model import Model
from passes.ir.operators import op_of
from passes.ir.places import MAIN, loop_of
from passes.ir.purposes import Extra
from passes.ir.site import TOO_OLD
from passes.reports.json_values import document
from passes.reports.measured import Measured
from passes.reports.precision import Casting, Within
from passes.reports.proof import Proof
from passes.reports.words import and_more
from passes.rule import Edit

if TYPE_CHECKING:
    from passes.engine.rounds import Refusal, Rewritten

Outcome = Literal["rewritten", "refused"]
#: The codes of rewrites that were made and left out: none vouches for it, the outcome is no model.
NOT_VERIFIED, INVALID = "not-verified", "invalid-outcome"
#: The codes of what applies and is not done.
_LEFT = frozenset({NOT_VERIFIED, INVALID, "few-iterations"})
#: The code of what keeps the iterations of a loop from running at once.
_IN_TURN = "carries"
#: Codes that tell nothing of a loop, unless a newer opset helps.
_OF_NO_USE = frozenset({TOO_OLD, "not-worth-it", "nothing-to-move"})
_LOOPS = frozenset({"Loop", "Scan"})

Confidence = Literal["measured", "stated", "source", "inferred"]
#: What becomes of a node that a target does not take as it is.
Otherwise = Literal["refuses", "answers wrongly"]


#: What became of a case in an executor. `compared`: both sides answer and agree. `crossed`: only
#: the rewritten model answers here, and agrees with the reference executor's original. `refined`:
#: the rewritten model answers where the original fails, as it may.
Status = Literal["compared", "crossed", "both failed", "refined", "not run", "mismatch"]


@dataclass(frozen=True)
class Tried:
    """The result of one case in one executor: the `status` of its trial, a `sentence` if it shows
    no agreement, its `inputs` in short, and the `worst` element if floats differ."""

    executor: str
    case: str
    status: Status
    sentence: str = ""
    inputs: str = ""
    worst: str = ""


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

    @property
    def summary(self) -> str:
        """What was compared, and how alike it is, or why it is not verified."""
        if self.verdict != "verified" or (not any(self.compared.values()) and not self.crossed):
            return self.reason
        cases = [f"{count(n, 'case')} in {name}" for name, n in self.compared.items() if n]
        cases += [
            f"{n} with the new model in {name}, the original in reference"
            for name, n in self.crossed.items()
        ]
        exact = {"bits": ", bit-equal", "values": ", equal but for signs of zero"}
        where = f", at {self.same_as}, which is equal" if self.same_as else ""
        return f"{', '.join(cases)}{exact.get(self.alike, '')}{where}"

    def __str__(self) -> str:
        match self.verdict:
            case "verified":
                return f"verified: {self.summary}"
            case "mismatch":
                return f"differs: {self.reason}"
        return f"{self.verdict} ({self.reason})"


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


def summed(records: Iterable[Record]) -> list[Extra]:
    """The extra nodes of all records, summed for each purpose."""
    extras: Counter[tuple[str, str]] = Counter()
    for record in records:
        for extra in record.extras:
            extras[extra.purpose, extra.option] += extra.nodes
    return [Extra(number, *purpose) for purpose, number in extras.items()]


@dataclass(frozen=True)
class Finding:
    """Something that a target does not accept, at the `path` of a node, value or function: a `code`
    for its kind, a `sentence`, the consequence there, and how certain that is."""

    code: str
    path: str
    op: str
    sentence: str
    confidence: Confidence = "stated"
    otherwise: Otherwise = "refuses"

    @property
    def kind(self) -> tuple[str, ...]:
        """The same for findings that differ in their places only."""
        return (self.code, self.op, self.sentence)

    @property
    def folder(self) -> str:
        """The path without its last part."""
        return self.path.rpartition("/")[0]


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
    to verify and to prove it."""

    loading: float = 0.0
    rewriting: float = 0.0
    rules: Mapping[str, float] = field(default_factory=dict)
    verifying: float = 0.0
    proving: float = 0.0

    @classmethod
    def summed(cls, spent: Sequence[Spent]) -> Spent:
        """The seconds of several runs."""
        rules: Counter[str] = Counter()
        for one in spent:
            rules.update(one.rules)
        return cls(
            round(sum(one.loading for one in spent), 3),
            round(sum(one.rewriting for one in spent), 3),
            dict(rules.most_common()),
            round(sum(one.verifying for one in spent), 3),
            round(sum(one.proving for one in spent), 3),
        )


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
    target, looked for under --strict; `measured`: its time, if that was asked for; `casts`: what
    became of its element types; `within`: how far it is off since, None if that was not executed;
    `spent`: how long the command took; `advice`: what to do next, the most valuable first.
    """

    command: str
    file: str
    opsets: tuple[int, int]
    sizes: Sequence[Size]
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
    casts: Sequence[Casting] = ()
    within: Within | None = None
    spent: Spent = field(default_factory=Spent, compare=False)
    advice: Sequence[Advice] = ()

    @classmethod
    def joined(cls, reports: Sequence[Report]) -> Report:
        """One report of commands, each on the outcome of the one before. Of several verdicts on the
        whole model it has the first that is none of success."""
        first, last = reports[0], reports[-1]
        if len(reports) == 1:
            return first
        versions = [one.ir_versions for one in reports if any(one.ir_versions)]
        checked = [one.checked for one in reports if one.checked is not None]
        return replace(
            first,
            command=", ".join(one.command for one in reports),
            opsets=(first.opsets[0], last.opsets[1]),
            sizes=(first.sizes[0], last.sizes[1]),
            records=[record for one in reports for record in one.records],
            checked=min(checked, key=lambda one: one.verdict == "verified", default=None),
            failure=last.failure,
            warnings=[warning for one in reports for warning in one.warnings],
            notes=[note for one in reports for note in one.notes],
            ir_versions=(versions[0][0], versions[-1][1]) if versions else (0, 0),
            casts=[cast for one in reports for cast in one.casts],
            within=next((one.within for one in reversed(reports) if one.within), None),
            spent=Spent.summed([one.spent for one in reports]),
        )

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
        place = ": ".join(filter(None, (self.file, first.path)))
        return f"{place}: {first.sentence} [{first.code}]{and_more(len(more))}"

    @property
    def unchanged(self) -> bool:
        """True if the model was left as it is."""
        versions = (self.opsets, self.ir_versions)
        same = all(before == after for before, after in versions)
        same = same and self.sizes[0] == self.sizes[1] and not self.bound
        same = same and not any(one.changes for one in self.casts)
        return same and not self.records and not self.failure

    @property
    def numbers(self) -> list[tuple[str, Sequence[int]]]:
        """The nodes, loops and different operators before and after, each with its noun."""
        return [
            ("node", [size.nodes for size in self.sizes]),
            ("loop", [size.loops for size in self.sizes]),
            ("operator", [len(size.operators) for size in self.sizes]),
        ]

    @property
    def extras(self) -> list[Extra]:
        """The nodes that a shorter rewrite would do without, summed for each purpose."""
        return summed(self.records)

    def to_json(self) -> str:
        """The report as JSON; the same model and options give the same text."""
        return document(self)

    def to_text(self, *, verbose: bool = False, written: str = "") -> str:
        """The report for people: a line a rule and loop, or, where it is `verbose`, a rewrite; then
        what was `written`, and what to do next."""
        from passes.reports.text import text_of

        return text_of(self, verbose, written)
