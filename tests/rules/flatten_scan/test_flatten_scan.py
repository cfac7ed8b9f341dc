"""flatten-scan: axes, directions, lengths of 0 and lengths that do not agree, names, depths."""

from __future__ import annotations

import random

import numpy as np
import onnx
import pytest
from in_both_executors import assert_both_fail, run_both

from passes.ir import scope as scoping
from passes.testing import as_model, assert_refused, assert_rewrite
from passes.verify.reference import ReferenceExecutor
from tests.written import changed

pytestmark = pytest.mark.sampled

PIPELINE = "flatten-scan"


def flattened(model: str | onnx.ModelProto, **options: object) -> onnx.ModelProto:
    """The outcome, verified, in which no Scan holds another one."""
    result = assert_rewrite(model, pipeline=PIPELINE, options=options)
    assert scans(result.model) == ["main"], [refusal.sentence for refusal in result.report.refusals]
    return result.model


def scans(model: onnx.ModelProto) -> list[str]:
    """The paths of the graphs that hold the Scans, one for each Scan."""
    return [one.scope.path for one in scoping.walk_model(model) if one.node.op_type == "Scan"]


def ops(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


def with_axis(dims: str, axis: int, size: str) -> str:
    """Sizes with one more, at a place counted from the front or the back."""
    sizes = dims.split(",")
    sizes.insert(axis % (len(sizes) + 1), size)
    return ",".join(sizes)


#: A recurrence over elements [2,3] of rows.
PLAIN = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[2,3] s0, float[T,N,2,3] x) => (float[2,3] s, float[T,N,2,3] ys)
{
    s, ys = Scan <num_scan_inputs = 1, scan_input_directions = [0], scan_output_directions = [0],
        scan_input_axes = [0], scan_output_axes = [0], body = rows
        (float[2,3] s_in, float[N,2,3] row) => (float[2,3] s_out, float[N,2,3] y_row)
        {
            s_out, y_row = Scan <num_scan_inputs = 1,
                scan_input_directions = [0], scan_output_directions = [0],
                scan_input_axes = [0], scan_output_axes = [0], body = elements
                (float[2,3] t_in, float[2,3] x_e) => (float[2,3] t_out, float[2,3] y)
                {
                    t_out = Sub (x_e, t_in)
                    y = Neg (t_out)
                }> (s_in, row)
        }> (s0, x)
}
"""


def nest(axes: tuple[int, int, int, int], back: int = 0, out_back: int = 0) -> str:
    """`PLAIN`, where `axes` are those of the rows, of the elements of a row, and of the outputs
    that are collected of both."""
    rows, elements, out_rows, out_elements = axes
    row, y_row = with_axis("2,3", elements, "N"), with_axis("2,3", out_elements, "N")
    zero = "scan_input_axes = [0], scan_output_axes = [0]"
    return changed(
        PLAIN,
        {
            "[T,N,2,3] x": f"[{with_axis(row, rows, 'T')}] x",
            "[T,N,2,3] ys": f"[{with_axis(y_row, out_rows, 'T')}] ys",
            "[N,2,3] row": f"[{row}] row",
            "[N,2,3] y_row": f"[{y_row}] y_row",
            f"{zero}, body = rows":
                f"scan_input_axes = [{rows}], scan_output_axes = [{out_rows}], body = rows",
            f"{zero}, body = elements":
                f"scan_input_axes = [{elements}], scan_output_axes = [{out_elements}],"
                " body = elements",
            "scan_input_directions = [0]": f"scan_input_directions = [{back}]",
            "scan_output_directions = [0]": f"scan_output_directions = [{out_back}]",
        },
    )  # fmt: skip


STATE = np.array([[1, -2, 3], [0.5, 0, 7]], np.float32)


def recurrence(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What `PLAIN` computes."""
    s, ys = STATE, np.zeros_like(x)
    for i in np.ndindex(*x.shape[:2]):
        s = x[i] - s
        ys[i] = -s
    return s, ys


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_every_axis_and_direction(seed: int) -> None:
    rng = random.Random(seed)
    places = [range(-4, 4), range(-3, 3), range(-4, 4), range(-3, 3)]
    axes = tuple(rng.choice(choice) for choice in places)
    flattened(nest(axes, back=rng.randint(0, 1), out_back=rng.randint(0, 1)))


@pytest.mark.slow
def test_leading_axes_are_not_transposed() -> None:
    assert "Transpose" not in ops(flattened(PLAIN))
    assert "Transpose" not in ops(flattened(nest((-4, -3, -4, -3))))
    assert "Transpose" in ops(flattened(nest((1, 0, 0, 0))))
    assert ops(flattened(nest((0, 0, 1, 0))))[-1] == "Transpose"


