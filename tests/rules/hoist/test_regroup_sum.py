"""regroup-sum: in a loop, terms that depend on no carried value are added first."""

from __future__ import annotations

import pytest
from onnx import ModelProto, NodeProto

from passes.commands.schedules import SCHEDULES
from passes.engine.outcome import Pass
from passes.session import Session
from passes.testing import as_model, assert_refused, assert_rewrite
from tests.written import changed

pytestmark = pytest.mark.sampled


#: A loop whose body makes `s` of its state and an element; `nodes` of the tests compute it.
RNN = """
<ir_version: 8, opset_import: ["" : 18]>
rnn (float[B,4] h0, float[T,B,4] x, float[4] bias, float[4,4] R, float[4,4] P)
    => (float[B,4] h, float[T,B,4] y)
{
    h, y = Scan (h0, x) <num_scan_inputs = 1,
        body = step (float[B,4] h_in, float[B,4] x_t) => (float[B,4] h_out, float[B,4] y_t) {
        b = MatMul (h_in, R)  s = Add (b, x_t)
        h_out = Clip (s)
        y_t = Identity (h_out)
    }>
}
"""


def rnn(nodes: str) -> str:
    return changed(RNN, {"b = MatMul (h_in, R)  s = Add (b, x_t)": nodes})


#: The bias is a constant.
FIXED = {"x, float[4] bias": "x", "y)\n{": "y)\n<float[4] bias = {1, 3, 2, 0}>\n{"}


def body_of(model: ModelProto) -> list[NodeProto]:
    (loop,) = (node for node in model.graph.node if node.op_type in ("Scan", "Loop"))
    return list(next(attribute.g for attribute in loop.attribute if attribute.name == "body").node)


def written(node: NodeProto) -> str:
    return f"{node.output[0]} = {node.op_type} ({', '.join(node.input)})"


def regrouped(text: str, **options: object) -> list[str]:
    """The nodes that compute `s` after the rule, verified."""
    result = assert_rewrite(text, pipeline="regroup-sum", options=options)
    assert [record.rule for record in result.report.records] == ["regroup-sum"]
    return [written(node) for node in body_of(result.model)][:-2]


def assert_unchanged(text: str) -> None:
    before = as_model(text)
    result = Session([Pass(SCHEDULES["regroup-sum"])], None).run(before)
    assert result.report.records == []
    assert list(map(written, body_of(result.model))) == list(map(written, body_of(before)))


PRODUCT = "b = MatMul (h_in, R)"


@pytest.mark.parametrize(
    "nodes",
    [
        f"{PRODUCT}  c = Add (x_t, b)  s = Add (c, bias)",
        f"{PRODUCT}  c = Add (b, x_t)  s = Add (bias, c)",
        f"{PRODUCT}  c = Add (bias, b)  s = Add (x_t, c)",
        f"{PRODUCT}  s = Sum (x_t, b, bias)",
        f"{PRODUCT}  c = Sum (b)  d = Add (x_t, c)  s = Add (d, bias)",
    ],
)
def test_a_bias_and_an_element_are_added_first(nodes: str) -> None:
    first, early, last = regrouped(rnn(nodes))
    assert first == "b = MatMul (h_in, R)"
    assert early in ("step/add = Add (x_t, bias)", "step/add = Add (bias, x_t)")
    assert last == "s = Add (b, step/add)"


def test_terms_of_a_long_chain_keep_their_order() -> None:
    nodes = f"{PRODUCT}  c = Add (x_t, b)  d = Add (c, bias)  e = Add (d, h0)  s = Add (e, x_t)"
    assert regrouped(rnn(nodes)) == [
        "b = MatMul (h_in, R)",
        "step/add = Add (x_t, bias)",
        "step/add_1 = Add (step/add, h0)",
        "step/add_2 = Add (step/add_1, x_t)",
        "s = Add (b, step/add_2)",
    ]


def test_a_term_may_be_an_early_sum_itself() -> None:
    nodes = f"e = Mul (x_t, bias)  {PRODUCT}  c = Add (e, b)  d = Add (bias, x_t)  s = Add (c, d)"
    *_, early, last = regrouped(rnn(nodes))
    assert early == "step/add = Add (e, d)"
    assert last == "s = Add (b, step/add)"


def test_several_products_are_added_after_the_early_terms() -> None:
    nodes = f"{PRODUCT}  g = MatMul (h_in, P)  c = Add (b, x_t)  d = Add (g, bias)  s = Add (c, d)"
    assert regrouped(rnn(nodes))[2:] == [
        "step/add = Add (x_t, bias)",
        "step/add_1 = Add (b, step/add)",
        "s = Add (step/add_1, g)",
    ]


def test_a_sum_that_is_read_elsewhere_is_a_term_of_its_own() -> None:
    nodes = f"{PRODUCT}  c = Add (x_t, b)  d = Add (c, bias)  e = Add (d, x_t)  s = Mul (c, e)"
    assert_refused(rnn(nodes), "reassociation", pipeline="regroup-sum")
    assert_unchanged(rnn(f"{PRODUCT}  c = Add (x_t, b)  d = Add (c, bias)  s = Mul (c, d)"))


