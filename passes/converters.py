"""Locates `passes.converters` in a checkout without the link of that name: the folder `converters`
beside this package. An installed package has the folder itself, which comes first."""

from __future__ import annotations

from pathlib import Path

# a module with a path is a package
__path__ = [str(Path(__file__).parents[1] / "converters")]
