"""The example package of rules passes its tests, in a process of its own: it adds rules."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_example_package_of_rules() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "docs/examples/loop-rules"]
    outcome = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stdout