def test_the_values_are_those_of_the_loops() -> None:
    x = np.random.default_rng(0).normal(size=(4, 3, 2, 3)).astype(np.float32)
    s, ys = recurrence(x)
    for found in run_both(flattened(PLAIN), {"s0": STATE, "x": x}):
        assert np.array_equal(found["s"], s)
        assert np.array_equal(found["ys"], ys)


def test_nan_reaches_the_same_elements() -> None:
    x = np.ones((3, 4, 2, 3), np.float32)
    x[1, 2, 0, 1] = np.nan
    s, ys = recurrence(x)
    for found in run_both(flattened(PLAIN), {"s0": STATE, "x": x}):
        assert np.array_equal(found["s"], s, equal_nan=True)
        assert np.array_equal(found["ys"], ys, equal_nan=True)
    assert np.isnan(ys).sum() == 6


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
@pytest.mark.parametrize("axes", [(0, 0, 0, 0), (3, 1, 2, 0)])
def test_where_nothing_is_scanned_the_state_stays(
    shape: tuple[int, int], axes: tuple[int, int, int, int]
) -> None:
    rows, length = shape
    elements = [2, 3]
    elements.insert(axes[1], length)
    elements.insert(axes[0], rows)
    collected = [2, 3]
    collected.insert(axes[3], length)
    collected.insert(axes[2], rows)
    feeds = {"s0": STATE, "x": np.zeros(elements, np.float32)}
    found = ReferenceExecutor().run(flattened(nest(axes)), feeds).outputs
    assert np.array_equal(found["s"], STATE)
    assert found["ys"].shape == tuple(collected)


@pytest.mark.parametrize("shape", [(0, 3, 2), (3, 0, 2), (3, 2, 0), (0, 3, 0), (0, 0, 0)])
def test_sizes_that_are_not_fixed_may_be_0(shape: tuple[int, int, int]) -> None:
    after = flattened(OPEN)
    feeds = {"s0": np.ones(shape[2], np.float32), "x": np.ones(shape, np.float32)}
    found = ReferenceExecutor().run(after, feeds).outputs
    assert found["ys"].shape == shape
    assert found["s"].shape == shape[2:]
    if shape == (3, 2, 0):  # the only one of these that onnxruntime runs
        for one in run_both(after, feeds):
            assert one["ys"].shape == shape


