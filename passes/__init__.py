"""Rewrites the control flow of ONNX models, and executes every rewrite before and after.

    import passes

    result = passes.upgrade("model.onnx")
    result.model   # a ModelProto at the new opset, verified
    result.report  # what was rewritten, and how it was verified

`passes.upgrade` and everything else public is loaded when first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from passes.api import (
        convert,
        expand,
        hoist,
        inspect,
        lower,
        lowest_opset,
        optimize,
        prove,
        raise_,
        reroll,
        simplify,
        unroll,
        upgrade,
    )
    from passes.bisection.bisecting import bisect
    from passes.builds.batch import run
    from passes.choices import DEFAULT_OPSET
    from passes.commands.pipeline import Pipeline
    from passes.comparing import compare
    from passes.errors import BadModel, Mismatch, NotProduced, NotVerified, PassesError
    from passes.inspection.inspection import Inspection
    from passes.reports.proof import Proof
    from passes.reports.report import Report
    from passes.rule import BrokenRule, Edit, NothingToDo, Refused, Site, register
    from passes.session import Result
    from passes.streaming.close import close
    from passes.streaming.stream import stream
    from passes.support.reading import known_operators
    from passes.targets.checking import check_target

__version__ = "0.1.0"

_HOMES = {
    "DEFAULT_OPSET": "passes.choices",
    "convert": "passes.api",
    "expand": "passes.api",
    "hoist": "passes.api",
    "inspect": "passes.api",
    "lower": "passes.api",
    "lowest_opset": "passes.api",
    "optimize": "passes.api",
    "prove": "passes.api",
    "raise_": "passes.api",
    "reroll": "passes.api",
    "simplify": "passes.api",
    "unroll": "passes.api",
    "upgrade": "passes.api",
    "bisect": "passes.bisection.bisecting",
    "run": "passes.builds.batch",
    "check_target": "passes.targets.checking",
    "compare": "passes.comparing",
    "close": "passes.streaming.close",
    "stream": "passes.streaming.stream",
    "known_operators": "passes.support.reading",
    "BadModel": "passes.errors",
    "Pipeline": "passes.commands.pipeline",
    "PassesError": "passes.errors",
    "Inspection": "passes.inspection.inspection",
    "Report": "passes.reports.report",
    "BrokenRule": "passes.rule",
    "Edit": "passes.rule",
    "NothingToDo": "passes.rule",
    "Proof": "passes.reports.proof",
    "Refused": "passes.rule",
    "Site": "passes.rule",
    "register": "passes.rule",
    "Mismatch": "passes.errors",
    "NotProduced": "passes.errors",
    "NotVerified": "passes.errors",
    "Result": "passes.session",
}

__all__ = [
    "DEFAULT_OPSET",
    "BadModel",
    "BrokenRule",
    "Edit",
    "Inspection",
    "Mismatch",
    "NotProduced",
    "NotVerified",
    "NothingToDo",
    "PassesError",
    "Pipeline",
    "Proof",
    "Refused",
    "Report",
    "Result",
    "Site",
    "bisect",
    "check_target",
    "close",
    "compare",
    "convert",
    "expand",
    "hoist",
    "inspect",
    "known_operators",
    "lower",
    "lowest_opset",
    "optimize",
    "prove",
    "raise_",
    "register",
    "reroll",
    "run",
    "simplify",
    "stream",
    "unroll",
    "upgrade",
]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    # onnx takes a fifth of a second to import: `python -m passes --help` does without.
    if name not in _HOMES:
        raise AttributeError(f"module 'passes' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
