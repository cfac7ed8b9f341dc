"""onnx's full check of an outcome, types and shapes included, and the rewrite that fails it."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import ModelProto

from passes.engine.rounds import Round
from passes.types.inference import light_model
from passes.types.shape_inference import objection
from passes.verify.rewrites.region import CannotCut, cut


def full_objection(model: ModelProto) -> str:
    """Return the objection of onnx's inference to the types and shapes of a model; "" if there is
    none."""
    return objection(light_model(model), check_types=True)


def invalidated(original: ModelProto, rounds: Sequence[Round], proto: ModelProto) -> str:
    """A sentence with the rewrite that is to blame if the original passes and the outcome
    does not; else ""."""
    sentence = full_objection(proto)
    if not sentence or full_objection(original):
        return ""
    return f"{_culprit(rounds)}the outcome is no valid ONNX model where the original is: {sentence}"


def _culprit(rounds: Sequence[Round]) -> str:
    """The rewrite, or else the rules, after which the check fails; as the start of a sentence."""
    for round_ in rounds:
        if not full_objection(round_.proto) or full_objection(round_.model.proto):
            continue
        for rewritten in round_.rewritten:
            try:
                region = cut(round_, rewritten)
            except CannotCut:
                continue
            if full_objection(region.after) and not full_objection(region.before):
                return f"{rewritten.place.path}: after the rule {rewritten.rule.name} "
        rules = dict.fromkeys(rewritten.rule.name for rewritten in round_.rewritten)
        return f"after the rule {', '.join(rules)} "
    return "with its inputs bound, "  # nothing else happens before the rules
