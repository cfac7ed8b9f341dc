"""Shows two models equal for as many inputs as possible, without executing them."""

from __future__ import annotations
