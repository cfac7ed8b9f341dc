"""The tests of conversion share the cases of the tests of verification."""

from __future__ import annotations

import sys
from pathlib import Path

# pytest puts the folder of a test on the path, and no other.
sys.path.append(str(Path(__file__).parents[1] / "verify"))
