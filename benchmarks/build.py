"""A build of many models: what it adds to the rewriting, by processes, from the cache, by dask."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.harness import Aim, Bench, Side
from passes.builds.batch import Batch, Engine, local
from passes.builds.pool import Limits
from passes.commands.pipeline import Pipeline
from passes.commands.task import Task, perform
from passes.verify.installed import kept_running

_MODELS = Path(__file__).parent.parent / "golden_models"
_PIPELINE = Pipeline([("simplify", {"verify_budget": 10.0})])
_ROWS = 10_000
#: Runs a batch of models that are known, many times over, and prints the peak of its memory.
_PARENT = """
import resource, sys
from pathlib import Path
from passes.builds.batch import Batch
from passes.builds.pool import Limits
from passes.commands.task import Task
from passes.commands.pipeline import Pipeline
task = Task(sys.argv[1], Pipeline(["simplify"]), sys.argv[2], force=True)
known = []
def engine(works):
    for number, (work, _) in enumerate(works):
        if not known:
            known.append(work.done())
        yield work, known[0]
tasks = [(Task(task.model, task.pipeline, f"{task.output}.{n}"), Limits()) for n in range(%d)]
Batch(tasks, engine, None, Path(sys.argv[2] + ".jsonl")).run()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def measure(bench: Bench) -> None:
    """Models that were exported or are golden, through `simplify`, verified."""
    count = 8 if bench.quick else 200
    every = [path for path in sorted(_MODELS.rglob("*.onnx")) if path.stat().st_size < 100_000]
    models = [*itertools.islice(itertools.cycle(every[:: max(1, len(every) // count)]), count)]
    with tempfile.TemporaryDirectory() as folder:
        tasks = _tasks(models, Path(folder))
        alone = Side("in one process", lambda: _alone(tasks), count)
        one = _side("1 job", tasks, local(1))
        two = _side("2 jobs", tasks, local(2))
        bench.compare(f"{count} models", one, alone, aim=Aim(extra=count * 0.05), runs=1)
        bench.compare(f"{count} models", two, one, aim=Aim(ratio=1 / 1.7), runs=1)
        with _cluster(Path(folder)) as engine:
            dask = _side("dask, 2 workers", tasks, engine)
            bench.compare(f"{count} models", dask, two, aim=Aim(extra=count * 0.05), runs=1)
        cache = Path(folder) / "cache"
        _side("", tasks, local(2), cache).run()
        bench.compare(
            f"{count} models again",
            _side("from the cache", tasks, local(2), cache),
            two,
            aim=Aim(seconds=count * 0.02),
            runs=1,
        )
        rows = 100 if bench.quick else _ROWS
        arguments = [sys.executable, "-c", _PARENT % rows, str(models[0]), f"{folder}/out"]
        done = subprocess.run(arguments, capture_output=True, text=True, check=True)
        bench.note(f"{rows} rows: {int(done.stdout) >> 10} MB of memory in the parent")


def _tasks(models: Sequence[Path], folder: Path) -> list[tuple[Task, Limits]]:
    outputs = [str(folder / "out" / f"{number}.onnx") for number in range(len(models))]
    return [
        (Task(str(model), _PIPELINE, output, force=True), Limits(120, 2 << 30))
        for model, output in zip(models, outputs, strict=True)
    ]


def _alone(tasks: Sequence[tuple[Task, Limits]]) -> None:
    with kept_running():
        for task, _ in tasks:
            Path(task.output or "").parent.mkdir(exist_ok=True)
            perform(task)


def _side(
    label: str, tasks: Sequence[tuple[Task, Limits]], engine: Engine, cache: Path | None = None
) -> Side:
    def run() -> None:
        summary = Batch(tasks, engine, cache).run()
        assert summary.total == len(tasks), summary

    return Side(label, run, len(tasks))


@contextmanager
def _cluster(folder: Path) -> Iterator[Engine]:
    """The engine of a scheduler and two workers, processes of this machine."""
    from passes.builds.cluster import connected

    file = folder / "scheduler.json"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    paths = os.pathsep.join([os.getcwd(), *sys.path])
    worker = ("worker", "--nthreads", "1", "--memory-limit", "0", "--local-directory", str(folder))
    kinds = [("scheduler", "--port", "0"), worker, worker]
    processes = [
        subprocess.Popen(
            [
                *(sys.executable, "-m", f"distributed.cli.dask_{kind}"),
                *("--scheduler-file", str(file), "--no-dashboard", *rest),
            ],
            env={**os.environ, "PYTHONPATH": paths},
            **quiet,
        )
        for kind, *rest in kinds
    ]
    try:
        while not file.exists():
            time.sleep(0.1)
        yield connected(str(json.loads(file.read_text())["address"]))
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait(30)
