"""The Scan-8 rule: which strategy is taken, and that all of them give the same answers."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from passes.choices import RuleOptions
from passes.commands.schedules import SCHEDULES
from passes.engine.outcome import Pass
from passes.errors import NotProduced
from passes.ir import scope as scoping
from passes.rule import load_rules
from passes.session import Session
from passes.testing import assert_refused, assert_rewrite, options_of
from tests.written import changed

pytestmark = pytest.mark.sampled

GOLDEN = Path(__file__).parents[2] / "golden_models/upgrade"
CASES = sorted(GOLDEN.glob("*.before.onnxtxt"))
#: What `unroll` may refuse with, `vectorize` for a body that calls what has no rule, and `mask` for
#: one that may fail after the end of a row.
MAY_REFUSE = {"batch-not-static", "no-batching-rule", "not-speculatable"}

SUM = """<ir_version: 4, opset_import: ["" : 8]>
    sums ({lens}float[B,2] h, float[B,T,2] x) => (float[B,2] y, float[B,T,2] z) {{
       y, z = Scan <num_scan_inputs = 1, body = step (float[2] s, float[2] n) =>
          (float[2] t, float[2] o) {{ {body} }}> ({l}, h, x) }}"""


def model(body: str, *, ragged: bool = False) -> str:
    lens = "int64[B] lens, " if ragged else ""
    return SUM.format(lens=lens, l="lens" if ragged else '""', body=body)


def strategy(text: str | onnx.ModelProto, opset: int = 21, **options: str) -> str:
    """What the report says of the only Scan; nothing is executed."""
    proto = onnx.parser.parse_model(text) if isinstance(text, str) else text
    report = (
        Session([Pass(SCHEDULES["upgrade"], opset, options_of(options))], None).run(proto).report
    )
    (record,) = [one for one in report.records if one.rule == "scan-8"]
    return record.note


def test_auto_takes_the_whole_batch_at_once() -> None:
    assert strategy(model("t = Add (s, n) o = Mul (t, n)")) == "vectorize"


def test_below_opset_13_auto_nests() -> None:
    assert strategy(model("t = Add (s, n) o = Mul (t, n)"), opset=12) == "nest"


def test_where_an_op_has_no_rule_auto_nests_and_says_why() -> None:
    body = "t = Add (s, n) k = Cast <to = 7> (n) e = Expand (n, k) m = ReduceSum (e) o = Mul (n, m)"
    note = strategy(model(body))
    assert note.startswith("nest, since vectorize refused: main/scan_0: Expand")


def test_a_random_op_refuses_to_be_vectorised() -> None:
    body = "t = Add (s, n) r = RandomUniformLike (n) o = Mul (t, r)"
    assert "vectorize refused" in strategy(model(body))
    assert_refused(model(body), "random", opset=21, options={"batch": "vectorize"})


def test_a_batch_of_1_needs_no_loop_over_it() -> None:
    text = model("t = Add (s, n) o = Mul (t, n)").replace("[B,", "[1,")
    assert strategy(text) == "unroll"


def test_below_opset_13_vectorize_is_refused() -> None:
    text = model("t = Add (s, n) o = Mul (t, n)")
    assert_refused(text, "opset-too-old", opset=12, options={"batch": "vectorize"})


def test_a_body_that_may_fail_is_fed_what_it_saw() -> None:
    """Integer division by what lies behind the lengths, whatever lies there."""
    text = """<ir_version: 4, opset_import: ["" : 8]>
        quotients (int64[B] lens, int64[B] h, int64[B,T] x) => (int64[B] y, int64[B,T] z) {
           y, z = Scan <num_scan_inputs = 1, directions = [1], body = step (int64 s, int64 n) =>
              (int64 t, int64 o) { t = Add (s, n)
                 c = Constant <value = int64 {100}> () o = Div (c, n) }> (lens, h, x) }"""
    assert strategy(text) == "vectorize"
    assert_rewrite(text, opset=21, options={"batch": "vectorize"})


def test_ragged_rows_of_a_safe_body_carry_no_mask() -> None:
    text = model("t = Add (s, n) o = Mul (t, n)", ragged=True)
    after = assert_rewrite(text, opset=21, options={"batch": "vectorize"}).model
    loop = next(node for node in _nodes(after.graph) if node.op_type == "Scan")
    body = next(one.g for one in loop.attribute if one.name == "body")
    assert "Where" not in {node.op_type for node in body.node}


def _nodes(graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    found = []
    for node in graph.node:
        found.append(node)
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                found += _nodes(attribute.g)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.name.split(".")[0])
@pytest.mark.parametrize("batch", ["vectorize", "mask", "nest", "unroll"])
def test_every_golden_model_through_every_strategy(path: Path, batch: str) -> None:
    before = onnx.load(path)
    refused = refusals(before, batch)
    assert refused <= MAY_REFUSE
    if not refused:
        assert_rewrite(before, opset=26, options={"batch": batch})


def refusals(before: onnx.ModelProto, batch: str) -> set[str]:
    """The codes with which a strategy refuses a model."""
    try:
        Session([Pass(SCHEDULES["upgrade"], 26, RuleOptions(batch=batch))], None).run(before)
    except NotProduced as error:
        return {record.code for record in error.report.refusals}
    return set()


def test_the_docstring_names_every_code_that_the_rule_gives() -> None:
    documented = set(load_rules()["scan-8"].refusal_codes)
    assert {"batch-not-static", "opset-too-old", "random", "unknown-rank"} <= documented


@pytest.mark.parametrize(
    ("batch", "wide", "called"), [("B", "N", "B"), ("B", "B", "scan_batch"), ("3", "N", 3)]
)
def test_the_body_for_all_rows_declares_the_size_of_the_batch(
    batch: str, wide: str, called: str | int
) -> None:
    """Where a row has a size by that name, which may be another one, it is called otherwise."""
    text = """
    <ir_version: 4, opset_import: ["" : 8]>
    sums (float[B,2] h0, float[B,T,2] x, float[B,T,N] z) => (float[B,2] h, float[B,T,2] y) {
        h, y = Scan <num_scan_inputs = 2, body = step (float[2] s, float[2] x_t, float[N] z_t)
            => (float[2] s_out, float[2] y_t) {
            m = ReduceMax <keepdims = 0> (z_t)
            a = Add (s, x_t)
            b = Max (a, m)
            s_out = Tanh (b)
            y_t = Neg (b)
        }> ("", h0, x, z)
    }
    """
    text = changed(text, {"[B,": f"[{batch},", "T,N]": f"T,{wide}]", "[N]": f"[{wide}]"})
    result = assert_rewrite(text, opset=21, options={"assume": "non-empty,valid-inputs"})
    (scan,) = [node for node in result.model.graph.node if node.op_type == "Scan"]
    ((_, body),) = scoping.subgraphs(scan)
    firsts = [value.type.tensor_type.shape.dim[0] for value in (*body.input, *body.output)]
    assert {one.dim_param or one.dim_value or "" for one in firsts} == {called}
