"""Checks the outcome of rewrites, its types and shapes too, and names the rewrite to blame."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from onnx import ModelProto

from passes.check import check_outcome
from passes.engine.rounds import Rewritten, Round
from passes.errors import BadModel
from passes.ir.model import Model
from passes.rule import BrokenRule
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


def check_edits(round_: Round) -> None:
    """Check the outcome of a round in which rules of other packages rewrote.

    Raises:
        BrokenRule: one of their Edits is invalid.
    """
    foreign = [rewritten for rewritten in round_.rewritten if not rewritten.rule.is_built_in]
    sentence = foreign and _form_objection(round_.proto)
    if sentence:
        culprit = _failing(round_, foreign, _form_objection) or foreign[0]
        raise BrokenRule(
            f"the rule {culprit.rule.name!r} returned an invalid Edit at {culprit.place.path}: "
            f"{sentence}"
        )


def _form_objection(model: ModelProto) -> str:
    """Return the sentence of `BadModel` if a model is invalid, apart from its types; else ""."""
    try:
        check_outcome(Model(model))
    except BadModel as error:
        return str(error)
    return ""


def _culprit(rounds: Sequence[Round]) -> str:
    """The rewrite, or else the rules, after which the check fails; as the start of a sentence."""
    for round_ in rounds:
        if not full_objection(round_.proto) or full_objection(round_.model.proto):
            continue
        failing = _failing(round_, round_.rewritten, full_objection)
        if failing is not None:
            return f"{failing.place.path}: after the rule {failing.rule.name} "
        rules = dict.fromkeys(rewritten.rule.name for rewritten in round_.rewritten)
        return f"after the rule {', '.join(rules)} "
    return "with its inputs bound, "  # nothing else happens before the rules


def _failing(
    round_: Round, rewrites: Sequence[Rewritten], objection: Callable[[ModelProto], str]
) -> Rewritten | None:
    """The first rewrite to whose region there is an objection only afterwards, if one is found."""
    for rewritten in rewrites:
        try:
            region = cut(round_, rewritten)
        except CannotCut:
            continue
        if objection(region.after) and not objection(region.before):
            return rewritten
    return None
