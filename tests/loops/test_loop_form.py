"""LoopForm: Scan-8, Scan and Loop taken apart, and put together again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import onnx
import pytest
from onnx import NodeProto, TensorProto, helper
from onnx_cases import all_cases

from passes.errors import BadModel
from passes.ir import scope
from passes.ir.model import Model
from passes.ir.operators import is_onnx_domain
from passes.loops.form import Carried, Collected, Condition, Kind, LoopForm, Scanned
from passes.types.signature import describe

GOLDEN = Path(__file__).parents[2] / "golden_models"
BODY = "body = step (float s, float e) => (float t, float o) { t = Add (s, e) o = Neg (t) }"
SCAN_OPSETS = (9, 11, 16, 19, 21, 23, 24, 25)
LOOP_OPSETS = (1, 11, 13, 16, 19, 21, 23, 24, 25)


def node(text: str) -> NodeProto:
    """A node in ONNX text: `y, z = Scan <...> (h, x)`."""
    return onnx.parser.parse_node(text)


def scan_8(attributes: str = "num_scan_inputs = 1", inputs: str = '"", h, x') -> NodeProto:
    return node(f"y, z = Scan <{attributes}, {BODY}> ({inputs})")


def scan(
    attributes: str = "num_scan_inputs = 1", body: str = BODY, outputs: str = "y, z"
) -> NodeProto:
    return node(f"{outputs} = Scan <{attributes}, {body}> (h, x)")


def loop(inputs: str = "n, c, h", body: str = "") -> NodeProto:
    body = body or (
        "body = step (int64 i, bool go, float s) => (bool on, float t, float o) "
        "{ on = Identity (go) t = Neg (s) o = Abs (s) }"
    )
    return node(f"y, z = Loop <{body}> ({inputs})")


# -- reading ------------------------------------------------------------------------------------


def test_scan_8_has_lengths_and_counts_the_batch_axis() -> None:
    form = LoopForm.from_node(scan_8("num_scan_inputs = 1, directions = [1]", "lens, h, x"), 8)
    assert form.kind is Kind.SCAN_8
    assert form.lengths == "lens"
    assert form.carried == (Carried("h", "s", "t", "y"),)
    assert form.scanned == (Scanned("x", "e", axis=1, reversed=True),)
    assert form.collected == (Collected("o", "z", axis=1),)
    assert form.condition is None
    assert (form.trip_count, form.iteration) == ("", "")


def test_scan_8_may_omit_the_lengths() -> None:
    assert LoopForm.from_node(scan_8(), 8).lengths == ""


@pytest.mark.parametrize("opset", SCAN_OPSETS)
def test_scan_scans_axis_0_forward_where_nothing_is_said(opset: int) -> None:
    form = LoopForm.from_node(scan(), opset)
    assert form.kind is Kind.SCAN
    assert form.carried == (Carried("h", "s", "t", "y"),)
    assert form.scanned == (Scanned("x", "e"),)
    assert form.collected == (Collected("o", "z"),)


@pytest.mark.parametrize("opset", SCAN_OPSETS)
def test_scan_says_axes_and_directions_of_inputs_and_outputs(opset: int) -> None:
    form = LoopForm.from_node(
        scan(
            "num_scan_inputs = 1, scan_input_axes = [-2], scan_input_directions = [1], "
            "scan_output_axes = [2], scan_output_directions = [1]"
        ),
        opset,
    )
    assert form.scanned == (Scanned("x", "e", axis=-2, reversed=True),)
    assert form.collected == (Collected("o", "z", axis=2, reversed=True),)


@pytest.mark.parametrize("opset", LOOP_OPSETS)
def test_loop_has_a_trip_count_a_condition_and_an_iteration_number(opset: int) -> None:
    form = LoopForm.from_node(loop(), opset)
    assert form.kind is Kind.LOOP
    assert (form.trip_count, form.iteration) == ("n", "i")
    assert form.condition == Condition("c", "go", "on")
    assert form.carried == (Carried("h", "s", "t", "y"),)
    assert form.collected == (Collected("o", "z"),)
    assert form.scanned == ()


@pytest.mark.parametrize(
    ("inputs", "trip_count", "initial"),
    [
        ('"", "", h', "", ""),  # for ever
        ('"", c, h', "", "c"),  # while, or do-while: that depends on the value of c
        ('n, "", h', "n", ""),  # for
        ("n, c, h", "n", "c"),  # for, while
    ],
)
def test_the_modes_of_loop(inputs: str, trip_count: str, initial: str) -> None:
    form = LoopForm.from_node(loop(inputs), 16)
    assert form.condition is not None
    assert (form.trip_count, form.condition.initial) == (trip_count, initial)
    assert form.inputs == [trip_count, initial, "h"]


def test_a_loop_that_carries_nothing() -> None:
    form = LoopForm.from_node(
        node(
            "z = Loop <body = b (int64 i, bool go) => (bool on, int64 o) "
            "{ on = Identity (go) o = Neg (i) }> (n, c)"
        ),
        13,
    )
    assert form.carried == ()
    assert form.collected == (Collected("o", "z"),)


def test_omitted_outputs_are_empty_names() -> None:
    omitted = scan()
    omitted.output[0] = ""
    form = LoopForm.from_node(omitted, 16)
    assert form.carried[0].final == ""
    assert form.outputs == ["", "z"]


def test_the_same_tensor_may_be_scanned_twice() -> None:
    form = LoopForm.from_node(
        node(
            "z = Scan <num_scan_inputs = 2, scan_input_directions = [0, 1], "
            "body = b (float a, float b) => (float c) { c = Add (a, b) }> (x, x)"
        ),
        9,
    )
    assert form.scanned == (Scanned("x", "a"), Scanned("x", "b", reversed=True))


def test_captured_values_are_listed() -> None:
    form = LoopForm.from_node(
        node(
            "z = Scan <num_scan_inputs = 1, "
            "body = b (float e) => (float o) { t = Mul (e, w) o = Add (t, bias) }> (x)"
        ),
        9,
    )
    assert form.captured == ["w", "bias"]


@pytest.mark.parametrize("inputs", ["float s, float e, float w", "float w, float s, float e"])
def test_a_body_input_that_names_an_initializer_is_a_constant_wherever_it_stands(
    inputs: str,
) -> None:
    weighted = scan_8()
    weighted.attribute[-1].CopyFrom(
        node(
            f"y, z = Scan <body = step ({inputs}) => (float t, float o) <float w = {{2}}> "
            "{ u = Mul (e, w) t = Add (s, u) o = Neg (t) }> ()"
        ).attribute[0]
    )
    form = LoopForm.from_node(weighted, 8)
    assert form.constant_inputs == ("w",)
    assert form.carried == (Carried("h", "s", "t", "y"),)
    assert form.scanned == (Scanned("x", "e", 1),)
    assert form.to_node() == weighted


def test_a_loop_body_may_list_constants_too() -> None:
    form = LoopForm.from_node(
        loop(
            body="body = b (int64 i, bool go, float s, float w) => (bool on, float t, float o) "
            "<float w = {2}> { on = Identity (go) t = Mul (s, w) o = Abs (s) }"
        ),
        8,
    )
    assert form.constant_inputs == ("w",)
    assert form.body_inputs == ["i", "go", "s", "w"]


# -- what does not fit ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("broken", "opset", "sentence"),
    [
        (node("y = Neg (x)"), 16, "Neg is no loop"),
        (node("y = Loop (n, c)"), 16, "Loop has no body"),
        (node("y = Loop <body = 3> (n, c)"), 16, "attribute body of Loop holds no graph"),
        (node("y = Scan <num_scan_inputs = 1> (x)"), 16, "Scan has no body"),
        (
            loop("n"),
            16,
            "Loop has 1 input, but takes at least 2, trip count and condition "
            "(an empty name leaves one out)",
        ),
        (
            loop("n, c"),
            16,
            "the body takes 3 inputs, but the node feeds 2 (iteration number, "
            "condition and carried values)",
        ),
        (
            loop("n, c, h, k"),
            16,
            "the body takes 3 inputs, but the node feeds 4 (iteration number, "
            "condition and carried values)",
        ),
        (
            loop(body="body = b (int64 i, bool go, float s) => (bool on) { on = Identity (go) }"),
            16,
            "the body returns 1 value, but must return 3: the condition and the "
            "2 outputs of the node",
        ),
        (
            loop(
                body="body = b (int64 i, bool go, float s) => (bool on, float t) "
                "{ on = Identity (go) t = Neg (s) }"
            ),
            16,
            "the body returns 2 values, but must return 3: the condition and "
            "the 2 outputs of the node",
        ),
        (
            scan_8(inputs="x"),
            8,
            "the body takes 2 inputs, but the node feeds none beside sequence_lens",
        ),
        (
            scan_8(inputs='"", x'),
            8,
            "the body takes 2 inputs, but the node feeds 1 beside "
            "sequence_lens, which a Scan-9 does not have",
        ),
        (
            scan_8("num_scan_inputs = 1, directions = [0, 1]"),
            8,
            "directions has 2 entries, but the node has 1 scanned input",
        ),
        (
            scan_8("num_scan_inputs = 1, directions = [2]"),
            8,
            "directions[0] is 2, but must be 0 (forward) or 1 (reverse)",
        ),
        (scan("num_scan_inputs = 0"), 9, "num_scan_inputs is 0, but a Scan needs at least 1"),
        (scan("num_scan_inputs = 3"), 9, "num_scan_inputs is 3, but the node has 2 inputs"),
        (
            scan("num_scan_inputs = 1, scan_input_axes = [0, 0]"),
            9,
            "scan_input_axes has 2 entries, but the node has 1 scanned input",
        ),
        (
            scan("num_scan_inputs = 1, scan_output_axes = [0, 0]"),
            9,
            "scan_output_axes has 2 entries, but the node has 1 collected output",
        ),
        (
            scan("num_scan_inputs = 1, scan_input_directions = [-1]"),
            9,
            "scan_input_directions[0] is -1, but must be 0 (forward) or 1 (reverse)",
        ),
        (
            scan("num_scan_inputs = 1, scan_output_directions = [0, 1]"),
            9,
            "scan_output_directions has 2 entries, but the node has 1 collected output",
        ),
        (scan(outputs="y"), 9, "the body returns 2 values, but the node has 1 output"),
        (
            node("y = Scan <num_scan_inputs = 1, body = b (float s, float e) => () { }> (h, x)"),
            9,
            "the body returns no values, but the node has 1 output",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_counts_that_do_not_fit_are_said_with_both_sides(
    broken: NodeProto, opset: int, sentence: str
) -> None:
    with pytest.raises(BadModel) as error:
        LoopForm.from_node(broken, opset)
    assert error.value.sentence == sentence


def test_a_fed_input_cannot_be_an_initializer_as_well() -> None:
    """onnxruntime does not count it as an input either."""
    both = scan(
        body="body = b (float s, float e) => (float t, float o) <float s = {1}> "
        "{ t = Add (s, e) o = Neg (t) }"
    )
    with pytest.raises(BadModel, match="the body takes 1 input, but the node feeds 2, as a Scan-8"):
        LoopForm.from_node(both, 16)


# -- writing ----------------------------------------------------------------------------------


def loops_of(model: onnx.ModelProto) -> Iterator[tuple[NodeProto, int]]:
    for place in scope.walk_model(model):
        if place.node.op_type in ("Scan", "Loop") and is_onnx_domain(place.node.domain):
            *_, top = place.scope.chain()
            yield place.node, Model(model).opset(top.owner)


def unchanged(model: onnx.ModelProto) -> int:
    """Take every loop apart and put it together, but for those whose form callers of a function
    choose; answers how many there were."""
    loops = [
        (one, opset)
        for one, opset in loops_of(model)
        if not any(attribute.ref_attr_name for attribute in one.attribute)
    ]
    for one, opset in loops:
        before = one.SerializeToString(deterministic=True)
        again = LoopForm.from_node(one, opset).to_node()
        assert again is not one, "the caller may change what it gets"
        assert again.SerializeToString(deterministic=True) == before
    return len(loops)


def test_every_loop_of_onnx_own_cases_comes_back_byte_for_byte() -> None:
    assert sum(unchanged(case.model) for case in all_cases()) > 10


def golden(path: Path) -> onnx.ModelProto:
    """A golden model; onnx prints names of graphs and tensors in quotes, but does not read them."""
    quoted = r'(: graph = |: tensor = \w+(?:\[[\d,]*\])? )"[^"]*"'
    return onnx.parser.parse_model(re.sub(quoted, r"\1unquoted", path.read_text()))


def test_every_loop_of_the_golden_models_comes_back_byte_for_byte() -> None:
    assert sum(unchanged(golden(path)) for path in GOLDEN.glob("*/*.onnxtxt")) > 100


def test_every_loop_of_the_binary_models_comes_back_byte_for_byte() -> None:
    paths = sorted((GOLDEN / "binary").glob("*.onnx"))
    assert sum(unchanged(Model.load(path).proto) for path in paths) >= len(paths) > 0


def test_a_body_with_nan_comes_back_byte_for_byte() -> None:
    """NaN is not equal to itself, not even in a proto."""
    odd = scan()
    odd.attribute[-1].g.initializer.append(
        helper.make_tensor("k", TensorProto.FLOAT, [1], [float("nan")])
    )
    assert LoopForm.from_node(odd, 9).to_node().SerializeToString() == odd.SerializeToString()


def test_unknown_attributes_names_docs_and_metadata_stay() -> None:
    said = scan("num_scan_inputs = 1, hint = 7")
    said.name, said.doc_string = "cell", "by hand"
    said.metadata_props.add(key="origin", value="layer 3")
    form = LoopForm.from_node(said, 16)
    changed = replace(form, scanned=(replace(form.scanned[0], reversed=True),)).to_node()
    assert (changed.name, changed.doc_string) == ("cell", "by hand")
    assert changed.metadata_props[0].value == "layer 3"
    assert attributes(changed) == {
        "num_scan_inputs": 1,
        "scan_input_directions": [1],
        "hint": 7,
    }


def attributes(one: NodeProto) -> dict[str, object]:
    """The attributes besides the body."""
    return {
        entry.name: helper.get_attribute_value(entry)
        for entry in one.attribute
        if entry.name != "body"
    }


def test_a_changed_scan_writes_only_the_lists_that_say_something() -> None:
    form = LoopForm.from_node(scan(), 16)
    moved = replace(form, collected=(replace(form.collected[0], axis=1),))
    assert attributes(moved.to_node()) == {"num_scan_inputs": 1, "scan_output_axes": [1]}


def test_a_list_that_was_written_stays_written() -> None:
    form = LoopForm.from_node(scan("num_scan_inputs = 1, scan_input_axes = [0]"), 16)
    moved = replace(form, collected=(replace(form.collected[0], reversed=True),))
    assert attributes(moved.to_node()) == {
        "num_scan_inputs": 1,
        "scan_input_axes": [0],
        "scan_output_directions": [1],
    }


def test_all_four_lists() -> None:
    form = LoopForm.from_node(scan(), 16)
    turned = replace(
        form,
        scanned=(replace(form.scanned[0], axis=2, reversed=True),),
        collected=(replace(form.collected[0], axis=-1, reversed=True),),
    )
    written = turned.to_node()
    assert attributes(written) == {
        "num_scan_inputs": 1,
        "scan_input_axes": [2],
        "scan_input_directions": [1],
        "scan_output_axes": [-1],
        "scan_output_directions": [1],
    }
    assert LoopForm.from_node(written, 16) == turned


def test_a_changed_scan_8_writes_directions_and_lengths() -> None:
    form = LoopForm.from_node(scan_8(), 8)
    turned = replace(form, lengths="lens", scanned=(replace(form.scanned[0], reversed=True),))
    written = turned.to_node()
    assert list(written.input) == ["lens", "h", "x"]
    assert attributes(written) == {"num_scan_inputs": 1, "directions": [1]}
    assert LoopForm.from_node(written, 8) == turned


@pytest.mark.parametrize("lengths", ['""', "lens"])
def test_scan_8_becomes_scan(lengths: str) -> None:
    """Without its lengths and its batch axis, with the attributes of the newer form."""
    source = scan_8("num_scan_inputs = 1, directions = [1]", f"{lengths}, h, x")
    form = LoopForm.from_node(source, 8)
    row = replace(
        form,
        kind=Kind.SCAN,
        lengths="",
        scanned=(replace(form.scanned[0], axis=0),),
        collected=(replace(form.collected[0], axis=0),),
    )
    written = row.to_node()
    assert list(written.input) == ["h", "x"]
    assert attributes(written) == {"num_scan_inputs": 1, "scan_input_directions": [1]}
    assert LoopForm.from_node(written, 9) == row


def test_scan_becomes_loop() -> None:
    form = LoopForm.from_node(scan(), 16)
    lowered = replace(
        form,
        kind=Kind.LOOP,
        carried=form.carried,
        scanned=(),
        trip_count="n",
        condition=Condition("", "go", "go"),
        iteration="i",
    ).to_node()
    assert lowered.op_type == "Loop"
    assert list(lowered.input) == ["n", "", "h"]
    assert attributes(lowered) == {}
    body = lowered.attribute[0].g
    assert scope.input_names(body) == ["i", "go", "s"]
    assert scope.output_names(body) == ["go", "t", "o"]


def test_body_inputs_and_outputs_keep_their_types_where_they_move() -> None:
    """An inner value that becomes an output brings its value_info, an input its own type."""
    body = (
        "body = b (float[3] s, float[2] e) => (float[3] t, float[2] o) <float[2] inner> "
        "{ t = Neg (s) inner = Neg (e) o = Abs (inner) }"
    )
    form = LoopForm.from_node(scan(body=body), 16)
    more = (*form.collected, Collected("inner", "more"), Collected("e", "through"))
    written = replace(form, collected=more, carried=form.carried).to_node()
    outputs = written.attribute[0].g.output
    assert [describe(output) for output in outputs] == [
        "float[3] t",
        "float[2] o",
        "float[2] inner",
        "float[2] e",
    ]
    assert list(written.output) == ["y", "z", "more", "through"]


def test_a_changed_body_is_written() -> None:
    form = LoopForm.from_node(scan(), 16)
    body = onnx.GraphProto()
    body.CopyFrom(form.body)
    body.node[1].op_type = "Abs"
    written = replace(form, body=body).to_node()
    assert [node.op_type for node in written.attribute[0].g.node] == ["Add", "Abs"]


def test_forms_are_equal_whatever_node_they_come_from() -> None:
    one, other = scan(), scan()
    other.name = "other"
    assert LoopForm.from_node(one, 9) == LoopForm.from_node(other, 21)