class TestGemm:
    """What a Gemm adds to its product is a term."""

    @staticmethod
    def step(gemm: str) -> str:
        return rnn(f"b = Gemm {gemm}  s = Add (b, x_t)")

    def test_its_addend_is_added_first(self) -> None:
        assert regrouped(self.step("(h_in, R, bias)")) == [
            "step/matmul = MatMul (h_in, R)",
            "step/add = Add (x_t, bias)",
            "s = Add (step/matmul, step/add)",
        ]

    def test_its_weights_may_be_turned(self) -> None:
        turned, product, *_ = regrouped(self.step("<transB = 1> (h_in, R, bias)"))
        assert turned == "step/transpose = Transpose (R)"
        assert product == "step/matmul = MatMul (h_in, step/transpose)"

    def test_scales_of_one_are_none(self) -> None:
        assert len(regrouped(self.step("<alpha = 1.0, beta = 1.0> (h_in, R, bias)"))) == 3

    @pytest.mark.parametrize(
        "gemm",
        [
            "(h_in, R)",
            "<beta = 0.5> (h_in, R, bias)",
            "<alpha = 2.0> (h_in, R, bias)",
            "(h_in, R, h_in)",
            "(x_t, R, h_in)",
            "<transB = 1> (R, h_in, bias)",
            "<transA = 1> (R, h_in, bias)",
        ],
    )
    def test_any_other_is_one_term(self, gemm: str) -> None:
        assert_unchanged(changed(self.step(gemm), {"B,4]": "4,4]"}))

    def test_one_that_is_added_twice_is_two_terms_as_it_is(self) -> None:
        nodes = "b = Gemm (h_in, R, bias)  s = Sum (b, b, x_t, bias)"
        assert regrouped(rnn(nodes)) == [
            "b = Gemm (h_in, R, bias)",
            "step/add = Add (x_t, bias)",
            "step/add_1 = Add (b, step/add)",
            "s = Add (step/add_1, b)",
        ]

    def test_one_that_is_read_elsewhere_is_one_term(self) -> None:
        assert_unchanged(rnn("b = Gemm (h_in, R, bias)  c = Add (b, x_t)  s = Mul (b, c)"))

    def test_one_that_the_caller_of_a_function_turns_is_one_term(self) -> None:
        text = """
        <ir_version: 10, opset_import: ["" : 21, "local" : 1]>
        rnn (float[2,2] h0, float[T,2,2] x, float[2] bias, float[2,2] R) => (float[2,2] h)
            { h = local.run <turned = 1> (h0, x, bias, R) }
        <domain: "local", opset_import: ["" : 21]> run <turned> (h0, x, bias, R) => (h) {
            h = Scan (h0, x) <num_scan_inputs = 1, body = step (h_in, x_t) => (h_out) {
                b = Gemm <transA : int = @turned> (h_in, R, bias)  s = Add (b, x_t)
                h_out = Tanh (s) }>
        }
        """
        assert assert_rewrite(text, pipeline="regroup-sum").report.records == []

    def test_another_term_is_regrouped_with_it_as_it_is(self) -> None:
        nodes = "b = Gemm <beta = 0.5> (h_in, R, bias)  c = Add (b, x_t)  s = Add (c, bias)"
        assert regrouped(rnn(nodes)) == [
            "b = Gemm (h_in, R, bias)",
            "step/add = Add (x_t, bias)",
            "s = Add (b, step/add)",
        ]


@pytest.mark.parametrize("kind", ["int32", "int64", "uint64"])
def test_whole_numbers_are_regrouped_whatever_they_are(kind: str) -> None:
    nodes = "a = Add (h_in, x_t)  s = Add (a, bias)"
    early, last = regrouped(changed(rnn(nodes), {"float": kind, "Clip (s)": "Mul (s, s)"}))
    assert (early, last) == ("step/add = Add (x_t, bias)", "s = Add (h_in, step/add)")


@pytest.mark.parametrize("kind", ["float16", "double"])
def test_other_floats_are_as_floats(kind: str) -> None:
    nodes = f"{PRODUCT}  c = Add (x_t, b)  s = Add (c, bias)"
    assert len(regrouped(changed(rnn(nodes), {"float": kind}))) == 3
    lone = changed(rnn("c = Add (x_t, h_in)  s = Add (c, bias)"), FIXED)
    lone = changed(lone, {"float": kind})
    assert_refused(lone, "reassociation", pipeline="regroup-sum")
    assert len(regrouped(lone, allow_reassociation="yes")) == 2


def test_a_state_and_a_product_need_permission() -> None:
    nodes = f"{PRODUCT}  c = Add (h_in, b)  d = Add (c, x_t)  s = Add (d, bias)"
    text = changed(rnn(nodes), FIXED)
    assert_refused(text, "reassociation", pipeline="regroup-sum")
    assert regrouped(text, allow_reassociation="yes")[2:] == [
        "step/add_1 = Add (h_in, step/add)",
        "s = Add (step/add_1, b)",
    ]


