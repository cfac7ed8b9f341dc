"""Pairs of models, written out, of which the second is wrong: with operators of which a proof knows
nothing but that equal calls are equal.

Each has a right model, a wrong one or changes of the right one, and inputs that tell them apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: A right model, a wrong one (or changes of the right one), inputs that tell them apart.
Case = tuple[str, str | Mapping[str, str], Mapping[str, Any]]
