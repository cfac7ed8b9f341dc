"""Faults planted into a model with loops in loops and branches: each is the first to differ."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from onnx import ModelProto, numpy_helper, parser

import passes
from passes.bisection.result import First
from passes.ir.scope import rename_all

MODEL = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[T,3] x, float[3] h, bool flag) => (float[3] last, float[T,3] all, float[T,3] picked)
    <float[3,3] w = {0.11, 0.2, -0.3, 0.4, -0.5, 0.6, 0.7, 0.08, 0.9}, int64 three = {3}> {
    scaled = Exp(x)
    last, all = Scan <num_scan_inputs = 1, body = step (float[3] state, float[3] row)
        => (float[3] next, float[3] kept) {
        mixed = MatMul(state, w)
        sum = Sub(mixed, row)
        next = Tanh(sum)
        kept = Identity(next) }> (h, scaled)
    zero = Sub(scaled, scaled)
    turned = Loop (three, , zero) <body = outer (int64 i, bool c, float[T,3] acc)
        => (bool d, float[T,3] acc_out) {
        d = Identity(c)
        two = Constant <value_int = 2> ()
        inner_out = Loop (two, , acc) <body = inner (int64 j, bool e, float[T,3] part)
            => (bool f, float[T,3] part_out) {
            f = Identity(e)
            grown = Add(part, all)
            part_out = Sin(grown) }>
        number = CastLike(i, x)
        shift = Mul(number, all)
        acc_out = Add(inner_out, shift) }>
    sums = ReduceSum <keepdims = 1> (turned)
    picked = If (flag) <
        then_branch = yes () => (float[T,3] a) { soft = Softmax <axis = 1> (turned)
            a = Mul(soft, sums) },
        else_branch = no () => (float[T,3] b) { b = Neg(turned) }>
    }"""


@dataclass(frozen=True)
class Fault:
    """What is written instead of what, and what is to be found."""

    name: str
    right: str
    wrong: str
    path: str
    iterations: tuple[int, ...]
    because: str
    before: str


FAULTS = [
    Fault(
        "another operator in the main graph",
        "scaled = Exp(x)",
        "scaled = Sinh(x)",
        "main/sinh_0",
        (),
        "it is a Sinh, in the original an Exp",
        "main/exp_0",
    ),
    Fault(
        "swapped operands in a Scan",
        "sum = Sub(mixed, row)",
        "sum = Sub(row, mixed)",
        "main/scan_1.body/sub_1",
        (0,),
        "its first operand is row, in the original mixed, not row",
        "main/scan_1.body/sub_1",
    ),
    Fault(
        "a wrong initial state",
        "(h, scaled)",
        "(zero_state, scaled)",
        "main/scan_1",
        (),
        "its first operand zero_state differs: ",
        "main/scan_1",
    ),
    Fault(
        "the other direction",
        "num_scan_inputs = 1,",
        "num_scan_inputs = 1, scan_input_directions = [1],",
        "main/scan_1.body/sub_1",
        (0,),
        "its second operand row is row of iteration ",
        "main/scan_1.body/sub_1",
    ),
    Fault(
        "one trip too many",
        "int64 three = {3}",
        "int64 three = {4}",
        "main/loop_3",
        (),
        "its first operand three differs: three is 3 in the original and 4 here",
        "main/loop_3",
    ),
    Fault(
        "an operator in a loop in a loop",
        "part_out = Sin(grown)",
        "part_out = Cos(grown)",
        "main/loop_3.body/loop_2.body/cos_2",
        (0, 0),
        "it is a Cos, in the original a Sin",
        "main/loop_3.body/loop_2.body/sin_2",
    ),
    Fault(
        "a fault from the third iteration on",
        "shift = Mul(number, all)",
        "most = Constant <value_float = 1.0> () less = Min(number, most) shift = Mul(less, all)",
        "main/loop_3.body/mul_6",
        (2,),
        "its first operand less is number of iteration 1 of the original",
        "main/loop_3.body/mul_4",
    ),
    Fault(
        "an axis in a branch",
        "Softmax <axis = 1> (turned)",
        "Softmax <axis = 0> (turned)",
        "main/if_5.then_branch/softmax_0",
        (),
        "its axis is 0, in the original 1",
        "main/if_5.then_branch/softmax_0",
    ),
    Fault(
        "an attribute of a reduction",
        "ReduceSum <keepdims = 1> (turned)",
        "ReduceMean <keepdims = 1> (turned)",
        "main/reducemean_4",
        (),
        "it is a ReduceMean, in the original a ReduceSum",
        "main/reducesum_4",
    ),
    Fault(
        "the other branch",
        "b = Neg(turned)",
        "b = Abs(turned)",
        "main/if_5.else_branch/abs_0",
        (),
        "it is an Abs, in the original a Neg",
        "main/if_5.else_branch/neg_0",
    ),
]


def planted(fault: Fault) -> ModelProto:
    """The model with a fault in it."""
    assert MODEL.count(fault.right) == 1, fault.right
    text = MODEL.replace(fault.right, fault.wrong)
    if "zero_state" in fault.wrong:
        text = text.replace("<float[3,3] w", "<float[3] zero_state = {0, 0, 0}, float[3,3] w")
    return parser.parse_model(text)


def renamed(model: ModelProto) -> ModelProto:
    """A model in which no value but inputs and outputs has the name that it had."""
    ends = {value.name for value in (*model.graph.input, *model.graph.output)}
    numbers = iter(range(1_000))
    rename_all(model.graph, lambda name: name if name in ends else f"v{next(numbers)}")
    return model


def first(before: ModelProto, after: ModelProto) -> First:
    """What differs first, which both sides show that are cut to it."""
    found = passes.bisect(before, after)
    assert found.verdict == "differ", found.reason
    assert found.first is not None
    assert found.first.cut is not None
    assert found.first.cut.shown == ["reference", "onnxruntime"]
    return found.first


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_planted_fault_is_the_first_to_differ(fault: Fault) -> None:
    found = first(parser.parse_model(MODEL), planted(fault))
    assert (found.after.path, tuple(found.after.iterations)) == (fault.path, fault.iterations)
    assert any(because.startswith(fault.because) for because in found.because), found.because
    assert found.alone


@pytest.mark.sampled(5)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_it_is_found_without_names(fault: Fault) -> None:
    found = first(parser.parse_model(MODEL), renamed(planted(fault)))
    assert (found.after.path, tuple(found.after.iterations)) == (fault.path, fault.iterations)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_it_is_found_where_a_scan_became_a_loop(fault: Fault) -> None:
    found = first(parser.parse_model(MODEL), passes.lower(planted(fault), verify=False).model)
    assert tuple(found.after.iterations) == fault.iterations
    assert found.before.path == fault.before


@pytest.mark.sampled(3)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_it_is_found_where_loops_are_written_out(fault: Fault) -> None:
    """What differs is told as it is in the iteration of the loop of which it is a copy."""
    found = first(parser.parse_model(MODEL), passes.unroll(planted(fault), verify=False).model)
    assert found.before.path == fault.before
    if fault.iterations:
        assert tuple(found.before.iterations) == fault.iterations


def test_a_weight_in_float16() -> None:
    after = parser.parse_model(MODEL)
    (weight,) = (one for one in after.graph.initializer if one.name == "w")
    rounded = numpy_helper.to_array(weight).astype("float16").astype("float32")
    weight.CopyFrom(numpy_helper.from_array(rounded, "w"))
    found = first(parser.parse_model(MODEL), after)
    assert found.after.path == "main/scan_1.body/matmul_0"
    assert found.because == ["its second operand w is rounded to float16"]
