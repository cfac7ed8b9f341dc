"""The rarer values, sizes and trip counts: each is drawn, and only where it does no harm."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, parser

from passes.types import signature
from passes.verify.compare.exactness import recurs
from passes.verify.executor import Array
from passes.verify.inputs.arrays import Manner, Style, array, numpy_dtype
from passes.verify.inputs.drawer import Drawer
from passes.verify.inputs.mentioned import Mentioned
from passes.verify.inputs.uses import are_data, are_indices, are_numbers, are_trips, uses_of
from tests.written import changed


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


@pytest.mark.parametrize("style", get_args(Style))
@pytest.mark.parametrize("kind", ["INT2", "UINT2", "INT4", "UINT4", "INT8", "UINT8", "UINT64"])
def test_every_type_has_numbers_of_every_style(kind: str, style: Style) -> None:
    elem_type = TensorProto.DataType.Value(kind)
    for place in (0, 1):
        manner = Manner(style, uses=frozenset({"data"}), place=place, places=2)
        value = array(np.random.default_rng(0), elem_type, (3, 4), manner)
        assert (value.shape, value.dtype) == ((3, 4), numpy_dtype(elem_type))


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

    def test_what_a_body_reads_is_followed(self) -> None:
        text = """(int64 k, bool c) => (int64 y) {
            y = If (c) <then_branch = t () => (int64 p) { p = Neg (k) },
                else_branch = e () => (int64 q) { q = Identity (k) }> }"""
        assert are_data(uses_of(model(text))["k"])
        sized = changed(text, {"int64 k": "int64[1] k", "Identity (k)": "ConstantOfShape (k)"})
        assert not are_data(uses_of(model(sized))["k"])

    def test_what_a_loop_carries_is_followed_through_its_iterations(self) -> None:
        text = """(int64 k, int64 l, int64 m, int64 n, float[5] x)
            => (int64 y, int64 z, float[T] w) {
            y, z, w = Loop (n, , k, l) <body = b (int64 i, bool c, int64 p, int64 q)
                => (bool d, int64 r, int64 s, float t) {
                d = Identity (c)  r = Add (p, m)  s = Identity (p)  t = Gather (x, q) }> }"""
        uses = uses_of(model(text))
        assert [are_indices(uses[name]) for name in "klm"] == [True, True, True]
        assert are_trips(uses["n"])

    def test_what_decides_how_long_a_loop_runs_stays_small(self) -> None:
        text = """(int64 k) => (int64 y) {
            o = Constant <value_int = 1> ()  g = Less (o, k)
            y = Loop (, g, o) <body = b (int64 i, bool c, int64 p) => (bool d, int64 r) {
                r = Add (p, p)  d = Less (r, k) }> }"""
        assert not are_numbers(uses_of(model(text))["k"])

    def test_a_float_that_is_cast_back_may_be_anything(self) -> None:
        text = """(int64[N] k) => (int32[N] y) {
            f = Cast <to = 1> (k)  s = Sin (f)  y = Cast <to = 6> (s) }"""
        assert not are_data(uses_of(model(text))["k"])

    def test_what_divides_is_large_but_not_at_the_ends_of_its_type(self) -> None:
        text = "(int64[N] n, int64 k) => (int64[N] y) { y = Mod (n, k) }"
        assert not are_data(uses_of(model(text))["k"])
        values = {int(value) for _, value in drawn(text, "k")}
        assert any(value < -(2**16) for value in values)
        assert any(value > 2**60 for value in values)
        assert not values & {2**63 - 1, -(2**63)}

    def test_scalars_have_both_signs_in_every_combination(self) -> None:
        text = "(int64 k, int64 n) => (int64 y) { y = Add (k, n) }"
        pairs = zip(drawn(text, "k"), drawn(text, "n"), strict=True)
        signs = {(int(np.sign(k)), int(np.sign(n))) for (_, k), (_, n) in pairs}
        assert {(1, 1), (1, -1), (-1, 1), (-1, -1)} <= signs

    def test_products_and_sums_of_int32_overflow(self) -> None:
        text = "(int32[N] k) => (int32[N] y) { y = Neg (k) }"
        values = dict(drawn(text, "k"))
        assert (np.abs(values["large values alike"].astype(np.int64)) >= 2**16).all()
        assert (values["a small spread"] > 2**30).all()

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
    large, small = (by_label[f"{name} values alike"] for name in ("large", "small"))
    assert large.min() >= 100
    assert -0.01 < small.min() <= small.max() < 0
    offset = by_label["a small spread"]
    assert 0 < np.ptp(offset) < 0.01 * offset.mean()
    denormal = np.abs(by_label["denormals"])
    assert 0 < denormal.max() < np.finfo(np.float32).tiny


def test_sums_of_float16_overflow() -> None:
    text = "(float16[N] x) => (float16[N] y) { y = Neg (x) }"
    large = dict(drawn(text, "x"))["large values alike"]
    assert np.isfinite(large).all()
    assert large.min() >= 2**15


def test_rows_have_one_sign() -> None:
    text = "(float[N,8] x) => (float[N,8] y) { y = Sin (x) }"
    rows = dict(drawn(text, "x"))["exact values 3"]
    assert (np.signbit(rows[0])).all()
    assert not (np.signbit(rows[1])).any()


def test_every_tenth_up_to_1_is_drawn() -> None:
    text = "(float[N] x) => (float[N] y) { y = Sin (x) }"
    decimals = dict(drawn(text, "x"))["sizes above 13"]
    assert set(np.float32(range(-10, 11)) / np.float32(10)) <= set(decimals)


def test_one_input_alone_is_nan_in_one_column() -> None:
    text = "(float[N,3] a, float[N,3] b) => (float[N,3] y) { y = Add (a, b) }"
    a, b = (dict(drawn(text, name))["special values alone"] for name in "ab")
    odd = [~np.isfinite(rows) for rows in (a, b)]
    assert not (odd[0].any(1) & odd[1].any(1)).any()
    for rows in odd:
        assert rows.any(0).all()
        assert 1 in rows.sum(1)


def test_special_values_meet_sizes_of_0_and_1() -> None:
    text = "(float[N] x, float h) => (float[N] y) { y = Add (x, h) }"
    sizes = {
        (x.size, bool(np.isfinite(h)))
        for (_, x), (_, h) in zip(drawn(text, "x"), drawn(text, "h"), strict=True)
    }
    assert {(0, False), (1, False), (0, True), (1, True)} <= sizes


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
