"""scan-windows: every axis and direction, elements with the axis and without, and what follows."""

from __future__ import annotations

from itertools import product

import pytest

import passes
from passes.testing import as_model, assert_rewrite

HEAD = '<ir_version: 8, opset_import: ["" : 18]>'


def inserted(dims: list[str], axis: int, size: str) -> list[str]:
    return [*dims[:axis], size, *dims[axis:]]


def convolution(axis: int, time: int, back: int, *, full: bool, row: bool) -> str:
    """A window of 3 elements [2,3] along `axis`; full, where it holds the newest one, too."""
    size = 3 if full else 2
    element = inserted(["2", "3"], axis, "1") if row else ["2", "3"]
    x = ",".join(inserted(element, time, "T"))
    w, whole = (",".join(inserted(["2", "3"], axis, n)) for n in (str(size), "3"))
    e = ",".join(element)
    new = "Identity (e)" if row else "Unsqueeze (e, along)"
    steps = (
        "old = Slice (w_in, one, many, along)  whole = Concat <axis = {0}> (old, new)"
        "  w_out = Identity (whole)"
        if full
        else "whole = Concat <axis = {0}> (w_in, new)  w_out = Slice (whole, one, many, along)"
    ).format(axis)
    return f"""{HEAD} g (float[{w}] w0, float[{x}] x) => (float[{w}] w, float[T,{whole}] ys) {{
        w, ys = Scan <num_scan_inputs = 1, scan_input_axes = [{time}],
            scan_input_directions = [{back}],
            body = step (float[{w}] w_in, float[{e}] e) => (float[{w}] w_out, float[{whole}] y) {{
            along = Constant <value_ints = [{axis}]> ()  one = Constant <value_ints = [1]> ()
            many = Constant <value_ints = [1000]> ()
            new = {new}  {steps}  y = Tanh (whole)
        }}> (w0, x) }}"""


CASES = list(product((0, 1, 2), (0, 1, 2), (0, 1), (True, False), (True, False)))


@pytest.mark.sampled
@pytest.mark.parametrize(("axis", "time", "back", "full", "row"), CASES)
def test_axes_and_directions(axis: int, time: int, back: int, full: bool, row: bool) -> None:
    """Nothing is carried any more."""
    text = convolution(axis, time, back, full=full, row=row)
    (scan,) = (
        node
        for node in assert_rewrite(text, pipeline="scan-windows").model.graph.node
        if node.op_type == "Scan"
    )
    assert scan.output[:] == ["ys"]


def test_no_loop_is_left() -> None:
    """What reads windows alone runs on all of them at once."""
    model = as_model(convolution(0, 0, 0, full=False, row=False))
    assert not [
        node for node in passes.optimize(model).model.graph.node if node.op_type in ("Scan", "If")
    ]


@pytest.mark.parametrize(
    ("said", "instead"),
    [
        ("Slice (whole, one, many, along)", "Slice (whole, one, one, along)"),
        ("Slice (whole, one, many, along)", "Slice (whole, along, many, along, one)"),
        ("Concat <axis = 0> (w_in, new)", "Concat <axis = 0> (new, w_in)"),
    ],
)
def test_other_steps_stay(said: str, instead: str) -> None:
    """A window that loses another element, or gets one in front."""
    text = convolution(0, 0, 0, full=False, row=False)
    assert said in text
    model = as_model(text.replace(said, instead))
    made = passes.simplify(model, rules=["scan-windows"], verify=False).model
    assert made.graph.node[0].op_type == "Scan"
