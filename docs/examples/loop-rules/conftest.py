"""Registers the rules, whether the package is installed or not."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import loop_rules  # noqa: F401
