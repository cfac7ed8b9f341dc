"""Runs a model on term numbers in place of elements."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic

import numpy as np

from passes.ir.model import Model
from passes.proving.drawn.operators import kernels
from passes.proving.drawn.symbols import Terms
from passes.verify.executor import Array, Feeds, Value
from passes.verify.reference.control_flow.static_sizes import StaticSizes
from passes.verify.reference.evaluator import Evaluator
from passes.verify.reference.library import Library
from passes.verify.reference.machine import Frame, Machine


@dataclass
class TermMachine(Machine):
    """The state of a run on term numbers; a condition on floats divides it."""

    terms: Terms = field(default_factory=Terms)
    #: Whether a value had other sizes than a body declares: onnxruntime makes room for no others.
    breaks_declared: bool = False

    def elements(self, array: Array) -> Array:
        """The elements of an array, if they are constants.

        Raises:
            Fork, Wanted, NotShown: as `Terms.concrete`.
        """
        elements: Array = self.terms.concrete(array)
        return elements


class TermEvaluator(Evaluator):
    """Evaluates a graph; its outputs are term numbers, also those that are constants."""

    machine: TermMachine

    def execute(self, frame: Frame) -> list[Value]:
        """Run every node in order and return the outputs of the graph."""
        if self.around is None:
            return list(map(self.machine.terms.lift, super().execute(frame)))
        fits = all(
            self.declares(name, one.shape)
            for name in self.input_names_
            if isinstance(one := frame.values.get(name), np.ndarray) and one.ndim
        )
        outputs = list(map(self.machine.terms.lift, super().execute(frame)))
        self.machine.breaks_declared |= not (
            fits and all(map(self.returns, range(len(outputs)), outputs))
        )
        return outputs

    def answer(self, feeds: Feeds, end: float) -> list[Value]:
        """The outputs of the model for inputs of term numbers, computed before `end`.

        Raises:
            Ended: there are none.
        """
        self.machine.start(max(end - monotonic(), 0.0))
        self.machine.breaks_declared = False
        return self.execute(Frame({"": None, **self.rt_inits_, **feeds}, None))


def evaluator_of(model: Model, terms: Terms) -> TermEvaluator:
    """The evaluator of a model on these terms."""
    proto = model.proto
    library, sizes = Library(proto.functions), StaticSizes(proto)
    machine = TermMachine(library, sizes, kernels(terms), model.base_dir, terms=terms)
    imports = {entry.domain: entry.version for entry in proto.opset_import}
    evaluator = TermEvaluator(proto.graph, machine, imports)
    evaluator.is_main = True
    return evaluator
