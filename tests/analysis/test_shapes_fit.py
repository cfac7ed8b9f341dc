"""Which ops are proven to fit the shapes that they read: those run, whatever sizes are open."""

from __future__ import annotations

import itertools

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from passes.analysis.safety.shapes_fit import Known, fits
from passes.types.value_types import Dim

Dims = tuple[Dim, ...]


def proven(
    text: str, shapes: dict[str, Dims], fixed: dict[str, list[int]], opset: int, trusted: bool
) -> bool:
    constants = {name: np.array(value, np.int64) for name, value in fixed.items()}
    known = {**shapes, **{name: constant.shape for name, constant in constants.items()}}
    all_known = Known(opset, known.get, constants.get, trusted)
    return fits(onnx.parser.parse_node(f"y = {text}"), all_known)


def runs(text: str, shapes: dict[str, Dims], fixed: dict[str, list[int]]) -> None:
    """See that the node runs with every open size 0, 1, 2 and 3."""
    open_ = [
        (name, i)
        for name, dims in shapes.items()
        for i, dim in enumerate(dims)
        if not isinstance(dim, int)
    ]
    inputs = ", ".join(f"float {name}" for name in shapes)
    weights = ", ".join(
        f"int64[{len(value)}] {name} = {{{', '.join(map(str, value))}}}"
        for name, value in fixed.items()
    )
    head = '<ir_version: 10, opset_import: ["" : 21]>'
    body = f"g ({inputs}) => (float y) <{weights}> {{ y = {text} }}"
    model = onnx.parser.parse_model(f"{head} {body}")
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.ClearField("shape")
    for sizes in itertools.product((0, 1, 2, 3), repeat=len(open_)):
        chosen = dict(zip(open_, sizes, strict=True))
        feeds = {
            name: np.ones([chosen.get((name, i), dim) for i, dim in enumerate(dims)], np.float32)
            for name, dims in shapes.items()
        }
        ReferenceEvaluator(model).run(None, feeds)


FIT = [
    ("Exp (a)", {"a": ("N", None)}, {}),
    ("Add (a, b)", {"a": ("N", 4), "b": (4,)}, {}),
    ("Add (a, b)", {"a": (None, 1), "b": (1, "N")}, {}),
    ("Where (c, a, b)", {"a": ("N", 4), "b": (), "c": (1, 4)}, {}),
    ("Clip (a, b)", {"a": ("N",), "b": ()}, {}),
    ("MatMul (a, b)", {"a": ("N", 4), "b": (4, "M")}, {}),
    ("MatMul (a, b)", {"a": (4,), "b": ("B", 4, "M")}, {}),
    ("MatMul (a, b)", {"a": (3, "N", 4), "b": (1, 4, "M")}, {}),
    ("Gemm <transA = 1> (a, b, c)", {"a": (4, 3), "b": (4, 2), "c": (2,)}, {}),
    ("Gemm (a, b)", {"a": ("N", 4), "b": (4, "M")}, {}),
    ("Concat <axis = -1> (a, b)", {"a": (2, "N"), "b": (2, "M")}, {}),
    ("Transpose <perm = [1, 0]> (a)", {"a": ("N", "M")}, {}),
    ("Softmax <axis = -2> (a)", {"a": (3, 4)}, {}),
    ("Flatten (a)", {"a": (3, 4)}, {}),
    ("Split <axis = -1> (a, i)", {"a": ("N", 4)}, {"i": [4]}),
    ("Split <num_outputs = 1> (a)", {"a": (3, "N")}, {}),
    ("Gather <axis = 1> (a, i)", {"a": ("N", 4)}, {"i": [0, 3, -4]}),
    ("Squeeze (a, i)", {"a": (1, "N")}, {"i": [0]}),
    ("Unsqueeze (a, i)", {"a": ("N",)}, {"i": [0, -1]}),
    ("ReduceSum (a, i)", {"a": ("N", "M")}, {"i": [-2]}),
    ("ReduceSum (a)", {"a": ("N", "M")}, {}),
    ("Reshape (a, i)", {"a": (2, 3)}, {"i": [3, -1]}),
    ("Reshape (a, i)", {"a": (2, 3)}, {"i": [0, 3, 1]}),
    ("Reshape (a, i)", {"a": (2, "N")}, {"i": [-1]}),
    ("Reshape (a, i)", {"a": ("N", 2, 3)}, {"i": [0, 6]}),
    ("Reshape (a, i)", {"a": (2, "N", 6)}, {"i": [0, 3, -1]}),
    ("Expand (a, i)", {"a": (1, 3)}, {"i": [5, 1]}),
    ("Tile (a, i)", {"a": ("N", 3)}, {"i": [2, 0]}),
    ("Slice (a, i, j, k)", {"a": ("N", "M")}, {"i": [7], "j": [-9], "k": [-1]}),
]


@pytest.mark.parametrize(("text", "shapes", "fixed"), FIT)
def test_what_fits_runs(text: str, shapes: dict[str, Dims], fixed: dict[str, list[int]]) -> None:
    assert proven(text, shapes, fixed, 21, False)
    runs(text, shapes, fixed)


