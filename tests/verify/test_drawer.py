"""Drawing inputs: what is drawn, in which order, and that it is the same each time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, ValueInfoProto, helper, parser

from passes.types.dtypes import numpy_dtype
from passes.verify.inputs.arrays import DYADIC, Manner, array, specials
from passes.verify.inputs.drawer import (
    CannotDraw,
    Case,
    Drawer,
    Hint,
    fill_behind,
    lengths,
    why_not,
)
from passes.verify.inputs.mentioned import Mentioned
from passes.verify.inputs.plans import ATTEMPTS, Lengths, Plan

LENGTHS = {"lens": Hint(length_of="T")}


def inputs(declared: str) -> list[ValueInfoProto]:
    """Typed inputs from ONNX text: `float[N] x, bool c`."""
    return list(parser.parse_graph(f"g ({declared}) => (float r) {{ r = Nothing() }}").input)


def draw(
    typed: Sequence[ValueInfoProto], hints: Mapping[str, Hint] | None = None, seed: int = 0
) -> Iterator[Case]:
    """The cases for these inputs, observed ones first, then the most telling."""
    drawer = Drawer(tuple(typed), seed, hints or {})
    for index in range(drawer.observed()):
        yield drawer.natural(index)
    for plan in drawer.plans():
        yield drawer.case(plan)


def cases(declared: str, hints: Mapping[str, Hint] | None = None, seed: int = 0) -> list[Case]:
    return list(draw(inputs(declared), hints, seed))


def tensor(case: Case, name: str) -> Any:
    value = case.feeds[name]
    assert isinstance(value, np.ndarray)
    return value


def items_of(case: Case, name: str) -> list[Any]:
    """The items of a sequence."""
    value = case.feeds[name]
    assert isinstance(value, list)
    return value


def test_the_same_seed_draws_the_same() -> None:
    declared = "float[N,M] x, int64[N] i, bool c, string[N] s"
    one, again, other = (cases(declared, seed=seed) for seed in (1, 1, 2))
    assert [str(case) for case in one] == [str(case) for case in again]
    assert [str(case) for case in one] != [str(case) for case in other]


def test_ordinary_cases_come_first() -> None:
    kinds = [
        case.kind for case in cases("float[N] x, int64[B] lens", {"lens": Hint(length_of="N")})
    ]
    assert kinds[:3] == ["ordinary"] * 3
    assert kinds.index("special") < kinds.index("edge") < kinds.index("invalid")


def test_a_name_has_one_size_in_all_inputs() -> None:
    drawn = cases("float[N,3] x, float[M,N] y")
    assert all(tensor(case, "x").shape == (tensor(case, "y").shape[1], 3) for case in drawn)
    sizes = {tensor(case, "x").shape[0] for case in drawn}
    assert {0, 1, 2, 3} < sizes
    assert max(sizes) >= 5


def test_ordinary_sizes_differ_so_that_swapped_axes_show() -> None:
    shape = tensor(cases("float[A,B,C,D] x")[0], "x").shape
    assert len(set(shape)) == 4


def test_each_dim_is_0_and_1_while_the_others_are_not() -> None:
    shapes = {tensor(case, "x").shape for case in cases("float[A,B] x")}
    for wanted in (0, 1):
        assert any(a == wanted and b > 1 for a, b in shapes)
        assert any(b == wanted and a > 1 for a, b in shapes)
    assert (0, 0) in shapes


def test_unnamed_dims_differ_at_first_and_are_equal_in_later_attempts() -> None:
    drawer = Drawer(tuple(inputs("float[?] x, float[?] y")))
    plan = drawer.plans()[0]
    drawn = [drawer.case(plan, attempt) for attempt in range(len(ATTEMPTS))]
    same = [tensor(case, "x").shape == tensor(case, "y").shape for case in drawn]
    assert not same[0]
    assert any(same)


def test_a_negative_size_is_none() -> None:
    assert {tensor(case, "x").shape[0] for case in cases("float[-1] x")} > {0, 1, 2, 3}


def test_hints_complete_and_override_the_declared_shape() -> None:
    hints = {"x": Hint(dims=("B", "T", None)), "y": Hint(dims=("T", 4), chosen=True)}
    unknown = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    skewed = 0
    for case in draw([*inputs("float[?,?,2] x"), unknown], hints=hints):
        time = tensor(case, "x").shape[1]
        disagrees = case.label == "sizes of T differ"
        skewed += disagrees
        assert tensor(case, "x").shape[2] == 2
        assert tensor(case, "y").shape == (time + disagrees, 4)
    assert skewed == 1


def test_inputs_disagree_only_where_they_are_not_declared_to_agree() -> None:
    hints = {name: Hint(dims=("B", None), chosen=True) for name in ("x", "y", "z")}

    def skewed(declared: str) -> list[dict[str, int]]:
        drawn = draw(inputs(declared), hints=hints)
        sizes = [{name: tensor(one, name).shape[0] for name in one.feeds} for one in drawn]
        return [size for size in sizes if len(set(size.values())) > 1]

    assert not skewed("float[B,2] x, float[B,3] y")
    assert not skewed("float[N,2] x, float[N,3] y")
    (one,) = skewed("float[B,2] x, float[N,2] y, float[N,3] z")
    assert one["y"] == one["z"] == one["x"] + 1


def test_an_unknown_rank_is_tried_from_0_to_3() -> None:
    drawer = Drawer((helper.make_tensor_value_info("x", TensorProto.FLOAT, None),))
    ranks = {
        tensor(drawer.case(plan, attempt), "x").ndim
        for plan in drawer.plans()
        for attempt in range(len(ATTEMPTS))
    }
    assert ranks == {0, 1, 2, 3}


def test_an_input_without_dtype_is_not_drawn() -> None:
    bare = ValueInfoProto(name="x")
    assert why_not(bare) == "input x has no type"
    with pytest.raises(CannotDraw, match="input x has no type"):
        list(draw([bare]))
    undefined = helper.make_tensor_value_info("x", TensorProto.UNDEFINED, ["N"])
    assert why_not(undefined) == "input x has no dtype"


class TestLengths:
    DECLARED = "int64[B] lens, float[B,T,2] x"

    def test_ragged_lengths_hold_0_and_the_longest_in_one_batch(self) -> None:
        first = cases(self.DECLARED, LENGTHS)[0]
        lens, longest = tensor(first, "lens"), tensor(first, "x").shape[1]
        assert (lens.dtype, lens.min(), lens.max()) == (np.int64, 0, longest)

    def test_some_cases_have_no_length_0(self) -> None:
        drawn = cases(self.DECLARED, LENGTHS)
        assert sum(bool(tensor(case, "lens").all()) for case in drawn) > 5

    def test_all_0_and_all_full(self) -> None:
        drawn = [
            (tensor(c, "lens"), tensor(c, "x").shape[1]) for c in cases(self.DECLARED, LENGTHS)
        ]
        assert any(lens.size > 1 and not lens.any() and longest for lens, longest in drawn)
        assert any(lens.size > 1 and (lens == longest).all() for lens, longest in drawn)

    def test_only_invalid_cases_leave_the_range(self) -> None:
        for case in cases(self.DECLARED, LENGTHS):
            lens, longest = tensor(case, "lens"), tensor(case, "x").shape[1]
            assert (((lens < 0) | (lens > longest)).sum() == 1) == (case.kind == "invalid")
            if case.kind == "invalid":
                assert lens.min() == -1 or lens.max() == longest + 1

    def test_nan_lies_behind_the_lengths_only(self) -> None:
        case = next(c for c in cases(self.DECLARED, LENGTHS) if c.label == "NaN after the lengths")
        x, lens = tensor(case, "x"), tensor(case, "lens")
        for row, length in zip(x, lens, strict=True):
            assert np.isfinite(row[:length]).all()
            assert not np.isfinite(row[length:]).any()

    @pytest.mark.parametrize("rows", [0, 1, 2, 5])
    @pytest.mark.parametrize("longest", [0, 1, 4])
    def test_every_mode_fits_every_size(self, rows: int, longest: int) -> None:
        rng = np.random.default_rng(0)
        modes: tuple[Lengths, ...] = ("ragged", "positive", "full", "empty")
        for mode in modes:
            drawn = lengths(rng, mode, rows, longest)
            assert drawn.shape == (rows,)
            assert ((drawn >= 0) & (drawn <= longest)).all()

    def test_padding_of_whole_numbers_is_no_index(self) -> None:
        padded = fill_behind(np.ones((2, 3), np.int64), 0, 1, np.array([0, 2]))
        assert padded[1, :2].tolist() == [1, 1]
        assert np.abs(padded[0]).max() > 1000
        flags = np.ones((2, 3), bool)
        assert fill_behind(flags, 0, 1, np.array([0, 1])) is flags


def test_a_bound_that_is_no_dim_is_said() -> None:
    with pytest.raises(CannotDraw, match="input i is bounded by Q"):
        cases("int64[K] i", {"i": Hint(length_of="Q")})


def test_later_attempts_try_indices_sizes_and_axes() -> None:
    drawer = Drawer(tuple(inputs("float[5,7] x, int64[2] i")))
    plan = drawer.plans()[0]
    drawn = [tensor(drawer.case(plan, attempt), "i") for attempt in range(len(ATTEMPTS))]
    assert any(((i >= 0) & (i < 2)).all() for i in drawn)
    assert any(set(i) <= {5, 7, 2} and i.min() > 1 for i in drawn)
    assert any(sorted(i) == [0, 1] for i in drawn)
    assert any((i == 0).all() for i in drawn)


def test_observed_values_come_first_and_decide_the_sizes_of_the_others() -> None:
    seen = (np.full((4, 2), 9, np.float32), np.full((6, 2), 8, np.float32))
    drawn = cases("float[N,2] x, int64[N] i", {"x": Hint(natural=seen)})
    for case, value in zip(drawn, seen, strict=False):
        assert (case.kind, case.exact) == ("natural", False)
        assert tensor(case, "x") is value
        assert tensor(case, "i").shape == (len(value),)
    assert drawn[2].kind == "ordinary"


def test_an_input_without_type_is_fine_where_it_was_observed() -> None:
    drawer = Drawer((ValueInfoProto(name="x"),), hints={"x": Hint(natural=(np.array(1),))})
    assert drawer.natural(0).feeds == {"x": np.array(1)}


def test_sequences_and_optionals() -> None:
    drawn = cases("seq(float[N]) s, optional(float[N]) o, float[N] x")
    counts = {len(items_of(case, "s")) for case in drawn}
    assert {0, 2, 3} <= counts
    assert {case.feeds["o"] is None for case in drawn} == {True, False}
    for case in drawn:
        assert all(item.shape == tensor(case, "x").shape for item in items_of(case, "s"))


def test_items_of_a_sequence_differ_in_dims_without_name() -> None:
    items = items_of(cases("seq(float[N,?]) s")[0], "s")
    (n, first), (same, second) = (item.shape for item in items)
    assert n == same
    assert first != second


class TestValues:
    def draw(self, kind: int, style: Any, **manner: Any) -> Any:
        return array(np.random.default_rng(0), kind, (60, 10), Manner(style, **manner))

    @pytest.mark.parametrize(
        "kind", TensorProto.DataType.values()[1:], ids=TensorProto.DataType.Name
    )
    @pytest.mark.parametrize("style", ["exact", "moderate", "special"])
    def test_every_dtype_can_be_drawn(self, kind: int, style: Any) -> None:
        for shape in ((), (0,), (2, 0), (3, 2)):
            drawn = array(np.random.default_rng(0), kind, shape, Manner(style))
            assert (drawn.dtype, drawn.shape) == (numpy_dtype(kind), shape)

    def test_exact_floats_are_small_dyadic_numbers(self) -> None:
        assert set(self.draw(TensorProto.FLOAT, "exact").flat) == set(DYADIC)

    @pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
    def test_specials_hold_nan_infinities_zeros_denormals_and_extremes(self, dtype: Any) -> None:
        values = specials(np.dtype(dtype), extremes=True).astype(np.float64)
        info = ml_dtypes.finfo(dtype)
        assert np.isnan(values).any()
        assert {np.inf, -np.inf, float(info.max), float(info.min)} <= set(values)
        assert 0 < np.abs(values[values != 0])[np.isfinite(values[values != 0])].min() < info.tiny
        assert sorted(np.signbit(values[values == 0])) == [False, True]
        assert float(info.max) not in specials(np.dtype(dtype), extremes=False).astype(np.float64)

    def test_extreme_ints_only_where_they_cannot_be_a_size(self) -> None:
        huge = np.iinfo(np.int64).max
        assert huge in self.draw(TensorProto.INT64, "special")
        vector = array(np.random.default_rng(0), TensorProto.INT64, (600,), Manner("special"))
        assert np.abs(vector).max() < 10

    def test_strings_hold_the_empty_one_and_unicode(self) -> None:
        assert {"", "é", "日本"} < set(self.draw(TensorProto.STRING, "exact").flat)


def test_mentioned_integers_beyond_int64_are_cut_to_it() -> None:
    """numpy has no integer type for 2 ** 63 and -2 at once: it makes floats of both."""
    manner = Manner("mentioned", mentioned=Mentioned(numbers=(2**63 - 1, -1)))
    drawn = array(np.random.default_rng(0), TensorProto.INT64, (100,), manner)
    assert set(drawn.tolist()) == {-2, -1, 0, 2**63 - 2, 2**63 - 1}


def test_an_input_of_an_absurd_size_is_not_drawn() -> None:
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1 << 40, 3])
    with pytest.raises(CannotDraw, match="too large to draw"):
        Drawer((value,)).case(Plan("ordinary", "exact values"))
