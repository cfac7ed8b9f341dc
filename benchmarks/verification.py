"""What verification takes: commands as a user runs them, verified against `--no-verify`.

Exported models are optimized, a CNN is upgraded, and chains of small Loops are optimized. Compiled
modules are kept, as where the package is installed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

import onnx

from benchmarks.harness import Aim, Bench, Side
from benchmarks.models import convolutions, nested

_ROOT = Path(__file__).parent.parent
_EXPORTED = _ROOT / "golden_models" / "exported"
_SAMPLE = 60
#: Seconds that optimizing an exported model may take: half of them, and 95 % of them.
_HALF, _MOST = 2, 10
_CNN, _LOOPS = Aim(seconds=3), Aim(seconds=10)
_LINEAR = Aim(ratio=2)
_BLOCKS = 22  # of three nodes each
_VERIFIED, _NOT = "verified", "--no-verify"


def measure(bench: Bench) -> None:
    """The exported models, the CNN, then the chains of Loops and how their cost grows."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = Runner(folder)
        run("optimize", _sample(1)[0])  # compiles what is imported
        _exported(bench, run, _sample(2 if bench.quick else _SAMPLE))
        model, blocks = folder / "cnn.onnx", 2 if bench.quick else _BLOCKS
        onnx.save(convolutions(blocks, opset=11), model)
        upgrade = _sides(lambda *options: run("upgrade", model, "--opset", "21", *options))
        bench.compare(f"upgrade a CNN, {3 * blocks} nodes, 11 -> 21", *upgrade, aim=_CNN, runs=3)
        _loops(bench, run, folder, (1, 2) if bench.quick else (10, 40, 160))


def _sample(count: int) -> list[Path]:
    """Exported models, drawn evenly."""
    models = sorted(_EXPORTED.glob("*/*.onnx"))
    return [models[number * len(models) // count] for number in range(count)]


def _exported(bench: Bench, run: Runner, models: Sequence[Path]) -> None:
    """All of the models in one row, and what single ones take below the table."""
    seconds: list[float] = []

    def verified() -> None:
        for model in models:
            start = bench.clock()
            run("optimize", model)
            seconds.append(bench.clock() - start)

    def unverified() -> None:
        for model in models:
            run("optimize", model, _NOT)

    sides = Side(_VERIFIED, verified, len(models)), Side(_NOT, unverified, len(models))
    bench.compare(f"optimize {len(models)} exported models", *sides, runs=1)
    seconds.sort()
    most = seconds[(len(seconds) * 95 + 99) // 100 - 1]
    bench.note(
        f"optimize, exported models: median {median(seconds):.2f} s (aim <= {_HALF} s), "
        f"95 % within {most:.2f} s (aim <= {_MOST} s), the longest {seconds[-1]:.2f} s"
    )


def _loops(bench: Bench, run: Runner, folder: Path, sizes: Sequence[int]) -> None:
    """Chains of Loops, optimized; then a Loop of the longest against one of that before."""
    plain: list[Side] = []
    for size in sizes:
        model = folder / f"loops_{size}.onnx"
        onnx.save(nested(size, nodes=2, changing=0, opset=13), model)
        verified, unverified = _sides(
            lambda *options, model=model: run("optimize", model, *options)
        )
        bench.compare(f"optimize {size} Loops", verified, unverified, aim=_LOOPS, runs=2)
        plain.append(Side(f"{size}", unverified.run, size))
    bench.compare(f"a Loop, {_NOT}", plain[-1], plain[-2], aim=_LINEAR, runs=2)


def _sides(run: Callable[..., None]) -> tuple[Side, Side]:
    """A command, and the same without verification."""
    return Side(_VERIFIED, run), Side(_NOT, lambda: run(_NOT))


class Runner:
    """Runs commands, each in a process of its own, and keeps what they write in a folder."""

    def __init__(self, folder: Path) -> None:
        self._written = folder / "written.onnx"
        kept = {name: one for name, one in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        self._environment = {**kept, "PYTHONPYCACHEPREFIX": str(folder / "compiled")}

    def __call__(self, command: str, model: Path, *options: str) -> None:
        self._written.unlink(missing_ok=True)
        arguments = ["-m", "passes", command, str(model), "-o", str(self._written), *options]
        subprocess.run(
            [sys.executable, *arguments],
            cwd=_ROOT,
            env=self._environment,
            check=True,
            capture_output=True,
        )
