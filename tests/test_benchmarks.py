"""Each benchmark runs; what it measures is read by people, never asserted."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "startup",
        "noop",
        "specialise",
        "linear",
        "memory",
        "scan8",
        "expanded",
        "unroll",
        "reroll",
        "optimize",
        "recurrences",
        "exported",
        "verification",
        "prove",
        "certify",
        "cast",
    ],
)
def test_a_benchmark_runs(name: str, tmp_path: Path) -> None:
    written = tmp_path / "numbers.json"
    command = [sys.executable, "-m", "benchmarks", name, "--quick", "--json", str(written)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=300)
    (measured,) = json.loads(written.read_text(encoding="utf-8"))["benchmarks"]
    assert measured["name"] == name
    assert measured["rows"] or measured["notes"]


@pytest.mark.slow
def test_an_unknown_benchmark_is_wrong_usage() -> None:
    command = [sys.executable, "-m", "benchmarks", "nothing"]
    outcome = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert outcome.returncode == 2
    assert "there is no benchmark 'nothing'" in outcome.stderr
