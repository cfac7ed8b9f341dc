"""The rule that writes recurrent operators in plain ones."""

from __future__ import annotations