@pytest.mark.parametrize(("kind", "most"), [("float", "2e31"), ("double", "2e292")])
def test_terms_whose_sum_may_overflow_stay(kind: str, most: str) -> None:
    """The sum of the largest number and half a unit in its last place is infinite."""
    lone = changed(rnn("c = Add (x_t, h_in)  s = Add (c, bias)"), FIXED)
    lone = changed(lone, {"float[": f"{kind}[", "{1, 3": f"{{{most}, 3"})
    options = {"allow_reassociation": "yes"}
    assert_refused(lone, "overflow", pipeline="regroup-sum", options=options)


def test_a_sum_inside_another_one_is_regrouped_where_that_may_not_be() -> None:
    text = rnn(f"{PRODUCT}  c = Add (x_t, b)  d = Add (c, bias)  s = Add (d, h_in)")
    assert regrouped(text) == [
        "b = MatMul (h_in, R)",
        "step/add = Add (x_t, bias)",
        "d = Add (b, step/add)",
        "s = Add (d, h_in)",
    ]


@pytest.mark.parametrize(
    "nodes",
    [
        f"{PRODUCT}  s = Add (b, x_t)",
        f"{PRODUCT}  c = Add (x_t, bias)  s = Add (b, c)",
        "c = Add (x_t, bias)  s = Mul (c, h_in)",
        f"{PRODUCT}  c = Add (x_t, b)  s = Sub (c, bias)",
        "c = Add (h_in, h_in)  s = Mul (c, bias)",
    ],
)
def test_sums_without_separated_early_terms_are_left(nodes: str) -> None:
    assert_unchanged(rnn(nodes))


def test_a_value_that_is_added_twice_counts_twice() -> None:
    nodes = f"{PRODUCT}  c = Add (b, x_t)  d = Add (c, bias)  s = Add (d, d)"
    assert regrouped(rnn(nodes))[1:] == [
        "step/add = Add (x_t, bias)",
        "d = Add (b, step/add)",
        "s = Add (d, d)",
    ]
    nodes = f"{PRODUCT}  c = Add (b, x_t)  s = Sum (c, c, bias, x_t)"
    assert_refused(rnn(nodes), "reassociation", pipeline="regroup-sum")
    nodes = f"{PRODUCT}  c = Add (b, b)  d = Add (c, bias)  s = Add (d, x_t)"
    assert regrouped(rnn(nodes))[1:] == [
        "step/add = Add (bias, x_t)",
        "step/add_1 = Add (b, step/add)",
        "s = Add (step/add_1, b)",
    ]


def test_a_sum_that_a_branch_reads_is_a_term_of_its_own() -> None:
    text = rnn(
        f"""{PRODUCT}  c = Add (b, x_t)  d = Add (c, bias)  on = Constant <value = bool {{1}}> ()
        e = If (on) <then_branch = t () => (float[B,4] p) {{ p = Neg (c) }},
                     else_branch = e () => (float[B,4] q) {{ q = Abs (c) }}>
        s = Mul (d, e)"""
    )
    assert_unchanged(text)


def test_in_a_loop_that_counts_the_number_of_the_iteration_is_early() -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 18]>
    count (int64 n, float[2,2] h0, float[2,2] R, float[2] bias) => (float[2,2] h) {
        h = Loop (n, , h0) <body = one (int64 i, bool go, float[2,2] h_in)
            => (bool on, float[2,2] h_out) {
            on = Identity (go)  at = Cast <to = 1> (i)
            b = MatMul (h_in, R)  c = Add (b, at)  s = Add (c, bias)  h_out = Tanh (s) }>
    }
    """
    result = assert_rewrite(text, pipeline="regroup-sum")
    assert [written(node) for node in body_of(result.model)][3:5] == [
        "one/add = Add (at, bias)",
        "s = Add (b, one/add)",
    ]


def test_a_convolution_is_a_product() -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 18]>
    conv (float[1,2,5] h0, float[T,1,2,5] x, float[2,2,3] K, float[2,1] bias)
        => (float[1,2,5] h) {
        h = Scan (h0, x) <num_scan_inputs = 1, body = step (float[1,2,5] h_in, float[1,2,5] x_t)
            => (float[1,2,5] h_out) {
            b = Conv <pads = [1, 1]> (h_in, K)  c = Add (x_t, b)  s = Add (c, bias)
            h_out = Tanh (s) }>
    }
    """
    result = assert_rewrite(text, pipeline="regroup-sum")
    assert [node.op_type for node in body_of(result.model)] == ["Conv", "Add", "Add", "Tanh"]


def test_optimize_adds_the_bias_before_the_loop() -> None:
    text = rnn(f"a = MatMul (x_t, P)  {PRODUCT}  c = Add (a, b)  s = Add (c, bias)")
    result = assert_rewrite(text, pipeline="optimize")
    (loop,) = (node for node in result.model.graph.node if node.op_type == "Scan")
    kinds = [node.op_type for node in loop.attribute[0].g.node]
    assert kinds == ["MatMul", "Add", "Clip", "Identity"]
    assert "regroup-sum" in [record.rule for record in result.report.records]
