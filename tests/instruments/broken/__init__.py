"""Broken input: thousands of files that are no valid models, each given to the command line.

Each must be refused in one sentence, or give a right result: no traceback, no crash, no hang, no
file left behind. `python -m tests.instruments.broken --count 1000 --seed 0`.
"""

from __future__ import annotations
