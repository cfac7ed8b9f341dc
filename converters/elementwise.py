"""Steps of ops that work element by element."""

from __future__ import annotations

from converters.steps import identical

for _op in ("Max", "Mean", "Min", "Sum"):
    identical(_op, 8, because="inputs of one shape, as before, broadcast to that shape")

for _op in ("Greater", "Less", "PRelu"):
    identical(_op, 9)
