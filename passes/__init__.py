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
    from passes.choices import DEFAULT_OPSET
    from passes.commands.functions import (
        bisect,
        cast,
        check_target,
        close,
        compare,
        convert,
        expand,
        hoist,
        inspect,
        known_operators,
        lower,
        lowest_opset,
        optimize,
        prove,
        raise_,
        reroll,
        run,
        simplify,
        stream,
        unroll,
        upgrade,
    )
    from passes.commands.pipeline import Pipeline
    from passes.errors import BadModel, Mismatch, NotProduced, NotVerified, PassesError
    from passes.inspection.inspection import Inspection
    from passes.reports.proof import Proof
    from passes.reports.report import Report
    from passes.rule import BrokenRule, Edit, NothingToDo, Refused, Site, register
    from passes.session import Result

__version__ = "0.1.0"

#: Where names are that are not functions of commands.
_HOMES = {
    "DEFAULT_OPSET": "passes.choices",
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
    "cast",
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
    if name not in __all__:
        raise AttributeError(f"module 'passes' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES.get(name, "passes.commands.functions")), name)
