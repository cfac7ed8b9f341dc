"""Peak memory of converting a model from file to file, against onnx's own converter; and of taking
one with 3 GB of external weights to an older opset.

Each side is a process of its own; its peak is what the system says of it when it ends.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import onnx
from onnx import ModelProto, TensorProto, helper

from benchmarks.harness import Bench
from benchmarks.models import FLOAT, chain, nested, squeezed

_OURS = "import passes, onnx; onnx.save(passes.upgrade({0!r}, opset=9, verify=False).model, {1!r})"
_THEIRS = (
    "import onnx, onnx.version_converter as converter; "
    "onnx.save(converter.convert_version(onnx.load({0!r}), 9), {1!r})"
)
_DOWN = (
    "import runpy, sys; "
    "sys.argv[1:] = ['convert', {0!r}, '--opset', '12', '--no-verify', '-o', {1!r}]; "
    "runpy.run_module('passes', run_name='__main__')"
)
_BLOCK = 256 << 20  # bytes of one weight


def measure(bench: Bench) -> None:
    """Chains of which nothing, a tenth and everything changes, and 1,000 loops."""
    nodes, loops = (1_000, 10) if bench.quick else (100_000, 1_000)
    models = {
        f"{nodes} nodes, none change": chain(nodes),
        f"{nodes} nodes, a tenth change": chain(nodes, changing=10),
        f"{nodes} nodes, all change": chain(nodes, changing=1),
        f"{loops} loops of 10 nodes": nested(loops),
    }
    with tempfile.TemporaryDirectory() as folder:
        before, after = Path(folder) / "before.onnx", Path(folder) / "after.onnx"
        for case, model in models.items():
            onnx.save(model, before)
            ours, theirs = (peak_memory(side, before, after) for side in (_OURS, _THEIRS))
            bench.note(
                f"8 -> 9, {case}: peak memory {ours / theirs:.2f}x of version_converter's "
                f"({ours / 1024:.0f} MB against {theirs / 1024:.0f} MB)"
            )
        weights = 1 if bench.quick else 12
        onnx.save(_heavy(weights, Path(folder)), before)
        peak = peak_memory(_DOWN, before, after)
        bench.note(
            f"17 -> 12, {weights * _BLOCK >> 20} MB of external weights: {peak / 1024:.0f} MB"
        )


def _heavy(weights: int, folder: Path) -> ModelProto:
    """Products with matrices that stand in one file, which is sparse: zeros take no room there."""
    model = squeezed(100, changing=10)
    with (folder / "weights").open("wb") as file:
        file.truncate(weights * _BLOCK)
    for number in range(weights):
        tensor = TensorProto(name=f"w_{number}", data_type=TensorProto.FLOAT)
        tensor.dims.extend([2, _BLOCK // 8])
        tensor.data_location = TensorProto.EXTERNAL
        offset = str(number * _BLOCK)
        for key, value in ("location", "weights"), ("offset", offset), ("length", str(_BLOCK)):
            tensor.external_data.add(key=key, value=value)
        model.graph.initializer.append(tensor)
        model.graph.node.add(
            op_type="MatMul",
            input=[model.graph.output[0].name, tensor.name],
            output=[f"y_{number}"],
        )
        shape = [1, 1, 2, _BLOCK // 8]
        model.graph.output.append(helper.make_tensor_value_info(f"y_{number}", FLOAT, shape))
    return model


def peak_memory(program: str, before: Path, after: Path) -> int:
    """The largest resident size of a process, in KiB, measured by a parent that runs only it.

    `program` is Python, in which {0!r} is the model that it reads and {1!r} the one it writes.
    """
    watch = (
        "import resource, subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]], "
        "check=True); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    command = [sys.executable, "-c", watch, program.format(str(before), str(after))]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(done.stdout.split()[-1])
