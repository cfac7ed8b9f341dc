"""The subject of a verification, and what it requires."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from onnx import ModelProto

from passes.verify.executor import Executor, Feeds
from passes.verify.inputs.drawer import Case, Hint
from passes.verify.inputs.lessons import Lessons


@dataclass(frozen=True)
class Models:
    """The original and the rewritten model. `base_dir` holds the external data of both, or of
    `before` alone where `base_dir_after` is given."""

    before: ModelProto
    after: ModelProto
    base_dir: Path | None = None
    base_dir_after: Path | None = None


@dataclass(frozen=True)
class Inputs:
    """The inputs that are fed: `given` ones first, then `sought` ones, which were searched for.

    `hints` give more of the inputs than their types. `accept` selects the cases that count, where
    the rewrite may take something for granted. `most` is the largest number of cases. `lessons`
    learn of the original which inputs it takes, if not those that are made here.
    """

    seed: int = 0
    hints: Mapping[str, Hint] = field(default_factory=dict)
    given: Sequence[Feeds] = ()
    sought: Sequence[Case] = ()
    accept: Callable[[Case], bool] | None = None
    most: int | None = None
    lessons: Lessons | None = None


@dataclass(frozen=True)
class Limits:
    """Seconds: `budget` for all cases, `case_timeout` for one run; where no case was compared
    within the budget, `patience` is what one may take beyond it."""

    budget: float = 60.0
    patience: float = 0.0
    case_timeout: float = 10.0


@dataclass(frozen=True)
class Promise:
    """A user's promise about the inputs, as originals (`models`) that fail if it is broken.

    There the rewritten model may fail too, or report it in the output `check`, a bool; if the
    inputs are assumed to be valid (`silent`) it may answer anything. It may never fail elsewhere.
    """

    models: Sequence[ModelProto]
    check: str = ""
    silent: bool = False


@dataclass(frozen=True)
class Requirements:
    """What is required of a rewrite, and how it is verified.

    `executors`: the reference executor first, if it is among them. `exact`: the rewrite only moves
    data, so floats are bit-equal; otherwise they are equal on exact draws and near elsewhere, where
    roundings may carry `further` by a factor. `promise`: what a user promised. `lenient`: inputs on
    which the original fails do not count. `non_empty`: nor do differences where a Scan of the
    original, maybe an inner one, has nothing to scan. `tolerance` are an absolute and a relative
    error that are allowed everywhere, if the user sets them. `portable`: the user asks for no
    runtime in particular, so a kernel that fails where nothing is to be computed is a fault of its
    executor.
    """

    executors: Sequence[Executor]
    exact: bool = True
    further: float = 1.0
    promise: Promise | None = None
    lenient: bool = False
    non_empty: bool = False
    inputs: Inputs = Inputs()
    limits: Limits = Limits()
    tolerance: tuple[float, float] | None = None
    portable: bool = False
