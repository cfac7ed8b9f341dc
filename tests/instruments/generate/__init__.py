"""Random control-flow models, valid by construction, for tests and for the soak.

`model.generate(Choices.of_seed(7))` makes one; every decision is drawn through `Choices`, so a
model is a list of small numbers, and `reduce.reduce` makes that list smaller. From the command
line: `python -m tests.instruments.generate --seed 7`.
"""

from __future__ import annotations
