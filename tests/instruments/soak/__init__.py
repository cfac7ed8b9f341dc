"""The soak: random models through every command, compared by means of its own.

`python -m tests.instruments.soak --models 1000 --seed 0 --seconds 600` prints what it found, and
writes every failure with its seed, its command and the model made small.
"""

from __future__ import annotations
