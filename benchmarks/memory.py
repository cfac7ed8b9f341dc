"""Peak memory of converting a model from file to file, against onnx's own converter; of taking one
with 3 GB of external weights to an older opset; of doing so verified, against one run; and of
storing 1 GB of weights in fewer bits.

Each side is a process of its own; its peak is what the system says of it when it ends, or, where it
starts others, what they take together while they run, shared pages counted once.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, TensorProto, helper, numpy_helper

from benchmarks.harness import Bench
from benchmarks.models import FLOAT, chain, nested, squeezed

_OURS = "import passes, onnx; onnx.save(passes.upgrade({0!r}, opset=9, verify=False).model, {1!r})"
_THEIRS = (
    "import onnx, onnx.version_converter as converter; "
    "onnx.save(converter.convert_version(onnx.load({0!r}), 9), {1!r})"
)
_DOWN = (
    "import runpy, sys; "
    "sys.argv[1:] = ['convert', {0!r}, '--opset', '12', '--no-verify', '--force', '-o', {1!r}]; "
    "runpy.run_module('passes', run_name='__main__')"
)
_CAST = (
    "import runpy, sys; "
    "sys.argv[1:] = ['cast', {{0!r}}, {!r}, {!r}, '--no-verify', '--force', '-o', {{1!r}}]; "
    "runpy.run_module('passes', run_name='__main__')"
)
_VERIFIED = "import passes; passes.convert({0!r}, opset=13, verify_budget=20)"
_RUN = (
    "import numpy, onnxruntime as ort; options = ort.SessionOptions(); "
    "options.intra_op_num_threads = 1; "
    "ort.InferenceSession({0!r}, options).run(None, {{'x': numpy.ones((3, 4096), 'f')}})"
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
        count = 1 if bench.quick else 16
        onnx.save(products_of(count), before, save_as_external_data=True, location="products")
        for option in ("--to", "float16"), ("--weights", "float16"), ("--weights", "int8"):
            peak = peak_memory(_CAST.format(*option), before, after)
            bench.note(
                f"cast {' '.join(option)}, {count << 6} MB of external weights: peak memory "
                f"{peak / (count << 16):.2f}x of them ({peak / 1024:.0f} MB)"
            )
        count = 1 if bench.quick else 8
        for where, external in ("external weights", True), ("weights in the model", False):
            onnx.save(
                products_of(count), before, save_as_external_data=external, location="products"
            )
            sides = [program.format(str(before)) for program in (_VERIFIED, _RUN)]
            ours, theirs = map(peak_together, sides)
            bench.note(
                f"17 -> 13, verified, {count << 6} MB of {where}: {ours} MB, "
                f"{ours - theirs} MB more than a run of the model in onnxruntime ({theirs} MB)"
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


def products_of(count: int) -> ModelProto:
    """Products with matrices of 64 MB, each normalized: a function takes the place of that."""
    graph = GraphProto(name="products")
    graph.input.append(helper.make_tensor_value_info("x", FLOAT, ["N", 4096]))
    draw = np.random.default_rng(0)
    graph.initializer.append(numpy_helper.from_array(np.ones(4096, np.float32), "scale"))
    name = "x"
    for number in range(count):
        weight = draw.standard_normal((4096, 4096), dtype=np.float32) / 64
        graph.initializer.append(numpy_helper.from_array(weight, f"w_{number}"))
        graph.node.add(op_type="MatMul", input=[name, f"w_{number}"], output=[f"m_{number}"])
        name = f"n_{number}"
        read = [f"m_{number}", "scale"]
        graph.node.add(op_type="LayerNormalization", input=read, output=[name])
    graph.output.append(helper.make_tensor_value_info(name, FLOAT, ["N", 4096]))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def peak_together(program: str) -> int:
    """The most memory that a process and those it starts take together, in MB, by a look at them
    every few hundredths of a second. 0 where the system does not say."""
    peak = 0
    with subprocess.Popen([sys.executable, "-c", program]) as process:
        while process.poll() is None:
            peak = max(peak, sum(map(_share, _family(process.pid))))
            time.sleep(0.03)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, program)
    return peak >> 10


def _family(pid: int) -> list[int]:
    try:
        lists = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    except OSError:  # it ended
        return []
    below = [int(child) for one in lists for child in one.split()]
    return [pid, *(inner for child in below for inner in _family(child))]


def _share(pid: int) -> int:
    """What a process takes, in KiB, its part of what it shares with others."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


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
