"""Random nests of If, Loop and Scan: the reference executor against onnxruntime."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from ort_process import OrtProcess, OrtRefused, difference, ort_process
from random_programs import Program

from passes.ir import scope
from passes.verify.reference import ReferenceExecutor

RUN = ReferenceExecutor().run


@pytest.fixture(scope="module")
def ort() -> Iterator[OrtProcess]:
    with ort_process() as process:
        yield process


def disagreements(ort: OrtProcess, seeds: range) -> list[str]:
    found = []
    for seed in seeds:
        model = Program(seed).model()
        numbers = np.random.default_rng(seed).integers(-5, 6, 3)
        feeds = dict(zip("abc", (np.array(n) for n in numbers), strict=True))
        expected = ort.run(model, feeds)
        assert not isinstance(expected, OrtRefused), f"{seed}: {expected.sentence}"
        got = RUN(model, feeds).outputs.values()
        found += [
            f"{seed}: {words}"
            for a, b in zip(got, expected, strict=True)
            if (words := difference(a, b, 0, 0))
        ]
    return found


@pytest.mark.slow
def test_60_random_programs(ort: OrtProcess) -> None:
    assert disagreements(ort, range(60)) == []


@pytest.mark.slow
def test_300_random_programs(ort: OrtProcess) -> None:
    assert disagreements(ort, range(100, 400)) == []


def test_the_programs_nest_all_three_and_shadow() -> None:
    places = [place for seed in range(60) for place in scope.walk_model(Program(seed).model())]
    for operator in ("If", "Loop", "Scan"):
        deep = [p for p in places if p.node.op_type == operator and p.path.count("/") >= 3]
        assert len(deep) > 20
