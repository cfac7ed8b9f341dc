"""Mutants of golden outcomes that differ in values, sizes, trip counts or in where they fail, each
given to the prover.

`python -m tests.instruments.definedness --count 500 --seed 0`.
"""

from __future__ import annotations
