"""Processes that take one task at a time: one that dies or exceeds a limit costs its task."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from passes.builds.pool import Ended, Kept, Limits, Pool
from passes.errors import End

WORKER = "tests.builds.fake_worker"
NO_LIMITS = Limits()


def test_answers_come_as_they_are_done() -> None:
    with Pool[str](WORKER, 2) as pool:
        done = list(pool.run((task, NO_LIMITS) for task in ("sleep 1", "sleep 0", "print")))
    assert done == [
        ("sleep 0", "did sleep 0"),
        ("print", "did print"),
        ("sleep 1", "did sleep 1"),
    ]


def test_a_process_that_dies_costs_its_task_alone() -> None:
    with Pool[str](WORKER, 1) as pool:
        done = dict(pool.run((task, NO_LIMITS) for task in ("sleep 0", "die", "print")))
    assert done["print"] == "did print"
    assert done["sleep 0"] == "did sleep 0"
    died = done["die"]
    assert isinstance(died, Ended)
    assert died.end is End.DIED
    assert died.sentence == "its process died (SIGSEGV): about to die"


def test_a_process_that_sends_no_answer_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("passes.builds.pool._DYING", 0.1)
    with Pool[str](WORKER, 1) as pool:
        done = dict(pool.run((task, NO_LIMITS) for task in ("garble", "print")))
    assert isinstance(done["garble"], Ended)
    assert done["garble"].sentence == "its process died (SIGKILL)"
    assert done["print"] == "did print"


def test_a_process_is_kept_for_one_task_after_the_other() -> None:
    kept = Kept[str](WORKER)
    assert kept.ask("print", NO_LIMITS).result() == "did print"
    ended = kept.ask("sleep 30", Limits(seconds=0.1)).result()
    assert ended.sentence == "was ended after 0.1 seconds"
    assert kept.ask("sleep 0", NO_LIMITS).result() == "did sleep 0"
    kept.close()


def test_a_task_that_takes_too_long_is_ended() -> None:
    started = time.monotonic()
    with Pool[str](WORKER, 1) as pool:
        done = dict(pool.run([("sleep 30", Limits(seconds=0.5)), ("print", NO_LIMITS)]))
    assert time.monotonic() - started < 15
    ended = done["sleep 30"]
    assert isinstance(ended, Ended)
    assert (ended.end, ended.sentence) == (End.TIME, "was ended after 0.5 seconds")
    assert done["print"] == "did print"


@pytest.mark.parametrize("task", ["grow 300", "grow-elsewhere 300"])
def test_a_task_that_takes_too_much_memory_is_ended(task: str) -> None:
    """Its own, or that of a process that it started."""
    with Pool[str](WORKER, 1) as pool:
        done = dict(pool.run([(task, Limits(memory=200 << 20)), ("print", NO_LIMITS)]))
    ended = done[task]
    assert isinstance(ended, Ended)
    assert ended.end is End.MEMORY
    assert ended.sentence.endswith("MiB, the limit is 200 MiB")
    assert done["print"] == "did print"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere they end after their task")
def test_processes_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    program = tmp_path / "parent.py"
    program.write_text(
        "from passes.builds.pool import Limits, Pool\n"
        f"with Pool({WORKER!r}, 2) as pool:\n"
        "    print(list(pool.run([('sleep 60', Limits()), ('sleep 60', Limits())])))\n"
    )
    paths = os.pathsep.join([os.getcwd(), *sys.path])
    parent = subprocess.Popen([sys.executable, program], env={**os.environ, "PYTHONPATH": paths})
    deadline = time.monotonic() + 20
    while len(children := psutil.Process(parent.pid).children(recursive=True)) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    used = -1.0
    while used != (used := sum(sum(child.cpu_times()) for child in children)):
        assert time.monotonic() < deadline
        time.sleep(0.5)  # they work until they sleep
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    _, alive = psutil.wait_procs(children, timeout=30)
    assert not alive
