"""The rules about loops, in rooms by what they do; importing this package registers them."""

from __future__ import annotations

from importlib import import_module
from pkgutil import walk_packages

for _found in walk_packages(__path__, f"{__name__}."):
    import_module(_found.name)
