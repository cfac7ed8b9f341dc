"""Shows a vectorised body against the loop over slices, in both executors.

A body is a graph in ONNX text; the inputs that carry the new axis are named. Each carrying input
is drawn with the axis in front, the body runs once per slice, and the vectorised body once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper

from passes.ir import scope
from passes.ir.names import Names
from passes.rule import Refused
from passes.types.value_types import dims_of, elem_type_of
from passes.vectorize import Axis, Vectorizer, prepare
from passes.verify.compare.compare import compare
from passes.verify.compare.tolerance import Tolerance
from passes.verify.executor import Array, CannotRun, Executor, Outcome
from passes.verify.reference import ReferenceExecutor
from passes.writing.author import Author

OPSET = 21


def vectorized(
    model: ModelProto, carrying: Iterable[str], size: int | None, nonempty: bool = False
) -> ModelProto:
    """The model whose inputs `carrying` have the axis, and all of whose outputs have it.

    Its further input `axis_size` (int64 [1]) gives the size.
    """
    graph = model.graph
    names = Names(scope.all_names([graph]) | {"axis_size"})
    rows = prepare(graph, {}, model, names)
    axis = Axis("axis_size", size, nonempty)
    author = Author(model.opset_import[0].version, names, "v")
    ctx = Vectorizer(rows, axis, author, set(carrying), "main")
    body = ctx.whole(rows.graph, scope.output_names(graph))
    made = ModelProto(ir_version=model.ir_version, opset_import=model.opset_import)
    made.graph.CopyFrom(body.graph)
    made.graph.input.append(helper.make_tensor_value_info("axis_size", TensorProto.INT64, [1]))
    return made


def parsed(text: str, opset: int = OPSET) -> ModelProto:
    """A model of one graph in ONNX text."""
    header = f'<ir_version: 10, opset_import: ["" : {opset}]>'
    model: ModelProto = onnx.parser.parse_model(f"{header} {text}")
    return model


def refused(text: str, carrying: Sequence[str], opset: int = OPSET, nonempty: bool = False) -> str:
    """The code that vectorising this body is refused with."""
    with pytest.raises(Refused) as caught:
        vectorized(parsed(text, opset), carrying, None, nonempty)
    return caught.value.code


def subsets(names: Sequence[str]) -> list[list[str]]:
    """Every choice of at least one of the names; a string holds names of one letter."""
    sizes = range(1, len(names) + 1)
    return [list(one) for size in sizes for one in combinations(names, size)]


def prove(
    text: str,
    carrying: Sequence[str],
    feeds: Mapping[str, Array] | None = None,
    *,
    sizes: Sequence[int] = (1, 3),
    opset: int = OPSET,
    static: bool = False,
    nonempty: bool = True,
    rtol_terms: int = 0,
    executors: Sequence[Executor] | None = None,
    ranges: Mapping[str, tuple[int, int]] | None = None,
) -> ModelProto:
    """Compare the vectorised body with the loop over slices, for some sizes of the axis.

    `feeds` are values of one row; a carrying input varies them from row to row. `rtol_terms` is
    the length of sums that may be regrouped; 0 wants equal bits. `ranges` are bounds (low, high)
    to draw whole numbers from. After a size of 1 or more, a size of 0 is held to the same shape
    of a row. Answers with the last model.
    """
    model = parsed(text, opset)
    rng = np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]] = {}
    for size in sizes:
        made = vectorized(model, carrying, size if static else None, nonempty)
        onnx.checker.check_model(made, full_check=True)
        batch = {
            value.name: _batch(rng, value, size if value.name in carrying else None, feeds, ranges)
            for value in model.graph.input
        }
        for executor in executors or [ReferenceExecutor()]:
            _compare(executor, model, made, batch, carrying, size, rtol_terms, shapes)
    return made


def prove_at_any_size(
    text: str, carrying: Sequence[str], feeds: Mapping[str, Array] | None = None, **how: Any
) -> ModelProto:
    """As `prove`, for an axis that may be of size 0."""
    return prove(text, carrying, feeds, sizes=(1, 3, 0), nonempty=False, **how)


def _compare(
    executor: Executor,
    model: ModelProto,
    made: ModelProto,
    batch: Mapping[str, Array],
    carrying: Sequence[str],
    size: int,
    rtol_terms: int,
    shapes: dict[str, tuple[int, ...]],
) -> None:
    try:
        slices = [
            executor.run(model, _row(batch, carrying, index)).outputs for index in range(size)
        ]
        actual = executor.run(made, {**batch, "axis_size": np.array([size])}).outputs
    except CannotRun as reason:
        raise AssertionError(f"{executor.name}: {reason}") from reason
    mode = "near" if rtol_terms else "bits"
    tolerance = Tolerance(mode, 16.0 * max(1, rtol_terms) ** 0.5, 1.0)
    for before, after in zip(model.graph.output, made.graph.output, strict=True):
        if not slices:
            assert actual[after.name].shape[0] == 0
            assert actual[after.name].shape[1:] == shapes.get(
                after.name, actual[after.name].shape[1:]
            )
            continue
        expected = np.stack([np.asarray(one[before.name]) for one in slices])
        shapes[after.name] = expected.shape[1:]
        sides = ({before.name: expected}, {before.name: actual[after.name]})
        found = compare(Outcome(sides[0]), Outcome(sides[1]), tolerance)
        assert found.agree, f"{executor.name}, size {size}: {found.differences[0].sentence}"


def _row(batch: Mapping[str, Array], carrying: Sequence[str], index: int) -> dict[str, Array]:
    """The inputs of one row."""
    return {
        name: np.asarray(value[index]) if name in carrying else value
        for name, value in batch.items()
    }


def _batch(
    rng: np.random.Generator,
    value: onnx.ValueInfoProto,
    size: int | None,
    feeds: Mapping[str, Array] | None,
    ranges: Mapping[str, tuple[int, int]] | None = None,
) -> Array:
    """One value, or one per row: the given one, varied, or drawn."""
    lead = () if size is None else (size,)
    if feeds is not None and value.name in feeds:
        given = np.asarray(feeds[value.name])
        rows = np.broadcast_to(given, (*lead, *given.shape)).copy()
        return rng.permuted(rows, axis=-1) if size and given.ndim else rows
    dims = [dim if isinstance(dim, int) else 3 for dim in dims_of(value.type) or ()]
    dtype = helper.tensor_dtype_to_np_dtype(elem_type_of(value.type))
    shape = (*lead, *dims)
    if ranges is not None and value.name in ranges:
        return np.asarray(rng.integers(*ranges[value.name], shape), dtype)
    if dtype.kind == "b":
        return np.asarray(rng.integers(0, 2, shape), bool)
    if dtype.kind == "O":
        return rng.choice(np.array(["", "a", "bc"], object), shape)
    drawn = rng.integers(-8, 9, shape) / (4 if dtype.kind == "f" else 1)
    return np.asarray(drawn, dtype)
