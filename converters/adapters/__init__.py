"""Steps of operators to newer versions, a file per family; found by walking this folder."""

from __future__ import annotations
