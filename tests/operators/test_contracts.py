"""What contracts state of sizes holds in runs: an operator whose complete contract is met runs, and
gives the sizes that are stated; one that runs has its needs met."""

from __future__ import annotations

import ast
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnx.parser
import pytest
from onnx import NodeProto, helper

import passes.verify.reference
from passes.operators.contract import Contract, Operands, Size, computed
from passes.operators.contracts import contract_of
from passes.operators.table import traits_of
from passes.operators.traits import Fails
from passes.verify.executor import Ended
from passes.verify.inputs.lessons import gap_of
from passes.verify.reference import ReferenceExecutor

#: Each reads floats `a`, `b` and `c`, and lists of whole numbers `i` and `j`.
NODES = """
    y = Add (a, b)
    y = Sum (a, b, c)
    y = Concat <axis = 0> (a, b)
    y = Concat <axis = -2> (a, b, c)
    y = Einsum <equation = "ij, jk -> ik"> (a, b)
    y = Einsum <equation = "ab,b->ba"> (a, b)
    y = Einsum <equation = "...a,a->..."> (a, b)
    y = Expand (a, i)
    y = Gather (a, i)
    y = Gather <axis = -1> (a, i)
    y = Gemm (a, b, c)
    y = Gemm <transA = 1> (a, b)
    y = Gemm <transB = 1> (a, b, c)
    y = MatMul (a, b)
    y = Pad (a, i)
    y = Pad <mode = "reflect"> (a, i)
    y = Pad (a, i, , j)
    y = ReduceMax (a, i)
    y = ReduceSum <keepdims = 0> (a, i)
    y = ReduceSum <noop_with_empty_axes = 1> (a, i)
    y = ReduceSum (a)
    y = ArgMax <axis = 1> (a)
    y = ArgMin <axis = -3, keepdims = 0> (a)
    y, z = Split (a, i)
    y, z = Split <axis = -1, num_outputs = 2> (a)
    y = Squeeze (a, i)
    y, z = TopK <axis = 0> (a, i)
    y = Transpose (a)
    y = Transpose <perm = [1, 0]> (a)
    y = Unsqueeze (a, i)
    y = CenterCropPad (a, i)
    y = CenterCropPad <axes = [-1]> (a, i)
    y = ConstantOfShape (i)
    y = EyeLike <k = 1> (a)
    y = Flatten <axis = -1> (a)
    y = Slice (a, i, j)
    y = Split <num_outputs = 1> (a)
    y = Squeeze (a)
    y = Tile (a, i)
    y = Trilu (a)
    y = Shape <start = 1, end = -1> (a)
"""
Feeds = dict[str, npt.NDArray[Any]]


def drawn(random: np.random.Generator) -> Feeds:
    """Arrays of rank 0 to 3 and sizes 0 to 4, and short lists of numbers, negative ones too."""
    sizes = random.choice((0, 1, 2, 3, 4), 3, p=(0.1, 0.3, 0.3, 0.2, 0.1))
    shapes = [random.choice(sizes, random.integers(4)) for _ in "abc"]
    floats = {name: np.ones(shape, np.float32) for name, shape in zip("abc", shapes, strict=True)}
    lists = {name: random.integers(-3, 4, random.integers(5)) for name in "ij"}
    return {**floats, **lists}


def sizes_in(contract: Contract, feeds: Sequence[npt.NDArray[Any]]) -> list[int | None] | None:
    """The sizes that a contract states of these operands."""

    def size(one: Size) -> int:
        return feeds[one.operand].shape[one.axis]

    return None if contract.sizes is None else [computed(one, size) for one in contract.sizes]


def run(node: NodeProto, feeds: Feeds) -> list[npt.NDArray[Any]] | None:
    """The outputs of a node; None where it fails."""
    types = {name: helper.np_dtype_to_tensor_dtype(value.dtype) for name, value in feeds.items()}
    inputs = [helper.make_tensor_value_info(name, types[name], None) for name in feeds]
    outputs = [helper.make_value_info(name, onnx.TypeProto()) for name in node.output]
    graph = helper.make_graph([node], "g", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    try:
        return list(ReferenceExecutor().run(model, feeds).outputs.values())
    except Ended:
        return None


def check(text: str, count: int) -> tuple[int, int]:
    """See that a contract holds on drawn operands; how often it was met, and how often not."""
    random, node = np.random.default_rng(zlib.crc32(text.encode())), onnx.parser.parse_node(text)
    met = not_met = 0
    for _ in range(count):
        drawn_feeds = drawn(random)
        feeds = {name: drawn_feeds[name] for name in node.input if name}
        shapes = {name: value.shape for name, value in feeds.items()}
        contract = contract_of(Operands(node, shapes.get, feeds.get))
        operands = [feeds.get(name, np.ones(())) for name in node.input]
        meets = contract is not None and not any(gap_of(n, operands) for n in contract.needs)
        made = run(node, feeds)
        told = f"{text} of {shapes} {[feeds[name] for name in 'ij' if name in feeds]}"
        rows = traits_of(node).fails is not Fails.EMPTY or feeds["a"].size  # no question of sizes
        if contract is not None and contract.complete and meets and rows:
            assert made is not None, told
        if made is not None and contract is not None:
            stated = sizes_in(contract, operands)
            # executors differ in unequal parts, in what is cut off, and where no element is read
            assert meets or node.op_type in ("Pad", "Split") or not made[0].size, told
            for value in made if stated is not None else ():
                pairs = zip(stated, value.shape, strict=True)
                assert all(size in (None, own) for size, own in pairs), told
        met, not_met = met + meets, not_met + (made is None)
    return met, not_met


@pytest.mark.parametrize("count", [12, pytest.param(400, marks=pytest.mark.slow)])
def test_what_is_stated_of_sizes_holds_in_runs(count: int) -> None:
    found = [check(text.strip(), count) for text in NODES.strip().splitlines()]
    assert sum(met for met, _ in found) > len(found)
    assert sum(not_met for _, not_met in found) > len(found)


def test_the_reference_executor_reads_only_the_roundings_of_the_table() -> None:
    """A mistake in a contract or a row is found by kernels that know nothing of them."""
    folder, found = Path(passes.verify.reference.__file__).parent, set()
    for path in folder.rglob("*.py"):
        for one in ast.walk(ast.parse(path.read_text())):
            names = [one.module or ""] if isinstance(one, ast.ImportFrom) else []
            names += [alias.name for alias in one.names] if isinstance(one, ast.Import) else []
            if any(name.startswith("passes.operators") for name in names):
                found.add(path.relative_to(folder).as_posix())
    assert found <= {"roundings.py"}
