"""What a term is worth on given inputs: every operator's term is held against the reference
executor, bit for bit, on drawn inputs at drawn sizes.

The evaluator forks on conditions; here each is decided by what it is worth on the inputs, so that
one path is followed. Where the original fails by an obligation, the executor must fail, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, helper
from onnx.reference import ReferenceEvaluator

from passes.ir.model import Model
from passes.proving.loops.relations import Comparison, Relations
from passes.proving.operators.calls import Calls
from passes.proving.pair import Pair
from passes.proving.prover import outputs_of
from passes.proving.symbolic_evaluator import Fails, Fork, SymbolicEvaluator
from passes.proving.terms.algebra import INT64, Algebra, Contradiction
from passes.proving.terms.arrays import Array, NotProvable
from passes.proving.terms.term import Term
from passes.types import signature
from passes.verify.executor import CannotRun, ModelFailed
from passes.verify.reference import ReferenceExecutor

Feeds = Mapping[str, Any]


def disagreement(
    model: ModelProto,
    feeds: Feeds,
    other: ModelProto | None = None,
    written_out: bool = True,
) -> str:
    """How the terms of a model differ from what the executor gives; empty where they agree.

    With another model that answers the same, its terms are compared, too, and both read each
    other's loops wherever they can.

    Raises:
        NotProvable: the model is not modelled.
    """
    expected: list[Any] | None = None
    try:
        outcome = ReferenceExecutor().run(model, feeds, timeout=5)
        expected = list(outcome.outputs.values())
        if outcome.guessed_shapes:
            return ""
    except CannotRun:
        return ""
    except ModelFailed:
        expected = None
    algebra = Algebra(written_out=written_out)
    models = [model] if other is None else [model, other]
    worth = Worth(model, feeds, algebra)
    decisions: list[tuple[Term, bool]] = []
    for _ in range(60):
        try:
            algebra.start(decisions)
            evaluators = [
                SymbolicEvaluator(Model.load(one), algebra, Calls(), True) for one in models
            ]
            sides = [outputs_of(one, Pair(one.model, one.model)) for one in evaluators]
        except Contradiction:
            return "" if expected is None else "what holds on these inputs is a contradiction"
        except Fails as error:
            return "" if expected is None else f"it answers, the terms fail: {error}"
        except Fork as fork:
            holds = bool(worth.of(fork.condition))
            if fork.certain and not holds:
                return "" if expected is None else f"it answers without {fork.condition}"
            decisions.append((fork.condition, holds))
            continue
        if not all(worth.of(condition) for one in evaluators for condition in one.taken):
            return "" if expected is None else "it answers, the terms need what does not hold"
        if expected is None:
            return "it fails, the terms answer"
        assumed = any(one.assumed for one in evaluators)
        for name, value, *arrays in zip(model.graph.output, expected, *sides, strict=True):
            for got in map(worth.array, arrays if other is None else _related(*arrays)):
                if got.shape != value.shape:
                    return f"{name.name}: {value.shape}, the terms give {got.shape}"
                close = assumed and np.allclose(got, value, 1e-4, 1e-4, equal_nan=True)
                if not close and got.tobytes() != value.tobytes():
                    return f"{name.name}: {value.tolist()}, the terms give {got.tolist()}"
        return ""
    return "too many forks"


def _related(left: Array, right: Array) -> list[Array]:
    """Two arrays whose elements read the same recurrences where that is shown."""
    algebra = left.algebra
    variables = [algebra.variable(size) for size in left.shape]
    at = [algebra.lift(one) for one in variables]
    sizes = zip(left.shape, right.shape, strict=True)
    terms = [(left.at(at), right.at(at)), *sizes]
    related = [Relations(Comparison(algebra), pair).normal(*pair) for pair in terms]
    made = []
    for side in range(2):
        element, *shape = (pair[side] for pair in related)

        def get(indices: tuple[Term, ...], element: Term = element) -> Term:
            return algebra.subst(element, dict(zip(variables, indices, strict=True)))

        made.append(Array(algebra, left.dtype, tuple(shape), get))
    return made


class Worth:
    """The values of terms on the inputs of a model."""

    def __init__(self, model: ModelProto, feeds: Feeds, algebra: Algebra) -> None:
        self._constants = algebra.constants
        self._made_before: dict[Any, Any] = {}
        self._sizes: dict[Any, int] = {}
        self._elements: dict[Any, Any] = {}
        for value in signature.inputs(model.graph):
            array = np.asarray(feeds[value.name])
            dims = value.type.tensor_type.shape.dim
            for axis, (dim, size) in enumerate(zip(dims, array.shape, strict=True)):
                self._sizes[dim.dim_param or (value.name, axis)] = size
            ones = tuple(a for a, dim in enumerate(dims) if dim.dim_value == 1)
            self._elements["input", value.name] = array.squeeze(ones)

    def array(self, array: Array) -> np.ndarray[Any, Any]:
        """A whole array."""
        algebra = array.algebra
        shape = tuple(int(self.of(size)) for size in array.shape)
        made = np.zeros(shape, np.dtype(array.dtype))
        variables = [algebra.variable(size) for size in array.shape]
        if not made.size:
            return made
        term = array.at([algebra.lift(one) for one in variables])
        for at in np.ndindex(*shape):
            bound = {v.uid: index for v, index in zip(variables, at, strict=True)}
            item = self.of(term, bound)
            made[at] = (item + (1 << 63)) % (1 << 64) - (1 << 63) if array.dtype == INT64 else item
        return made

    def of(self, term: Term, bound: Mapping[int, Any] | None = None) -> Any:
        """The value of a term, where variables have these."""
        bound = bound or {}
        memo: dict[int, Any] = {}

        def value(one: Term) -> Any:
            if one.uid not in memo:
                memo[one.uid] = self._made(one, bound, value)
            return memo[one.uid]

        return value(term)

    def _made(self, term: Term, bound: Mapping[int, Any], value: Callable[[Term], Any]) -> Any:
        args, data = term.args, term.data
        match term.op:
            case "poly":
                return sum(f * value(m) for f, m in zip(data, args, strict=True))  # type: ignore
            case "mono":
                return np.prod([int(value(one)) for one in args], dtype=object)
            case "true" | "false":
                return term.op == "true"
            case "not":
                return not value(args[0])
            case "and":
                return all(map(value, args))
            case "or":
                return any(map(value, args))
            case "ge0":
                return value(args[0]) >= 0
            case "eq0":
                return value(args[0]) == 0
            case "ite":
                return value(args[1]) if value(args[0]) else value(args[2])
            case "idiv":
                return value(args[0]) // value(args[1])
            case "min" | "max":
                return (min if term.op == "min" else max)(map(value, args))
            case "dim":
                return self._sizes[data]
            case "var" | "bv" | "bp" | "ph":
                return bound[term.uid]
            case "app":
                return value(args[0])(*(int(value(one)) for one in args[1:]))
            case "const":
                dtype, bits, _ = data  # type: ignore[misc]
                return np.frombuffer(bytes.fromhex(bits), np.dtype(dtype))[0]
            case "elem":
                return self._element(data[:2], [int(value(one)) for one in args])  # type: ignore
            case "ew":
                found = tuple(map(value, args))
                if data[0] == "Add" and len(found) > 2:  # type: ignore[index]
                    return np.add.reduce(np.array(found))
                key = (data, *(np.asarray(one).dtype.str + repr(one) for one in found))
                if key not in self._made_before:
                    self._made_before[key] = _by_element(data, found)
                return self._made_before[key]
            case "forall":
                size, function = args
                return all(self._applied(function, bound, at) for at in range(value(size)))
            case "red" | "row":
                row = args[0] if term.op == "row" else term
                *sizes, function = row.args
                shape = tuple(int(value(size)) for size in sizes)
                items = [self._applied(function, bound, *at) for at in np.ndindex(*shape)]
                if row.data[0] == "TopK":  # type: ignore[index]
                    _, largest, dtype = row.data  # type: ignore[misc]
                    count = np.array([value(args[2])], np.int64)
                    array = np.array(items, dtype).reshape(shape or (1,))
                    ranked = _outputs(
                        "", "TopK", 21, [("largest", int(largest))], [array, count], 2
                    )
                    assert ranked is not None
                    return ranked[term.data[0]][int(value(args[1]))]  # type: ignore[index]
                found = _by_row(row.data, shape, items)
                return found[int(value(args[1]))] if term.op == "row" else found
            case "output" | "answers" | "size":
                return self._called(term, bound, value)
            case "pair":
                return tuple(map(value, args))
            case "st":
                recurrence, iteration, *indices = args
                at = tuple(int(value(one)) for one in indices)
                return self._state(recurrence, int(value(iteration)), bound)(*at)
            case "trips":
                limit = value(args[0]) if args[0].op == "poly" else 1000
                ends = (n for n in range(limit) if not self._applied(args[1], bound, n))
                return min(next(ends, limit) + 1, limit)
        raise AssertionError(f"{term.op} has no value")

    def _element(self, leaf: Any, at: list[int]) -> Any:
        """An element of an input or constant; what lies outside is never read, and 0."""
        array = self._constants[leaf[1]] if leaf[0] == "constant" else self._elements[leaf]
        while array.ndim > len(at):  # an axis of a symbolic size that is 1 on this path
            array = array.squeeze(array.shape.index(1))
        inside = all(0 <= index < size for index, size in zip(at, array.shape, strict=True))
        return array[tuple(at)] if inside else array.dtype.type(0)

    def _applied(self, function: Term, bound: Mapping[int, Any], *values: Any) -> Any:
        names = function.data
        inner = {**bound, **{n.uid: v for n, v in zip(names, values, strict=True)}}  # type: ignore
        return self.of(function.args[0], inner)

    def _called(self, term: Term, bound: Mapping[int, Any], value: Callable[[Term], Any]) -> Any:
        """An output of an operator as a whole, one of its sizes, or whether it answers."""
        if term.data == ("", "Loop", "bool"):
            return True  # the loop ends
        domain, op, _, version, attributes, _, given, *which = term.data  # type: ignore[misc]
        args = list(term.args)
        arrays: list[Any] = []
        for is_given in given:
            arrays.append(None)
            if not is_given:
                continue
            dtype, rank = args.pop(0).data  # type: ignore[misc]
            shape = [int(value(args.pop(0))) for _ in range(rank)]
            function = args.pop(0)
            items = [self._applied(function, bound, *at) for at in np.ndindex(*shape)]
            arrays[-1] = np.array(items, np.dtype(dtype)).reshape(shape)
        count = 1 if term.op == "answers" else which[0] + 1
        made = _outputs(domain, op, version, attributes, arrays, count)
        if term.op == "answers":
            return made is not None
        if made is None:
            return 0
        if term.op == "size":
            return made[which[0]].shape[which[1]]
        return made[which[0]][tuple(int(value(one)) for one in args)]

    def _state(self, recurrence: Term, iteration: int, bound: Mapping[int, Any]) -> Any:
        count = len(recurrence.data)  # type: ignore[arg-type]
        inits, steps = recurrence.args[:count], recurrence.args[count:]
        states = [cache(lambda *at, f=init: self._applied(f, bound, *at)) for init in inits]
        for number in range(iteration):
            before = list(states)
            states = [
                cache(lambda *at, f=s, n=number, b=before: self._applied(f, bound, n, *at, *b))
                for s in steps
            ]
        return states[0]


def _held(value: Any) -> Any:
    """A whole number as an int64 holds it, anything else as it is."""
    return (value + 2**63) % 2**64 - 2**63 if type(value) is int else value


def _by_element(data: Any, values: tuple[Any, ...]) -> Any:
    """An operator on single elements."""
    op, attributes, dtype, *_ = data
    values = tuple(map(_held, values))
    given = {}
    types = [np.asarray(one).dtype for one in values]
    if op == "Cast":
        types = [np.dtype(attributes[0])]
        given = {"to": helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), **dict(attributes[1])}
    elif op == "Gemm":
        product, *added = values
        alpha, beta = (np.float32(_attribute(one) or 0) for one in attributes)
        return product * alpha + added[0] * beta if added else product * alpha
    elif op == "Clip":
        low, high = attributes
        names = ["x", "low" if low else "", "high" if high else ""]
    elif op in ("Less", "LessOrEqual", "Equal"):
        given = {}
    else:
        given = {name: _attribute(value) for name, value in attributes if name != "operands"}
    arrays = {
        f"i{number}": np.asarray(value, dtype if op != "Cast" and t.hasobject else t)
        for number, (value, t) in enumerate(zip(values, types, strict=True))
    }
    names = list(arrays)
    if op == "Clip":
        low, high = attributes
        rest = iter(names[1:])
        names = [names[0], next(rest) if low else "", next(rest) if high else ""]
    arrays = {n: a.astype(np.int64) if a.dtype == object else a for n, a in arrays.items()}
    node = helper.make_node(op, names, ["y"], **given)
    inputs = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), [])
        for n, a in arrays.items()
    ]
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph = helper.make_graph([node], "g", inputs, [helper.make_tensor_value_info("y", kind, [])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return np.asarray(ReferenceExecutor().run(model, arrays).outputs["y"])[()]


def _attribute(value: Any) -> Any:
    """An attribute of a term, in which a float is told by its bits."""
    return float.fromhex(value) if isinstance(value, str) else value


def _by_row(data: Any, shape: tuple[int, ...], items: list[Any]) -> Any:
    """A reduction of a row."""
    op, *rest, dtype = data
    if op in ("dot", "Einsum"):
        left, right = (np.array([pair[side] for pair in items], dtype) for side in (0, 1))
        return np.dot(left, right) if op == "dot" else np.einsum("k,k->", left, right)
    if op in ("ArgMax", "ArgMin"):
        array = np.array(items, rest[1])
        given = {"select_last_index": int(rest[0]), "keepdims": 0, "axis": 0}
        return _run(op, [array], given)
    array = np.array(items, dtype).reshape(shape)
    if op in ("Softmax", "LogSoftmax", "Hardmax", "LpNormalization"):
        p = {} if rest[0] is None else {"p": rest[0]}
        return _run(op, [array], {"axis": -1, **p})
    return _run(op, [array], {"keepdims": 0})


def _run(op: str, arrays: list[Any], given: Mapping[str, Any]) -> Any:
    node = helper.make_node(op, [f"i{n}" for n in range(len(arrays))], ["y"], **given)
    feeds = {f"i{n}": array for n, array in enumerate(arrays)}
    inputs = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in feeds.items()
    ]
    graph = helper.make_graph([node], "g", inputs, [onnx.ValueInfoProto(name="y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return ReferenceEvaluator(model).run(None, feeds)[0]


def _outputs(
    domain: str, op: str, version: int, told: Any, arrays: list[Any], count: int
) -> list[Any] | None:
    """The first outputs that an operator makes of arrays; None where it fails."""
    given = {name: _attribute(value) for name, value in told}
    for name, one in given.items():
        given[name] = [_attribute(item) for item in one] if isinstance(one, tuple) else one
    names = ["" if array is None else f"i{number}" for number, array in enumerate(arrays)]
    outputs = [f"o{number}" for number in range(count)]
    node = helper.make_node(op, names, outputs, domain=domain, **given)
    feeds = {f"i{n}": array for n, array in enumerate(arrays) if array is not None}
    inputs = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in feeds.items()
    ]
    graph = helper.make_graph([node], "g", inputs, [onnx.ValueInfoProto(name=n) for n in outputs])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(domain, version)])
    try:
        return list(ReferenceExecutor().run(model, feeds).outputs.values())
    except ModelFailed:
        return None


def drawn(model: ModelProto, seed: int) -> dict[str, Any]:
    """Inputs of a model: small numbers, exact in floats, at sizes from 0 to 4."""
    rng = np.random.default_rng(seed)
    sizes: dict[str, int] = {}
    feeds: dict[str, Any] = {}
    for value in signature.inputs(model.graph):
        tensor = value.type.tensor_type
        shape = [
            dim.dim_value
            if dim.HasField("dim_value")
            else sizes.setdefault(dim.dim_param or f"{value.name} {axis}", int(rng.integers(5)))
            for axis, dim in enumerate(tensor.shape.dim)
        ]
        dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        numbers = rng.integers(-3, 4, shape)
        if dtype.kind == "b":
            feeds[value.name] = np.asarray(numbers > 0)
        elif np.issubdtype(dtype, np.floating):
            halves = np.where(numbers == -3, -0.0, numbers / 2)
            feeds[value.name] = np.asarray(halves, dtype)
        else:
            unsigned = np.issubdtype(dtype, np.unsignedinteger)
            feeds[value.name] = np.asarray(np.abs(numbers) if unsigned else numbers, dtype)
    return feeds


__all__ = ["NotProvable", "Worth", "disagreement", "drawn"]
