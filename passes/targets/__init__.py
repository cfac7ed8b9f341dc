"""Profiles of runtimes and compilers, and the findings that keep a model from running on one.

`profile` is the form of a profile, `profiles/` holds those of the package. `findings` lists what
is in the way of a model, `operators` and `control_flow` what of its nodes; `remedies` finds what
clears it.
"""

from __future__ import annotations
