"""A fault, written down with the smallest model that shows it."""

from __future__ import annotations

import re
from pathlib import Path

import onnx

from passes.errors import PassesError
from tests.instruments.generate.model import Generated
from tests.instruments.generate.reduce import reduce
from tests.instruments.soak.casts import CastExaminer
from tests.instruments.soak.commands import Command
from tests.instruments.soak.examine import Examiner, Finding

#: Seconds that a model may be made smaller for.
_REDUCING = 20.0


def write(
    folder: Path,
    seed: int,
    kind: str,
    command: Command,
    generated: Generated,
    examiner: Examiner | CastExaminer,
) -> Path:
    """Write a text and a model into a folder; whether the tool's verification stops it is said.

    `kind` is the key of the finding.
    """

    def shows(candidate: Generated) -> bool:
        return _found(candidate, kind, command, examiner) is not None

    small = reduce(generated, shows, _REDUCING) if shows(generated) else generated
    shown = _found(small, kind, command, examiner)
    said = [f"seed: {seed}", f"command: {command.label}", f"kind: {kind}"]
    roles = {name: role for name, role in small.roles.items() if role}
    said += [f"sentence: {shown.sentence if shown else 'not seen again'}", f"roles: {roles}"]
    said += [f"verification: {_verdict(small, command)}", f"decisions: {small.drawn}"]
    name = re.sub(r"[^a-z]+", "-", kind.lower())[:60].strip("-")
    path = folder / f"{name}-{seed}.txt"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([*said, onnx.printer.to_text(small.model), ""]), encoding="utf-8")
    onnx.save(small.model, path.with_suffix(".onnx"))
    return path


def _found(
    candidate: Generated, kind: str, command: Command, examiner: Examiner | CastExaminer
) -> Finding | None:
    """The same finding on another model, if it is there."""
    verify = " mismatch " in kind or " traceback " in kind
    outcome = examiner.examine(candidate, [command], verify=verify)
    return next((one for one in outcome.findings if one.key == kind), None)


def _verdict(generated: Generated, command: Command) -> str:
    try:
        checked = command.run(generated.model, verify=True).report.checked
    except PassesError as error:
        return f"{type(error).__name__}: {error}"
    return "nothing was rewritten" if checked is None else checked.verdict
