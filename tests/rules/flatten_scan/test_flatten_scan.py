"""flatten-scan: axes, directions, lengths of 0 and lengths that do not agree, names, depths."""

from __future__ import annotations

import random

import numpy as np
import onnx
import pytest
from in_both_executors import assert_both_fail, run_both
from moved_work import HEAD

from passes.ir import scope as scoping
from passes.testing import as_model, assert_refused, assert_rewrite
from passes.verify.reference import ReferenceExecutor

pytestmark = pytest.mark.sampled

PIPELINE = "flatten-scan"


def flattened(model: str | onnx.ModelProto, **options: object) -> onnx.ModelProto:
    """The outcome, verified, in which no Scan holds another one."""
    result = assert_rewrite(model, pipeline=PIPELINE, options=options)
    assert scans(result.model) == ["main"], [refusal.sentence for refusal in result.report.refusals]
    return result.model


def scans(model: onnx.ModelProto) -> list[str]:
    """Where Scans stand."""
    return [one.scope.path for one in scoping.walk_model(model) if one.node.op_type == "Scan"]


def ops(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


def with_axis(dims: str, axis: int, size: str) -> str:
    """Sizes with one more, at a place counted from the front or the back."""
    sizes = dims.split(",")
    sizes.insert(axis % (len(sizes) + 1), size)
    return ",".join(sizes)


def nest(axes: tuple[int, int, int, int], back: int = 0, out_back: int = 0) -> str:
    """A recurrence over elements [2,3]; `axes` are those of the rows, of the elements of a row,
    and of what is collected of both."""
    rows, elements, out_rows, out_elements = axes
    row, y_row = with_axis("2,3", elements, "N"), with_axis("2,3", out_elements, "N")
    x, ys = with_axis(row, rows, "T"), with_axis(y_row, out_rows, "T")
    s = "float[2,3]"
    return f"""{HEAD} g ({s} s0, float[{x}] x) => ({s} s, float[{ys}] ys) {{
        s, ys = Scan <num_scan_inputs = 1, scan_input_axes = [{rows}],
            scan_output_axes = [{out_rows}], scan_input_directions = [{back}],
            scan_output_directions = [{out_back}],
            body = rows ({s} s_in, float[{row}] row) => ({s} s_out, float[{y_row}] y_row) {{
            s_out, y_row = Scan <num_scan_inputs = 1, scan_input_axes = [{elements}],
                scan_output_axes = [{out_elements}], scan_input_directions = [{back}],
                scan_output_directions = [{out_back}],
                body = elements ({s} t_in, {s} x_e) => ({s} t_out, {s} y) {{
                    t_out = Sub (x_e, t_in)  y = Neg (t_out)
                }}> (s_in, row)
        }}> (s0, x) }}"""


PLAIN = nest((0, 0, 0, 0))
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


def test_axes_in_front_are_not_transposed() -> None:
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


def test_nan_goes_where_it_went() -> None:
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
def test_where_sizes_are_open_a_0_is_a_size(shape: tuple[int, int, int]) -> None:
    after = flattened(OPEN)
    feeds = {"s0": np.ones(shape[2], np.float32), "x": np.ones(shape, np.float32)}
    found = ReferenceExecutor().run(after, feeds).outputs
    assert found["ys"].shape == shape
    assert found["s"].shape == shape[2:]
    if shape == (3, 2, 0):  # the only one of these that onnxruntime runs
        for one in run_both(after, feeds):
            assert one["ys"].shape == shape


OPEN = f"""{HEAD} g (float[B] s0, float[T,N,B] x) => (float[B] s, float[T,N,B] ys) {{
    s, ys = Scan <num_scan_inputs = 1,
        body = rows (float[B] s_in, float[N,B] row) => (float[B] s_out, float[N,B] y_row) {{
        s_out, y_row = Scan <num_scan_inputs = 1,
            body = elements (float[B] t_in, float[B] x_e) => (float[B] t_out, float[B] y) {{
            t_out = Sub (x_e, t_in)  y = Neg (t_out) }}> (s_in, row)
    }}> (s0, x) }}"""


def two(
    made: str = "", inputs: str = ", float[U,M] z", kind: str = "float", rows: str = "T"
) -> str:
    """A sum of products of `x` and `z`."""
    return f"""{HEAD} g ({kind} s0, {kind}[{rows},N] x{inputs}) => ({kind} s) {{ {made}
        s = Scan <num_scan_inputs = 2,
            body = rows ({kind} s_in, {kind}[N] row, {kind}[M] other) => ({kind} s_out) {{
            s_out = Scan <num_scan_inputs = 2,
                body = elements ({kind} t_in, {kind} x_e, {kind} z_e) => ({kind} t_out) {{
                p = Mul (x_e, z_e)  t_out = Add (t_in, p) }}> (s_in, row, other)
        }}> (s0, x, z) }}"""


def of_shapes(*shapes: tuple[int, int]) -> dict[str, np.ndarray]:
    x, z = (np.ones(shape, np.float32) for shape in shapes)
    return {"s0": np.array(5, np.float32), "x": x, "z": z}


@pytest.mark.parametrize(
    "shapes",
    [((2, 3), (3, 2)), ((2, 3), (2, 6)), ((2, 3), (2, 2)), ((4, 3), (2, 3)), ((0, 3), (2, 3))],
)
def test_lengths_must_agree_as_before(shapes: tuple[tuple[int, int], tuple[int, int]]) -> None:
    after = flattened(two())
    assert_both_fail(after, of_shapes(*shapes))
    assert_both_fail(after, of_shapes(*shapes[::-1]))


def test_rows_that_are_not_there_need_not_be_as_long() -> None:
    for shapes in [((0, 3), (0, 4)), ((0, 3), (0, 0)), ((0, 0), (0, 2))]:
        feeds = of_shapes(*shapes)
        for model in (as_model(two()), flattened(two())):
            assert ReferenceExecutor().run(model, feeds).outputs["s"] == 5


@pytest.mark.parametrize(
    ("made", "inputs"),
    [
        ("z = Neg (x)", ""),
        ("z = Identity (x)", ""),
        ("z = Add (x, x)", ""),
        ("", ", float[T,N] z"),
    ],
)
def test_lengths_that_are_proven_to_agree_have_no_guard(made: str, inputs: str) -> None:
    assert "Where" not in ops(flattened(two(made, inputs)))


@pytest.mark.parametrize("inputs", [", float[S,N] z", ", float[T,4] z", ", float[64,N] z"])
def test_another_size_is_guarded(inputs: str) -> None:
    assert "Where" in ops(flattened(two(inputs=inputs)))
    assert "Where" not in ops(flattened(two(inputs=inputs), assume="valid-inputs"))


def test_one_row_may_be_scanned_twice() -> None:
    after = flattened(
        f"""{HEAD} g (float s0, float[T,N] x) => (float s) {{
        s = Scan <num_scan_inputs = 1, body = rows (float s_in, float[N] row) => (float s_out) {{
            s_out = Scan <num_scan_inputs = 2,
                body = elements (float t_in, float a, float b) => (float t_out) {{
                p = Mul (a, b)  t_out = Sub (p, t_in) }}> (s_in, row, row)
        }}> (s0, x) }}"""
    )
    assert "Where" not in ops(after)


def test_one_value_may_be_collected_twice() -> None:
    flattened(
        f"""{HEAD}
        g (float[2,3] s0, float[T,N,2,3] x)
            => (float[2,3] s, float[T,N,2,3] ys, float[N,T,2,3] zs) {{
        s, ys, zs = Scan <num_scan_inputs = 1, scan_output_axes = [0, 1],
            body = rows (float[2,3] s_in, float[N,2,3] row)
                => (float[2,3] s_out, float[N,2,3] y_row, float[N,2,3] z) {{
            s_out, y_row = Scan <num_scan_inputs = 1,
                body = elements (float[2,3] t_in, float[2,3] x_e)
                    => (float[2,3] t_out, float[2,3] y) {{
                    t_out = Sub (x_e, t_in)  y = Neg (t_out)
                }}> (s_in, row)
            z = Identity (y_row)
        }}> (s0, x) }}"""
    )


@pytest.mark.parametrize("kind", ["string", "bool", "int64", "float16", "double"])
def test_every_type(kind: str) -> None:
    flattened(
        f"""{HEAD} g ({kind}[2] s0, {kind}[T,N,2] x) => ({kind}[2] s, {kind}[T,N,2] ys) {{
        s, ys = Scan <num_scan_inputs = 1,
            body = rows ({kind}[2] s_in, {kind}[N,2] row) => ({kind}[2] s_out, {kind}[N,2] y_row) {{
            s_out, y_row = Scan <num_scan_inputs = 1,
                body = elements ({kind}[2] t_in, {kind}[2] x_e) => ({kind}[2] t_out, {kind}[2] y) {{
                t_out = Identity (x_e)  y = Identity (t_in) }}> (s_in, row)
        }}> (s0, x) }}"""
    )


def sum_of_rows(inner: str, outer: str = "", around: str = "", head: str = HEAD) -> str:
    return f"""{head} g (float s0, float[T,N] x, float w) => (float s) {around} {{
        s = Scan <num_scan_inputs = 1, body = rows (float s_in, float[N] row) => (float s_out) {{
            {outer} s_out = Scan <num_scan_inputs = 1,
                body = elements (float t_in, float e) => (float t_out) {{ {inner} }}> (s_in, row)
        }}> (s0, x) }}"""


def test_an_outer_value_that_the_inner_body_hides_keeps_its_meaning() -> None:
    after = flattened(f"""{HEAD} g (float s0, float[T,N] x, float w) => (float s) {{
        s = Scan <num_scan_inputs = 1, body = rows (float s_in, float[N] row) => (float s_out) {{
            v = Identity (w)
            s_out = Scan <num_scan_inputs = 1,
                body = elements (float w, float e) => (float t_out) {{
                p = Mul (e, v)  t_out = Add (w, p) }}> (s_in, row)
        }}> (s0, x) }}""")
    feeds = {"s0": 1, "x": [[1, 2], [3, 4]], "w": 10}
    for found in run_both(
        after, {name: np.array(value, np.float32) for name, value in feeds.items()}
    ):
        assert found["s"] == 101


def test_a_constant_that_the_inner_body_hides_deeper_keeps_its_meaning() -> None:
    deeper = """q = Scan <num_scan_inputs = 1, body = deep (float k, float f) => (float r)
        { r = Mul (k, f) }> (c, x1)"""
    text = sum_of_rows(
        f"c = Mul (e, k)  x1 = Unsqueeze (e, at)  {deeper}  t_out = Add (t_in, q)",
        "k = Constant <value_float = 3.0> ()",
        "<int64[1] at = {0}>",
    )
    result = assert_rewrite(text, pipeline=PIPELINE)
    assert scans(result.model) == ["main/scan_1.body", "main"]


def test_constants_of_the_outer_body_come_along_with_their_quantization() -> None:
    model = as_model(
        sum_of_rows("p = Mul (e, k)  t_out = Add (t_in, p)", "k = Constant <value_float = 3.0> ()")
    )
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
    head = f'<ir_version: 4, opset_import: ["" : {opset}]>'
    flattened(sum_of_rows("t_out = Sub (e, t_in)", head=head))


def test_old_files_list_constants_as_inputs() -> None:
    model = as_model(
        sum_of_rows(
            "p = Mul (e, k) t_out = Add (p, t_in)", head='<ir_version: 3, opset_import: ["" : 9]>'
        )
    )
    outer = next(graph for _, graph in scoping.subgraphs(model.graph.node[0]))
    outer.initializer.append(onnx.helper.make_tensor("k", onnx.TensorProto.FLOAT, [], [2]))
    outer.input.append(onnx.helper.make_tensor_value_info("k", onnx.TensorProto.FLOAT, []))
    flattened(model)


def levels(depth: int, outermost: str = "") -> str:
    """A running difference over the elements of a tensor with so many axes."""
    sizes = ["T", "U", "V", "W"][:depth]
    text = "t_out = Sub (x_0, t_in)"
    for i in range(depth):
        row = f"float[{','.join(sizes[depth - i :])}]" if i else "float"
        tensor = "x" if i == depth - 1 else f"x_{i + 1}"
        first, last = ("s0", "s") if i == depth - 1 else (f"a_{i + 1}", f"b_{i + 1}")
        one = text if i else "b_0 = Sub (x_0, a_0)"
        more = outermost if i == depth - 1 else ""
        text = f"""{last} = Scan <num_scan_inputs = 1,
            body = level_{i} (float a_{i}, {row} x_{i}) => (float b_{i}) {{ {more} {one} }}>
            ({first}, {tensor})"""
    return f"{HEAD} g (float s0, float[{','.join(sizes)}] x) => (float s) {{ {text} }}"


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_every_depth(depth: int) -> None:
    after = flattened(levels(depth))
    x = np.arange(2**depth, dtype=np.float32).reshape((2,) * depth)
    expected = np.float32(3)
    for one in x.ravel():
        expected = one - expected
    for found in run_both(after, {"s0": np.array(3, np.float32), "x": x}):
        assert found["s"] == expected


@pytest.mark.slow
def test_where_the_outermost_does_more_the_inner_ones_go() -> None:
    text = levels(4, "c = Exp (a_3)").replace("(a_3, x_3)", "(c, x_3)")
    result = assert_rewrite(text, pipeline=PIPELINE)
    assert scans(result.model) == ["main/scan_0.body", "main"]


def test_only_the_inner_ones_are_meant() -> None:
    result = assert_rewrite(levels(3), pipeline=PIPELINE, options={"only": ["main/scan_0.body/*"]})
    assert scans(result.model) == ["main/scan_0.body", "main"]


@pytest.mark.slow
def test_random_numbers_are_drawn_as_often() -> None:
    text = sum_of_rows("r = RandomUniformLike (e)  z = Mul (r, w)  t_out = Add (t_in, z)")
    result = assert_rewrite(text, pipeline=PIPELINE)
    assert scans(result.model) == ["main"]


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("s_in, row)", "w, row)", "other-states"),
        ("}> (s_in, row)", "}> (s_in, row) more = Exp (s_in)", "other-work"),
        ("t_out = Sub (e, t_in)", "p = Mul (e, s_in)  t_out = Add (t_in, p)", "reads-row"),
        (
            "t_out = Sub (e, t_in)",
            "p = ReduceSum <keepdims = 0> (row) t_out = Add (t_in, p)",
            "reads-row",
        ),
    ],
)
def test_near_misses(old: str, new: str, code: str) -> None:
    text = sum_of_rows("t_out = Sub (e, t_in)")
    assert scans(flattened(text)) == ["main"]
    assert_refused(text.replace(old, new), code, pipeline=PIPELINE)


def test_a_scan_that_holds_none_leaves_no_record() -> None:
    text = f"""{HEAD} g (float s0, float[T] x) => (float s) {{ s = Scan <num_scan_inputs = 1,
        body = b (float t_in, float e) => (float t_out) {{ t_out = Sub (e, t_in) }}> (s0, x) }}"""
    assert not assert_rewrite(text, pipeline=PIPELINE).report.records
