"""Shows two models equal for all inputs, sizes and trip counts, without executing them."""

from __future__ import annotations
