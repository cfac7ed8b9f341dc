"""The command line: its parameters, running, printing; it begins in `passes/__main__.py`."""

from __future__ import annotations
