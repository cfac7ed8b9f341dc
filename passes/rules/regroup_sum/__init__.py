"""What a sum adds in every iteration is added up first."""

from __future__ import annotations
