"""Where nothing changes: inspecting and upgrading a large model, against onnx.load + onnx.save."""

from __future__ import annotations

import tempfile
from pathlib import Path

import onnx
from onnx import ModelProto

import passes
from benchmarks.harness import Aim, Bench, Side
from benchmarks.models import chain, nested
from passes.inspection import inspect_model
from passes.save import save

_OPSET = 13
_AIM = Aim(ratio=3)


def measure(bench: Bench) -> None:
    """A model without loops, from file to file; then models in memory, with and without."""
    nodes = 1_000 if bench.quick else 100_000
    loops = 10 if bench.quick else 1_000
    plain = chain(nodes, opset=_OPSET)
    looping = nested(loops, nodes=nodes // loops, changing=0, opset=_OPSET)
    with tempfile.TemporaryDirectory() as folder:
        for name, model in (
            (f"{nodes} nodes", plain),
            (f"{nodes} nodes in {loops} loops", looping),
        ):
            _compare(bench, name, model, Path(folder))


def _compare(bench: Bench, name: str, model: ModelProto, folder: Path) -> None:
    source, here, there = (folder / part for part in ("model.onnx", "this.onnx", "that.onnx"))
    onnx.save(model, source)
    base = Side("onnx.load + save", lambda: onnx.save(onnx.load(source), there))
    # a model of loops is inspected loop by loop, which is work and not overhead
    inspecting = _AIM if "loops" not in name else None

    def inspect() -> None:
        inspect_model(source, _OPSET, {})
        onnx.save(onnx.load(source), here)

    def session() -> None:
        result = passes.upgrade(source, opset=_OPSET)
        save(result.model, here, base_dir=result.base_dir, force=True)

    bench.compare(f"inspect, load, save: {name}", Side("this", inspect), base, aim=inspecting)
    bench.compare(f"upgrade to its own opset: {name}", Side("this", session), base, aim=_AIM)
    bench.compare(
        f"the same in memory: {name}",
        Side("passes.upgrade", lambda: passes.upgrade(model, opset=_OPSET)),
        Side("check_model", lambda: onnx.checker.check_model(model)),
    )
