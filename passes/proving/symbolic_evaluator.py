"""Evaluates a graph over terms: every node in order, its obligations whether or not it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from onnx import (
    FunctionProto,
    GraphProto,
    NodeProto,
    TensorProto,
    TypeProto,
)

from passes.ir.constants import constant_tensor
from passes.ir.model import Model
from passes.ir.operators import (
    Registry,
    called_key,
    function_key,
    op_of,
)
from passes.ir.places import MAIN, label
from passes.operators.table import where
from passes.proving.nodes import attributes_of, versions
from passes.proving.terms.algebra import INT64, Algebra
from passes.proving.terms.arrays import (
    Array,
    NotProvable,
    Stacked,
    Unranked,
    constant,
    parameter,
)
from passes.proving.terms.numbers import SMALL
from passes.proving.terms.term import Term, subterms
from passes.verify.reference.library import call_attributes, specialise

if TYPE_CHECKING:
    from passes.proving.operators.calls import Calls

Values = dict[str, Array]
#: Values of the new model that are tried in vain as those of the original of the same names.
_MOST_UNLIKE = 4
#: Codes of what no operator may stand for: it is no value that a node computes.
OF_MODELS = frozenset({"function", "model", "opset", "random", "sparse"})


@dataclass(frozen=True)
class Reason:
    """The reason for which a condition is required; `is_shown`: it has to be shown of the original,
    too, which does not fail without it but answers otherwise."""

    text: str
    is_shown: bool = False

    def __str__(self) -> str:
        return self.text


class Fails(Exception):
    """The model fails for certain on this path, for the reason given."""


class Fork(Exception):
    """The evaluation depends on whether this condition holds."""

    def __init__(self, condition: Term, *, certain: bool = False) -> None:
        super().__init__(str(condition))
        self.condition = condition
        self.certain = certain  # where it does not hold the original fails


@dataclass
class Application:
    """A node, its inputs and its attributes with the defaults of its version."""

    evaluator: SymbolicEvaluator
    node: NodeProto
    inputs: list[Array | None]
    opsets: Mapping[str, int]
    attributes: Mapping[str, Any]
    values: Values
    owner: GraphProto | FunctionProto

    @property
    def declared(self) -> dict[str, TypeProto]:
        """The types that the graph or function of the node declares for its values."""
        owner = self.owner
        outputs = owner.output if isinstance(owner, GraphProto) else ()
        return {value.name: value.type for value in (*owner.value_info, *outputs)}

    @property
    def algebra(self) -> Algebra:
        """The terms."""
        return self.evaluator.algebra

    @property
    def opset(self) -> int:
        """The opset of ONNX."""
        return self.opsets[""]

    @property
    def op(self) -> str:
        """The operator, with its domain unless that is ONNX's."""
        return op_of(self.node)

    def cannot(self, code: str, sentence: str) -> NotProvable:
        """An end of the proof at this node."""
        return self.evaluator.cannot(code, sentence)

    def array(self, position: int) -> Array:
        """An input that the operator needs."""
        found = self.optional(position)
        if found is None:
            raise NotProvable("shape", f"{self.op} has no input {position}")
        return found

    def optional(self, position: int) -> Array | None:
        """An input, None where it is left out."""
        return self.inputs[position] if position < len(self.inputs) else None

    def alike(self, *arrays: Array) -> None:
        """See that arrays have one element type. Raises NotProvable."""
        found = sorted({array.dtype for array in arrays})
        if len(found) > 1:
            raise self.cannot("type", f"operands are {' and '.join(found)}")

    def axis(self, axis: int, rank: int) -> int:
        """An axis that may count from the end."""
        if not -rank <= axis < rank:
            raise NotProvable("axis", f"there is no axis {axis} of {rank}")
        return axis % rank

    def value(self, name: str) -> Array:
        """A value that the node sees. Raises NotProvable where there is none."""
        if name not in self.values:
            raise self.cannot("model", f"it reads {name!r}, which does not exist")
        return self.values[name]


#: Operators that may read sequences.
_READ_SEQUENCES = where(lambda row: row.wraps == "sequence" and not row.makes) | {"Loop"}
Operator = Callable[[Application], "list[Array]"]
#: The entry of the operators that have none of their own.
OPAQUE = "opaque"
_TABLE: Registry[Operator] = Registry()
operator = _TABLE.enter


