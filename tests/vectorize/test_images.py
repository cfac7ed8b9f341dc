"""Image rules: the new axis is merged into N."""

from __future__ import annotations

import numpy as np
import pytest
from looping import prove, refused

pytestmark = pytest.mark.sampled

BODIES = {
    "conv": "y = Conv <pads = [1, 1, 1, 1]> (x, w, c)",
    "grouped conv": "y = Conv <group = 2, strides = [2, 1]> (x, half)",
    "deconv": "y = ConvTranspose <strides = [2, 2]> (x, w)",
    "average": "y = AveragePool <kernel_shape = [2, 2]> (x)",
    "lp": "y = LpPool <kernel_shape = [2, 2]> (x)",
    "max": "y = MaxPool <kernel_shape = [2, 2], pads = [1, 0, 0, 1]> (x)",
    "global average": "y = GlobalAveragePool (x)",
    "global max": "y = GlobalMaxPool (x)",
    "global lp": "y = GlobalLpPool (x)",
    "batch normalization": "y = BatchNormalization (x, c, c, c, v)",
    "instance normalization": "y = InstanceNormalization (x, c, c)",
    "group normalization": "y = GroupNormalization <num_groups = 2> (x, c, c)",
    "lrn": "y = LRN <size = 3> (x)",
}


def body(op: str, dims: str) -> str:
    """A graph that runs one op on an image of these dims."""
    weights = "float[2, 2, 3, 3] w, float[2, 1, 3, 3] half"
    constants = "<float[2] c = {0.5, -1.5}, float[2] v = {0.25, 4.0}>"
    return f"g (float[{dims}] x, {weights}) => (float[] y) {constants} {{ {BODIES[op]} }}"


@pytest.mark.parametrize("opset", [13, 21])
@pytest.mark.parametrize("dims", ["1, 2, 5, 4", "3, 2, 5, 4", "N, 2, H, 4"])
@pytest.mark.parametrize("op", BODIES)
def test_all_images_of_all_rows_go_through_one_kernel(
    op: str, dims: str, opset: int, both: list
) -> None:
    if op == "group normalization" and opset < 21:
        pytest.skip("GroupNormalization takes its scale by group before 21")
    if "N" in dims and opset < 14:
        assert refused(body(op, dims), ["x"], opset) == "may-be-empty"
        return
    feeds = {"x": np.arange(120, dtype=np.float32).reshape(3, 2, 5, 4) % 7} if "N" in dims else None
    made = prove(body(op, dims), ["x"], feeds, opset=opset, executors=both, rtol_terms=18)
    assert len([node for node in made.graph.node if node.op_type in BODIES[op]]) == 1


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("dims", ["1, 2, 5, 4", "3, 2, 5, 4", "N, 2, H, 4"])
@pytest.mark.parametrize("op", sorted(set(BODIES) - {"group normalization"}))
def test_no_rows_give_no_rows(op: str, dims: str, static: bool) -> None:
    feeds = {"x": np.ones((3, 2, 5, 4), np.float32)} if "N" in dims else None
    prove(body(op, dims), ["x"], feeds, sizes=[0, 2], static=static, nonempty=False, rtol_terms=18)


@pytest.mark.parametrize("storage", [0, 1])
@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("dims", ["1, 2, 5, 4", "3, 2, 5, 4", "N, 2, H, 4"])
def test_places_of_maxima_count_within_a_row(
    dims: str, static: bool, storage: int, both: list
) -> None:
    text = (
        f"g (float[{dims}] x) => (float[] y, int64[] i) "
        f"{{ y, i = MaxPool <kernel_shape = [2, 2], storage_order = {storage}> (x) }}"
    )
    feeds = {"x": np.arange(120, dtype=np.float32).reshape(3, 2, 5, 4) % 7} if "N" in dims else None
    prove(text, ["x"], feeds, static=static, executors=both)


def test_lines_and_volumes_are_images(both: list) -> None:
    line = "g (float[2, 3, 7] x, float[4, 3, 2] w) => (float[] y) { y = Conv (x, w) }"
    volume = (
        "g (float[2, 1, 4, 3, 5] x) => (float[] y) { y = MaxPool <kernel_shape = [2, 2, 2]> (x) }"
    )
    prove(line, ["x"], executors=both, rtol_terms=6)
    prove(volume, ["x"], executors=both)


