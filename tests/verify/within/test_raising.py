"""Nodes that are raised to float32 until no error is too large."""

from __future__ import annotations

from collections.abc import Sequence

import onnx
from onnx import ModelProto

from passes.choices import Retyping, RuleOptions, Signature
from passes.ir.model import Model
from passes.precision.casting import cast
from passes.verify.within.judging import Terms, judged
from passes.verify.within.raising import Raised, Search

CANCELS = """<ir_version: 10, opset_import: ["" : 21]>
g (float[3,8] x) => (float[3,8] y, float[3,8] z) <float large = {300}> {
    t = Tanh (x)  s = Mul (x, x)  a = Add (t, large)  b = Add (s, large)  d = Sub (a, b)
    y = Sin (d)  z = Exp (x)
}"""
OVERFLOWS = """<ir_version: 10, opset_import: ["" : 21]>
g (float[3,8] x) => (float[3,8] y) <float large = {1000}> {
    a = Mul (x, large)  b = Mul (a, a)  c = Sqrt (b)  y = Div (c, large)
}"""


def raised(text: str, bound: float, io: str = Signature.keep) -> Raised:
    """The nodes of a model that have to be in float32 for the error to be below `bound`."""
    model, retyping = Model(onnx.parser.parse_model(text)), Retyping("float16", io)

    def recast(paths: Sequence[str]) -> ModelProto:
        left_out = {("cast", path): ("max-error", "") for path in paths}
        return cast(model, RuleOptions(retyping=retyping, left_out=left_out))[0]

    terms = Terms(bound, "reference")
    first = judged(model, Model(recast(())), terms)
    found = Search(first, model, recast, bound, 20).run()
    if found.nodes:
        assert judged(model, Model(recast(list(found.nodes))), terms).within.holds
    return found


def test_a_sum_that_cancels_is_raised_with_the_nodes_of_its_operands() -> None:
    found = raised(CANCELS, 1e-2)
    assert set(found.nodes) == {"main/add_2", "main/add_3", "main/sub_4"}
    (sentence,) = set(found.nodes.values())
    assert sentence.startswith("operands are ")


def test_values_that_overflow_are_raised_first() -> None:
    found = raised(OVERFLOWS, 1e-2)
    assert list(found.nodes) == ["main/mul_1"]
    assert found.nodes["main/mul_1"].startswith("it overflows: the error is ")
    assert found.nodes["main/mul_1"].endswith(" in float32, infinite without")


def test_a_smaller_error_takes_more_nodes() -> None:
    assert set(raised(CANCELS, 1e-2).nodes) < set(raised(CANCELS, 2e-4).nodes)


def test_what_all_nodes_would_have_to_be_raised_for_cannot_be_had() -> None:
    found = raised(OVERFLOWS, 1e-7)
    assert not found.nodes
    assert found.why.startswith("the error is ")
    assert " unless " in found.why


def test_outputs_in_half_precision_bound_the_error() -> None:
    found = raised(CANCELS, 1e-6, Signature.cast)
    assert not found.nodes
    assert found.why.endswith("nodes are in float32")