def model_of(op: str) -> Callable[..., object] | None:
    """What models an operator for all sizes; None if it is only taken to give equal outputs for
    equal inputs."""
    return constant if op == "Constant" else _TABLE.get(op)


@dataclass
class SymbolicEvaluator:
    """One model on one path; `original`: its obligations may be taken to hold. `non_empty`: the
    user promised that no Scan of it has nothing to scan."""

    model: Model
    algebra: Algebra
    calls: Calls
    original: bool
    assumed: set[str] = field(default_factory=set)
    path: list[str] = field(default_factory=list)
    is_vacuous: bool = False  # within a body that never runs
    non_empty: bool = False
    #: Assumptions on operators that may run over nothing, each with the size less 1; None: any.
    over_nothing: set[tuple[str, Term | None]] = field(default_factory=set)
    read: set[int] = field(default_factory=set)  # leaves on which compared whole numbers depend
    taken: list[Term] = field(default_factory=list)  # holds, because the original answers
    obstacles: list[NotProvable] = field(default_factory=list)  # at calls that are not evaluated
    _pending: list[list[tuple[Term, Reason]]] = field(default_factory=list)

    twins: Values = field(default_factory=dict)  # of the main graph of the original
    matches: Callable[[str, Array, Array], bool] = lambda *_: False
    unlike: int = 0  # values that are not shown equal to their twins

    def after(
        self, model: Model, matches: Callable[[str, Array, Array], bool]
    ) -> SymbolicEvaluator:
        """The evaluator of the new model, to which the calls and values of this one are known."""
        calls = self.calls
        return SymbolicEvaluator(
            model, self.algebra, calls, False, self.assumed, twins=self.twins, matches=matches
        )

    # obligations

    def require(self, condition: Term, why: str | Reason) -> None:
        """Require a condition without which the node fails.

        Raises:
            Fails: it does not.
            Fork: it may not, and the new model is studied.
            NotProvable: it is not shown, and has to be.
        """
        if condition is self.algebra.true:
            return
        reason = (
            why if isinstance(why, Reason) else Reason(f"{self.place()}: it fails unless {why}")
        )
        if self._pending:
            self._pending[-1].append((condition, reason))
            return
        if self.algebra.proves(condition):
            return
        if self.original and _is_of_call(condition):
            self._take(condition)
            return
        if condition is self.algebra.false and not reason.is_shown:
            raise Fails(reason.text)
        if condition.free:
            raise NotProvable("obligation", f"{reason}, which is not shown: {condition}", condition)
        choice = self.algebra.choice(condition)
        if choice is not None:
            raise Fork(choice)
        if reason.is_shown:
            raise NotProvable("overflow", f"{reason}, unless {condition}", condition)
        if not self.original and any(one.op == "answers" for one in subterms(condition)):
            raise NotProvable("operator", f"{reason}, which is not shown: it is not modelled")
        if self.original and condition.op in ("or", "forall"):  # which simplify no term
            self._take(condition)
            return
        raise Fork(condition, certain=self.original)

    def _take(self, condition: Term) -> None:
        """Assume a condition without which the original fails."""
        self.algebra.assume(condition)
        self.taken.append(condition)

    def whole_numbers(self, array: Array) -> Array:
        """Prove that no element of an int64 array overflows, so that its terms are its values."""
        if array.dtype != INT64:
            return array
        variables, value = array.generic()
        self.read |= value.free
        condition = self.algebra.fits(value)
        if condition is not None:
            why = Reason(f"{self.place()}: an int64 may overflow", is_shown=True)
            self._everywhere(array, variables, condition, why)
        return array

    def indices(self, array: Array) -> Array:
        """Sizes, axes or indices as int64. Raises NotProvable for what is no whole number."""
        if array.dtype in SMALL:
            return array.like(lambda at: self._wide(array.dtype, array.at(at)), INT64)
        return self.whole_numbers(array)

    def _wide(self, dtype: str, element: Term) -> Term:
        found = self.algebra.wide(dtype, element)
        if found is None:
            raise self.cannot("overflow", f"{element} may be no {dtype}", element)
        return found

    def promised(self, *sizes: Term) -> None:
        """Require that sizes are not 0, if the user promised it."""
        for size in sizes if self.non_empty else ():
            above = self.algebra.at_least(size, self.algebra.one)
            self.require(above, "the batch and the time are not 0, as promised")

    def for_each(self, array: Array, condition: Callable[[Term], Term], why: str) -> None:
        """Require a condition of every element."""
        variables, value = array.generic()
        self._everywhere(array, variables, condition(value), why)

    def _everywhere(
        self, array: Array, variables: Sequence[Term], condition: Term, why: str | Reason
    ) -> None:
        self.require(self.algebra.for_each(array.shape, variables, condition), why)
        if array.rank == 1 and not self.is_within:
            self.algebra.know_of_each(array.shape[0], variables[0], condition)

    @property
    def is_within(self) -> bool:
        """True in a body or branch, which may not run."""
        return bool(self._pending)

    @contextmanager
    def collecting(self) -> Iterator[list[tuple[Term, Reason]]]:
        """Collect what is required within, for whoever knows when it counts."""
        found: list[tuple[Term, Reason]] = []
        self._pending.append(found)
        try:
            yield found
        finally:
            self._pending.pop()

    @contextmanager
    def for_all(self, size: Term, index: Term) -> Iterator[None]:
        """Require for every index below a size what is required within."""
        with self.collecting() as required:
            yield
        for condition, why in required:
            self.require(self.algebra.for_each([size], [index], condition), why)

    def decide(self, condition: Term, why: str) -> bool:
        """Return whether a condition holds, on this path.

        Raises:
            Fork: it is both ways.
            NotProvable: it depends on an iteration, or an index.
        """
        if condition is self.algebra.true or self.algebra.proves(condition):
            return True
        if condition is self.algebra.false or self.algebra.proves(self.algebra.negation(condition)):
            return False
        atom = condition
        while atom.op in ("and", "or", "not", "ite"):
            atom = atom.args[0]
        if condition.free:
            raise self.cannot(
                "decision", f"an iteration or index decides whether {why}: {condition}", condition
            )
        raise Fork(self.algebra.choice(atom) or atom)

    def given(self, condition: Term, why: str) -> None:
        """See that a condition holds where the operator need not fail without it.

        Raises:
            NotProvable: it may not.
        """
        if not self.decide(condition, why):
            raise self.cannot("operator", f"it is not shown that {why}: {condition}")

    def runs_over(self, assumption: str, *sizes: Term) -> None:
        """Note what is assumed of an operator of which a size may be 0."""
        some = [self.algebra.sub(size, self.algebra.one) for size in sizes if not self.is_vacuous]
        empty = (one for one in some if not self.algebra.is_not_negative(one))
        self.over_nothing |= {(assumption, one) for one in empty}

    def same(self, why: str, size: Term, *others: Term) -> Term:
        """Require sizes to be equal; return the first."""
        for one in others:
            self.require(self.algebra.equal(size, one), why)
        return size

    def lengths(self, given: Array, least: Term, time: Term) -> Array:
        """The lengths of rows as int64, which have to be within the time."""
        lengths, why = self.indices(given), "a length is within the time"
        if lengths.dtype != INT64 or lengths.rank != 1:
            raise self.cannot("operator", f"lengths are {lengths.dtype} of rank {lengths.rank}")
        self.for_each(lengths, lambda n: self.algebra.within(n, least, time), why)
        return lengths

    def place(self) -> str:
        """The node that is evaluated."""
        return "".join((MAIN, *self.path))

    def cannot(self, code: str, sentence: str, *terms: Term) -> NotProvable:
        """An end of the proof at the node that is evaluated."""
        return NotProvable(code, f"{self.place()}: {sentence}", *terms)

    # graphs

    def constants(self, graph: GraphProto) -> Values:
        """The initializers of a graph."""
        if graph.sparse_initializer:
            raise self.cannot("sparse", "a sparse initializer is not modelled")
        return {one.name: self.constant(one) for one in graph.initializer}

    def constant(self, tensor: TensorProto) -> Array:
        """The array of a tensor, one for all that are equal."""
        return constant(self.algebra, self.model.read(tensor), self.calls.leaves)

    def run(
        self,
        owner: GraphProto | FunctionProto,
        values: Values,
        opsets: Mapping[str, int],
        part: str = "",
    ) -> Values:
        """The values after the nodes of a graph or function, which is this part of the path."""
        for number, node in enumerate(owner.node):
            self.path.append(f"{part}/{label(node, number)}")
            outputs = self._node(node, values, opsets, owner)
            for name, value in zip(node.output, outputs, strict=False):
                if name:
                    values[name] = self._cut(name, value)
            self.path.pop()
        return values

    def _cut(self, name: str, value: Array) -> Array:
        """The value of this name in the original in place of one that is shown to be equal: what
        both models make of it is one from there on."""
        twin = None if self.is_within else self.twins.get(name)
        if twin is None or twin is value or self.unlike >= _MOST_UNLIKE:
            return value
        if self.matches(name, twin, value):
            return twin
        self.unlike += 1
        return value

    def _node(
        self,
        node: NodeProto,
        values: Values,
        opsets: Mapping[str, int],
        owner: GraphProto | FunctionProto,
    ) -> list[Array]:
        for name in node.input:
            if name and name not in values:
                raise self.cannot("model", f"it reads {name!r}, which does not exist")
        inputs = [values[name] if name else None for name in node.input]
        if op_of(node) == "Constant" and len(node.attribute) != 1:
            raise self.cannot("model", "a Constant has no value, or several")
        tensor = constant_tensor(node)
        if tensor is not None:
            return [self.constant(tensor)]
        attributes = attributes_of(node, opsets[""])
        call = Application(self, node, inputs, opsets, attributes, values, owner)
        if self.is_within:
            return self._evaluated(call)
        key, read, known = self.calls.find(call)
        if known is not None:
            return known
        outputs = self._evaluated(call)
        if key is not None and self.original:
            outputs = list(map(self._symbol, node.output, outputs))
            self.calls.known[key] = read, outputs
        return outputs

    def _symbol(self, name: str, value: Array) -> Array:
        """Any floats of these sizes in place of a value that both models make alike."""
        if name not in self.calls.symbols or len(self.path) > 1:
            return value  # a branch or a function may have values of this name
        if isinstance(value, Unranked | Stacked) or "float" not in value.dtype:
            return value
        return parameter(self.algebra, name, value.dtype, value.shape)

    def _evaluated(self, call: Application) -> list[Array]:
        """The outputs of a node; where its operator cannot be evaluated on these inputs, they are
        functions of which nothing is known."""
        for function in self.model.proto.functions:
            if function_key(function) == called_key(call.node):
                return self._called(function, call.node, call.inputs)
        handler, depth, vacuous = _TABLE.get(call.op), len(self.path), self.is_vacuous
        if call.op == "Identity":
            return [call.array(0)]
        sequences = any(isinstance(one, Stacked) for one in call.inputs)
        if handler is None or (sequences and call.op not in _READ_SEQUENCES):
            return _TABLE[OPAQUE](call)
        try:
            return handler(call)
        except NotProvable as error:
            if error.code in OF_MODELS:
                raise
            path, self.path[depth:], self.is_vacuous = self.path[depth:], [], vacuous
            try:
                outputs = _TABLE[OPAQUE](call)
            except NotProvable:
                self.path += path
                raise error from None
            self.obstacles.append(error)
            return outputs

    def _called(
        self, function: FunctionProto, node: NodeProto, inputs: list[Array | None]
    ) -> list[Array]:
        given = dict(zip_longest(function.input, inputs))
        body = specialise(function, call_attributes(node, function))
        for one in body.node:
            for place, name in enumerate(one.input):
                one.input[place] = "" if given.get(name, name) is None else name
        values = {name: value for name, value in given.items() if value is not None}
        inner = self.run(body, values, versions(function.opset_import))
        return [inner[name] for name in function.output]


def _is_of_call(condition: Term) -> bool:
    """Return whether a condition is that a call answers, in every iteration if it is in a loop:
    to know it simplifies no term."""
    if condition.op == "forall":
        return _is_of_call(condition.args[1].args[0])
    return condition.op == "answers"
