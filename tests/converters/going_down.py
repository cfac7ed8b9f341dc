"""onnx's backend test cases taken down to older opsets: how far each goes, and whether it gives the
same there, and once it was taken up again.

    PYTHONPATH=.:tests/verify python tests/converters/going_down.py [--op OP ...] [--target N ...]
        [--place PLACE ...] [--peer] [--jobs N] [--page]

A case goes down as it is, every input fed, and `fixed`: all inputs but the first are initializers,
as exporters write axes and sizes, at the top of the model or in the body of an If, a Loop or a
function. Prints each difference, and what stops how many cases. `--peer` lets onnx's own converter
take down those at the top, too; `--page` writes `docs/opset-down.md` and all cases to
`build/opset-down.csv`, from all places and with it.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np
from backend_cases import main_op, ops_of
from going_down_page import page, reason_of, rows_of, table
from onnx import ModelProto, numpy_helper, version_converter
from onnx_cases import Case, all_cases
from ort_process import difference
from proving import EVERYWHERE, placed

import passes
from passes.errors import PassesError
from passes.ir.model import Model
from passes.verify.executor import CannotRun, Executor, Feeds, ModelFailed, Outcome
from passes.verify.installed import OnnxRuntimeExecutor
from passes.verify.reference import ReferenceExecutor

TARGETS = (21, 17, 15, 13, 11, 9, 7)
#: Random results, a preview op, decoders that need another library.
NOT_COMPARED = (
    *("test_bernoulli", "test_training_dropout", "test_flexattention", "test_image_decoder"),
    "test_gradient",
)
#: Arithmetic may be regrouped: an op becomes the function body of its document.
RTOL, ATOL = 1e-3, 1e-5

#: A model of an older opset need not run in onnxruntime.
_NO_KERNEL = "Could not find an implementation"

REFERENCE = ReferenceExecutor()
ROOT = Path(__file__).parents[2]
PAGE, TABLE = ROOT / "docs" / "opset-down.md", ROOT / "build" / "opset-down.csv"


@dataclass(frozen=True)
class Gone:
    """What became of one case: `refused` says why it goes no further, `wrong` what differs;
    `peer` what became of it in onnx's converter: right, wrong, or why it does not convert it."""

    case: str
    form: str
    place: str
    target: int
    refused: str = ""
    wrong: str = ""
    executors: tuple[str, ...] = ()
    peer: str = ""

    @property
    def outcome(self) -> str:
        """What became of it, in a word."""
        return "wrong" if self.wrong else "refused" if self.refused else "same"

    def __str__(self) -> str:
        return f"{self.case} {self.form} in {self.place} to {self.target}: {self.wrong or 'same'}"


def go_down(
    cases: Iterable[Case],
    ort: Executor,
    targets: Sequence[int] = TARGETS,
    places: Sequence[str] = ("main",),
    *,
    peer: bool = False,
) -> Iterator[Gone]:
    """Take each case, in each form and place, to each target below its own opset."""
    for case in cases:
        own = Model(case.model).opset()
        for form, model, feeds in _forms(case):
            for place in _places(model, places):
                trial = Trial(case, form, place, *placed(model, place), feeds, ort)
                for target in targets:
                    if target < own:
                        yield trial.gone(target, own, peer=peer and place == "main")


def _places(model: ModelProto, places: Sequence[str]) -> list[str]:
    """Those that a model can stand in: a Loop collects tensors only."""
    collects = all(value.type.HasField("tensor_type") for value in model.graph.output)
    return [place for place in places if place != "loop" or collects]


