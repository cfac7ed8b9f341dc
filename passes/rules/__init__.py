"""The rules about loops, in rooms by what they do; each rule is located in the file of its name."""

from __future__ import annotations