@pytest.mark.parametrize(
    ("text", "shapes", "fixed"),
    [
        ("Add (a, b)", {"a": ("N",), "b": ("M",)}, {}),
        ("Add (a, b)", {"a": ("N",), "b": (3,)}, {}),
        ("Add (a, b)", {"a": (2,), "b": (3,)}, {}),
        ("Add (a, b)", {"a": (2,)}, {}),
        ("Clip (a, b)", {"a": (2,), "b": (1,)}, {}),
        ("MatMul (a, b)", {"a": ("N", 4), "b": ("K", 3)}, {}),
        ("MatMul (a, b)", {"a": (), "b": (3, 3)}, {}),
        ("MatMul (a, b)", {"a": (2, 3, 4), "b": (3, 4, 5)}, {}),
        ("Gemm (a, b)", {"a": (2, 3, 4), "b": (4, 5)}, {}),
        ("Gemm (a, b, c)", {"a": (1, 4), "b": (4, 5), "c": (2, 5)}, {}),
        ("Gemm <transB = 1> (a, b)", {"a": (2, 4), "b": (4, 5)}, {}),
        ("Concat <axis = 0> (a, b)", {"a": (2, "N"), "b": (2, "M")}, {}),
        ("Concat <axis = 2> (a, b)", {"a": (2, 2), "b": (2, 2)}, {}),
        ("Transpose <perm = [1, 0]> (a)", {"a": ("N", "M", "K")}, {}),
        ("Softmax <axis = 2> (a)", {"a": (3, 4)}, {}),
        ("Split <axis = 1> (a, i)", {"a": ("N", 4)}, {"i": [3]}),
        ("Split (a, i)", {"a": ("N", 4)}, {"i": [4]}),
        ("Split (a, b)", {"a": (1, 4), "b": (1,)}, {}),
        ("Split <axis = 2, num_outputs = 1> (a)", {"a": (3, 4)}, {}),
        ("Gather (a, i)", {"a": ("N", 4)}, {"i": [0]}),
        ("Gather (a, i)", {"a": (3, 4)}, {"i": [3]}),
        ("Gather (a, b)", {"a": (3, 4), "b": ()}, {}),
        ("Squeeze (a, i)", {"a": (1, "N")}, {"i": [1]}),
        ("Unsqueeze (a, i)", {"a": (1,)}, {"i": [0, -3]}),
        ("ReduceSum (a, i)", {"a": (1,)}, {"i": [1]}),
        ("ReduceSum (a, b)", {"a": (1,), "b": (1,)}, {}),
        ("Reshape (a, i)", {"a": (2, 3)}, {"i": [4, -1]}),
        ("Reshape (a, i)", {"a": ("N", 2)}, {"i": [0, -1]}),
        ("Reshape (a, i)", {"a": (0, 2)}, {"i": [0, -1]}),
        ("Reshape (a, i)", {"a": (2, "N")}, {"i": [4, -1]}),
        ("Reshape (a, i)", {"a": (2, "N")}, {"i": [2, 3]}),
        ("Reshape (a, i)", {"a": (2, 3)}, {"i": [-1, -1]}),
        ("Reshape (a, i)", {"a": (2,)}, {"i": [2, 0]}),
        ("Expand (a, i)", {"a": (2, 3)}, {"i": [4, 3]}),
        ("Tile (a, i)", {"a": (2, 3)}, {"i": [2]}),
        ("Slice (a, i, j, k)", {"a": (2,)}, {"i": [0], "j": [1], "k": [1]}),
        ("Slice (a, i, j, b)", {"a": (2,), "b": (1,)}, {"i": [0], "j": [1]}),
        ("Slice (a, i, j, k)", {"a": (2, 3)}, {"i": [0, 1], "j": [1, 2], "k": [0, -2]}),
        ("Squeeze (a, i)", {"a": (1, 3)}, {"i": [0, -2]}),
        ("ReduceSum (a, i)", {"a": (2, 3)}, {"i": [1, -1]}),
        ("Expand (a, i)", {"a": (1, 3)}, {"i": [-1, 3]}),
        ("GatherElements (a, b)", {"a": (2, 3), "b": (2, 3)}, {}),
        ("NonZero (a)", {"a": (2,)}, {}),
        ("Conv (a, b)", {"a": (1, 1, 2, 2), "b": (1, 1, 2, 2)}, {}),
    ],
)
def test_what_is_not_proven_to_fit(
    text: str, shapes: dict[str, Dims], fixed: dict[str, list[int]]
) -> None:
    assert not proven(text, shapes, fixed, 21, False)


def test_sizes_of_one_symbol_are_equal_where_that_may_be_trusted() -> None:
    shapes: dict[str, Dims] = {"a": ("N",), "b": ("N",)}
    assert proven("Add (a, b)", shapes, {}, 21, True)
    assert not proven("Add (a, b)", shapes, {}, 21, False)
    assert not proven("Add (a, b)", {"a": (None,), "b": (None,)}, {}, 21, True)


def test_early_versions_broadcast_less() -> None:
    shapes: dict[str, Dims] = {"a": (1,), "b": (2,)}
    assert proven("Max (a, b)", shapes, {}, 8, False)
    assert not proven("Max (a, b)", shapes, {}, 7, False)
    assert not proven("Add (a, b)", shapes, {}, 6, False)
    assert not proven("Gather (a, i)", shapes, {"i": [-1]}, 9, False)
