"""Variants of models that are written out in ONNX text, for tests."""

from __future__ import annotations

import re
from collections.abc import Mapping


def changed(text: str, changes: Mapping[str, str]) -> str:
    """The text of a model with each key of `changes` replaced by its value wherever it occurs.

    What one change inserts is not changed by another one.

    Raises:
        AssertionError: a key does not occur in the text.
    """
    if not changes:
        return text
    longest_first = sorted(changes, key=len, reverse=True)
    found = set()

    def replacement(match: re.Match[str]) -> str:
        found.add(match[0])
        return changes[match[0]]

    result = re.sub("|".join(map(re.escape, longest_first)), replacement, text)
    missing = changes.keys() - found
    assert not missing, f"not in the model: {missing}"
    return result
