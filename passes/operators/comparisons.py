"""Comparisons, and operators of truth values."""

from __future__ import annotations

from passes.operators.traits import rows

ROWS = rows("""
# operator     shape       work  fails folds values rounds besides
And            broadcast   light never any   exact  never  commutes logic
Equal          broadcast   light never any   exact  never  compares== commutes
Greater        broadcast   light never any   exact  never  compares=>
GreaterOrEqual broadcast   light never any   exact  never  compares=>=
IsInf          elementwise light never any   exact  never
IsNaN          elementwise light never any   exact  never
Less           broadcast   light never any   exact  never  compares=<
LessOrEqual    broadcast   light never any   exact  never  compares=<=
Not            elementwise light never any   exact  never  logic
Or             broadcast   light never any   exact  never  commutes logic
Xor            broadcast   light never any   exact  never  commutes logic
""")
