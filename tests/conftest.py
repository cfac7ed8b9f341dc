"""Options of the test suite: `--slow` runs the long tests, `--update-golden` rewrites outcomes.

Of a test that is marked `sampled` and runs over many cases, every fortieth is quick enough for
each run, or one in the number that is given; the others count as slow.
"""

from __future__ import annotations

import gc
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy, as the command does

from passes.verify.installed import OnnxRuntimeExecutor
from tests.onnxruntime_at_hand import at_hand

pytest_plugins = ["tests.reports.pages.browsing"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="run the tests marked slow, too")
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write the .after.onnxtxt files anew; read the difference before you commit it",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Let the processes that tests start keep compiled modules, outside of the sources where those
    are to stay clean: to compile them anew takes longer than most commands."""
    if sys.dont_write_bytecode:
        folder = config.rootpath / ".pytest_cache" / "bytecode"
        os.environ.setdefault("PYTHONPYCACHEPREFIX", str(folder))
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Hold the garbage collector back: it finds nothing among thousands of tests that stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


#: Of the cases of a sampled test, one in so many is not slow.
_ONE_IN = 40


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their markers
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    seen: Counter[str] = Counter()
    for item in items:
        sampled = item.get_closest_marker("sampled")
        if sampled:
            test = item.nodeid.split("[")[0]
            if seen[test] % (sampled.args[0] if sampled.args else _ONE_IN):
                item.add_marker(pytest.mark.slow)
            seen[test] += 1
    if config.getoption("--slow"):
        return
    slow = [item for item in items if "slow" in item.keywords]
    config.hook.pytest_deselected(items=slow)
    items[:] = [item for item in items if "slow" not in item.keywords]


#: Where each test only wants to know that a rewrite is right: onnxruntime need not start for each.
_SHARING = (
    "analysis",
    "binding",
    "bisection",
    "check",
    "cli",
    "converters",
    "docs",
    "engine",
    "measuring",
    "onnxruntime",
    "reports",
    "rules",
    "streaming",
    "targets",
    "vectorize",
    "writing",
    "test_exported",
    "test_golden",
    "test_optimize",
    "test_options",
    "test_readme",
    "test_session",
)


@pytest.fixture(scope="session", autouse=True)
def _closed() -> Iterator[None]:
    yield
    at_hand().close()


@pytest.fixture(autouse=True)
def onnxruntime_at_hand(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let verification in these tests use that process, in place of one for each session."""
    where = request.path.relative_to(Path(__file__).parent)
    if where.as_posix().startswith(_SHARING) and OnnxRuntimeExecutor.available():
        monkeypatch.setattr("passes.verify.installed._KEPT", [at_hand()])
