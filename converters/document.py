"""Writes `docs/opset-steps.md` from the table: `python -m converters.document PATH`."""

from __future__ import annotations

import inspect
import sys
from collections import Counter
from pathlib import Path

from converters import table
from converters.steps import STEPS, Adapter, ByRule, Identical, Refusal, Step

_HEAD = """# The opset steps

Made by `python -m converters.document docs/opset-steps.md` from the table under `converters/`.

Every version of every op of the standard domain above opset {oldest}, {count} steps:
{identical} are *identical* (a node of the version before is one of this version as it stands),
{adapter} have an *adapter* (it becomes other nodes), {by_rule} is left to another rule, and
{refusal} are refused. An adapter may refuse a node, too: `python -m passes explain opset` lists
the codes. How each step was tried out stands in [opset-proofs.md](opset-proofs.md).

| op | version | step | |
|---|---|---|---|
"""


def document() -> str:
    """All steps, by op and version, as Markdown."""
    kinds = Counter(_kind(step) for step in STEPS.values())
    head = _HEAD.format(
        oldest=table.OLDEST_OPSET,
        count=len(STEPS),
        identical=kinds["identical"],
        adapter=kinds["adapter"],
        by_rule=kinds["by rule"],
        refusal=kinds["refused"],
    )
    return head + "".join(_row(step) for _, step in sorted(STEPS.items()))


def _row(step: Step) -> str:
    cells = (step.op, str(step.version), _kind(step), _told(step).replace("|", "\\|"))
    return f"| {' | '.join(cells)} |\n"


def _kind(step: Step) -> str:
    match step:
        case Identical():
            return "identical"
        case Adapter():
            return "adapter"
        case ByRule():
            return "by rule"
    return "refused"


def _told(step: Step) -> str:
    match step:
        case Identical():
            return step.because or "the same signature; more types at most"
        case Adapter():
            summary, _, _ = inspect.cleandoc(step.adapt.__doc__ or "").partition("\n\n")
            rounding = "" if step.exact else " The result may differ in rounding."
            return " ".join(summary.split()) + rounding
        case ByRule():
            return f"the rule `{step.rule}` does this step and all later ones"
        case Refusal():
            return f"`{step.code}`: {step.sentence}"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(document(), encoding="utf-8")
