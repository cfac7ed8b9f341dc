"""Writes `docs/opset-steps.md` from the table: `python -m passes.converters.document PATH`."""

from __future__ import annotations

import argparse
import inspect
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from passes.converters import table
from passes.converters.steps import (
    STEPS,
    Adapter,
    ByRule,
    Expanded,
    Identical,
    IdenticalDown,
    Refusal,
    Step,
    StepDown,
)
from passes.ir.versions import OLDEST_OPSET

_HEAD = """# The opset steps

Made by `python -m passes.converters.document docs/opset-steps.md` from the table in `converters/`.

Every version of every op of the standard domain above opset {oldest}, with the step to it from the
version before, up, and the step back, down. {up_count} steps lead up: {up}. {down_count} lead down:
{down}.

*identical*: a node of one version is one of the other as it stands; on the way down that holds of
a node that uses nothing that came with the version (attributes, inputs, outputs), which is checked;
element types that the older version lacks go through a Cast where that changes nothing. *adapter*:
it becomes other nodes. *expanded*: the op came with this version, and a node becomes the function
body of its document. *refused*: no node goes there. An adapter may refuse a node, too: `python -m
passes explain opset` lists the codes. How each step was tried out stands in
[opset-proofs.md](opset-proofs.md).

| op | version | up | down |
|---|---|---|---|
"""
_NEW = "new here"


def document() -> str:
    """All steps, by op and version, as Markdown."""
    down = {key: table.step_down(*key) for key in table.known_versions()}
    head = _HEAD.format(
        oldest=OLDEST_OPSET,
        up_count=len(STEPS),
        up=_counted(STEPS.values()),
        down_count=len(down),
        down=_counted(down.values()),
    )
    return head + "".join(_row(key, STEPS.get(key), step) for key, step in sorted(down.items()))


def _counted(steps: Iterable[Step | StepDown]) -> str:
    kinds = Counter(_kind(step) for step in steps)
    return ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())


def _row(key: tuple[str, int], up: Step | None, down: StepDown) -> str:
    cells = [key[0], str(key[1]), _cell(up) if up else _NEW, _cell(down)]
    return f"| {' | '.join(cells)} |\n"


def _cell(step: Step | StepDown) -> str:
    kind, colon, rest = told(step).replace("|", "\\|").partition(": ")
    return f"*{kind}*{colon}{rest}"


def told(step: Step | StepDown) -> str:
    """The kind of a step, and what it does, or why there is none, if the kind does not tell all."""
    return ": ".join(filter(None, (_kind(step), _explained(step))))


def _kind(step: Step | StepDown) -> str:
    match step:
        case Identical() | IdenticalDown():
            return "identical"
        case Adapter():
            return "adapter"
        case ByRule():
            return "by rule"
        case Expanded():
            return "expanded"
    return "refused"


def _explained(step: Step | StepDown) -> str:
    match step:
        case Identical() | IdenticalDown():
            return step.because
        case Adapter():
            summary, _, _ = inspect.cleandoc(step.adapt.__doc__ or "").partition("\n\n")
            rounding = "" if step.exact else " The result may differ in rounding."
            return " ".join(summary.split()) + rounding
        case ByRule():
            return f"the rule `{step.rule}` does this step and all later ones"
        case Refusal():
            return f"`{step.code}`: {step.sentence}"
    return ""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", type=Path)
    parser.parse_args().page.write_text(document(), encoding="utf-8")
