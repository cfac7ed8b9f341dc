"""scan-windows: every axis and direction, elements with the axis and without, and other steps."""

from __future__ import annotations

from itertools import product

import pytest

import passes
from passes.testing import as_model, assert_rewrite
from tests.written import changed

#: A window of the newest 2 elements [2,3] along the axis 0; with the next one it is collected.
NEXT_NOT_HELD = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[2,2,3] w0, float[T,2,3] x) => (float[2,2,3] w, float[T,3,2,3] ys)
{
    w, ys = Scan <num_scan_inputs = 1, scan_input_axes = [0], scan_input_directions = [0],
        body = step (float[2,2,3] w_in, float[2,3] e) => (float[2,2,3] w_out, float[3,2,3] y) {
        along = Constant <value_ints = [0]> ()
        one = Constant <value_ints = [1]> ()
        many = Constant <value_ints = [1000]> ()
        new = Unsqueeze (e, along)
        whole = Concat <axis = 0> (w_in, new)
        w_out = Slice (whole, one, many, along)
        y = Tanh (whole)
    }> (w0, x)
}
"""
#: A window of 3 elements that holds the newest one.
NEXT_HELD = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[3,2,3] w0, float[T,2,3] x) => (float[3,2,3] w, float[T,3,2,3] ys)
{
    w, ys = Scan <num_scan_inputs = 1, scan_input_axes = [0], scan_input_directions = [0],
        body = step (float[3,2,3] w_in, float[2,3] e) => (float[3,2,3] w_out, float[3,2,3] y) {
        along = Constant <value_ints = [0]> ()
        one = Constant <value_ints = [1]> ()
        many = Constant <value_ints = [1000]> ()
        new = Unsqueeze (e, along)
        old = Slice (w_in, one, many, along)
        whole = Concat <axis = 0> (old, new)
        w_out = Identity (whole)
        y = Tanh (whole)
    }> (w0, x)
}
"""
RULE = {"rules": "scan-windows"}
BACKWARDS = {"scan_input_directions = [0]": "scan_input_directions = [1]"}


def along(axis: int, time: int, *, held: bool, row: bool) -> str:
    """A window along an axis; `row`, where the elements have that axis, too."""
    element = with_axis("2,3", axis, "1") if row else "2,3"
    size = "3" if held else "2"
    changes = {
        "float[T,3,2,3]": f"float[T,{with_axis('2,3', axis, '3')}]",
        "float[3,2,3]": f"float[{with_axis('2,3', axis, '3')}]",
        f"float[{size},2,3]": f"float[{with_axis('2,3', axis, size)}]",
        "float[T,2,3] x": f"float[{with_axis(element, time, 'T')}] x",
        "float[2,3] e": f"float[{element}] e",
        "scan_input_axes = [0]": f"scan_input_axes = [{time}]",
        "value_ints = [0]": f"value_ints = [{axis}]",
        "Concat <axis = 0>": f"Concat <axis = {axis}>",
    }
    if row:
        changes["Unsqueeze (e, along)"] = "Identity (e)"
    return changed(NEXT_HELD if held else NEXT_NOT_HELD, changes)


def with_axis(dims: str, axis: int, size: str) -> str:
    """The sizes with one more before `axis`."""
    sizes = dims.split(",")
    return ",".join([*sizes[:axis], size, *sizes[axis:]])


CASES = list(product((0, 2), (0, 1), (0, 1), (True, False), (True, False)))


@pytest.mark.parametrize(("axis", "time", "back", "held", "row"), CASES)
def test_axes_and_directions(axis: int, time: int, back: int, held: bool, row: bool) -> None:
    """Nothing is carried any more."""
    text = changed(along(axis, time, held=held, row=row), BACKWARDS if back else {})
    (scan,) = (
        node
        for node in assert_rewrite(text, pipeline="simplify", options=RULE).model.graph.node
        if node.op_type == "Scan"
    )
    assert scan.output[:] == ["ys"]


def test_no_loop_is_left() -> None:
    """What reads windows alone runs on all of them at once."""
    scanned = passes.simplify(as_model(NEXT_NOT_HELD), rules=["scan-windows"]).model
    nodes = passes.optimize(scanned).model.graph.node
    assert {"Scan", "If"}.isdisjoint(node.op_type for node in nodes)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Slice (whole, one, many, along)", "Slice (whole, one, one, along)"),
        ("Slice (whole, one, many, along)", "Slice (whole, along, many, along, one)"),
        ("Concat <axis = 0> (w_in, new)", "Concat <axis = 0> (new, w_in)"),
    ],
)
def test_other_steps_stay(old: str, new: str) -> None:
    """A window that loses another element, or whose new element is the first."""
    model = as_model(changed(NEXT_NOT_HELD, {old: new}))
    made = passes.simplify(model, rules=["scan-windows"], verify=False).model
    assert made.graph.node[0].op_type == "Scan"
