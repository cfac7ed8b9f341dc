"""How the cost of a rewrite grows: per node, per nested body, per Scan-8; against onnx's own.

The rows that compare two sizes of one thing show what a node costs in the larger against what
it costs in the smaller: 1x is linear.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

import onnx.version_converter
from onnx import ModelProto

import passes
from benchmarks.harness import Aim, Bench, Run, Side
from benchmarks.models import chain, nested, squeezed, sums
from passes.errors import NotProduced

_TARGETS = (9, 26)
_DOWN = 12  # from 17
_LINEAR = Aim(ratio=2)  # more nodes no longer fit the cache; a quadratic step would show as 10x
_FASTER = Aim(ratio=1)


def measure(bench: Bench) -> None:
    """Chains and nested bodies to opset 9 and 26, then the Scan-8 sites."""
    loops = (10, 20) if bench.quick else (100, 1_000)
    for target in _TARGETS:
        # onnx's converter takes minutes for 100,000 nodes to 26
        largest = (100_000,) if target == _TARGETS[0] else ()
        sizes = (100, 1_000) if bench.quick else (1_000, 20_000, *largest)
        _conversions(bench, "nodes, none change", sizes, chain, target, _nodes)
        _conversions(bench, "nodes, a tenth change", sizes, _tenth, target, _nodes)
        _conversions(bench, "nodes, all change", sizes, _all, target, _nodes)
        _conversions(bench, "loops of 10 nodes", loops, nested, target, _loop_nodes)
        _bodies(bench, loops[-1], target)
    sizes = (100, 1_000) if bench.quick else (1_000, 5_000)
    for what, changing in (("none change", 0), ("a tenth change", 20), ("all change", 2)):
        make = partial(squeezed, changing=changing)
        _conversions(bench, f"nodes, {what}", sizes, make, _DOWN, _nodes)
    _sites(bench, (1, 10) if bench.quick else (1, 10, 100))


def _tenth(nodes: int) -> ModelProto:
    return chain(nodes, changing=10)


def _all(nodes: int) -> ModelProto:
    return chain(nodes, changing=1)


def _nodes(size: int) -> int:
    return size


def _loop_nodes(size: int) -> int:
    return size * 12  # the Loop, and with what hands on its condition 11 in its body


def _bodies(bench: Bench, loops: int, target: int) -> None:
    """The chains once more, cut into the bodies of so many Loops."""
    for nodes in (1, 20) if bench.quick else (1, 20, 100):
        for what, changing in (("none change", 0), ("a tenth change", 10), ("all change", 1)):
            model = nested(loops, nodes=nodes, changing=changing)
            case = f"8 -> {target}: {loops} loops of {nodes} nodes, {what}"
            ours = Side("this", _upgrade(model, target))
            if _produced(bench, case, ours.run):
                theirs = Side("version_converter", _convert(model, target))
                bench.compare(case, ours, theirs, aim=_FASTER, runs=2 if nodes > 20 else 5)


def _conversions(
    bench: Bench,
    what: str,
    sizes: Sequence[int],
    make: Callable[[int], ModelProto],
    target: int,
    count: Callable[[int], int],
) -> None:
    """Each size against onnx's converter, then the largest against the one before."""
    sides = []
    for size in sizes:
        model = make(size)
        own = model.opset_import[0].version
        case = f"{own} -> {target}: {size} {what}"
        ours = Side("this", _upgrade(model, target), count(size))
        theirs = Side("version_converter", _convert(model, target), count(size))
        if not _produced(bench, case, ours.run):
            return
        bench.compare(case, ours, theirs, aim=_FASTER, runs=2 if size >= 100_000 else 5)
        sides.append(Side(f"{size}", ours.run, ours.units))
    smaller, larger = sides[-2:]
    bench.compare(f"{own} -> {target}: growth, {what}", larger, smaller, aim=_LINEAR, runs=2)


def _sites(bench: Bench, sizes: Sequence[int]) -> None:
    runs = {size: _upgrade(sums(size), 9, batch="nest") for size in sizes}
    for smaller, larger in pairwise(sizes):
        bench.compare(
            "Scan-8 sites",
            Side(f"{larger}", runs[larger], larger),
            Side(f"{smaller}", runs[smaller], smaller),
            aim=_LINEAR,
        )


def _upgrade(model: ModelProto, target: int, batch: str = "auto") -> Run:
    if target < model.opset_import[0].version:
        return lambda: passes.convert(model, opset=target, verify=False)
    return lambda: passes.upgrade(model, opset=target, batch=batch, verify=False)


def _convert(model: ModelProto, target: int) -> Run:
    return lambda: onnx.version_converter.convert_version(model, target)


def _produced(bench: Bench, case: str, run: Run) -> bool:
    try:
        run()
    except NotProduced as refused:
        bench.note(f"{case}: {refused}")
        return False
    return True
