"""The time and memory of models in the runtimes that are installed, side by side."""

from __future__ import annotations
