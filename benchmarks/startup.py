"""How long a command takes before it does anything, against the Python that it starts in."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness import Aim, Bench, Side

_SUM = Path(__file__).parent.parent / "golden_models" / "upgrade" / "sum.before.onnxtxt"


def measure(bench: Bench) -> None:
    """Help, and the smallest upgrade there is, verified in the reference executor."""
    bench.compare(
        "help",
        _command("--help", ["-m", "passes", "--help"]),
        _command("pass", ["-c", "pass"]),
        aim=Aim(extra=0.4),
        runs=11,
    )
    with tempfile.TemporaryDirectory() as folder:
        written = str(Path(folder) / "sum.onnx")
        upgrade = ["-m", "passes", "upgrade", str(_SUM), "-o", written, "--force"]
        bench.compare(
            "upgrade the sum example",
            _command("upgrade", [*upgrade, "--executor", "reference"]),
            _command("import onnx.reference", ["-c", "import onnx, onnx.reference"]),
            aim=Aim(extra=1.5),
            runs=11,
        )


def _command(label: str, arguments: Sequence[str]) -> Side:
    command = [sys.executable, *arguments]
    folder = _SUM.parents[2]  # where `python -m passes` finds the project

    def run() -> None:
        subprocess.run(command, cwd=folder, check=True, capture_output=True)

    return Side(label, run)
