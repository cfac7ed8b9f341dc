"""Loops, Scans and Ifs on term numbers: conditions on floats divide a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import GraphProto, NodeProto

from passes.verify.executor import ModelFailed, Value
from passes.verify.prove.drawn.symbols import Terms
from passes.verify.reference.control_flow.holder import Holder
from passes.verify.reference.control_flow.loop import Loop
from passes.verify.reference.control_flow.scan import Scan9
from passes.verify.reference.control_flow.scan_8 import Scan8
from passes.verify.reference.control_flow.table import If, SequenceMap
from passes.verify.reference.evaluator import Evaluator
from passes.verify.reference.machine import Frame, Kernel


class TermEvaluator(Evaluator):
    """Evaluates a graph; what it gives are term numbers, also where it gives a constant."""

    terms: Terms

    def execute(self, frame: Frame) -> list[Value]:
        """Runs every node in order and returns the outputs of the graph.

        Raises:
            ModelFailed: a body of the new model gets or gives other sizes than it declares;
                onnxruntime makes room for no others.
        """
        results = [self.terms.lift(one) for one in super().execute(frame)]
        if self.is_main or self.terms.is_original or not isinstance(self.proto_, GraphProto):
            return results
        fed = [(name, frame.values.get(name)) for name in self.input_names_]
        fits = all(self.declares(n, one.shape) for n, one in fed if isinstance(one, np.ndarray))
        if not fits or not all(self.returns(*one) for one in enumerate(results)):
            raise ModelFailed(f"body {self.proto_.name!r} has other sizes than it declares")
        return results


def _on_terms(holder: type[Holder], whole: int) -> Callable[..., Kernel]:
    """The kernel of a node with bodies whose operand `whole` is needed as a number, if any is."""

    class OnTerms(holder):  # type: ignore[misc, valid-type]
        def __init__(self, terms: Terms, node: NodeProto, around: Evaluator) -> None:
            self.terms = terms
            super().__init__(node, around)

        def __call__(self, operands: list[Value], frame: Frame) -> list[Value]:
            given = [self.terms.lift(one) for one in operands]
            if 0 <= whole < len(given) and isinstance(first := given[whole], np.ndarray):
                given[whole] = self.terms.concrete(first)
            results: list[Any] = super().__call__(given, frame)
            return [self.terms.lift(one) for one in results]

        def flag(self, value: Value, what: str) -> bool:
            tensor = self.tensor(value, what)
            if tensor.size == 1 and tensor.dtype.names == ("bool",):
                tensor = self.terms.concrete(tensor)
            return bool(super().flag(tensor, what))

    return OnTerms


_scan_9, _scan_8 = _on_terms(Scan9, -1), _on_terms(Scan8, 0)


def _scan(terms: Terms, node: NodeProto, around: Evaluator) -> Kernel:
    return (_scan_8 if around.versions.get("", 9) < 9 else _scan_9)(terms, node, around)


CONTROL_FLOW: dict[str, Callable[[Terms, NodeProto, Evaluator], Kernel]] = {
    "If": _on_terms(If, -1),
    "Loop": _on_terms(Loop, 0),
    "Scan": _scan,
    "SequenceMap": _on_terms(SequenceMap, -1),
}
