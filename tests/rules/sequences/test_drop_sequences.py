"""The rule `drop-sequences`, on onnx's own test cases, and what golden models do not show."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, NodeProto, TypeProto, helper, numpy_helper
from onnx_cases import Case, all_cases

from passes.ir.scope import walk_model
from passes.rules.sequences.elements import OPERATORS
from passes.testing import as_text, assert_refused, assert_rewrite
from tests.written import changed

FLAT = {"flat": True, "bounded": "select"}


def left(model: ModelProto) -> set[str]:
    """The operators on sequences and optionals that a model still has."""
    return {place.node.op_type for place in walk_model(model)} & OPERATORS


def cases() -> list[Case]:
    """The cases with sequences or optionals, each once."""
    return list({case.name: case for case in all_cases() if left(case.model)}.values())


def of_tensors(case: Case) -> ModelProto:
    """The model of a case with tensors for inputs and outputs: sequences and optionals are made of
    these in front of it, and read behind it. Positions, sizes and conditions are constants."""
    model = ModelProto()
    model.CopyFrom(case.model)
    graph = model.graph
    inputs, outputs = list(graph.input), list(graph.output)
    del graph.input[:], graph.output[:]
    made: list[NodeProto] = []
    for value in inputs:
        if value.name not in case.feeds:
            continue  # the model has a value for it
        _make(graph, made, value.name, value.type, case.feeds[value.name])
    read = [_read(graph, *pair) for pair in zip(outputs, case.expected, strict=True)]
    nodes = [*made, *graph.node, *(node for nodes in read for node in nodes)]
    del graph.node[:]
    graph.node.extend(nodes)
    return model


def _make(
    graph: onnx.GraphProto, made: list[NodeProto], name: str, type_: TypeProto, value: Any
) -> None:
    kind = type_.WhichOneof("value")
    if kind == "optional_type":
        inner = type_.optional_type.elem_type
        if value is not None:
            _make(graph, made, f"{name}_in", inner, value)
        given = [] if value is None else [f"{name}_in"]
        typed = {"type": inner} if value is None else {}
        made.append(helper.make_node("Optional", given, [name], **typed))
    elif kind == "sequence_type" and not value:
        elem_type = type_.sequence_type.elem_type.tensor_type.elem_type
        made.append(helper.make_node("SequenceEmpty", [], [name], dtype=elem_type))
    elif kind == "sequence_type":
        names = [f"{name}_{place}" for place in range(len(value))]
        for one, element in zip(names, value, strict=True):
            _make(graph, made, one, type_.sequence_type.elem_type, element)
        made.append(helper.make_node("SequenceConstruct", names, [name]))
    elif np.asarray(value).dtype in (np.int64, np.int32, np.bool_):
        graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    else:
        elem_type = helper.np_dtype_to_tensor_dtype(value.dtype)
        graph.input.append(helper.make_tensor_value_info(name, elem_type, value.shape))


def _read(
    graph: onnx.GraphProto, output: onnx.ValueInfoProto, expected: Any
) -> Iterable[NodeProto]:
    if output.type.WhichOneof("value") != "sequence_type":
        graph.output.append(output)
        return
    length = f"{output.name}_length"
    yield helper.make_node("SequenceLength", [output.name], [length])
    graph.output.append(helper.make_tensor_value_info(length, onnx.TensorProto.INT64, []))
    for place, element in enumerate(expected):
        position, read = f"{output.name}_at_{place}", f"{output.name}_{place}"
        graph.initializer.append(numpy_helper.from_array(np.array(place, np.int64), position))
        yield helper.make_node("SequenceAt", [output.name, position], [read])
        elem_type = helper.np_dtype_to_tensor_dtype(element.dtype)
        graph.output.append(helper.make_tensor_value_info(read, elem_type, element.shape))


#: An output that is an optional, and a loop whose first iteration alone gets one.
STAY = {"test_if_opt", "test_loop16_seq_none"}


@pytest.mark.sampled(100)
@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_onnx_own_cases_become_plain_tensors(case: Case) -> None:
    result = assert_rewrite(of_tensors(case), pipeline="optimize-no-control-flow", options=FLAT)
    assert bool(left(result.model)) == (case.name in STAY)


def rewritten(text: str, **options: Any) -> str:
    """A model of opset 17 after the rule, as text; verified."""
    head = '<ir_version: 8, opset_import: ["" : 17]>\n'
    result = assert_rewrite(head + text, pipeline="drop-sequences", options=options)
    return as_text(result.model)


def test_of_one_sequence_many_elements_are_read_at_once() -> None:
    inputs = ", ".join(f"float[2] x{place}" for place in range(20))
    outputs = ", ".join(f"float[2] y{place}" for place in range(20))
    inserts = "\n".join(
        f"s{place + 1} = SequenceInsert (s{place}, x{place})" for place in range(20)
    )
    reads = "\n".join(
        f"p{place} = Constant <value = int64 {{{place}}}> () y{place} = SequenceAt (s20, p{place})"
        for place in range(20)
    )
    text = rewritten(f"g ({inputs}) => ({outputs}) {{ s0 = SequenceEmpty () {inserts} {reads} }}")
    assert "Sequence" not in text
    assert "y19 = Identity (x19)" in text


def test_an_unused_change_that_may_fail_stays() -> None:
    text = rewritten(
        """g (float[2] a, int64 i) => (int64 n) {
            s = SequenceConstruct (a, a)
            n = SequenceLength (s)
            t = SequenceErase (s, i)
        }"""
    )
    assert "SequenceErase" in text
    assert "SequenceLength" not in text


def test_positions_follow_from_known_sizes() -> None:
    text = rewritten(
        """g (float[2] a, float[3] b) => (float[3] y) <int64 zero = {0}, int64 one = {1}> {
            s = SequenceConstruct (a, b)
            shape = Shape (a)
            two = Gather (shape, zero)
            i = Sub (two, one)
            y = SequenceAt (s, i)
        }"""
    )
    assert "y = Identity (b)" in text


def test_a_position_may_follow_from_another_element() -> None:
    text = rewritten(
        """g (float[2] a, float[3] b) => (float[3] y, float[2] u, float[3] v)
        <int64 zero = {0}, int64 one = {1}> {
            s = SequenceConstruct (a, b)
            u = SequenceAt (s, zero)
            shape = Shape (u)
            two = Gather (shape, zero)
            i = Sub (two, one)
            y = SequenceAt (s, i)
            v = SequenceAt (s, one)
        }"""
    )
    assert "Sequence" not in text


def test_strings_are_not_gathered() -> None:
    text = rewritten(
        """g (string[2,3] x) => (string[3] y) <int64 one = {1}> {
            s = SplitToSequence <keepdims = 0> (x)
            y = SequenceAt (s, one)
        }"""
    )
    assert "Split <" in text


def test_valid_inputs_need_no_guard() -> None:
    graph = """g (float[N,3] x) => (float[N,3] y) {
        s = SplitToSequence <keepdims = 0> (x)
        y = ConcatFromSequence <axis = 0, new_axis = 1> (s)
    }"""
    assert "Where" in rewritten(graph)
    assert "y = Identity (x)" in rewritten(graph, assume=("valid-inputs",))


@pytest.mark.parametrize("opset", [11, 13, 17, 21])
@pytest.mark.parametrize(
    ("axis", "joined", "stacks"), [(0, 1, 1), (-1, 0, 1), (1, -1, 0), (1, 0, 0)]
)
def test_slices_are_joined_at_every_axis(opset: int, axis: int, joined: int, stacks: int) -> None:
    dims: list[int | str] = [3, 2, 4]
    dims[axis] = "N"
    source = ",".join(map(str, dims))
    target = "A,B,C" if stacks else "A,B"
    text = """
    <ir_version: 6, opset_import: ["" : 17]>
    g (float[3,2,4] x) => (float[A,B,C] y) {
        s = SplitToSequence <axis = 0, keepdims = 0> (x)
        y = ConcatFromSequence <axis = 1, new_axis = 1> (s)
    }
    """
    changes = {
        '"" : 17': f'"" : {opset}',
        "[3,2,4]": f"[{source}]",
        "[A,B,C]": f"[{target}]",
        "axis = 0, keepdims = 0": f"axis = {axis}, keepdims = 0",
        "axis = 1, new_axis = 1": f"axis = {joined}, new_axis = {stacks}",
    }
    result = assert_rewrite(changed(text, changes), pipeline="drop-sequences")
    assert not left(result.model)


FUNCTION = """<ir_version: 8, opset_import: ["" : 17, "my" : 1]>
g (float[2] a, float[2] b) => (float[4] y) { y = my.join <along = 0> (a, b) }
<domain: "my", opset_import: ["" : 17]>
join <along> (p, q) => (r) {
    s = SequenceConstruct (p, q)
    one = Constant <value_int = 1> ()
    second = SequenceAt (s, one)
    t = SequenceInsert (s, second)
    u = SequenceErase (t, one)
    r = ConcatFromSequence <axis AXIS> (u)
}"""


def test_functions_have_sequences_too() -> None:
    result = assert_rewrite(changed(FUNCTION, {"AXIS": "= 0"}), pipeline="drop-sequences")
    ops = [node.op_type for node in result.model.functions[0].node]
    assert set(ops) == {"Concat", "Identity"}


def test_what_callers_choose_is_refused() -> None:
    assert_refused(
        changed(FUNCTION, {"AXIS": ": int = @along"}),
        "attribute-reference",
        pipeline="drop-sequences",
    )
