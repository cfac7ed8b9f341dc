"""Gives the values of a model the element types that are asked for: what the command `cast` does
after its model is converted."""

from __future__ import annotations

from dataclasses import replace

from onnx import ModelProto, TensorProto

from passes.choices import Assumption, Half, Retyping, RuleOptions, Signature
from passes.engine.outcome import LeftOut
from passes.errors import NotProduced
from passes.ir.model import Model
from passes.onnxruntime.releases import Release
from passes.precision.defaults import float_seeds
from passes.precision.flow import Flow
from passes.precision.narrowing import Decision
from passes.precision.operands import Narrowing
from passes.precision.seeds import Reason, Seeds, grouped
from passes.precision.weights import stored
from passes.precision.whole_numbers import whole_number_seeds
from passes.precision.written import written
from passes.reports.precision import Casting
from passes.reports.report import Record, Report, Size

#: The element type of each kind of half precision.
_HALVES = {Half.float16: TensorProto.FLOAT16, Half.bfloat16: TensorProto.BFLOAT16}
#: The opset from which Loop, Scan and If take bfloat16.
_BODIES_TAKE_BFLOAT16 = 16


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
    needs, opset = _BODIES_TAKE_BFLOAT16, model.opset()
    if retyping.to == Half.bfloat16 and opset < needs:
        why = f"Loop, Scan and If take no bfloat16 below opset {needs}, and the model is at {opset}"
        refused = Record("cast", "main", "graph", "refused", "", "opset", why)
        report = replace(report, records=[*report.records, refused])
        raise NotProduced(report.refusal, report)
    retyped, casts = cast(model, options)
    report = replace(report, casts=casts)
    if not any(one.changes for one in casts):
        return proto, report
    return retyped, replace(report, sizes=(report.sizes[0], Size.of(Model(retyped))))


def cast(model: Model, options: RuleOptions) -> tuple[ModelProto, list[Casting]]:
    """Return a model, which has no functions, with the element types that are asked for, and what
    became of each of them. The nodes that are left out, by `cast` and path, keep float32; inputs
    and outputs of int64 keep their type.

    Raises:
        NothingMatches: a pattern of those that are to be kept, or not, matches no node.
    """
    retyping, left_out = options.retyping or Retyping(), options.left_out
    casts: list[Casting] = []
    if retyping.to:
        half = _HALVES[Half(retyping.to)]
        flow = Flow.of(model)
        seeds = float_seeds(flow, half, retyping.keep, retyping.half)
        seeds.steps.update(_left_out(flow, left_out))
        stays = retyping.io == Signature.keep
        change = Narrowing(TensorProto.FLOAT, half)
        model, one = _narrowed(model, Decision(flow, change, seeds, signature_stays=stays))
        casts.append(one)
    if retyping.weights:
        stay = None
        if left_out and not retyping.to:  # Casts change the paths of nodes without a name
            stay = Seeds(_left_out(Flow.of(model), left_out))
        proto, one = stored(model, retyping.weights, stay)
        model = Model(proto, model.path)
        casts.append(one)
    if retyping.int32:
        flow = Flow.of(model)
        inputs_fit = Assumption.int32_inputs in options.assume
        seeds = whole_number_seeds(flow, inputs_fit=inputs_fit)
        change = Narrowing(TensorProto.INT64, TensorProto.INT32, whole=False)
        model, one = _narrowed(model, Decision(flow, change, seeds, signature_stays=True))
        casts.append(one)
    return model.proto, casts


def _left_out(flow: Flow, left_out: LeftOut) -> dict[int, Reason]:
    """The nodes that are left out, by number."""
    if not left_out:
        return {}
    paths = {step.number: ("cast", flow.place(step).path) for step in flow.steps}
    return {at: Reason(*left_out[path]) for at, path in paths.items() if path in left_out}


def _narrowed(model: Model, decision: Decision) -> tuple[Model, Casting]:
    """The model with the types of a decision, and what it changed."""
    made, flow = written(decision), decision.flow
    stays = ((why, flow.place(step).path, [step.op]) for step, why in decision.kept())
    changed = Casting(*decision.change.names, made.values, made.weights, made.casts, grouped(stays))
    return Model(made.proto, model.path), changed
