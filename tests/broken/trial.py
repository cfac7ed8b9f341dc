"""One broken file given to one command, in a process of its own: what came of it."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.broken import damaged_bytes, damaged_files, damaged_models
from tests.generate.choices import Choices
from tests.generate.model import generate

#: Seconds and bytes that a command may take for a small file.
SECONDS = 30
BYTES = 6 << 30
_COMMANDS: tuple[tuple[str, ...], ...] = (
    *(("upgrade",), ("lower",), ("raise",), ("unroll",), ("unroll", "--factor", "2")),
    *(("upgrade", "--batch", "unroll"), ("upgrade", "--opset", "13"), ("inspect",), ("verify",)),
)
_FINE = (0, 1, 2, 3)


@dataclass(frozen=True)
class Trial:
    """A mutant: `label` says what was done to it and which command it was given to."""

    label: str
    path: Path
    arguments: tuple[str, ...]


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
    command, *options = rng.choice(_COMMANDS)
    arguments = [command, str(path)]
    if command == "verify":
        arguments += [str(path), "--verify-budget", "2"]
    elif command != "inspect":
        checks = ["--verify-budget", "2"] if rng.random() < 0.2 else ["--no-verify"]
        arguments += [*options, "-o", str(folder / "out.onnx"), *checks]
    return Trial(f"{kind} {what}: {command}", path, tuple(arguments))


def outcome(tried: Trial, folder: Path) -> dict[str, object]:
    """Run the command in a child, which may crash, hang or eat memory without harm."""
    before = _files(folder)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _run(tried, writer)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answers:
        said = answers.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        return {"fault": "hang" if name == "SIGALRM" else f"crash {name}"}
    answer: dict[str, object] = json.loads(said or b'{"fault": "no answer"}')
    extra = sorted(_files(folder) - before - {"out.onnx"})
    wrote = (folder / "out.onnx").exists()
    if answer.get("code") != 0 and (wrote or extra):
        answer["fault"] = f"files are left: {extra or 'out.onnx'}"
    return answer


def _files(folder: Path) -> set[str]:
    return {str(one.relative_to(folder)) for one in folder.rglob("*")} if folder.exists() else set()


def _run(tried: Trial, writer: int) -> None:
    from typer.testing import CliRunner

    from passes.__main__ import app

    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(SECONDS)
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    result = CliRunner().invoke(app, list(tried.arguments))
    answer: dict[str, object] = {"code": result.exit_code}
    lines = result.stderr.strip().splitlines()
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        answer["fault"] = f"traceback {_where(result.exception)}"
    elif result.exit_code not in _FINE:
        answer["fault"] = f"exit code {result.exit_code}: {lines[-1:]}"
    elif result.exit_code and not _is_one_sentence(lines):
        answer["fault"] = f"not one sentence: {lines}"
    answer["sentence"] = lines[-1] if lines else ""
    with os.fdopen(writer, "wb") as answers:
        answers.write(json.dumps(answer).encode())


def _is_one_sentence(lines: Sequence[str]) -> bool:
    return len(lines) == 1 and 0 < len(lines[0]) < 2000


def _where(error: BaseException) -> str:
    import traceback

    frames = traceback.extract_tb(error.__traceback__)[-2:]
    places = " < ".join(f"{Path(one.filename).name}:{one.name}" for one in reversed(frames))
    return f"{type(error).__name__} {str(error)[:200]} at {places}"
