"""The common part of If, Loop, Scan and SequenceMap: a node that holds bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
from onnx import AttributeProto, GraphProto, NodeProto, TypeProto

from passes.ir.places import Key
from passes.verify.executor import Array, Did, InputsRefused, ModelFailed, Value, kind_of
from passes.verify.reference.evaluator import Evaluator
from passes.verify.reference.failures import described
from passes.verify.reference.value_types import element_dtype, known_shape


class Holder:
    """A node that holds bodies, and the evaluator of the graph that contains it."""

    def __init__(self, node: NodeProto, around: Evaluator) -> None:
        self.node = node
        self.around = around
        self.machine = around.machine
        self.attributes = {attribute.name: attribute for attribute in node.attribute}

    @cached_property
    def key(self) -> Key | None:
        """The key of the node in its model; None in a function of a schema."""
        return self.around.key_of(self.node)

    def did(self, what: Did) -> None:
        """Note what the node did."""
        if self.key is not None:
            self.machine.reached.add((self.key, what))

    def decided(self, number: int) -> None:
        """Note a trip count, or a branch."""
        if self.key is not None:
            self.machine.decided.setdefault(self.key, []).append(number)

    def ran(self, trips: int) -> None:
        """Note the trip count of a loop."""
        self.decided(trips)
        self.did("0" if not trips else "1" if trips == 1 else "more")

    def graph(self, name: str) -> GraphProto:
        """The body in the attribute `name`; `ModelFailed` when there is none."""
        attribute = self.attributes.get(name)
        if attribute is None or attribute.type != AttributeProto.GRAPH:
            raise self.fails(f"its attribute {name} is missing")
        return attribute.g

    def body(self, name: str) -> Evaluator:
        """An evaluator of the body in the attribute `name`, to be made once."""
        made = type(self.around)(self.graph(name), self.machine, dict(self.around.versions))
        made.around, made.held = self.around, (self.node, name)
        return made

    def ints(self, name: str, count: int, default: int) -> list[int]:
        """A list attribute of `count` numbers; `ModelFailed` for another count."""
        attribute = self.attributes.get(name)
        if attribute is None or not attribute.ints:
            return [default] * count
        if len(attribute.ints) != count:
            raise self.fails(f"{name} has {len(attribute.ints)} entries, {count} are needed")
        return list(attribute.ints)

    def fails(self, sentence: str) -> ModelFailed:
        """Return the error for a fault of this node."""
        return ModelFailed(f"{described(self.node)}: {sentence}")

    def refuses(self, sentence: str) -> InputsRefused:
        """Return the error for sizes or lengths that this node does not accept."""
        return InputsRefused(f"{described(self.node)}: {sentence}")

    def tensor(self, value: Value, what: str) -> Array:
        """`value`, which must be a tensor."""
        if not isinstance(value, np.ndarray):
            raise self.fails(f"{what} must be a tensor, not {kind_of(value)}")
        return value

    def flag(self, value: Value, what: str) -> bool:
        """The truth of `value`, a bool tensor of one element."""
        tensor = self.tensor(value, what)
        dtype = element_dtype(tensor.dtype)
        if tensor.size != 1 or dtype != np.bool_:
            raise self.fails(f"{what} must be one bool, not {dtype} of shape {tensor.shape}")
        return bool(self.machine.elements(tensor).item())

    def kept(self, what: str, index: int, first: Array, then: Value) -> Array:
        """Return `then`, a tensor which must have the type and the shape of `first`; `what` and
        `index` name it in messages."""
        if not isinstance(then, np.ndarray):
            return self.tensor(then, f"{what} {index}")
        self.same_kind(what, index, first, then)
        if first.shape != then.shape:
            sentence = f"changes its shape from {first.shape} to {then.shape}"
            raise self.fails(f"{what} {index} {sentence}")
        return then

    def same_kind(self, what: str, index: int, first: Value, then: Value) -> None:
        """Checks that `then` has the type of `first`."""
        if isinstance(first, np.ndarray) and isinstance(then, np.ndarray):
            if first.dtype != then.dtype:
                sentence = f"changes its type from {first.dtype} to {then.dtype}"
                raise self.fails(f"{what} {index} {sentence}")
        elif isinstance(first, np.ndarray) != isinstance(then, np.ndarray) and not (
            first is None or then is None
        ):
            raise self.fails(f"{what} {index} changes from {kind_of(first)} to {kind_of(then)}")

    def idles(self, body: Evaluator, fed: Mapping[str, TypeProto]) -> None:
        """Note that a body runs no iteration, and whether what it would be fed, the types by the
        names of its inputs, has other sizes than it declares."""
        self.machine.idle = True
        shapes = {name: known_shape(kind) for name, kind in fed.items()}
        self.machine.misfed |= any(
            shape is not None and not body.declares(name, shape) for name, shape in shapes.items()
        )

    def resizes(self, body: Evaluator, name: str, before: Value, after: Value) -> None:
        """Note whether an iteration changes the size of the state `name` from one that the body
        rules out, or to one."""
        if isinstance(before, np.ndarray) and isinstance(after, np.ndarray):
            both = before.shape, after.shape
            declared = all(body.declares(name, shape) for shape in both)
            self.machine.undeclared |= before.shape != after.shape and not declared

    def split(self, results: Sequence[Value], carried: int) -> tuple[list[Value], list[Value]]:
        """The outputs of a body as carried and collected ones."""
        return list(results[:carried]), list(results[carried:])

    def collected_count(self, body: Evaluator, before: int) -> int:
        """Return the number of collected outputs that follow the first `before` outputs of a
        body."""
        collected = len(body.output_names_) - before
        if collected < 0:
            raise self.fails(
                f"its body has {len(body.output_names_)} outputs, at least {before} are needed"
            )
        return collected
