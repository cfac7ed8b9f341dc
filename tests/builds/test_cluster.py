"""Many machines: a real scheduler of dask and two workers, each a process, one of them killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest

pytest.importorskip("distributed")

from passes.builds.batch import Batch, local
from passes.builds.cluster import NoCluster, connected
from passes.builds.pool import Limits
from passes.commands.pipeline import Pipeline
from passes.commands.task import Task
from passes.errors import End
from passes.reports.summary import Row
from passes.testing import as_model
from tests.builds.test_batch import NEGATED
from tests.written import changed

pytestmark = pytest.mark.slow
PIPELINE = Pipeline([("simplify", {"executor": "reference"})])


class Cluster:
    """A scheduler, and workers that can be killed."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "scheduler.json"
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []
        self.start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")

    @property
    def address(self) -> str:
        deadline = time.monotonic() + 30
        while not self.file.exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        return str(json.loads(self.file.read_text())["address"])

    def start(self, kind: str, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
        paths = os.pathsep.join([os.getcwd(), *sys.path])
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", f"distributed.cli.dask_{kind}"),
                *("--scheduler-file", str(self.file), *arguments),
            ],
            env={**os.environ, "PYTHONPATH": paths, **environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd=self.folder,
        )
        self.processes.append(process)
        return process

    def worker(self) -> subprocess.Popen[bytes]:
        limits = ("--nthreads", "1", "--memory-limit", "0", "--no-dashboard", "--no-nanny")
        return self.start("worker", *limits, "--local-directory", str(self.folder))

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    yield made
    for process in made.processes:
        if process.poll() is None:
            made.kill(process)


def tasks(folder: Path, count: int) -> list[tuple[Task, Limits]]:
    found = []
    for number in range(count):
        path = folder / f"m{number:02}.onnx"
        onnx.save(as_model(changed(NEGATED, {"float[2]": f"float[{number + 1}]"})), path)
        task = Task(str(path), PIPELINE, str(folder / "out" / path.name), force=True)
        found.append((task, Limits(60, 1 << 30)))
    return found


def outcomes(folder: Path) -> dict[str, bytes]:
    # a worker that is killed while it writes leaves a hidden file
    return {path.name: path.read_bytes() for path in sorted((folder / "out").glob("[!.]*"))}


def test_a_worker_that_is_killed_costs_a_try_not_a_model(tmp_path: Path, cluster: Cluster) -> None:
    every = tasks(tmp_path, 24)
    Batch(every, local(1)).run()
    alone = outcomes(tmp_path)
    for path in (tmp_path / "out").iterdir():
        path.unlink()
    doomed, _ = cluster.worker(), cluster.worker()
    killed = False

    def told(row: Row, number: int, total: int) -> None:
        nonlocal killed
        if number == 6 and not killed:
            killed = True
            cluster.kill(doomed)

    summary = Batch(every, connected(cluster.address), tmp_path / "cache").run(told)
    assert killed
    assert dict(summary.ends) == {End.WRITTEN: 24}
    assert outcomes(tmp_path) == alone


def test_what_is_no_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NoCluster, match="there is no scheduler of dask"):
        connected("tcp://127.0.0.1:9")


def test_a_worker_that_cannot_import_the_package(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.worker()
    monkeypatch.setattr("passes.builds.cluster._DISTRIBUTION", "no-such-distribution")
    with pytest.raises(NoCluster, match=r"the worker .* cannot import no-such-distribution"):
        connected(cluster.address)
