"""Options of the test suite: `--slow` runs the long tests, `--update-golden` rewrites outcomes.

Of a test that is marked `sampled` and runs over many cases, every sixth is quick enough for each
run; the others count as slow.
"""

from __future__ import annotations

from collections import Counter

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="run the tests marked slow, too")
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write the .after.onnxtxt files anew; read the difference before you commit it",
    )


#: Of the cases of a sampled test, one in so many is not slow.
_ONE_IN = 6


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their markers
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    seen: Counter[str] = Counter()
    for item in items:
        if item.get_closest_marker("sampled"):
            test = item.nodeid.split("[")[0]
            if seen[test] % _ONE_IN:
                item.add_marker(pytest.mark.slow)
            seen[test] += 1
    if config.getoption("--slow"):
        return
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="slow: run with --slow"))
