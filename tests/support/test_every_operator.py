"""Each operator of the installed onnx has its place in each part of this tool, or a reason.

A newer onnx has operators that fail these tests, and those of the table of operators and of the
steps of opsets, until each has its place: CONTRIBUTING.md, "A new operator".
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from onnx import defs

from passes import compare
from passes.support.operators import Ability
from passes.support.reading import known_operators
from passes.testing import as_model
from tests.vectorize.looping import refused
from tests.written import changed

PAGE = Path(__file__).parents[2] / "docs/operators.md"
#: Operators that are refused in a body that is to run for all rows, by what they are about: they
#: broadcast along no further axis, and nobody has asked for a rule.
_NOT_BATCHED = {
    "sizes alone": "BlackmanWindow HammingWindow HannWindow MelWeightMatrix",
    "strings and files": "ImageDecoder RegexFullMatch StringConcat StringNormalizer StringSplit",
    "counts of words": "TfIdfVectorizer",
    "images and boxes, a batch of its own": "AffineGrid CenterCropPad Col2Im MaxRoiPool MaxUnpool",
    "boxes that are kept, as many as there are": "NonMaxSuppression RoiAlign",
    "the losses of training": "NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss",
    "signals": "DFT STFT",
    "language models, with states": "CausalConvWithState LinearAttention TensorScatter",
    "a gate, which older opsets write out": "SwiGLU",
}
#: Operators that the reference executor does not run.
_NOT_EXECUTED = {"Multinomial"}  # onnx has no kernel, and its document does not tell the draws
_BODY = "g (float[2] x) => (float[2] y) { y = Op (x) }"


@cache
def _without(ability: str) -> set[str]:
    """The operators of ONNX, but for deprecated ones, for which a part can do nothing."""

    def lacks(each: Ability) -> bool:
        return each.name == ability and not each.holds

    known = [one for one in known_operators(domain="ai.onnx").operators if not one.deprecated]
    assert {one.name for one in known} >= {"Gather", "Scan"}
    return {one.name for one in known if any(map(lacks, one.abilities))}


def test_each_has_a_batch_rule_or_a_reason_for_none() -> None:
    reasons = {name for names in _NOT_BATCHED.values() for name in names.split()}
    new = sorted(_without("batches") - reasons)
    assert not new, (
        f"{', '.join(new)}: no rule in passes/vectorize/ops: add one, or the name and the reason "
        "to _NOT_BATCHED here; CONTRIBUTING.md, 'A new operator'"
    )
    assert reasons <= _without("batches"), "what has a rule is not in _NOT_BATCHED"


def test_what_has_no_batch_rule_is_refused() -> None:
    for names in _NOT_BATCHED.values():
        for name in names.split():
            body = changed(_BODY, {"Op": name})
            assert refused(body, "x", defs.onnx_opset_version()) == "no-batching-rule", name


def test_each_is_executed_or_has_a_reason_why_not() -> None:
    new = sorted(_without("executes") - _NOT_EXECUTED)
    assert not new, (
        f"{', '.join(new)}: neither onnx nor passes/verify/reference/ops has a kernel: add one, or "
        "the name and the reason to _NOT_EXECUTED here; CONTRIBUTING.md, 'A new operator'"
    )
    assert _without("executes") == _NOT_EXECUTED, "what has a kernel is not in _NOT_EXECUTED"


def test_what_is_not_executed_is_not_compared() -> None:
    model = as_model("""<ir_version: 10, opset_import: ["" : 21]>
        g (float[1,3] x) => (int32[1,1] y) { y = Multinomial <seed = 1.0> (x) }""")
    assert compare(model, model, executor="reference").verdict == "not-compared"


def test_each_is_on_the_page() -> None:
    page = PAGE.read_text()
    names = {one.name for one in defs.get_all_schemas() if one.domain == ""}
    missing = sorted(name for name in names if f"\n| {name} | " not in page)
    assert not missing, "python -m passes.support.document docs/operators.md"
