"""Whatever happens while a model is written: the old file is there, or the whole new one."""

from __future__ import annotations

import multiprocessing
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, numpy_helper

from passes.ir.model import Model
from passes.ir.save import save
from tests.called import called

FORK = multiprocessing.get_context("fork")
SIZE = 1 << 18  # numbers; a megabyte takes long enough to be interrupted


def model_of(number: int) -> ModelProto:
    """An opset-8 model whose weight holds one number many times."""
    model = onnx.parser.parse_model(
        """<ir_version: 4, opset_import: ["" : 8]>
        g (float[1] x) => (float[N] y) { s = Unsqueeze <axes = [0]> (x)
          t = Squeeze <axes = [0]> (s) y = Add (t, w) }"""
    )
    weight = np.full(SIZE, number, np.float32)
    model.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    return model


@pytest.fixture
def heavy(tmp_path: Path) -> Path:
    """A model with its weight in a file, in a folder of its own."""
    folder = tmp_path / "from"
    folder.mkdir()
    model = model_of(7)
    (folder / "w.bin").write_bytes(model.graph.initializer[0].raw_data)
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="w.bin")
    save(model, folder / "model.onnx")
    return folder / "model.onnx"


def number_in(path: Path) -> float:
    """The number of a whole model; anything else than a whole one raises."""
    model = Model.load(path)
    weight = model.read(model.proto.graph.initializer[0])
    assert weight.shape == (SIZE,)
    assert weight.min() == weight.max()
    return float(weight[0])


def save_for_ever(path: Path, numbers: tuple[int, ...]) -> None:
    models = [model_of(number) for number in numbers]
    while True:
        for model in models:
            save(model, path, force=True)


def copy_for_ever(source: Path, path: Path) -> None:
    model = Model.load(source)
    while True:
        save(model.proto, path, base_dir=model.base_dir, force=True)


def started(work: Callable[..., None], *arguments: object) -> BaseProcess:
    process = FORK.Process(target=work, args=arguments)
    process.start()
    return process


def killed_at_any_point(path: Path, work: Callable[..., None], *arguments: object) -> set[float]:
    """Kill a writer 60 times, early and late; the numbers of the files that it left."""
    began, first = time.monotonic(), path.read_bytes()
    process = started(work, *arguments)
    while path.read_bytes() == first and time.monotonic() < began + 30:
        time.sleep(0.001)
    kill(process)
    took, draw, seen = time.monotonic() - began, random.Random(0), set()
    for _ in range(60):
        process = started(work, *arguments)
        time.sleep(draw.uniform(0.2, 2) * took)
        kill(process)
        seen.add(number_in(path))
    return seen


def kill(process: BaseProcess) -> None:
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()


@pytest.mark.slow
def test_a_writer_that_is_killed_leaves_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    save(model_of(0), path)
    seen = killed_at_any_point(path, save_for_ever, path, (1, 2, 3))
    assert len(seen) > 1  # they were killed at different points


@pytest.mark.slow
def test_a_writer_of_external_data_that_is_killed_leaves_a_whole_model(
    heavy: Path, tmp_path: Path
) -> None:
    path = tmp_path / "model.onnx"
    save(model_of(0), path)
    assert killed_at_any_point(path, copy_for_ever, heavy, path) <= {0, 7}
    assert number_in(path) == 7
    assert number_in(heavy) == 7


@pytest.mark.slow
def test_two_writers_and_a_reader(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    save(model_of(0), path)
    writers = [started(save_for_ever, path, (number,)) for number in (1, 2)]
    seen = set()
    until = time.monotonic() + 30
    while time.monotonic() < until and not seen >= {1, 2}:
        seen.add(number_in(path))
    for writer in writers:
        kill(writer)
    assert seen >= {1, 2}
    assert number_in(path) in (1, 2)


# -- through the command line -----------------------------------------------------------------


def upgrade(source: Path, target: Path, *more: str) -> subprocess.CompletedProcess[bytes]:
    return called("upgrade", f"{source}", "-o", f"{target}", "--no-verify", *more)


@pytest.fixture
def small_disk() -> Iterator[None]:
    """No file may have more than SIZE bytes, a quarter of what the weight takes."""
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.getsignal(signal.SIGXFSZ)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (SIZE, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


def one_sentence(result: subprocess.CompletedProcess[bytes]) -> str:
    """What a command that failed says: one line."""
    assert result.returncode != 0
    (line,) = result.stderr.decode().strip().splitlines()
    return line


@pytest.fixture
def old(tmp_path: Path) -> Iterator[Path]:
    """A folder with an input and an older output, and nothing else at the end."""
    save(model_of(5), tmp_path / "in.onnx")
    save(model_of(6), tmp_path / "out.onnx")
    yield tmp_path
    assert {file.name for file in tmp_path.iterdir()} == {"in.onnx", "out.onnx"}


@pytest.mark.usefixtures("old", "small_disk")
def test_a_full_disk_leaves_the_old_file(old: Path) -> None:
    result = upgrade(old / "in.onnx", old / "out.onnx", "--force")
    assert "cannot be written (File too large)" in one_sentence(result)
    assert number_in(old / "out.onnx") == 6


@pytest.mark.usefixtures("heavy", "small_disk")
def test_a_full_disk_leaves_no_copy_of_weights(heavy: Path, tmp_path: Path) -> None:
    target = tmp_path / "to"
    target.mkdir()
    result = upgrade(heavy, target / "out.onnx")
    assert "cannot be written (File too large)" in one_sentence(result)
    assert list(target.iterdir()) == []


def test_the_input_is_written_over_only_on_demand(old: Path) -> None:
    before = (old / "in.onnx").read_bytes()
    refused = upgrade(old / "in.onnx", old / "in.onnx")
    assert "use --force" in one_sentence(refused)
    assert (old / "in.onnx").read_bytes() == before
    assert upgrade(old / "in.onnx", old / "in.onnx", "--force").returncode == 0
    assert number_in(old / "in.onnx") == 5
    assert Model.load(old / "in.onnx").opset() > 8


def test_the_input_with_external_data_is_written_over(heavy: Path) -> None:
    assert upgrade(heavy, heavy, "--force").returncode == 0
    assert number_in(heavy) == 7
    assert {file.name for file in heavy.parent.iterdir()} == {"model.onnx", "w.bin"}


@pytest.mark.slow
def test_two_runs_at_once(old: Path) -> None:
    command = [sys.executable, "-m", "passes", "upgrade", str(old / "in.onnx"), "--force"]
    runs = [
        subprocess.Popen([*command, "-o", str(old / "out.onnx")], stdout=subprocess.DEVNULL)
        for _ in range(3)
    ]
    assert [run.wait(timeout=120) for run in runs] == [0, 0, 0]
    assert number_in(old / "out.onnx") == 5


@pytest.mark.slow
def test_a_command_that_is_killed_leaves_the_old_file_or_the_new_one(old: Path) -> None:
    command = [sys.executable, "-m", "passes", "upgrade", str(old / "in.onnx"), "--no-verify"]
    began = time.monotonic()
    subprocess.run([*command, "-o", str(old / "out.onnx"), "--force"], check=True)
    took, draw = time.monotonic() - began, random.Random(2)
    save(model_of(6), old / "out.onnx", force=True)
    for _ in range(15):
        run = subprocess.Popen([*command, "-o", str(old / "out.onnx"), "--force"])
        time.sleep(draw.uniform(0.5, 1.05) * took)
        run.kill()
        run.wait()
        assert number_in(old / "out.onnx") in (5, 6)
    for left in old.glob(".out.onnx.*"):  # nobody was there to clear it away
        left.unlink()