@dataclass(frozen=True)
class Trial:
    """A case in one form and place; `more` are the inputs that the place adds."""

    case: Case
    form: str
    place: str
    model: ModelProto
    more: Feeds
    feeds: Feeds
    ort: Executor

    def gone(self, target: int, own: int, *, peer: bool) -> Gone:
        """What becomes of it at a target, and up again at its own opset."""
        gone = Gone(self.case.name, self.form, self.place, target)
        if peer:
            gone = replace(gone, peer=self._by_onnx(target))
        try:
            down = passes.convert(self.model, opset=target, verify=False).model
            again = passes.convert(down, opset=own, verify=False).model
        except passes.NotProduced as error:
            return replace(gone, refused=f"{error}")
        except PassesError as error:
            return replace(gone, wrong=f"{type(error).__name__}: {error}")
        words, ran = self._differs(down)
        more, _ = ("", ()) if words else self._differs(again)
        return replace(gone, wrong=words or (more and f"up again: {more}"), executors=ran)

    def _by_onnx(self, target: int) -> str:
        """What onnx's converter makes of it."""
        try:
            down = version_converter.convert_version(self.model, target)
        except (RuntimeError, version_converter.ConvertError) as error:  # its assertions, too
            return f"{error}".splitlines()[0]
        words, ran = self._differs(down)
        return "wrong" if words else "right" if ran else "not run"

    def _differs(self, after: ModelProto) -> tuple[str, tuple[str, ...]]:
        """What an outcome gives otherwise, and the executors that ran both."""
        ran = []
        for executor in (REFERENCE, self.ort):
            expected = self._before[executor.name]
            if isinstance(expected, str):
                continue  # it is no witness
            outcome = _run(executor, after, {**self.feeds, **self.more})
            if isinstance(outcome, str) and _NO_KERNEL in outcome:
                continue
            if isinstance(outcome, str):
                return f"{executor.name}: {outcome}", ()
            ran.append(executor.name)
            for output, value in expected.outputs.items():
                if output not in outcome.outputs:
                    return f"{executor.name}: {output} is gone", ()
                if words := difference(outcome.outputs[output], value, RTOL, ATOL):
                    return f"{executor.name}: {output}: {words}", ()
        return "", tuple(ran)

    @cached_property
    def _before(self) -> dict[str, Outcome | str]:
        return {one.name: self._as_it_is(one) for one in (REFERENCE, self.ort)}

    def _as_it_is(self, executor: Executor) -> Outcome | str:
        """What the original gives; why not, where it does not run or misses what the case says.

        Some kernels of onnxruntime do: DFT is off by 1e-4, Attention gives its lowest number for
        -inf.
        """
        outcome = _run(executor, self.model, {**self.feeds, **self.more})
        if isinstance(outcome, str):
            return outcome
        for output, value in zip(self.case.model.graph.output, self.case.expected, strict=False):
            given = outcome.outputs.get(output.name)
            collected = self.place == "loop" and given is not None
            for one in given if collected else [given]:
                if one is not None and (words := difference(one, value, RTOL, ATOL)):
                    return f"the case says otherwise of {output.name}: {words}"
        return outcome


def _forms(case: Case) -> Iterator[tuple[str, ModelProto, Feeds]]:
    feeds: Feeds = {
        name: np.asarray(value) if np.isscalar(value) else value
        for name, value in case.feeds.items()
    }
    yield "fed", case.model, feeds
    fixed = [name for name in list(feeds)[1:] if isinstance(feeds[name], np.ndarray)]
    if not fixed:
        return
    model = ModelProto()
    model.CopyFrom(case.model)
    for name in fixed:
        model.graph.initializer.append(numpy_helper.from_array(feeds[name], name))
    kept = [value for value in model.graph.input if value.name not in fixed]
    del model.graph.input[:]
    model.graph.input.extend(kept)
    yield "fixed", model, {name: feeds[name] for name in feeds if name not in fixed}


def _run(executor: Executor, model: ModelProto, feeds: Feeds) -> Outcome | str:
    try:
        return executor.run(model, feeds, timeout=60)
    except (CannotRun, ModelFailed) as error:
        return f"{error}"


def cases_of(ops: Sequence[str]) -> list[Case]:
    """The cases that hold one of these ops; all where none is named."""
    cases = [one for one in all_cases() if not one.name.startswith(NOT_COMPARED)]
    return [case for case in cases if not ops or not ops_of(case.model).isdisjoint(ops)]


def operator_of(case: Case, by_name: Mapping[str, Case]) -> str:
    """The op that a case is about; that of a function body is the function."""
    return main_op(by_name.get(case.name.partition("_expanded")[0], case))


def _part(given: argparse.Namespace, part: int) -> list[Gone]:
    """What one of the jobs finds; what is wrong is printed at once."""
    found = []
    with OnnxRuntimeExecutor() as ort:
        cases = cases_of(given.op)[part :: given.jobs]
        for gone in go_down(cases, ort, given.target, given.place, peer=given.peer):
            found.append(gone)
            if gone.wrong:
                print(gone, flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--op", nargs="*", default=[])
    parser.add_argument("--target", nargs="*", type=int, default=TARGETS)
    parser.add_argument("--place", nargs="*", choices=EVERYWHERE, default=["main"])
    parser.add_argument("--peer", action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--page", action="store_true")
    given = parser.parse_args()
    if given.page:
        given.place, given.peer = EVERYWHERE, True
    stopped: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    with ProcessPoolExecutor(given.jobs) as pool:
        parts = list(pool.map(partial(_part, given), range(given.jobs)))
    found = [gone for part in parts for gone in part]
    for gone in found:
        stopped[reason_of(gone.refused)[:140]] += bool(gone.refused)
        ran = " and ".join(gone.executors) or "run by no executor"
        counts[ran if gone.outcome == "same" else gone.outcome] += 1
    for sentence, count in stopped.most_common(40):
        print(f"{count:6} stopped by {sentence}")
    print(dict(counts))
    if given.page:
        by_name = {case.name: case for case in all_cases()}
        operators = {name: operator_of(case, by_name) for name, case in by_name.items()}
        rows = rows_of(found, operators)
        PAGE.write_text(page(found, rows, TARGETS, EVERYWHERE), encoding="utf-8")
        TABLE.parent.mkdir(exist_ok=True)
        TABLE.write_text(table(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
