"""The writers of rewrites: authors of nodes, idioms, branches, and the cleaning of written
nodes."""

from __future__ import annotations