OPEN = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[B] s0, float[T,N,B] x) => (float[B] s, float[T,N,B] ys)
{
    s, ys = Scan <num_scan_inputs = 1, body = rows
        (float[B] s_in, float[N,B] row) => (float[B] s_out, float[N,B] y_row)
        {
            s_out, y_row = Scan <num_scan_inputs = 1, body = elements
                (float[B] t_in, float[B] x_e) => (float[B] t_out, float[B] y)
                {
                    t_out = Sub (x_e, t_in)
                    y = Neg (t_out)
                }> (s_in, row)
        }> (s0, x)
}
"""

#: A sum of the products of `x` and `z`.
PRODUCTS = """
<ir_version: 8, opset_import: ["" : 18]>
g (float s0, float[T,N] x, float[U,M] z) => (float s)
{
    s = Scan <num_scan_inputs = 2, body = rows
        (float s_in, float[N] row, float[M] other) => (float s_out)
        {
            s_out = Scan <num_scan_inputs = 2, body = elements
                (float t_in, float x_e, float z_e) => (float t_out)
                {
                    p = Mul (x_e, z_e)
                    t_out = Add (t_in, p)
                }> (s_in, row, other)
        }> (s0, x, z)
}
"""


def of_shapes(*shapes: tuple[int, int]) -> dict[str, np.ndarray]:
    x, z = (np.ones(shape, np.float32) for shape in shapes)
    return {"s0": np.array(5, np.float32), "x": x, "z": z}


@pytest.mark.parametrize(
    "shapes",
    [((2, 3), (3, 2)), ((2, 3), (2, 6)), ((2, 3), (2, 2)), ((4, 3), (2, 3)), ((0, 3), (2, 3))],
)
def test_lengths_must_agree_as_before(shapes: tuple[tuple[int, int], tuple[int, int]]) -> None:
    after = flattened(PRODUCTS)
    assert_both_fail(after, of_shapes(*shapes))
    assert_both_fail(after, of_shapes(*shapes[::-1]))


@pytest.mark.slow
def test_where_there_are_no_rows_their_lengths_may_differ() -> None:
    for shapes in [((0, 3), (0, 4)), ((0, 3), (0, 0)), ((0, 0), (0, 2))]:
        feeds = of_shapes(*shapes)
        for model in (as_model(PRODUCTS), flattened(PRODUCTS)):
            assert ReferenceExecutor().run(model, feeds).outputs["s"] == 5


@pytest.mark.parametrize("made", ["Neg (x)", "Identity (x)", "Add (x, x)"])
def test_lengths_that_are_proven_to_agree_have_no_guard(made: str) -> None:
    computed = {", float[U,M] z) => (float s)\n{": f") => (float s)\n{{\n    z = {made}"}
    assert "Where" not in ops(flattened(changed(PRODUCTS, computed)))


def test_inputs_of_the_same_declared_sizes_have_no_guard() -> None:
    assert "Where" not in ops(flattened(changed(PRODUCTS, {"float[U,M] z": "float[T,N] z"})))


@pytest.mark.parametrize("sizes", ["S,N", "T,4", "64,N"])
def test_another_size_is_guarded(sizes: str) -> None:
    text = changed(PRODUCTS, {"float[U,M] z": f"float[{sizes}] z"})
    assert "Where" in ops(flattened(text))
    assert "Where" not in ops(flattened(text, assume="valid-inputs"))


def test_one_row_may_be_scanned_twice() -> None:
    after = flattened("""
    <ir_version: 8, opset_import: ["" : 18]>
    g (float s0, float[T,N] x) => (float s)
    {
        s = Scan <num_scan_inputs = 1, body = rows (float s_in, float[N] row) => (float s_out)
            {
                s_out = Scan <num_scan_inputs = 2, body = elements
                    (float t_in, float a, float b) => (float t_out)
                    {
                        p = Mul (a, b)
                        t_out = Sub (p, t_in)
                    }> (s_in, row, row)
            }> (s0, x)
    }
    """)
    assert "Where" not in ops(after)


def test_one_value_may_be_collected_twice() -> None:
    flattened("""
    <ir_version: 8, opset_import: ["" : 18]>
    g (float[2,3] s0, float[T,N,2,3] x)
    => (float[2,3] s, float[T,N,2,3] ys, float[N,T,2,3] zs)
    {
        s, ys, zs = Scan <num_scan_inputs = 1, scan_output_axes = [0, 1], body = rows
            (float[2,3] s_in, float[N,2,3] row)
            => (float[2,3] s_out, float[N,2,3] y_row, float[N,2,3] z)
            {
                s_out, y_row = Scan <num_scan_inputs = 1, body = elements
                    (float[2,3] t_in, float[2,3] x_e) => (float[2,3] t_out, float[2,3] y)
                    {
                        t_out = Sub (x_e, t_in)
                        y = Neg (t_out)
                    }> (s_in, row)
                z = Identity (y_row)
            }> (s0, x)
    }
    """)


@pytest.mark.parametrize("kind", ["string", "bool", "int64", "float16", "double"])
def test_every_type(kind: str) -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 18]>
    g (float[2] s0, float[T,N,2] x) => (float[2] s, float[T,N,2] ys)
    {
        s, ys = Scan <num_scan_inputs = 1, body = rows
            (float[2] s_in, float[N,2] row) => (float[2] s_out, float[N,2] y_row)
            {
                s_out, y_row = Scan <num_scan_inputs = 1, body = elements
                    (float[2] t_in, float[2] x_e) => (float[2] t_out, float[2] y)
                    {
                        t_out = Identity (x_e)
                        y = Identity (t_in)
                    }> (s_in, row)
            }> (s0, x)
    }
    """
    flattened(changed(text, {"float": kind}))


#: A running difference of the elements of rows.
DIFFERENCE = """
<ir_version: 8, opset_import: ["" : 18]>
g (float s0, float[T,N] x) => (float s)
{
    s = Scan <num_scan_inputs = 1, body = rows (float s_in, float[N] row) => (float s_out)
        {
            s_out = Scan <num_scan_inputs = 1, body = elements
                (float t_in, float e) => (float t_out)
                {
                    t_out = Sub (e, t_in)
                }> (s_in, row)
        }> (s0, x)
}
"""
STEP = "t_out = Sub (e, t_in)"


