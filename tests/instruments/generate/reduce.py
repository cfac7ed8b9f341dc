"""Making a model smaller while it still shows what it shows."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import onnx
from onnx import ModelProto
from onnx.checker import ValidationError
from onnx.shape_inference import InferenceError

from tests.instruments.generate.choices import Choices
from tests.instruments.generate.cutting import smaller
from tests.instruments.generate.model import Generated, generate

#: What the checker and its inference raise; theirs have no base but Exception.
_INVALID = (ValidationError, InferenceError, RuntimeError, ValueError)


def reduce(
    generated: Generated, shows: Callable[[Generated], bool], seconds: float = 60.0
) -> Generated:
    """The smallest model found: by parts cut out of it, and by smaller decisions before.

    `shows` tells whether a model still shows what `generated` shows.
    """
    now = time.monotonic()
    decided = _Decisions(generated, shows, now + seconds / 4).run()
    return _cut(decided, shows, now + seconds)


def _cut(generated: Generated, shows: Callable[[Generated], bool], deadline: float) -> Generated:
    """Cut out parts as long as that helps; what is cut and read becomes an input."""
    best, found = generated, True
    while found:
        found = False
        for model in smaller(best.model):
            if time.monotonic() > deadline:
                return best
            candidate = replace(best, model=model)
            if _is_better(model, best.model) and shows(candidate):
                best, found = candidate, True
                break
    return best


def _is_better(model: ModelProto, than: ModelProto) -> bool:
    if model.ByteSize() >= than.ByteSize():
        return False
    try:
        onnx.checker.check_model(model, full_check=True)
    except _INVALID:
        return False
    return True


class _Decisions:
    """Delta debugging over the list of decisions: runs of them left out, or made 0."""

    def __init__(
        self, generated: Generated, shows: Callable[[Generated], bool], deadline: float
    ) -> None:
        self._best = generated
        self._shows = shows
        self._deadline = deadline
        self._tried: set[tuple[int, ...]] = set()

    def run(self) -> Generated:
        before = None
        while before != self._best.drawn and time.monotonic() < self._deadline:
            before = self._best.drawn
            self._pass()
        return self._best

    def _pass(self) -> None:
        length = len(self._best.drawn) // 2
        while length:
            start = 0
            while start < len(self._best.drawn) and time.monotonic() < self._deadline:
                head, tail = self._best.drawn[:start], self._best.drawn[start + length :]
                if not self._try([*head, *tail]) and not self._try([*head, *[0] * length, *tail]):
                    start += length
            length //= 2

    def _try(self, drawn: list[int]) -> bool:
        """Keep a list of decisions if its model is smaller and shows the same."""
        if tuple(drawn) in self._tried:
            return False
        self._tried.add(tuple(drawn))
        made = generate(Choices(drawn), self._best.odd)
        if _size(made) >= _size(self._best) or not self._shows(made):
            return False
        self._best = made
        return True


def _size(generated: Generated) -> tuple[int, int, list[int]]:
    """Small models first; of those alike, the one with smaller decisions."""
    return generated.model.ByteSize(), len(generated.drawn), generated.drawn
