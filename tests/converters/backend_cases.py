"""onnx's backend test cases, stamped with older opsets in which they mean the same."""

from __future__ import annotations

from dataclasses import dataclass

import onnx
from onnx import ModelProto
from onnx_cases import Case

from passes.converters import table
from passes.converters.steps import Identical
from passes.ir import scope as scoping
from passes.ir.model import Model
from passes.ir.operators import is_onnx_domain
from passes.ir.versions import OLDEST_OPSET

#: The newest opset that onnxruntime loads, and the newest that onnx knows.
TARGET, NEWEST = 26, onnx.defs.onnx_opset_version()
#: The newest IR version that onnxruntime loads; what came later no case needs.
_LOADED_IR = 13


@dataclass(frozen=True)
class Stamped:
    """A case at one opset."""

    case: Case
    model: ModelProto
    opset: int

    @property
    def target(self) -> int:
        """What it is converted to: `TARGET` unless it is newer itself."""
        return TARGET if self.opset < TARGET else NEWEST

    def __str__(self) -> str:
        return f"{self.case.name} at {self.opset}"


def at_own_opset(case: Case) -> Stamped | None:
    """A case as it is; None if it has no ops of the standard domain, or is older than 7."""
    own = Model(case.model).opset()
    return _at(case, own) if own >= OLDEST_OPSET else None


def at_oldest_opset(case: Case) -> Stamped | None:
    """A case at the oldest opset in which all of its nodes mean the same.

    None if that is its own.
    """
    own = Model(case.model).opset()
    oldest = _oldest(case.model, own)
    return None if oldest is None else _at(case, oldest)


def main_op(case: Case) -> str:
    """The op of the last node, which most cases are about."""
    return case.model.graph.node[-1].op_type if case.model.graph.node else ""


def _at(case: Case, opset: int) -> Stamped:
    return Stamped(case, _stamped(case.model, opset), opset)


def _oldest(model: ModelProto, own: int) -> int | None:
    """The oldest opset, older than its own, that the checker takes; None if there is none."""
    found = None
    for opset in range(own - 1, OLDEST_OPSET - 1, -1):
        if not all(_same_step(op, opset + 1) for op in ops_of(model)):
            break
        if _is_valid(_stamped(model, opset)):
            found = opset
    return found


def ops_of(model: ModelProto) -> set[str]:
    """The ops of the standard domain, at any depth."""
    own = {function.name for function in model.functions}
    return {
        place.node.op_type
        for place in scoping.walk_model(model)
        if is_onnx_domain(place.node.domain) and place.node.op_type not in own
    }


def _same_step(op: str, version: int) -> bool:
    """Whether a node of the opset before `version` is one of `version` as it stands."""
    steps = table.steps(op, version - 1, version)
    return all(isinstance(step, Identical) for step in steps)


def _stamped(model: ModelProto, opset: int) -> ModelProto:
    copy = ModelProto()
    copy.CopyFrom(model)
    for imports in (copy.opset_import, *(one.opset_import for one in copy.functions)):
        for entry in imports:
            if is_onnx_domain(entry.domain):
                entry.version = opset
    if opset <= TARGET:
        copy.ir_version = min(copy.ir_version, _LOADED_IR)
    return copy


def _is_valid(model: ModelProto) -> bool:
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError, RuntimeError):
        return False
    return True