def test_an_outer_value_that_the_inner_body_hides_keeps_its_meaning() -> None:
    after = flattened("""
    <ir_version: 8, opset_import: ["" : 18]>
    g (float s0, float[T,N] x, float w) => (float s)
    {
        s = Scan <num_scan_inputs = 1, body = rows (float s_in, float[N] row) => (float s_out)
            {
                v = Identity (w)
                s_out = Scan <num_scan_inputs = 1, body = elements
                    (float w, float e) => (float t_out)
                    {
                        p = Mul (e, v)
                        t_out = Add (w, p)
                    }> (s_in, row)
            }> (s0, x)
    }
    """)
    feeds = {"s0": 1, "x": [[1, 2], [3, 4]], "w": 10}
    for found in run_both(
        after, {name: np.array(value, np.float32) for name, value in feeds.items()}
    ):
        assert found["s"] == 101


def test_a_constant_that_the_inner_body_hides_deeper_keeps_its_meaning() -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 18]>
    g (float s0, float[T,N] x) => (float s) <int64[1] at = {0}>
    {
        s = Scan <num_scan_inputs = 1, body = rows (float s_in, float[N] row) => (float s_out)
            {
                k = Constant <value_float = 3.0> ()
                s_out = Scan <num_scan_inputs = 1, body = elements
                    (float t_in, float e) => (float t_out)
                    {
                        c = Mul (e, k)
                        x1 = Unsqueeze (e, at)
                        q = Scan <num_scan_inputs = 1, body = deep (float k, float f) => (float r)
                            {
                                r = Mul (k, f)
                            }> (c, x1)
                        t_out = Add (t_in, q)
                    }> (s_in, row)
            }> (s0, x)
    }
    """
    result = assert_rewrite(text, pipeline=PIPELINE)
    assert scans(result.model) == ["main/scan_1.body", "main"]


def test_constants_of_the_outer_body_keep_their_quantization() -> None:
    model = as_model("""
    <ir_version: 8, opset_import: ["" : 18]>
    g (float s0, float[T,N] x) => (float s)
    {
        s = Scan <num_scan_inputs = 1, body = rows (float s_in, float[N] row) => (float s_out)
            {
                k = Constant <value_float = 3.0> ()
                s_out = Scan <num_scan_inputs = 1, body = elements
                    (float t_in, float e) => (float t_out)
                    {
                        p = Mul (e, k)
                        t_out = Add (t_in, p)
                    }> (s_in, row)
            }> (s0, x)
    }
    """)
    outer = next(graph for _, graph in scoping.subgraphs(model.graph.node[0]))
    outer.initializer.append(onnx.helper.make_tensor("scale", onnx.TensorProto.FLOAT, [], [0.5]))
    said = onnx.TensorAnnotation(tensor_name="k")
    said.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="scale")
    outer.quantization_annotation.append(said)
    (body,) = [
        graph for node in flattened(model).graph.node for _, graph in scoping.subgraphs(node)
    ]
    assert [annotation.tensor_name for annotation in body.quantization_annotation] == ["k"]
    assert {tensor.name for tensor in body.initializer} == {"k", "scale"}


def test_in_a_function() -> None:
    result = assert_rewrite(
        """<ir_version: 8, opset_import: ["" : 18, "own" : 1]>
        g (float[2] s0, float[T,N,2] x) => (float[2] s) { s = own.f <by = 2.0> (s0, x) }
        <domain: "own", opset_import: ["" : 18]> f <by> (s0, x) => (s) {
            s = Scan <num_scan_inputs = 1,
                body = rows (float[2] s_in, float[N,2] row) => (float[2] s_out) {
                k = Constant <value_float : float = @by> ()
                s_out = Scan <num_scan_inputs = 1,
                    body = elements (float[2] t_in, float[2] e) => (float[2] t_out) {
                    p = Mul (e, k)  t_out = Add (t_in, p) }> (s_in, row)
            }> (s0, x) }""",
        pipeline=PIPELINE,
    )
    assert scans(result.model) == ["own.f"], [
        refusal.sentence for refusal in result.report.refusals
    ]


@pytest.mark.parametrize("opset", [9, 10, 11, 13])
def test_old_opsets(opset: int) -> None:
    head = {
        'ir_version: 8, opset_import: ["" : 18]': f'ir_version: 4, opset_import: ["" : {opset}]'
    }
    flattened(changed(DIFFERENCE, head))


def test_old_files_list_constants_as_inputs() -> None:
    head = {'ir_version: 8, opset_import: ["" : 18]': 'ir_version: 3, opset_import: ["" : 9]'}
    step = {STEP: "p = Mul (e, k)  t_out = Add (p, t_in)"}
    model = as_model(changed(DIFFERENCE, head | step))
    outer = next(graph for _, graph in scoping.subgraphs(model.graph.node[0]))
    outer.initializer.append(onnx.helper.make_tensor("k", onnx.TensorProto.FLOAT, [], [2]))
    outer.input.append(onnx.helper.make_tensor_value_info("k", onnx.TensorProto.FLOAT, []))
    flattened(model)


#: The same of three and of four axes.
THREE_LEVELS = """
<ir_version: 8, opset_import: ["" : 18]>
g (float s0, float[T,U,V] x) => (float s)
{
    s = Scan <num_scan_inputs = 1, body = planes (float s_in, float[U,V] plane) => (float s_out)
        {
            s_out = Scan <num_scan_inputs = 1, body = rows
                (float r_in, float[V] row) => (float r_out)
                {
                    r_out = Scan <num_scan_inputs = 1, body = elements
                        (float t_in, float e) => (float t_out)
                        {
                            t_out = Sub (e, t_in)
                        }> (r_in, row)
                }> (s_in, plane)
        }> (s0, x)
}
"""
FOUR_LEVELS = """
<ir_version: 8, opset_import: ["" : 18]>
g (float s0, float[T,U,V,W] x) => (float s)
{
    s = Scan <num_scan_inputs = 1, body = volumes (float s_in, float[U,V,W] volume) => (float s_out)
        {
            s_out = Scan <num_scan_inputs = 1, body = planes
                (float p_in, float[V,W] plane) => (float p_out)
                {
                    p_out = Scan <num_scan_inputs = 1, body = rows
                        (float r_in, float[W] row) => (float r_out)
                        {
                            r_out = Scan <num_scan_inputs = 1, body = elements
                                (float t_in, float e) => (float t_out)
                                {
                                    t_out = Sub (e, t_in)
                                }> (r_in, row)
                        }> (p_in, plane)
                }> (s_in, volume)
        }> (s0, x)
}
"""


@pytest.mark.parametrize(
    ("depth", "text"), [(2, DIFFERENCE), (3, THREE_LEVELS), (4, FOUR_LEVELS)], ids=[2, 3, 4]
)
def test_every_depth(depth: int, text: str) -> None:
    after = flattened(text)
    x = np.arange(2**depth, dtype=np.float32).reshape((2,) * depth)
    expected = np.float32(3)
    for one in x.ravel():
        expected = one - expected
    for found in run_both(after, {"s0": np.array(3, np.float32), "x": x}):
        assert found["s"] == expected


@pytest.mark.slow
def test_inner_levels_are_flattened_where_the_outermost_computes_more() -> None:
    more = {"s_out = Scan": "c = Exp (s_in)  s_out = Scan", "}> (s_in, volume)": "}> (c, volume)"}
    text = changed(FOUR_LEVELS, more)
    result = assert_rewrite(text, pipeline=PIPELINE)
    assert scans(result.model) == ["main/scan_0.body", "main"]


def test_only_the_inner_levels_are_chosen() -> None:
    only = ["main/scan_0.body/*"]
    result = assert_rewrite(THREE_LEVELS, pipeline=PIPELINE, options={"only": only})
    assert scans(result.model) == ["main/scan_0.body", "main"]


@pytest.mark.slow
def test_random_numbers_are_drawn_as_often() -> None:
    step = "r = RandomUniformLike (e)  z = Mul (r, w)  t_out = Add (t_in, z)"
    text = changed(DIFFERENCE, {"float[T,N] x)": "float[T,N] x, float w)", STEP: step})
    result = assert_rewrite(text, pipeline=PIPELINE)
    assert scans(result.model) == ["main"]


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("}> (s_in, row)", "}> (s_in, row)  more = Exp (s_in)", "other-work"),
        (STEP, "p = ReduceSum <keepdims = 0> (row)  t_out = Add (t_in, p)", "reads-row"),
    ],
)
def test_near_misses(old: str, new: str, code: str) -> None:
    assert scans(flattened(DIFFERENCE)) == ["main"]
    assert_refused(changed(DIFFERENCE, {old: new}), code, pipeline=PIPELINE)


def test_a_scan_that_holds_none_leaves_no_record() -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 18]>
    g (float s0, float[T] x) => (float s)
    {
        s = Scan <num_scan_inputs = 1, body = elements (float t_in, float e) => (float t_out)
            {
                t_out = Sub (e, t_in)
            }> (s0, x)
    }
    """
    assert not assert_rewrite(text, pipeline=PIPELINE).report.records
