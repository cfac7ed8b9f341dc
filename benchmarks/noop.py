"""Where nothing changes: inspecting and upgrading a large model, against onnx.load + onnx.save."""

from __future__ import annotations

import tempfile
from pathlib import Path

import onnx
from onnx import ModelProto

import passes
from benchmarks.harness import Aim, Bench, Side
from benchmarks.models import chain, nested
from passes.choices import RuleOptions
from passes.inspection.inspecting import inspect_model
from passes.ir.model import Model
from passes.ir.save import save

_OPSET = 13
_AIM = Aim(ratio=3)


def measure(bench: Bench) -> None:
    """A model without loops, from file to file; then models in memory, with and without."""
    nodes = 1_000 if bench.quick else 100_000
    loops = 10 if bench.quick else 1_000
    plain = chain(nodes, opset=_OPSET)
    looping = nested(loops, nodes=nodes // loops, changing=0, opset=_OPSET)
    with tempfile.TemporaryDirectory() as folder:
        _compare(bench, f"{nodes} nodes", plain, Path(folder), _AIM)
        # where there are loops, types are inferred and each loop is looked into: no overhead
        _compare(bench, f"{nodes} nodes in {loops} loops", looping, Path(folder), None)


def _compare(bench: Bench, name: str, model: ModelProto, folder: Path, aim: Aim | None) -> None:
    source, here, there = (folder / part for part in ("model.onnx", "this.onnx", "that.onnx"))
    onnx.save(model, source)
    plain = Side("onnx.load + save", lambda: onnx.save(onnx.load(source), there))

    def inspect() -> None:
        loaded = Model.load(source)
        inspect_model(loaded.proto, _OPSET, RuleOptions())
        save(loaded.proto, here, base_dir=loaded.base_dir, force=True)

    def session() -> None:
        result = passes.upgrade(source, opset=_OPSET)
        save(result.model, here, base_dir=result.base_dir, force=True)

    runs = 5 if aim else 3
    bench.compare(f"load, inspect, save: {name}", Side("this", inspect), plain, aim=aim, runs=runs)
    bench.compare(
        f"session from file to file: {name}", Side("this", session), plain, aim=aim, runs=runs
    )
    bench.compare(
        f"session in memory: {name}",
        Side("upgrade", lambda: passes.upgrade(model, opset=_OPSET)),
        Side("infer_shapes", lambda: onnx.shape_inference.infer_shapes(model)),
        runs=runs,
    )
