"""The rarer values, sizes and trip counts: each is drawn, and only where it does no harm."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import ModelProto, parser

from passes.verify import signature
from passes.verify.compare.exactness import recurs
from passes.verify.executor import Array
from passes.verify.inputs.draw import Drawer
from passes.verify.inputs.mentioned import Mentioned
from passes.verify.inputs.uses import are_data, are_indices, are_trips, uses_of


def model(text: str) -> ModelProto:
    return parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> g {text}')


def drawn(text: str, name: str) -> Iterator[tuple[str, Array]]:
    """What is drawn of one input of a model, by the label of the case."""
    made = model(text)
    uses, steady = uses_of(made), not recurs(made)
    drawer = Drawer(tuple(signature.inputs(made.graph)), uses=uses, steady=steady)
    for plan in drawer.plans():
        value = drawer.case(plan).feeds[name]
        assert isinstance(value, np.ndarray)
        yield plan.label, value


class TestWholeNumbers:
    def test_data_reaches_the_ends_of_its_type_and_what_other_types_lack(self) -> None:
        text = "(int64[N] k) => (int64[N] y) { s = Add (k, k)  y = Neg (s) }"
        values = {int(number) for _, value in drawn(text, "k") for number in value}
        assert {2**63 - 1, -(2**63)} <= values
        assert any(2**31 <= abs(number) < 2**53 for number in values)
        assert any(2**53 < abs(number) < 2**62 for number in values)

    def test_what_may_be_a_size_stays_small(self) -> None:
        text = """(int64[1] k) => (float[?] y) {
            s = Add (k, k)  y = ConstantOfShape (s) }"""
        assert not are_data(uses_of(model(text))["k"])
        assert max(abs(int(number)) for _, v in drawn(text, "k") for number in v) <= 40

    def test_what_a_body_reads_is_followed_no_further(self) -> None:
        text = """(int64 k, bool c) => (int64 y) {
            y = If (c) <then_branch = t () => (int64 p) { p = Neg (k) },
                else_branch = e () => (int64 q) { q = Identity (k) }> }"""
        assert not are_data(uses_of(model(text))["k"])

    def test_a_float_that_is_cast_back_may_be_anything(self) -> None:
        text = """(int64[N] k) => (int32[N] y) {
            f = Cast <to = 1> (k)  s = Sin (f)  y = Cast <to = 6> (s) }"""
        assert not are_data(uses_of(model(text))["k"])

    def test_what_divides_stays_small(self) -> None:
        assert not are_data(uses_of(model("(int64[N] k) => (int64[N] y) { y = Div (k, k) }"))["k"])

    def test_indices_count_from_the_end_up_to_the_size(self) -> None:
        text = "(float[5,3] x, int64[4] i) => (float[4,3] y) { y = Gather (x, i) }"
        assert are_indices(uses_of(model(text))["i"])
        ends = [value for label, value in drawn(text, "i") if label.startswith("indices from")]
        assert ends
        assert all(((value < 0) & (value >= -5)).all() for value in ends)
        assert min(value.min() for value in ends) == -5

    def test_trip_counts_are_each_tried(self) -> None:
        text = """(float[N] x, int64 n) => (float[N] y) {
            y = Loop (n, , x) <body = b (int64 i, bool c, float[N] s) => (bool d, float[N] r) {
                d = Identity (c)  r = Neg (s) }> }"""
        assert are_trips(uses_of(model(text))["n"])
        values = {int(value) for _, value in drawn(text, "n")}
        assert {0, 1, 2, 3, 4, 7, 8, 9, 17} <= values


def test_bools_hold_everywhere_nowhere_and_by_rows() -> None:
    masks = [value for _, value in drawn("(bool[N,16] m) => (bool[N,16] y) { y = Not (m) }", "m")]
    full = [mask for mask in masks if mask.size]
    assert any(mask.all() for mask in full)
    assert any(not mask.any() for mask in full)
    assert any(mask[0].any() != mask.all() and not mask.all(1).any() for mask in full)
    assert any({0, 16} < set(mask.sum(1).tolist()) for mask in full)


def test_floats_are_alike_offset_and_denormal() -> None:
    text = "(float[N] x) => (float[N] y) { y = Sin (x) }"
    by_label = dict(drawn(text, "x"))
    large, small = (np.abs(by_label[f"{name} values alike"]) for name in ("large", "small"))
    assert large.min() >= 100
    assert 0 < small.max() < 0.01
    offset = by_label["a small spread"]
    assert 0 < np.ptp(offset) < 0.01 * offset.mean()
    denormal = np.abs(by_label["denormals"])
    assert 0 < denormal.max() < np.finfo(np.float32).tiny


def test_one_symbol_is_long_and_the_others_are_1_or_not() -> None:
    shapes = {
        value.shape for _, value in drawn("(bool[N,M] x) => (bool[N,M] y) { y = Not(x) }", "x")
    }
    assert {(131, 1), (1, 131)} < shapes
    assert any(rows > 128 and rows * columns > 2000 for rows, columns in shapes)
    alone = {value.shape for _, value in drawn("(bool[N] x) => (bool[N] y) { y = Not (x) }", "x")}
    assert max(alone) == (131,)


def test_what_the_rewritten_model_alone_mentions_comes_first() -> None:
    before = model("(int64 n) => (bool y) { c = Constant <value_int = 5> ()  y = Less (n, c) }")
    after = model("""(int64 n) => (bool y) {
        c = Constant <value_int = 5> ()  d = Constant <value_int = 77> ()
        s = Constant <value_string = "only"> ()  y = Less (n, c) }""")
    found = Mentioned.of(before, after)
    assert found.suspect_numbers == (77.0, 5.0)
    assert found.suspect_strings == ("only",)
    assert found.numbers == (5.0, 77.0)


CARRIED = """(float[N] x, {0} s, int64 n) => ({0} y) {{
    y = Loop (n, , s) <body = b (int64 i, bool c, {0} a) => (bool d, {0} r) {{
        d = Identity (c)  r = Add (a, a) }}> }}"""


def test_no_axis_is_beyond_67_where_floats_are_carried_through_a_loop() -> None:
    scanned = """(float[N] x) => (float[N] y) {
        y = Scan <num_scan_inputs = 1, body = b (float e) => (float f) { f = Neg (e) }> (x) }"""
    recurrent = """(float[N,1,4] x, float[1,8,4] w, float[1,8,8] r) => (float[?,?,?,?] y) {
        y = RNN <hidden_size = 8> (x, w, r) }"""
    assert recurs(model(CARRIED.format("float")))
    assert recurs(model(recurrent))
    assert not recurs(model(CARRIED.format("int64")))
    assert not recurs(model(scanned))
    sums = """(float[N] x) => (float[N] y) {
        z = Constant <value_float = 0.0> ()
        t, y = Scan <num_scan_inputs = 1, body = b (a, float e) => (s, float f) {
            s = Add (a, e)  f = Neg (e) }> (z, x) }"""
    assert recurs(model(sums))
    assert max(value.size for _, value in drawn(sums, "x")) == 67
