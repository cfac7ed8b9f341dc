"""The oldest opset that a model can be written in, and what stops it; nothing is executed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from passes.choices import RuleOptions
from passes.commands.schedules import SCHEDULES
from passes.engine.outcome import Pass
from passes.errors import NotProduced
from passes.ir.versions import OLDEST_OPSET
from passes.reports.json_values import document
from passes.reports.report import Record
from passes.reports.words import and_more
from passes.session import Source, loaded


@dataclass(frozen=True)
class Step:
    """An older opset: what is refused on the way there, or else why there is no outcome."""

    opset: int
    refusals: Sequence[Record] = ()
    failure: str = ""

    @property
    def goes(self) -> bool:
        """True if the model can be written in that opset."""
        return not self.refusals and not self.failure

    def to_text(self, *, verbose: bool = False) -> str:
        """A line, or, where it is `verbose`, one for each refusal."""
        if self.goes:
            return f"  {self.opset}: can be written"
        shown = self.refusals if verbose else self.refusals[:1]
        lines = [f"{one.path} ({one.op}): {one.sentence} [{one.code}]" for one in shown]
        lines += filter(None, [self.failure])
        lines[-1] += and_more(len(self.refusals) - len(shown))
        return "\n".join(f"  {self.opset}: {line}" for line in lines)


@dataclass(frozen=True)
class Lowest:
    """The opset of a model, and what becomes of it at each older one, newest first."""

    file: str
    opset: int
    steps: Sequence[Step]

    @property
    def lowest(self) -> int:
        """The oldest opset that the model can be written in."""
        return min((step.opset for step in self.steps if step.goes), default=self.opset)

    def to_text(self, *, verbose: bool = False) -> str:
        """The report for people, a line a step; where it is `verbose`, all that is refused."""
        far = f"down to {self.lowest}" if self.lowest < self.opset else "in no older one"
        summary = f"opset {self.opset}, can be written {far} (nothing was executed)"
        lines = [f"{self.file or 'model'}: {summary}"]
        return "\n".join([*lines, *(step.to_text(verbose=verbose) for step in self.steps)])

    def to_json(self) -> str:
        """The report as JSON; the same model gives the same text."""
        steps = [{"opset": one.opset, "goes": one.goes, **asdict(one)} for one in self.steps]
        report = {"file": self.file, "opset": self.opset, "lowest": self.lowest, "executed": False}
        report["steps"] = steps
        return document(report)


def find_lowest(source: Source, options: RuleOptions) -> Lowest:
    """Return the result of converting a model to each older opset, down to 7; nothing is executed.

    Raises:
        BadModel: the input is no valid model.
        UnknownFunction: a function is to be inlined that the model does not have.
    """
    model, found = loaded(source)
    convert = SCHEDULES["convert"]
    convert.accept(model, None, None, options)
    own = model.newest_opset
    steps = []
    for opset in range(own - 1, OLDEST_OPSET - 1, -1):
        try:
            report = Pass(convert, opset, options).outcome(model, model, found).report
        except NotProduced as error:
            report = error.report
        refusals = [record for record in report.refusals if not record.optional]
        steps.append(Step(opset, refusals, report.failure))
    return Lowest(model.file, own, steps)
