"""Where two models that ought to do the same part, and why."""

from __future__ import annotations
