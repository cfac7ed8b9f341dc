"""Things that are no files, or whose external data is not where it should be."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

Place = Callable[[random.Random, Path], Path]


def empty(rng: random.Random, folder: Path) -> Path:
    return _written(folder / "model.onnx", b"")


def noise(rng: random.Random, folder: Path) -> Path:
    ending = rng.choice((".onnx", ".onnxtxt", ".json", ".textproto", "", ".txt"))
    return _written(folder / f"model{ending}", rng.randbytes(rng.choice((1, 10, 10_000))))


def text(rng: random.Random, folder: Path) -> Path:
    ending = rng.choice((".onnx", ".onnxtxt", ".json", ".textproto"))
    words = rng.choice(("<", "{", "g () => () {", "ir_version: 8", '{"graph": 3}', "[" * 5000))
    return _written(folder / f"model{ending}", words.encode())


def directory(rng: random.Random, folder: Path) -> Path:
    path = folder / "model.onnx"
    path.mkdir()
    return path


def link(rng: random.Random, folder: Path) -> Path:
    path = folder / "model.onnx"
    path.symlink_to(rng.choice((folder, folder / "nowhere", path, Path("/dev/null"))))
    return path


def missing(rng: random.Random, folder: Path) -> Path:
    return folder / "nowhere" / "model.onnx"


def unreadable(rng: random.Random, folder: Path) -> Path:
    """A file that may not be read; who is root reads it all the same, and it is empty."""
    path = _written(folder / "model.onnx", b"")
    path.chmod(0)
    return path


def external_data(rng: random.Random, folder: Path) -> Path:
    """A model whose weight lies outside, nowhere, in a directory, or is too short."""
    inside = folder / "inside"
    inside.mkdir()
    _written(folder / "secret.bin", bytes(64))
    _written(inside / "short.bin", bytes(8))
    (inside / "folder.bin").mkdir()
    (inside / "link.bin").symlink_to(folder / "secret.bin")
    (inside / "unreadable.bin").touch(mode=0)
    location = rng.choice(
        (
            *("../secret.bin", str(folder / "secret.bin"), "/etc/passwd", "missing.bin"),
            *(
                "short.bin",
                "folder.bin",
                "link.bin",
                "unreadable.bin",
                "",
                ".",
                "a/../../secret.bin",
            ),
            *("x" * 5000, "nul\0.bin", "*.bin"),
        )
    )
    offset = rng.choice(("0", "4", "-8", str(1 << 62), "nonsense", ""))
    length = rng.choice(("64", "0", "-1", str(1 << 62), "nonsense", ""))
    model = _model_with_weight()
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", offset), ("length", length)):
        if value or rng.random() < 0.5:
            tensor.external_data.add(key=key, value=value)
    return _written(inside / "model.onnx", model.SerializeToString())


def _model_with_weight() -> ModelProto:
    weight = numpy_helper.from_array(np.ones((4, 4), np.float32), "w")
    body = helper.make_graph(
        [helper.make_node("MatMul", ["e", "w"], ["p"]), helper.make_node("Neg", ["p"], ["o"])],
        "body",
        [helper.make_tensor_value_info("e", TensorProto.FLOAT, [2, 4])],
        [helper.make_tensor_value_info("o", TensorProto.FLOAT, [2, 4])],
    )
    node = helper.make_node("Scan", ["x"], ["y"], num_scan_inputs=1, body=body)
    values = [helper.make_tensor_value_info(name, 1, ["T", 2, 4]) for name in "xy"]
    graph = helper.make_graph([node], "g", values[:1], values[1:], [weight])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=8)


def _written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


PLACES: tuple[Place, ...] = (
    *(empty, noise, text, directory, link, missing, unreadable),
    *(external_data,) * 8,
)


def placed(rng: random.Random, folder: Path) -> tuple[str, Path]:
    """What was put where."""
    place = rng.choice(PLACES)
    os.makedirs(folder, exist_ok=True)
    return place.__name__, place(rng, folder)
