"""Rules about sequences and optionals, which become plain tensors."""

from __future__ import annotations
