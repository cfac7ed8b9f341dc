"""The evaluator of one graph or function: onnx's, with frames, overrides and one way to fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from onnx import FunctionProto, GraphProto, NodeProto
from onnx.reference import ReferenceEvaluator

from passes.ir import scope
from passes.ir.operators import op_of
from passes.ir.scope import Key, Scope
from passes.verify.executor import CannotRun, Ended, ModelFailed, Trouble, Value
from passes.verify.reference.failures import described, failure
from passes.verify.reference.machine import Frame, Kernel, Machine, opset_versions
from passes.verify.reference.roundings import Roundings, computes_in, is_settled, rounds_as
from passes.verify.reference.value_types import known_shape
from passes.verify.reference.weights import initial_values

_MAIN: Key = (0,)


@dataclass(frozen=True)
class Step:
    """A node ready to run: `op` is the operator whose rounding it has, `within` the type it
    computes in if an attribute chooses one, `release` the values that nothing reads after it."""

    node: NodeProto
    name: str
    op: str
    within: np.dtype[Any] | None
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    kernel: Kernel
    release: tuple[str, ...]


class Evaluator(ReferenceEvaluator):
    """Evaluates one graph or function of a model.

    Bodies and functions get evaluators of this class too, made once each, by the nodes that
    hold or call them. `run` is what onnx's kernels expect; `call` is what ours use.
    """

    #: The evaluator of the graph around a body, and the node and attribute that hold it there.
    around: Evaluator | None = None
    held: tuple[NodeProto, str] | None = None
    #: Whether this is the main graph.
    is_main = False

    def __init__(
        self, proto: GraphProto | FunctionProto, machine: Machine, opsets: dict[str, int]
    ) -> None:
        self.machine = machine
        self.versions = opset_versions(opsets)
        # Bodies see functions through the machine, so onnx's own table stays empty.
        if isinstance(proto, FunctionProto):
            super().__init__(proto)
        else:
            super().__init__(proto, opsets=opsets)

    def _init(self) -> None:
        graph = self.proto_
        is_graph = isinstance(graph, GraphProto)
        self.captured: list[str] = scope.captures(graph) if is_graph else []
        self.rt_inits_: dict[str, Any] = (
            initial_values(graph, self.machine.base_dir) if is_graph else {}
        )
        self.rt_nodes_ = []
        kernels = [self.machine.kernel_for(node, self) for node in graph.node]
        self.steps = list(_steps(graph.node, kernels, self._kept(), self.versions.get("", 0)))

    def _kept(self) -> set[str]:
        return {*self.output_names_, *self.machine.watched, *self.captured, *self.rt_inits_}

    @property
    def has_linked_attribute(self) -> bool:
        """Never: functions are specialised by their attributes before they get here."""
        return False

    @cached_property
    def scope(self) -> Scope | None:
        """The scope of the graph in its model; None in a function."""
        if self.around is None:
            return Scope("", _MAIN, self.proto_) if self.is_main else None
        around, key = self.around.scope, self.key
        return around and Scope("", key, self.proto_, around) if key else None

    @cached_property
    def key(self) -> Key | None:
        """The key of the graph in its model; None in a function of a schema."""
        if self.around is None or self.held is None:
            if isinstance(self.proto_, FunctionProto):
                return self.machine.library.key_of(self.proto_)
            return _MAIN if self.is_main else None
        holder, name = self.held
        outside = self.around.key_of(holder)
        return outside and (*outside, name)

    def key_of(self, node: NodeProto) -> Key | None:
        """Return the key of a node of this very graph in its model."""
        if self.key is None:
            return None
        outputs = list(node.output)
        written = (list(node.output) == outputs for node in self.proto_.node)
        return (*self.key, next(position for position, same in enumerate(written) if same))

    @cached_property
    def fixes(self) -> dict[str, bool]:
        """The names that mean something here, and whether the model fixes their elements."""
        found = dict.fromkeys(self.rt_inits_, True)
        for step in self.steps:
            found.update(dict.fromkeys(step.outputs, op_of(step.node) == "Constant"))
        return found | dict.fromkeys(self.input_names_, False)  # perhaps with a default

    @cached_property
    def settled(self) -> frozenset[str]:
        """The names of values that follow from sizes and constants alone, here and around: other
        roundings move none of them, as of a number of windows, `Ceil(n / 2)`."""
        around = frozenset[str]() if self.around is None else self.around.settled
        found = {name for name, fixed in self.fixes.items() if fixed}
        found.update(around.intersection(self.captured))
        for step in self.steps:
            if is_settled(step.op, (not read or read in found for read in step.inputs)):
                found.update(filter(None, step.outputs))
        return frozenset(found)

    @cached_property
    def _declared(self) -> dict[str, list[int | None] | None]:
        return {value.name: known_shape(value.type) for value in self.proto_.input}

    def declares(self, name: str, shape: Sequence[int | None]) -> bool:
        """Return whether the input `name` of this body may have this shape."""
        return _may_be(self._declared.get(name), shape)

    def returns(self, position: int, value: Value) -> bool:
        """Return whether the output of this body at a position may have the shape of a value."""
        declared = known_shape(self.proto_.output[position].type)
        return not isinstance(value, np.ndarray) or _may_be(declared, value.shape)

    def formal_inputs(self, fed: int, owner: NodeProto) -> list[str]:
        """The inputs of this body that its node feeds.

        With IR 3 every initializer is an input too, so a body may list more inputs than its
        node feeds: those are constants. Raises `ModelFailed` when the counts do not fit.
        """
        names: list[str] = list(self.input_names_)
        if len(names) != fed:
            names = [name for name in names if name not in self.rt_inits_]
        if len(names) != fed:
            raise ModelFailed(
                f"{described(owner)}: its body takes {len(names)} inputs, the node feeds {fed}"
            )
        return names

    def bind(self, outer: Frame) -> dict[str, Value]:
        """Return the values visible to this body before its inputs are known: captured values and
        initializers.

        Computed once per run of the node that holds the body, not once per iteration.
        """
        base: dict[str, Value] = {"": None}
        for name in self.captured:
            if name not in outer.values:
                raise ModelFailed(f"a body reads {name!r}, which nothing around it defines")
            base[name] = outer.values[name]
        base.update(self.rt_inits_)
        return base

    def call(
        self,
        base: dict[str, Value],
        outer: Frame | None,
        names: Sequence[str] = (),
        values: Sequence[Value] = (),
    ) -> list[Value]:
        """Runs the graph: `base` from `bind`, then the inputs, which win over outer names."""
        own = dict(base)
        own.update(zip(names, values, strict=True))
        return self.execute(Frame(own, outer))

    def execute(self, frame: Frame) -> list[Value]:
        """Runs every node in order and returns the outputs of the graph."""
        machine, values = self.machine, frame.values
        watch, roundings, value_of = machine.watch, machine.roundings, values.__getitem__
        settled = frozenset[str]() if roundings is None else self.settled
        for step in self.steps:
            machine.tick()
            if step.name in watch:
                machine.note(step.name, frame)
            try:
                operands = list(map(value_of, step.inputs))
            except KeyError as error:
                raise ModelFailed(
                    f"{described(step.node)} reads {error.args[0]!r}, "
                    "which nothing defines before it"
                ) from error
            try:
                if roundings is None or not settled.isdisjoint(step.outputs):
                    results = step.kernel(operands, frame)
                else:
                    results = _perturbed(step, operands, frame, roundings)
            except Ended as error:
                error.trouble = self._trouble(step, operands, error.trouble)
                raise
            except RecursionError:
                raise
            except Exception as error:  # kernels may raise anything: `failure` finds the cause
                ended = failure(step.node, error)
                ended.trouble = self._trouble(step, operands, None)
                raise ended from error
            if len(results) < len(step.outputs):
                raise CannotRun(
                    f"{described(step.node)} gave {len(results)} of {len(step.outputs)} outputs"
                )
            for name, value in zip(step.outputs, results, strict=False):
                if name:
                    values[name] = plain(value)
            for name in step.release:
                values.pop(name, None)
        try:
            return list(map(value_of, self.output_names_))
        except KeyError as error:
            raise ModelFailed(f"nothing defines the output {error.args[0]!r}") from error

    def _trouble(self, step: Step, operands: Sequence[Value], inner: Trouble | None) -> Trouble:
        """Return the location at which a run ended, as seen from this graph."""
        here = next(position for position, candidate in enumerate(self.steps) if candidate is step)
        if inner is None:
            return Trouble(step.node, operands, (here,))
        return replace(inner, position=(here, *inner.position))

    # onnx's kernels call it with `attributes` and more, which frames hold here
    def run(
        self, output_names: list[str] | None, feed_inputs: dict[str, Any], *_: Any, **__: Any
    ) -> list[Any]:
        """Runs the graph on named inputs; `output_names` must be None (all of them)."""
        if output_names is not None:
            raise ValueError("asks for some outputs only: not implemented")
        return self.execute(Frame({"": None, **self.rt_inits_, **feed_inputs}, None))


def _may_be(declared: Sequence[int | None] | None, shape: Sequence[int | None]) -> bool:
    return declared is None or (
        len(declared) == len(shape)
        and all(dim in (None, size) for size, dim in zip(shape, declared, strict=True))
    )


def _perturbed(
    step: Step, operands: list[Value], frame: Frame, roundings: Roundings
) -> Sequence[Any]:
    """The outputs of a node whose arithmetic is perturbed."""
    moved = roundings.of_operands(step.op, operands, step.within)
    return roundings.of_results(step.op, operands, step.kernel(moved, frame), step.within)


def plain(value: Any) -> Value:
    """A kernel's result as this package keeps values: strings as objects, scalars as arrays."""
    if isinstance(value, np.ndarray):
        return value.astype(object) if value.dtype.kind in "US" else value
    if value is None or isinstance(value, list):
        return value
    return plain(np.asarray(value))


def _steps(
    nodes: Sequence[NodeProto],
    kernels: Sequence[Callable[..., Any]],
    kept: set[str],
    version: int,
) -> list[Step]:
    """The steps with their releases: each value is dropped after the last node that reads it."""
    done = set(kept) | {""}
    steps: list[Step] = []
    for node, kernel in zip(reversed(nodes), reversed(kernels), strict=True):
        touched = dict.fromkeys((*scope.free_names(node), *node.output))
        release = tuple(name for name in touched if name not in done)
        done.update(release)
        outputs = tuple(_without_trailing_blanks(node.output))
        reads = tuple(node.input)
        op, within = rounds_as(node), computes_in(node, version)
        steps.append(Step(node, node.name, op, within, reads, outputs, kernel, release))
    steps.reverse()
    return steps


def _without_trailing_blanks(names: Sequence[str]) -> list[str]:
    kept = list(names)
    while kept and not kept[-1]:
        kept.pop()
    return kept