def test_integers_are_convolved(both: list) -> None:
    text = (
        "g (uint8[2, 1, 4, 4] x, uint8[1, 1, 2, 2] w) => (int32[] y) "
        "<uint8 zero = {3}> { y = ConvInteger (x, w, zero) }"
    )
    feeds = {"x": np.arange(32, dtype=np.uint8).reshape(2, 1, 4, 4)}
    feeds["w"] = np.array([[[[1, 2], [3, 4]]]], np.uint8)
    prove(text, ["x"], feeds, executors=both)


@pytest.mark.parametrize("carrying", [["x"], ["grid"], ["x", "grid"]])
@pytest.mark.parametrize("n", [1, 2])
def test_images_and_grids_may_come_from_each_row(n: int, carrying: list[str], both: list) -> None:
    text = (
        f"g (float[{n}, 2, 4, 4] x, float[{n}, 3, 3, 2] grid) => (float[] y) "
        "{ y = GridSample (x, grid) }"
    )
    prove(text, carrying, executors=both, rtol_terms=4)


RESIZES = {
    "scales": 'y = Resize <mode = "linear"> (x, , scales)',
    "sizes": 'y = Resize <mode = "nearest"> (x, , , sizes)',
    "axes": 'y = Resize <mode = "nearest", axes = [2, 3]> (x, , , pair)',
    "cubic": 'y = Resize <mode = "cubic"> (x, , scales)',
    "crop": (
        'y = Resize <mode = "linear", coordinate_transformation_mode = "tf_crop_and_resize"> '
        "(x, roi, scales)"
    ),
}
CONSTANTS = (
    "<float[4] scales = {1.0, 1.0, 2.0, 1.5}, int64[4] sizes = {2, 2, 8, 3}, "
    "int64[2] pair = {8, 3}, float[8] roi = {0.0, 0.0, 0.25, 0.0, 1.0, 1.0, 0.75, 1.0}>"
)


def resized(name: str, dims: str = "2, 2, 4, 4") -> str:
    return f"g (float[{dims}] x) => (float[] y) {CONSTANTS} {{ {RESIZES[name]} }}"


@pytest.mark.parametrize("opset", [13, 18, 21])
@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("name", RESIZES)
def test_resizing_leaves_n_alone(name: str, static: bool, opset: int, both: list) -> None:
    if name == "axes" and opset < 18:
        pytest.skip("axes came with opset 18")
    prove(resized(name), ["x"], opset=opset, static=static, executors=both, rtol_terms=16)


@pytest.mark.parametrize("name", ["scales", "sizes"])
def test_resizing_no_rows(name: str) -> None:
    prove(resized(name), ["x"], sizes=[0], nonempty=False)


def test_sizes_of_the_run_may_resize_what_is_not_n(both: list) -> None:
    text = (
        "g (float[1, 2, 4, 4] x, int64[4] sizes) => (float[1, 2, h, w] y) "
        "{ y = Resize (x, , , sizes) }"
    )
    prove(text, ["x"], {"sizes": np.array([1, 2, 6, 5])}, executors=both)


REFUSED = {
    "batched-operand": [
        ("g (float[1,1,4,4] x, float[1,1,2,2] w) => (float[] y) { y = Conv (x, w) }", ["x", "w"]),
        ("g (float[1,1,4,4] x, float[4] s) => (float[] y) { y = Resize (x, , s) }", ["x"]),
        ("g (float[1,1,4,4] x, float[4] s) => (float[] y) { y = Resize (x, , s) }", ["s"]),
        ("g (float[N,1,4,4] x, int64[4] s) => (float[] y) { y = Resize (x, , , s) }", ["x"]),
        (
            "g (float[2,1,4,4] x) => (float[] y) <float[4] s = {2.0, 1.0, 1.0, 1.0}> "
            "{ y = Resize (x, , s) }",
            ["x"],
        ),
        (
            "g (float[1,2,3] x, float[2] c) => (float[] y) { y = InstanceNormalization (x, c, c) }",
            ["x", "c"],
        ),
    ],
    "no-batching-rule": [
        (
            "g (float[2,1,4,4] x, float[1] c) => (float[] y) "
            "{ y, m, v = BatchNormalization <training_mode = 1> (x, c, c, c, c) }",
            ["x"],
        ),
    ],
    "may-be-empty": [(body("group normalization", "3, 2, 5, 4"), ["x"])],
    "unknown-rank": [
        ("g (float[] x) => (float[] y) { z = Squeeze (x) y = LRN <size = 1> (z) }", ["x"])
    ],
}


@pytest.mark.parametrize(
    ("code", "text", "carrying"),
    [(code, *one) for code, several in REFUSED.items() for one in several],
)
def test_what_may_differ_from_row_to_row_is_refused(
    code: str, text: str, carrying: list[str]
) -> None:
    assert refused(text, carrying) == code
