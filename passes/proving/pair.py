"""Two models of which a proof is sought: what both may be fed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import ValueInfoProto

from passes.check import load_checked
from passes.errors import NOT_PRODUCED, BadModel, PassesError
from passes.ir.model import Model
from passes.ir.operators import op_of
from passes.ir.places import walk_model
from passes.ir.scope import defined, graphs_below, output_names, owners
from passes.proving.clues import Numbers, Unknown, sizes_of
from passes.proving.nodes import dtype_name
from passes.proving.promises import NO_PROMISES, Promises
from passes.proving.terms.algebra import Algebra
from passes.proving.terms.arrays import Array, Unranked, constant, parameter
from passes.proving.terms.constants import digest
from passes.proving.terms.term import Term
from passes.reports.proof import Proof, Verdict
from passes.types import signature
from passes.types.inference import light_model
from passes.types.shape_inference import objection
from passes.types.value_types import dims_of, elem_type_of, is_static


@dataclass(frozen=True)
class Pair:
    """Two valid models of one signature, what is promised of them, and the numbers that sizes and
    inputs of the original are `fixed` to."""

    before: Model
    after: Model
    promises: Promises = NO_PROMISES
    fixed: Numbers = field(default_factory=dict)

    @classmethod
    def of(cls, before: Model, after: Model, promises: Promises = NO_PROMISES) -> Pair:
        """The pair, if it is one of which a proof is sought.

        Raises:
            NoPair: it is none; why not is a verdict.
        """
        try:
            before, after = load_checked(before)[0], load_checked(after)[0]
            before, after = promises.applied(before, after)
        except BadModel as error:
            raise NoPair("not-provable", "model", str(error)) from error
        differs = signature.difference(before.proto, after.proto)
        values = [{n: digest(one) for n, one in defaults(side).items()} for side in (before, after)]
        if differs is None and values[0] != values[1]:
            differs = "the defaults of inputs differ"
        if differs is not None:
            raise NoPair("unproven", "signature", differs)
        wrong = objection(light_model(after.proto), check_types=True)
        for _, owner in owners(after.proto):
            for graph in graphs_below(owner):
                foreign = set(output_names(graph)) - defined(graph)
                if foreign:
                    wrong = wrong or f"a body returns {min(foreign)!r} of outside"
        for place in walk_model(after.proto):
            if {one.i for one in place.node.attribute if one.name == "keepdims"} - {0, 1}:
                wrong = wrong or "executors differ in what a keepdims besides 0 and 1 means"
        if wrong:
            raise NoPair("not-provable", "model", f"the new model is not valid: {wrong}")
        return cls(before, after, promises)

    @property
    def is_static(self) -> bool:
        """True if no size of an input is free."""
        inputs = signature.feedable(self.before.proto)
        return all(is_static(dims_of(value.type)) for value in inputs)

    def unknowns(self) -> list[Unknown]:
        """The sizes of inputs that are free, by name or by input and axis, and the inputs that are
        trip counts."""
        places = walk_model(self.before.proto)
        counts = {place.node.input[0] for place in places if op_of(place.node) == "Loop"}
        sizes, numbers = dict[Unknown, None](), list[Unknown]()
        for value in signature.feedable(self.before.proto):
            sizes |= dict.fromkeys(one for one in sizes_of(value) if not isinstance(one, int))
            if value.name in counts and dims_of(value.type) in ((), (1,)):
                numbers.append(("input", value.name))
        return [*sizes, *(one for one in numbers if ("dim", one[1]) not in sizes)]

    def parameters(self, algebra: Algebra) -> dict[str, Array]:
        """Any values of the inputs, by name."""
        inputs = signature.feedable(self.before.proto)
        return {value.name: _parameter(algebra, value, self.fixed) for value in inputs}

    def not_empty(self, algebra: Algebra) -> Iterator[Term]:
        """The conditions that no input has a size of 0."""
        for value in self.parameters(algebra).values():
            for size in value.shape:
                yield algebra.ge0(algebra.sub(size, algebra.one))


class NoPair(PassesError):
    """Two models of which no proof is sought; the `proof` tells why."""

    exit_code = NOT_PRODUCED

    def __init__(self, verdict: Verdict, code: str, detail: str) -> None:
        super().__init__(detail)
        self.proof = Proof(verdict, code, detail)


def defaults(model: Model) -> dict[str, np.ndarray[Any, Any]]:
    """The values of the inputs that a caller need not feed."""
    names = {value.name for value in signature.defaults(model.proto)}
    tensors = [one for one in model.proto.graph.initializer if one.name in names]
    return {one.name: model.read(one) for one in tensors}


def _parameter(algebra: Algebra, value: ValueInfoProto, fixed: Numbers) -> Array:
    """Any value of an input, or the number to which it is fixed."""
    dims = dims_of(value.type)
    if not value.type.HasField("tensor_type") or dims is None:
        kind = value.type.WhichOneof("value")
        return Unranked(algebra, algebra.terms.make("elem", ("input", value.name, kind)))
    dtype = dtype_name(elem_type_of(value.type))
    if ("input", value.name) in fixed:
        number = np.full([1] * len(dims), fixed["input", value.name], dtype)
        return constant(algebra, number)
    sizes = (one if isinstance(one, int) else fixed.get(one, one) for one in sizes_of(value))
    shape = tuple(
        algebra.whole(one) if isinstance(one, int) else algebra.lift(algebra.terms.make(*one))
        for one in sizes
    )
    return parameter(algebra, value.name, dtype, shape)
