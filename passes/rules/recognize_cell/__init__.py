"""A Scan over the steps of a recurrent operator becomes that operator."""

from __future__ import annotations
