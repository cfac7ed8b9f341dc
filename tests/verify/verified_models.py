"""Models to verify, and executors that pretend."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, parser

from passes.verify.executor import CannotRun, Feeds, Outcome
from passes.verify.reference import ReferenceExecutor
from tests.verification import Verification, verify

REFERENCE = ReferenceExecutor()


def model(text: str, *, ir: int = 10, opset: int = 21) -> ModelProto:
    return parser.parse_model(f'<ir_version: {ir}, opset_import: ["" : {opset}]> g {text}')


def check(before: str | ModelProto, after: str | ModelProto, **options: Any) -> Verification:
    one, other = (model(m) if isinstance(m, str) else m for m in (before, after))
    return verify(one, other, **{"executors": [REFERENCE], **options})


#: What an executor gives for y, by the side that it runs and the feeds.
Answer = Callable[[str, Feeds], Any]


class Pretend:
    """An executor that answers with a function of the feeds. A model is told by its doc string."""

    def __init__(self, answer: Answer, name: str = "reference") -> None:
        self.answer = answer
        self.name = name
        self.runs: list[str] = []

    def run(
        self,
        model: ModelProto,
        feeds: Feeds,
        *,
        base_dir: Path | None = None,
        timeout: float | None = None,
    ) -> Outcome:
        self.runs.append(model.doc_string)
        return Outcome({"y": np.asarray(self.answer(model.doc_string, feeds))})


def before_and_after() -> tuple[ModelProto, ModelProto]:
    pair = model("(float[N] x) => (float[N] y) { y = Neg(x) }"), ModelProto()
    pair[1].CopyFrom(pair[0])
    pair[0].doc_string, pair[1].doc_string = "before", "after"
    return pair


def beside_another(answer: Answer) -> Verification:
    """The verdict of one that finds both sides the same, and of another with this answer."""
    same = Pretend(lambda side, feeds: feeds["x"])
    return verify(*before_and_after(), executors=[same, Pretend(answer, "other")])


def refusing_after(reason: str) -> Answer:
    """The answer of one that cannot run the rewritten model."""
    return lambda side, feeds: feeds["x"] if side == "before" else raising(CannotRun(reason))


def raising(error: Exception) -> Any:
    raise error


SUM = "(float[N,K] x, float[N,K] y) => (float[N,K] z, float[N,K] w)"
