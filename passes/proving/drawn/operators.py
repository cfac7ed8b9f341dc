"""The operators on arrays of term numbers."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import chain
from math import prod
from typing import Any

import numpy as np
from onnx import NodeProto

from passes.ir.operators import HOLDERS, called_key, op_of
from passes.ir.versions import SOFTMAX_OF_ONE_AXIS
from passes.operators.cells import INITIAL_C, INITIAL_H, LENGTHS, RECURRENT
from passes.operators.table import positions, traits_of, where
from passes.operators.traits import Values
from passes.proving.drawn.elements import elements, from_elements, product
from passes.proving.drawn.symbols import TermTable, name_of, numbers, over
from passes.proving.families import REDUCTIONS, cast_attributes, odd_flag
from passes.proving.nodes import meaning
from passes.proving.terms.arrays import NotProvable
from passes.verify.executor import Array, CannotRun, ModelFailed, Value
from passes.verify.reference.calls import schema_call
from passes.verify.reference.evaluator import Evaluator
from passes.verify.reference.kernels import RANDOM, draws_anew, has_kernel, kernel_for
from passes.verify.reference.machine import Frame, Kernel
from passes.verify.reference.ops.cells import each
from passes.verify.reference.registry import KernelCall
from passes.verify.reference.value_types import element_dtype

#: The operands that it moves; the kernel runs on term numbers.
_MOVES = positions("moves")
#: What hands values on as they are, sequences included.
_HANDS_ON = where(lambda row: row.wraps) | HOLDERS | {"Identity"}
#: What reads only the shape of its operand.
_OF_SHAPES = where(lambda row: row.values is Values.SIZES)
#: The operands that are numbers to it besides whole numbers: a size, a position, a trip count.
_SIZES = positions("deciding")
#: An Identity may hand on a sequence.
_ELEMENTWISE = where(lambda row: row.by_element) - {"Identity"} | {"PRelu"}
#: What makes a term of each row, and of each place in a row.
_REDUCES = where(lambda row: row.apart)
_BY_ROWS = where(lambda row: row.along_axis == SOFTMAX_OF_ONE_AXIS)
_VECTORS = positions("vectors")
#: Raised where what a kernel computes is no plain arithmetic; on numbers it did not fail.
_NO_ARITHMETIC = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    CannotRun,
    LookupError,
    ModelFailed,
    RuntimeError,
    TypeError,
    ValueError,
)
#: In place of an output that a kernel leaves out.
_LEFT_OUT = np.zeros(0)


def is_of_terms(op: str) -> bool:
    """Return whether an operator becomes terms; with another one that is tried, by its kernel where
    this is plain arithmetic, or by the function of its schema."""
    known = (_HANDS_ON, _MOVES, _OF_SHAPES, _ELEMENTWISE, _REDUCES, _BY_ROWS)
    return op == "MatMul" or any(op in some for some in known)


def kernels(terms: TermTable) -> Callable[[NodeProto, Evaluator], Kernel]:
    """A function that finds the kernel of a node, which works on term numbers."""

    def find(node: NodeProto, evaluator: Evaluator) -> Kernel:
        plain, op = kernel_for(node, evaluator), op_of(node)
        if evaluator.machine.library.find(node) is not None:
            return _handing_on(terms, plain, ())
        if op == "Scan" and evaluator.versions.get("", 9) < 9:
            return _handing_on(terms, plain, (0,))  # the lengths
        if (
            op == "SplitToSequence"
            and len(node.input) > 1
            and not _call(node, evaluator).get("keepdims")
        ):
            raise NotProvable("operator", "executors differ in parts without their axis")
        if op in _HANDS_ON:
            return _handing_on(terms, plain, _SIZES.get(op, ()))
        return Operator(terms, node, evaluator, plain)

    return find


def _call(node: NodeProto, evaluator: Evaluator) -> KernelCall:
    return KernelCall(node, evaluator.versions.get(called_key(node)[0], 1))


def _handing_on(terms: TermTable, plain: Kernel, known: Sequence[int]) -> Kernel:
    """The kernel of what hands values on, for which these operands have to be known."""

    def kernel(operands: list[Value], frame: Frame) -> Sequence[Any]:
        given = [
            terms.concrete(one) if place in known else terms.lift(one)
            for place, one in enumerate(operands)
        ]
        return list(map(terms.lift, plain(given, frame)))

    return kernel


@dataclass(frozen=True)
class _Run:
    """One run of a node: its operands as term numbers, the places of those that are free, what the
    kernel is fed in place of all of them, and its results for that."""

    arrays: Sequence[Array | None]
    free: set[int]
    fed: Sequence[Array | None]
    witness: Sequence[Array]
    frame: Frame


class Operator:
    """The kernel of a node on term numbers: what is constant is computed, the rest is terms.

    The shapes and dtypes of the results, and failures, are those of the reference executor's
    kernel on ones.
    """

    def __init__(
        self, terms: TermTable, node: NodeProto, evaluator: Evaluator, plain: Kernel
    ) -> None:
        self.terms, self.node, self.evaluator, self.plain = terms, node, evaluator, plain
        self.domain, _, _ = called_key(node)
        self.op, self.is_random = op_of(node), op_of(node) in RANDOM
        self.call = _call(node, evaluator)
        named = sorted(self.call.attributes.items())
        self.attributes: Hashable = tuple((name, repr(value)) for name, value in named)

    def __call__(self, operands: list[Value], frame: Frame) -> Sequence[Any]:
        """The results, arrays of term numbers.

        Raises:
            Ended: the operator fails, or needs elements that are unknown.
        """
        arrays = self.terms.lift(operands)
        if any(isinstance(one, list) for one in arrays):
            raise NotProvable("operator", f"{self.op} of a sequence is not modelled")
        fed: list[Any] = [None if one is None else self.terms.known(one) for one in arrays]
        open_ = {n for n, one in enumerate(arrays) if one is not None and fed[n] is None}
        if not open_ and not self.is_random:
            self._refuse_what_is_open(fed)
            return list(map(self.terms.lift, self._results(fed, frame)))
        free = {n for n, one in enumerate(arrays) if one is not None and self._is_free(n, one)}
        for place in open_:
            one = arrays[place]
            any_other = "1" if one.dtype.names == ("object",) else 1
            is_free = place in free
            fed[place] = self.terms.known(one, any_other) if is_free else self.terms.concrete(one)
        self._refuse_what_is_open(fed)
        witness = [self.terms.concrete(one) for one in self._results(list(fed), frame)]
        if self.op in _OF_SHAPES:
            return list(map(self.terms.lift, witness))
        made = self._made(_Run(arrays, free, fed, witness, frame))
        pairs = zip(made, witness, strict=False)
        return [self.terms.filled(ids.reshape(like.shape), like.dtype) for ids, like in pairs]

    def _results(self, operands: list[Any], frame: Frame) -> list[Any]:
        """The results of the plain kernel, as many as the node has; a function may have more."""
        made = self.plain(operands, frame)[: self.call.outputs]
        return [_LEFT_OUT if one is None else one for one in made]

    @cached_property
    def _meaning(self) -> tuple[int, tuple[object, ...]]:
        return meaning(self.node, self.evaluator.versions)

    def _is_free(self, place: int, array: Array) -> bool:
        """Return whether only the shape of an operand decides the shapes of the results."""
        if self.op in _MOVES:
            return place in _MOVES[self.op]
        if self.op in _ELEMENTWISE or self.op in _OF_SHAPES:
            return True
        is_whole = element_dtype(array.dtype).kind in "iub"
        return place not in _SIZES.get(self.op, ()) and not (place and is_whole)

    def _refuse_what_is_open(self, fed: Sequence[Array | None]) -> None:
        """Raises for operands on which executors answer differently: ModelFailed where most fail,
        else NotProvable."""
        if odd_flag(self.call.attributes):
            raise NotProvable("model", odd_flag(self.call.attributes))
        for place, one in enumerate(fed):
            if one is not None and one.ndim != 1 and place in _VECTORS.get(self.op, ()):
                raise NotProvable("shape", f"operand {place} of {self.op} is no vector")
        shapes = {one.shape for one in fed if one is not None}
        since = traits_of(self.node).since
        if self.call.version < since and len(shapes) > 1:
            raise ModelFailed(f"{self.op} does not broadcast before opset {since}")
        of_floats = bool(fed) and fed[0] is not None and fed[0].dtype.kind not in "iu"
        if self.op == "Mod" and of_floats and not self.call.get("fmod", 0):
            raise NotProvable("operator", "Mod of floats without fmod")
        if self.op in RECURRENT and fed[0] is not None:
            lengths = fed[LENGTHS] if len(fed) > LENGTHS else None
            self.evaluator.machine.idle_cell |= lengths is not None and not lengths.all()
            rows = 0 if self.call.get("layout", 0) else 1
            for state in fed[INITIAL_H : INITIAL_C + 1]:
                if state is not None and state.shape[rows] != fed[0].shape[rows]:
                    raise ModelFailed(f"{self.op}: the batch sizes of x and of a state differ")
        if self.op == "Slice" and len(fed) > 4 and fed[4] is not None and fed[0] is not None:
            starts, axes, steps = fed[1], fed[3], fed[4]
            sizes = fed[0].shape if axes is None else np.array(fed[0].shape)[axes]
            assert starts is not None
            if any(s < 0 and b < -n < 0 for n, b, s in zip(sizes, starts, steps, strict=False)):
                raise NotProvable("shape", "a reversed Slice starts before the first element")

    def _made(self, run: _Run) -> Sequence[Array]:
        """The term numbers of the results, in any shape of as many elements."""
        made: Sequence[Array] | None = None
        ids: list[Any] = [None if one is None else numbers(one) for one in run.arrays]
        dtype = run.witness[0].dtype
        computes = self.call.get("reduction", "none") != "none" or "value" in self.call.attributes
        if self.op in _MOVES and not computes:  # a Pad to opset 10 has its value as an attribute
            moved = [one if place in run.free else run.fed[place] for place, one in enumerate(ids)]
            return self._results(list(moved), run.frame)
        if self.op in _ELEMENTWISE:
            self._answers(run)
            return [self._elementwise(run, ids)]
        if self.op == "MatMul":
            left, right = (each(one, self.terms.all.__getitem__) for one in ids)
            terms = product(self.terms.algebra, left, right, name_of(dtype))
            return [each(terms, lambda term: term.uid)]
        if self.op in _REDUCES or self.op in _BY_ROWS:
            made = self._by_rows(ids[0], run.fed, name_of(dtype))
        if made is None and not self.is_random:
            made = self._by_arithmetic(run)
        if made is None and not self.is_random:
            made = self._by_function(run)
        return self._opaque(run) if made is None else made

    def _answers(self, run: _Run) -> None:
        """Note the elements with which an operator may fail, a divisor of 0 for example; the new
        model reads those of the original, or ones that are known."""
        like, given = run.witness[0], [one for one in run.arrays if one is not None]
        kinds = [element_dtype(one.dtype).kind for one in given]
        if self.op in ("Div", "Mod", "Pow") and all(kind in "iu" for kind in kinds):
            risky = given[1]
        elif self.op in ("Cast", "CastLike") and kinds[0] == "O" != like.dtype.kind:
            risky = given[0]
        else:
            return
        what = "Pow" if self.op == "Pow" else name_of(like.dtype)
        read = np.broadcast_to(numbers(risky), like.shape).reshape(-1).tolist()
        found = {(what, one) for one in read if not self.terms.is_constant(one)}
        if not self.terms.is_new:
            self.terms.answered |= found
        elif not found <= self.terms.answered:
            self.terms.concrete(risky)

    def _elementwise(self, run: _Run, ids: list[Array | None]) -> Array:
        """A term for each element; those of constants are computed."""
        (like,), (first, *_) = run.witness, run.arrays
        assert first is not None
        op, data, name = self.op, self.attributes, name_of(like.dtype)
        if op in ("Cast", "CastLike"):
            op, ids, data = "Cast", ids[:1], cast_attributes(name, self.call.attributes)
        if op == "Clip":
            named = [self.call.get("min"), self.call.get("max")]  # None from opset 11 on
            given = [None if one is None else np.asarray(one, like.dtype) for one in named]
            bounds = [None if one is None else numbers(one) for one in self.terms.lift(given)]
            ids = [*ids, *bounds][:3]
            data = tuple(one is not None for one in ids[1:])
        operands = [one for one in ids if one is not None]
        source = name_of(element_dtype(first.dtype))
        made = over(lambda *row: self.terms.make(op, data, row, name, source), operands)
        fixed = reduce(np.logical_and, (over(self.terms.is_constant, [one]) for one in operands))
        if fixed.any():
            made = np.where(fixed, numbers(self.terms.lift(like)), made)
        return np.broadcast_to(made, like.shape)

    def _by_rows(
        self, ids: Array, fed: Sequence[Array | None], name: str
    ) -> Sequence[Array] | None:
        """A term for each row that is reduced, or for each place of a row, as Softmax makes them;
        None if nothing is reduced."""
        axes: Sequence[int] = [self.call.get("axis")]
        if self.op in REDUCTIONS:
            axes = self.call.get("axes") if len(fed) < 2 or fed[1] is None else fed[1].tolist()
            if not axes and self.call.get("noop_with_empty_axes", 0):
                return None
            axes = axes or range(ids.ndim)
        elif self.op in _BY_ROWS and self.call.version < SOFTMAX_OF_ONE_AXIS:
            axes = range(axes[0] % max(ids.ndim, 1), ids.ndim)
        ends, lead = range(-len(axes), 0), ids.ndim - len(axes)
        moved = np.moveaxis(ids, axes, ends)
        rows = moved.reshape(prod(moved.shape[:lead]), prod(moved.shape[lead:])).tolist()
        if self.op in _REDUCES:
            data = self.call.get("select_last_index", 0)
            return [np.array([self.terms.make(self.op, data, row, name) for row in rows])]
        made = [
            [self.terms.make(self.op, place, row, name) for place in range(len(row))]
            for row in rows
        ]
        return [np.moveaxis(np.reshape(made, moved.shape), ends, axes)]

    def _by_arithmetic(self, run: _Run) -> Sequence[Array] | None:
        """What the kernel computes of terms, None if it does more than arithmetic."""
        if not has_kernel(self.node, self.call.version):
            return None
        given = [
            elements(self.terms, self.op, one)
            if one is not None and place in run.free
            else run.fed[place]
            for place, one in enumerate(run.arrays)
        ]
        try:
            pairs = zip(self._results(list(given), run.frame), run.witness, strict=True)
            made = [from_elements(self.terms, one, like.dtype) for one, like in pairs]
        except _NO_ARITHMETIC:
            return None
        fits = [one.shape for one in made] == [like.shape for like in run.witness]
        return made if fits else None

    def _by_function(self, run: _Run) -> Sequence[Array] | None:
        """What the function of the operator's schema computes, None if it has none."""
        if self.domain:
            return None
        try:
            kernel = schema_call(self.node, self.call.version, self.evaluator)
            return [numbers(self.terms.lift(one)) for one in kernel(list(run.arrays), run.frame)]
        except CannotRun:
            return None

    def _opaque(self, run: _Run) -> Sequence[Array]:
        """Terms of all operands."""
        data: list[object] = [self._meaning]
        if draws_anew(self.node):
            data.append(self.evaluator.machine.draws)
        data += [None if one is None else (one.dtype.names, one.shape) for one in run.arrays]
        given = [numbers(one).reshape(-1).tolist() for one in run.arrays if one is not None]
        whole = self.terms.make(self.op, tuple(data), list(chain(*given)), "")

        def part(place: int, index: int, like: Array) -> int:
            name = name_of(like.dtype)
            return self.terms.make("part", (place, index, like.shape), [whole], name)

        return [
            np.array([part(place, index, like) for index in range(like.size)])
            for place, like in enumerate(run.witness)
        ]
