"""Two models whose floats may differ by more than roundings: how far, judged by a run that rounds
after every node."""

from __future__ import annotations
