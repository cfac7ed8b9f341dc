"""A large model with one If that an input decides: fixing that input, and checking the model."""

from __future__ import annotations

import onnx

import passes
from benchmarks.harness import Aim, Bench, Side
from benchmarks.models import chosen
from passes.binding.inputs import Binding
from passes.check import load_checked
from passes.targets.findings import check
from passes.targets.profile import load
from passes.targets.remedies import plan

_VALUES = {"rate": 16_000}


def measure(bench: Bench) -> None:
    """The library calls, without verification; the check with all that it tries."""
    nodes = 1_000 if bench.quick else 20_000
    model, profile = chosen(nodes), load("no-control-flow")
    inferred = Side("infer_shapes", lambda: onnx.shape_inference.infer_shapes(model))

    def simplified() -> None:
        assert not _ifs(passes.simplify(model, values=_VALUES, verify=False).model)

    def optimized() -> None:
        target = "no-control-flow"
        result = passes.optimize(model, target=target, values=_VALUES, verify=False)
        assert not _ifs(result.model)

    def checked(bound: Binding) -> None:
        loaded, _ = load_checked(model)
        assert not check(loaded, profile).fits
        assert plan(loaded, profile, bound).left.fits

    aim = Aim(ratio=3)
    name = f"{nodes} nodes, an If"
    bench.compare(f"simplify --set: {name}", Side("simplify", simplified), inferred, aim=aim)
    bench.compare(f"optimize --set: {name}", Side("optimize", optimized), inferred, aim=aim)
    seconds = Aim(seconds=5)
    without = Side("check", lambda: checked(Binding()))
    bench.compare(f"check: {name}", without, inferred, aim=seconds, runs=3)
    fixed = Side("check", lambda: checked(Binding(values=_VALUES)))
    bench.compare(f"check --set: {name}", fixed, inferred, aim=seconds, runs=3)


def _ifs(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    return [node for node in model.graph.node if node.op_type == "If"]
