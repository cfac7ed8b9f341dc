"""Gives the values of a model the element types that are asked for: what the command `cast` does
after its model is converted."""

from __future__ import annotations

from dataclasses import replace

from onnx import ModelProto

from passes.choices import Retyping, RuleOptions
from passes.engine.outcome import LeftOut
from passes.errors import NotProduced
from passes.ir.model import Model
from passes.onnxruntime.releases import Release
from passes.reports.precision import Casting
from passes.reports.report import Record, Report, Size


class NotCast(Exception):
    """A model cannot have the element types that are asked for: the path of a node or value, its
    operator, a code and a sentence."""

    def __init__(self, path: str, op: str, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.path, self.op, self.code, self.sentence = path, op, code, sentence


def deliver(
    original: Model,
    proto: ModelProto,
    report: Report,
    options: RuleOptions,
    release: Release | None,
) -> tuple[ModelProto, Report]:
    """Return the outcome with the element types that are asked for, and the report on what became
    of them; the outcome as it is if no value or weight gets another type.

    Raises:
        NotProduced: it cannot have them.
    """
    model, retyping = Model(proto, original.path), options.retyping or Retyping()
    try:
        retyped, casts = cast(model, retyping, options.left_out)
    except NotCast as error:
        refused = Record("cast", error.path, error.op, "refused", "", error.code, error.sentence)
        report = replace(report, records=[*report.records, refused])
        raise NotProduced(report.refusal, report) from error
    report = replace(report, casts=casts)
    if not any(one.changes for one in casts):
        return proto, report
    return retyped, replace(report, sizes=(report.sizes[0], Size.of(Model(retyped))))


def cast(model: Model, retyping: Retyping, left_out: LeftOut) -> tuple[ModelProto, list[Casting]]:
    """Return a model, which has no functions, with the element types that are asked for, and what
    became of each of them. The nodes that are left out, by `cast` and path, keep theirs.

    Raises:
        NotCast: it cannot have them.
    """
    raise NotCast("main", "graph", "type", "no element type is supported yet")
