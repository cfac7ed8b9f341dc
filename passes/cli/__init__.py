"""The commands: options, running, printing. `python -m passes` is `passes/__main__.py`."""

from __future__ import annotations
