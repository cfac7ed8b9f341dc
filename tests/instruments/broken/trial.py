"""One broken file given to one command, in a process of its own: what came of it."""

from __future__ import annotations

import random
import shlex
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.instruments.broken import damaged_bytes, damaged_files, damaged_models
from tests.instruments.forked import Death, Limits
from tests.instruments.generate.choices import Choices
from tests.instruments.generate.model import generate

#: What a command may take for a small file.
LIMITS = Limits(seconds=30)
_COMMANDS = (
    *("upgrade", "lower", "raise", "unroll", "hoist", "simplify", "optimize", "inspect", "verify"),
    *("upgrade --batch unroll", "upgrade --opset 13", "unroll --factor 2", "unroll --peel last"),
    *("unroll --peel first", "unroll --max-trips 4 --check-output ok", "unroll --dim T=3"),
    *("optimize --target no-control-flow", "optimize --target loop-only"),
    *("optimize --target scan-only --allow-reassociation", "upgrade --assume valid-inputs"),
)
_FINE = (0, 1, 2, 3)


@dataclass(frozen=True)
class Trial:
    """A mutant: what was done to it, where it lies, and the command it is given to.

    `before` are the files of its folder.
    """

    seed: int
    kind: str
    damage: str
    folder: Path
    path: Path
    command: str
    arguments: tuple[str, ...]
    before: frozenset[str]


def trial(seed: int, folder: Path) -> Trial:
    """Make the mutant of a seed in a folder."""
    rng = random.Random(seed)
    kind = rng.choice(("bytes", "model", "model", "file"))
    if kind == "file":
        what, path = damaged_files.placed(rng, folder)
    else:
        model = generate(Choices.of_seed(rng.randrange(1 << 30))).model
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "model.onnx"
        damage = damaged_models.damaged(rng, model) if kind == "model" else None
        what, data = damage or damaged_bytes.damaged(rng, model.SerializeToString())
        path.write_bytes(data)
    command = rng.choice(_COMMANDS)
    arguments = _arguments(rng, command, path, folder)
    return Trial(seed, kind, what, folder, path, command, arguments, _files(folder))


def _arguments(rng: random.Random, said: str, path: Path, folder: Path) -> tuple[str, ...]:
    command, *options = shlex.split(said)
    if command == "inspect":
        return (command, str(path))
    if command == "verify":
        return (command, str(path), str(path), "--verify-budget", "2")
    checks = ["--verify-budget", "2"] if rng.random() < 0.2 else ["--no-verify"]
    return (command, str(path), *options, "-o", str(folder / "out.onnx"), *checks)


def warm() -> None:
    """Load what commands load, by running one."""
    from typer.testing import CliRunner

    from passes.__main__ import app
    from passes.rule import load_rules

    load_rules()
    golden = Path(__file__).parents[3] / "golden_models" / "binary" / "gru.onnx"
    with tempfile.TemporaryDirectory() as scratch:
        for command in (
            ("verify", str(golden), "--executor", "reference"),
            ("inspect",),
            ("upgrade", "--no-verify", "-o", f"{scratch}/out.onnx"),
        ):
            result = CliRunner().invoke(app, [command[0], str(golden), *command[1:]])
            assert result.exit_code == 0, result.stderr


def answer(tried: Trial) -> dict[str, object]:
    """What the command says, in this process: the exit code, the sentence, a fault."""
    from typer.testing import CliRunner

    from passes.__main__ import app

    result = CliRunner().invoke(app, list(tried.arguments))
    lines = result.stderr.strip().splitlines()
    said: dict[str, object] = {"code": result.exit_code, "sentence": lines[-1] if lines else ""}
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        said["fault"] = f"traceback {_where(result.exception)}"
    elif result.exit_code not in _FINE:
        said["fault"] = f"exit code {result.exit_code}: {lines[-1:]}"
    elif result.exit_code and not _is_one_sentence(lines):
        said["fault"] = f"not one sentence: {lines}"
    return said


def judged(tried: Trial, said: dict[str, Any] | Death) -> dict[str, Any]:
    """The answer of the child, how it died, and what it left behind."""
    if isinstance(said, Death):
        return {"fault": said.how}
    extra = sorted(_files(tried.folder) - tried.before - {"out.onnx"})
    wrote = (tried.folder / "out.onnx").exists()
    if said["code"] != 0 and (wrote or extra):
        return {**said, "fault": f"files are left: {extra or 'out.onnx'}"}
    return said


def _files(folder: Path) -> frozenset[str]:
    return frozenset(str(one.relative_to(folder)) for one in folder.rglob("*"))


def _is_one_sentence(lines: Sequence[str]) -> bool:
    return len(lines) == 1 and 0 < len(lines[0]) < 2000


def _where(error: BaseException) -> str:
    import traceback

    frames = traceback.extract_tb(error.__traceback__)[-2:]
    places = " < ".join(f"{Path(frame.filename).name}:{frame.name}" for frame in reversed(frames))
    return f"{type(error).__name__} {str(error)[:200]} at {places}"
