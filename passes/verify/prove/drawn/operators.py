"""The operators on arrays of term numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import NodeProto

from passes.ir.operators import called_key, op_of
from passes.verify.executor import Array, CannotRun, ModelFailed, Value
from passes.verify.prove.drawn.bodies import CONTROL_FLOW
from passes.verify.prove.drawn.elements import elements, from_elements, product
from passes.verify.prove.drawn.symbols import Terms, Unmodelled, name_of, numbers, over
from passes.verify.reference.calls import schema_call
from passes.verify.reference.evaluator import Evaluator
from passes.verify.reference.kernels import RANDOM, draws_anew, has_kernel, kernel_for
from passes.verify.reference.machine import Frame, Kernel
from passes.verify.reference.registry import Call
from passes.verify.reference.value_types import element_dtype

#: What moves the elements of its first operand; the kernel runs on term numbers.
_MOVES_OPS = (
    "CenterCropPad Compress DepthToSpace Expand Flatten Gather GatherElements GatherND Reshape"
    " ReverseSequence Slice SpaceToDepth Split Squeeze Tile Transpose Trilu Unsqueeze"
)
#: The operands that hold what is moved; None for all.
_MOVES: dict[str, tuple[int, ...] | None] = {
    **dict.fromkeys(_MOVES_OPS.split(), (0,)),
    "Concat": None,
    "OneHot": (2,),
    "Pad": (0, 2),
    "Scatter": (0, 2),
    "ScatterElements": (0, 2),
    "ScatterND": (0, 2),
}
#: What hands values on, sequences included.
_HANDS_ON_OPS = (
    "ConcatFromSequence Identity Optional OptionalGetElement OptionalHasElement SequenceAt"
    " SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength SplitToSequence"
)
_HANDS_ON = frozenset(_HANDS_ON_OPS.split())
#: What reads only the shape of its first operand.
_OF_SHAPES = frozenset({"Shape", "Size", "EyeLike", "ConstantOfShape"})
#: What depends on the elements in its shape.
_OF_ELEMENTS = frozenset({"NonZero", "Unique", "NonMaxSuppression", "Range", "StringSplit"})
#: Operands besides whole numbers that decide the shape of a result.
_SIZES = {
    "BlackmanWindow": (0,),
    "ConstantOfShape": (0,),
    "HammingWindow": (0,),
    "HannWindow": (0,),
    "MelWeightMatrix": (0,),
    "Resize": (1, 2, 3),
    "Upsample": (1,),
}
_ELEMENTWISE_OPS = (
    "Abs Acos Acosh Add And Asin Asinh Atan Atanh BitShift BitwiseAnd BitwiseNot BitwiseOr"
    " BitwiseXor Cast CastLike Ceil Celu Clip Cos Cosh Div Elu Equal Erf Exp Floor Gelu Greater"
    " GreaterOrEqual HardSigmoid HardSwish IsInf IsNaN LeakyRelu Less LessOrEqual Log Max Mean Min"
    " Mish Mod Mul Neg Not Or PRelu Pow Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh"
    " Softplus Softsign Sqrt Sub Sum Swish Tan Tanh ThresholdedRelu Where Xor"
)
_ELEMENTWISE = frozenset(_ELEMENTWISE_OPS.split())
#: Elementwise operators whose attributes are part of their meaning.
_WITH_ATTRIBUTES_OPS = (
    "BitShift Celu Elu Gelu HardSigmoid IsInf LeakyRelu Mod Selu Shrink Swish ThresholdedRelu"
)
_WITH_ATTRIBUTES = frozenset(_WITH_ATTRIBUTES_OPS.split())
#: What is applied to its operands one after the other.
_IN_TURN = {"Max": "Max", "Min": "Min", "Sum": "Add"}
_REDUCED = "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare"
_REDUCES = frozenset(f"Reduce{name}" for name in _REDUCED.split())
_BY_ROWS = frozenset({"Softmax", "LogSoftmax", "Hardmax"})
#: Operands that are lists, by operator.
_VECTORS: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(_REDUCES | {"Expand", "Reshape", "Split", "Tile"}, (1,)),
    "ConstantOfShape": (0,),
    "Pad": (1, 3),
    "Slice": (1, 2, 3, 4),
}


def kernels(terms: Terms) -> Any:
    """A function that finds the kernel of a node, which works on term numbers."""

    def find(node: NodeProto, evaluator: Evaluator) -> Kernel:
        holder = CONTROL_FLOW.get(op_of(node))
        if holder is not None and evaluator.machine.library.find(node) is None:
            return holder(terms, node, evaluator)
        plain = kernel_for(node, evaluator)
        if evaluator.machine.library.find(node) is not None or op_of(node) in _HANDS_ON:
            return _handing_on(terms, node, plain)
        return Operator(terms, node, evaluator, plain)

    return find


def _handing_on(terms: Terms, node: NodeProto, plain: Kernel) -> Kernel:
    moved = op_of(node) in _HANDS_ON

    def kernel(operands: list[Value], frame: Frame) -> Sequence[Any]:
        given = [terms.lift(one) for one in operands]
        if moved and op_of(node) not in ("SequenceConstruct", "SequenceEmpty"):
            keep = 2 if op_of(node) == "SequenceInsert" else 1
            given[keep:] = [_known(terms, one) for one in given[keep:]]
        return [terms.lift(one) for one in plain(given, frame)]

    return kernel


def _known(terms: Terms, value: Value) -> Value:
    return terms.concrete(value) if isinstance(value, np.ndarray) else value


class Operator:
    """The kernel of a node on term numbers: what is constant is computed, the rest is terms.

    The shapes and dtypes of the results, and failures, are those of the reference executor's
    kernel on ones.
    """

    def __init__(self, terms: Terms, node: NodeProto, evaluator: Evaluator, plain: Kernel) -> None:
        self.terms, self.node, self.evaluator, self.plain = terms, node, evaluator, plain
        domain, _, _ = called_key(node)
        self.op = op_of(node)
        version = evaluator.versions.get(domain, 1)
        self.call = Call(node, version)
        self.has_kernel, self.is_standard = has_kernel(node, version), domain == ""
        attributes = {
            name: value
            for name, value in self.call.attributes.items()
            if not isinstance(value, bytes)
        }
        self.attributes = tuple(sorted((name, repr(value)) for name, value in attributes.items()))

    def __call__(self, operands: list[Value], frame: Frame) -> Sequence[Any]:
        """The results, arrays of term numbers.

        Raises:
            Ended: the operator fails, or needs elements that are unknown.
        """
        given = [self.terms.lift(one) for one in operands]
        if any(isinstance(one, list) for one in given):
            raise Unmodelled("operator", f"{self.op} of a sequence is not modelled")
        arrays = [one if isinstance(one, np.ndarray) else None for one in given]
        known = [None if one is None else self.terms.known(one) for one in arrays]
        constant = all(
            one is None or value is not None for one, value in zip(arrays, known, strict=True)
        )
        if constant and self.op not in RANDOM:
            self._refuse_what_is_open(known)
            return self._lifted(self.plain(list(known), frame))
        return self._results(arrays, frame)

    def _refuse_what_is_open(self, fed: Sequence[Array | None]) -> None:
        """Raises for operands on which executors answer differently: ModelFailed where most fail,
        else Unmodelled."""
        for place, one in enumerate(fed):
            if one is not None and not one.ndim and place in _VECTORS.get(self.op, ()):
                raise Unmodelled("shape", f"operand {place} of {self.op} is a scalar")
        if self.op in ("RNN", "GRU", "LSTM") and fed[0] is not None:
            rows = 0 if self.call.get("layout", 0) else 1
            for state in fed[5:7]:
                if state is not None and state.shape[rows] != fed[0].shape[rows]:
                    raise ModelFailed(f"{self.op}: the batch sizes of x and of a state differ")
        if self.op == "Slice" and len(fed) > 4 and fed[4] is not None and fed[0] is not None:
            starts, axes, steps = fed[1], fed[3], fed[4]
            sizes = fed[0].shape if axes is None else np.array(fed[0].shape)[axes]
            assert starts is not None
            if any(s < 0 and b < -n < 0 for n, b, s in zip(sizes, starts, steps, strict=False)):
                raise Unmodelled("shape", "a reversed Slice starts before the first element")

    def _lifted(self, results: Sequence[Any]) -> list[Value]:
        return [self.terms.lift(one) for one in results]

    def _results(self, arrays: list[Array | None], frame: Frame) -> Sequence[Any]:
        free = self._free(arrays)
        fed = [
            None if one is None else self._shown(one) if place in free else self.terms.concrete(one)
            for place, one in enumerate(arrays)
        ]
        self._refuse_what_is_open(fed)
        witness = [self._computed(one) for one in self.plain(list(fed), frame)]
        if self.op in _OF_SHAPES:
            return self._lifted(witness)
        if self.op in _MOVES and self.call.get("reduction", "none") == "none":
            moved = [
                numbers(one) if one is not None and place in free else fed[place]
                for place, one in enumerate(arrays)
            ]
            results = self.plain(list(moved), frame)
            pairs = zip(results, witness, strict=True)
            return [self.terms.filled(ids, like.dtype) for ids, like in pairs]
        given = [one for one in arrays if one is not None]
        like = witness[0]
        if self.op in _ELEMENTWISE:
            return [self.terms.filled(self._elementwise(arrays, like), like.dtype)]
        if self.op in _REDUCES or self.op in ("ArgMax", "ArgMin"):
            rows = self._reduced(given[0], fed, like)
            if rows is not None:
                return [self.terms.filled(rows, like.dtype)]
        if self.op == "MatMul":
            made = product(self.terms, numbers(given[0]), numbers(given[1]), like.dtype)
            return [self.terms.filled(made.reshape(like.shape), like.dtype)]
        if self.op in _BY_ROWS:
            return [self.terms.filled(self._by_rows(given[0], like), like.dtype)]
        return self._others(arrays, fed, witness, frame)

    def _shown(self, array: Array) -> Array:
        """An array with its constants, and ones in place of all else."""
        dtype = element_dtype(array.dtype)
        one = "1" if dtype.kind == "O" else np.ones((), dtype)[()]
        flat = numbers(array).reshape(-1).tolist()
        result = np.empty(len(flat), dtype)
        for place, number in enumerate(flat):
            result[place] = self.terms.value(number) if self.terms.is_constant(number) else one
        return result.reshape(array.shape)

    def _computed(self, result: Any) -> Array:
        """A result of the kernel on what is shown."""
        lifted = self.terms.lift(result)
        if not isinstance(lifted, np.ndarray):
            raise Unmodelled("operator", f"{self.op} with sequences is not modelled")
        return self.terms.concrete(lifted)

    def _free(self, arrays: list[Array | None]) -> set[int]:
        """The operands of which only the shape counts for the shapes of results."""
        places = set(range(len(arrays)))
        if self.op in _MOVES:
            held = _MOVES[self.op]
            return places if held is None else places & set(held)
        if self.op in _OF_ELEMENTS:
            return set()
        if self.op in _ELEMENTWISE or self.op in ("Shape", "Size", "EyeLike"):
            return places
        kinds = [None if one is None else element_dtype(one.dtype).kind for one in arrays]
        ints = {place for place, kind in enumerate(kinds) if place and kind in (*"iub", None)}
        return places - ints - set(_SIZES.get(self.op, ()))

    def _elementwise(self, arrays: list[Array | None], like: Array) -> Array:
        """A term for each element; those of constants are computed."""
        read = arrays[:1] if self.op == "CastLike" else arrays
        given = [numbers(one) for one in read if one is not None]
        made = np.broadcast_to(self._applied(arrays, given, like.dtype), like.shape)
        spread = [np.vectorize(self.terms.is_constant, otypes=[bool])(one) for one in given]
        fixed = np.broadcast_to(np.logical_and.reduce(np.broadcast_arrays(*spread)), like.shape)
        if fixed.any():
            lifted = self.terms.lift(like)
            assert isinstance(lifted, np.ndarray)
            made = np.where(fixed, numbers(lifted), made)
        return made

    def _applied(
        self, arrays: list[Array | None], given: list[Array], dtype: np.dtype[Any]
    ) -> Array:
        make, op = self.terms.make, self.op
        if op in ("Cast", "CastLike"):
            saturate = dict(self.attributes).get("saturate") if "float8" in name_of(dtype) else None
            return over(lambda x: make("Cast", saturate, [x], name_of(dtype)), given)
        if op == "Clip":
            lower, upper = self._bounds(arrays, dtype)
            result = given[0]
            for bound, nearer in ((lower, "Max"), (upper, "Min")):
                if bound is not None:
                    result = self._in_turn(nearer, [result, numbers(bound)], dtype)
            return result
        if op in _IN_TURN and len(given) > 1:
            return self._in_turn(_IN_TURN[op], given, dtype)
        data = self.attributes if op in _WITH_ATTRIBUTES else ()
        return over(lambda *row: make(op, data, row, name_of(dtype)), given)

    def _in_turn(self, op: str, given: Sequence[Array], dtype: np.dtype[Any]) -> Array:
        result, *others = given
        for other in others:
            result = over(
                lambda x, y: self.terms.make(op, (), [x, y], name_of(dtype)), [result, other]
            )
        return result

    def _bounds(self, arrays: list[Array | None], dtype: np.dtype[Any]) -> list[Array | None]:
        """The bounds of Clip, attributes below opset 11."""
        if self.call.version >= 11:
            return [*arrays[1:], None, None][:2]
        named = [self.call.get("min"), self.call.get("max")]
        lifted = [None if one is None else self.terms.lift(np.asarray(one, dtype)) for one in named]
        return [one for one in lifted if not isinstance(one, list)]

    def _reduced(self, array: Array, fed: Sequence[Array | None], like: Array) -> Array | None:
        """A term for each row that is reduced; None where nothing is."""
        axes = self.call.get("axes") if len(fed) < 2 or fed[1] is None else fed[1].tolist()
        data: object = ()
        if self.op in ("ArgMax", "ArgMin"):
            axes, data = [self.call.get("axis", 0)], self.call.get("select_last_index", 0)
        if not axes:
            if self.call.get("noop_with_empty_axes", 0):
                return None
            axes = list(range(array.ndim))
        if any(not isinstance(axis, int) for axis in axes):
            return None
        moved = np.moveaxis(numbers(array), axes, range(-len(axes), 0))
        lead = moved.shape[: moved.ndim - len(axes)]
        count = int(np.prod(lead))
        made = [
            self.terms.make(self.op, data, row, name_of(like.dtype))
            for row in moved.reshape(count, int(np.prod(moved.shape[len(lead) :]))).tolist()
        ]
        return np.array(made, np.int64).reshape(like.shape)

    def _by_rows(self, array: Array, like: Array) -> Array:
        """A term for each place of a row: Softmax and its kin."""
        ids = numbers(array)
        axis = self.call.get("axis", 1 if self.call.version < 13 else -1) % max(array.ndim, 1)
        if self.call.version < 13:
            ids = ids.reshape(int(np.prod(array.shape[:axis])), int(np.prod(array.shape[axis:])))
            axis = 1
        rows = np.moveaxis(ids, axis, -1)
        flat = rows.reshape(-1, rows.shape[-1]).tolist() if rows.size else []
        made = [
            [self.terms.make(self.op, place, row, name_of(like.dtype)) for place in range(len(row))]
            for row in flat
        ]
        result = np.array(made, np.int64).reshape(rows.shape)
        return np.moveaxis(result, -1, axis).reshape(like.shape)

    def _others(
        self,
        arrays: list[Array | None],
        fed: Sequence[Array | None],
        witness: Sequence[Array],
        frame: Frame,
    ) -> Sequence[Any]:
        """By the arithmetic of the kernel, by the function of the schema, or as a whole."""
        free = self._free(arrays)
        if self.has_kernel and self.op not in RANDOM:
            given = [
                elements(self.terms, self.op, one) if one is not None and place in free else value
                for place, (one, value) in enumerate(zip(arrays, fed, strict=True))
            ]
            try:
                results = self.plain(list(given), frame)
                made = [
                    from_elements(self.terms, one, like.dtype)
                    for one, like in zip(results, witness, strict=True)
                ]
                if all(one.shape == like.shape for one, like in zip(made, witness, strict=True)):
                    return [
                        self.terms.filled(one, like.dtype)
                        for one, like in zip(made, witness, strict=True)
                    ]
            except (TypeError, AttributeError, ValueError, NotImplementedError, CannotRun):
                pass  # what it computes is no plain arithmetic
        if self.is_standard and self.op not in RANDOM:
            try:
                return self._lifted(
                    schema_call(self.node, self.call.version, self.evaluator)(list(arrays), frame)
                )
            except CannotRun:
                pass  # its schema has no function
        return self._opaque(arrays, witness)

    def _opaque(self, arrays: list[Array | None], witness: Sequence[Array]) -> list[Array]:
        """Terms of all operands."""
        if self.op in _OF_ELEMENTS:
            raise Unmodelled("operator", f"sizes of outputs of {self.op} depend on floats")
        machine = self.evaluator.machine
        data: list[object] = [self.attributes, self.call.version if ":" in self.op else 0]
        if draws_anew(self.node):
            data.append(machine.draws)
        args: list[int] = []
        for one in arrays:
            data.append(None if one is None else (one.dtype.names, one.shape))
            args += [] if one is None else numbers(one).reshape(-1).tolist()
        whole = self.terms.make(self.op, tuple(data), args, "")
        results = []
        for place, like in enumerate(witness):
            made = [
                self.terms.make("part", (place, index, like.shape), [whole], name_of(like.dtype))
                for index in range(like.size)
            ]
            results.append(
                self.terms.filled(np.array(made, np.int64).reshape(like.shape), like.dtype)
            )
        return results
