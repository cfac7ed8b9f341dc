"""Draws mutants of golden outcomes, and tells what becomes of each: whether it is proven to answer
as the outcome does, and whether execution finds it to."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from onnx import ModelProto, TensorProto, helper

from passes.check import load_checked
from passes.errors import BadModel
from passes.ir.model import Model
from passes.ir.places import walk_model
from passes.ir.protos import copied
from passes.proving.assumptions import CELLS_NOTHING, SCANS_NOTHING
from passes.proving.clues import written
from passes.proving.narrowing import prove
from passes.proving.pair import sizes_of
from passes.reports.proof import Proof, Scope
from passes.types import signature
from passes.types.inference import light_model
from passes.types.shape_inference import objection
from passes.verify.compare.verdicts import Failure
from passes.verify.executor import Executor, Feeds
from tests.instruments.definedness.calls import CALLS, opsets
from tests.instruments.definedness.change import Change, sites
from tests.instruments.definedness.failing import FAILING
from tests.instruments.definedness.kinds import KINDS
from tests.instruments.definedness.sources import Source, golden
from tests.verification import verify

_MOST_NODES = 300
_FROM_ONE_MODEL = 4
_DRAWS = 4
_SECONDS = 3.0  # a proof, and an execution of a pair that is proven


@dataclass(frozen=True)
class Mutant:
    """A model, its name, what was changed in it, and a model that answers as it did before."""

    name: str
    kind: str
    text: str
    equal: ModelProto
    model: ModelProto


@dataclass(frozen=True)
class Tried:
    """What became of a mutant; `failure` is how execution finds it to differ, None where it does
    not."""

    mutant: Mutant
    proof: Proof
    failure: Failure | None = None
    compared: int = 0

    @property
    def executed(self) -> str:
        """What execution finds, in words."""
        if self.failure is None:
            return "equal in execution" if self.compared else "not compared"
        if not self.proof.is_proven or self.is_false:
            return "differs"
        return "differs in onnxruntime alone" if self._is_of_runtime else "differs at other sizes"

    @property
    def is_false(self) -> bool:
        """Whether it is proven though it differs, and the verdict does not exclude that."""
        if self.failure is None or not self.proof.is_proven or self._is_of_runtime:
            return False
        return covers(self.proof.scope, self.mutant.equal, self.failure.case.feeds)

    @property
    def _is_of_runtime(self) -> bool:
        """Whether onnxruntime alone differs: it does not load the model, or it answers otherwise
        what the verdict names."""
        if self.failure is None or "runtime" not in self.failure.executor:
            return False
        named = {SCANS_NOTHING, CELLS_NOTHING} & {*self.proof.assumed}
        return bool(named) or "does not load" in self.failure.sentence

    def __str__(self) -> str:
        changed = f"{self.mutant.name}: {self.mutant.kind}: {self.mutant.text}"
        found = self.failure.sentence if self.failure else self.executed
        return f"{changed}: {found}; {self.proof.sentence()}"


def drawn(scope: Scope, model: ModelProto) -> Iterator[Feeds]:
    """Inputs that a proof at drawn sizes covers, where they are tensors of numbers."""
    draw = np.random.default_rng(0)
    kinds = {
        one.name: helper.tensor_dtype_to_np_dtype(one.type.tensor_type.elem_type)
        for one in signature.inputs(model.graph)
        if one.type.tensor_type.elem_type not in (TensorProto.UNDEFINED, TensorProto.STRING)
    }
    for one in scope.draws:
        fixed = dict(one.elements)
        if {name for name, _ in one.shapes} == {*kinds}:
            yield {
                name: np.array(fixed.get(name, 3 * draw.normal(size=shape)), kinds[name]).reshape(
                    shape
                )
                for name, shape in one.shapes
            }


def covers(scope: Scope, model: ModelProto, feeds: Feeds) -> bool:
    """Whether a proof tells something of these inputs of a model."""
    if scope.method == "reals":
        return False  # it bounds a difference
    if scope.stated:
        sizes = _sizes(model, feeds)
        return all(sizes.get(one.name, one.first) in one.values for one in scope.stated)
    if scope.method == "symbolic":
        return True
    for draw in scope.draws:
        shapes = {name: shape for name, shape in draw.shapes if name in feeds}
        fixed = dict(draw.elements)
        if all(np.shape(feeds[name]) == shape for name, shape in shapes.items()) and all(
            np.ravel(feeds[name]).tolist() == [*numbers]
            for name, numbers in fixed.items()
            if name in feeds
        ):
            return True
    return False


def _sizes(model: ModelProto, feeds: Feeds) -> dict[str, int]:
    """The sizes and whole numbers of inputs by the names that a verdict has for them."""
    found: dict[str, int] = {}
    for value in signature.inputs(model.graph):
        array = feeds[value.name]
        if not isinstance(array, np.ndarray):
            continue
        pairs = zip(sizes_of(value), array.shape, strict=True)
        found |= {written(one): size for one, size in pairs if not isinstance(one, int)}
        if array.size == 1 and array.dtype.kind == "i":
            found[written(("input", value.name))] = int(array.reshape(-1)[0])
    return found


def changes(model: ModelProto, only: str = "") -> list[Change]:
    """Every change that there is of a model, or those of a kind; each changes this model, and can
    be made once."""
    kinds = {
        kind: changed for kind, changed in (KINDS | FAILING | CALLS).items() if only in ("", kind)
    }
    found = [
        Change(kind, text, make)
        for site in (sites(model) if kinds else ())
        for kind, changed in kinds.items()
        for text, make in changed(site)
    ]
    if only in ("", "opset"):
        found += [Change("opset", text, make) for text, make in opsets(model)]
    return found


def mutants(
    seed: int,
    sources: Callable[[random.Random], Iterator[Source]] = golden,
    accept: Callable[[ModelProto], bool] = lambda outcome: True,
) -> Iterator[Mutant]:
    """Valid mutants of the outcomes that `accept` takes, without an end, as many of each kind as
    of another where models have both."""
    draw = random.Random(seed)
    for source in sources(draw):
        outcome = source.outcome
        if sum(1 for _ in walk_model(outcome)) > _MOST_NODES or not accept(outcome):
            continue
        kinds = sorted({change.kind for change in changes(copied(outcome))})
        for kind in draw.sample(kinds, min(_FROM_ONE_MODEL, len(kinds))):
            model = copied(outcome)
            change = draw.choice(changes(model, kind))
            change.make()
            if model != outcome and _is_valid(model):
                yield Mutant(source.name, kind, change.text, source.equal, model)


def tried(mutant: Mutant, executors: Sequence[Executor]) -> Tried:
    """Prove a mutant, for all sizes or at drawn ones, and execute it, on more inputs where it is
    proven."""
    sides = Model.load(mutant.equal), Model.load(mutant.model)
    proof = prove(*sides, _SECONDS).proof
    given = tuple(drawn(proof.scope, mutant.equal)) if proof.is_proven else ()
    runs = [(1, executors[:1], 1.0)]
    if proof.is_proven:
        runs = [(seed, executors[:1], _SECONDS) for seed in range(1, _DRAWS)]
        runs.append((_DRAWS, executors, _SECONDS))
    compared = 0
    for seed, chosen, budget in runs:
        found = verify(
            mutant.equal,
            mutant.model,
            executors=chosen,
            seed=seed,
            given=given,
            exact=False,
            lenient=True,
            budget=budget,
            case_timeout=1.0,
        )
        compared += found.compared
        given = ()
        if found.verdict == "mismatch":
            return Tried(mutant, proof, found.failure, compared)
    return Tried(mutant, proof, None, compared)


def _is_valid(model: ModelProto) -> bool:
    """Whether a mutant is a model that a runtime would load."""
    try:
        load_checked(model)
    except BadModel:
        return False
    return not objection(light_model(model), check_types=True)
