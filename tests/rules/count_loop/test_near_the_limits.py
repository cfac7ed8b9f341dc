"""Whole numbers near the limits of their types: what is concluded holds as they wrap."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from passes.analysis.integers.affine import Affine, single_of
from passes.analysis.integers.integers import Integers
from passes.engine.rewriting import Engine
from passes.ir import scope as scoping
from passes.ir.model import Model
from passes.rule import Site, rule_named
from passes.testing import as_model
from passes.verify.reference import ReferenceExecutor
from tests.onnxruntime_at_hand import at_hand

Feeds = Mapping[str, np.ndarray]


def _near(bits: int, *numbers: int) -> list[int]:
    """Numbers around these, around 0 and the limits of the type that has so many bits."""
    limit = 1 << (bits - 1)
    around = (one + more for one in (-limit, 0, limit, *numbers) for more in range(-3, 4))
    return [one for one in around if -limit <= one < limit]


def _wrapped(number: int, dtype: str) -> np.ndarray:
    limit = 1 << (np.iinfo(dtype).bits - 1)
    return np.array((number + limit) % (2 * limit) - limit, dtype)


#: By type, what is drawn.
NEAR = {"int32": _near(32), "int64": _near(64, -(1 << 32), -(1 << 31), 1 << 31, 1 << 32)}


# -- what is known of a number


def _random_numbers(draw: random.Random) -> tuple[ModelProto, list[str]]:
    """Numbers that are computed from two inputs, a size and constants; and their names."""
    values = {"n": "int64", "m": "int64", "k": "int32", "size": "int64"}
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Squeeze", ["shape"], ["size"]),
    ]
    constants = []
    for dtype, numbers in NEAR.items():
        for position in range(2):
            name = f"{dtype}_{position}"
            number = np.array(draw.choice([*numbers, 1, 2, -1]), dtype)
            constants.append(numpy_helper.from_array(number, name))
            values[name] = dtype
    for position in range(12):
        name = f"v{position}"
        op = draw.choice(["Cast", "Cast", "Add", "Sub", "Mul", "Neg", "Max", "Min", "Identity"])
        one = draw.choice(list(values))
        dtype = values[one]
        if op == "Cast":
            dtype = draw.choice(list(NEAR))
            to = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
            node = helper.make_node(op, [one], [name], to=to)
        elif op in ("Neg", "Identity"):
            node = helper.make_node(op, [one], [name])
        else:
            other = draw.choice([name for name, own in values.items() if own == dtype])
            node = helper.make_node(op, [one, other], [name])
        nodes.append(node)
        values[name] = dtype
    scalar = {"int64": TensorProto.INT64, "int32": TensorProto.INT32}
    inputs = [
        helper.make_tensor_value_info(name, scalar[values[name]], ()) for name in ("n", "m", "k")
    ]
    inputs.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, ("T",)))
    outputs = [helper.make_tensor_value_info(name, scalar[own], ()) for name, own in values.items()]
    graph = helper.make_graph(nodes, "numbers", inputs, outputs[3:], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model, list(values)


def _site(model: Model) -> Site:
    """The place of the last node."""
    *_, place = scoping.walk_model(model.proto)
    return Site.at(model, place)


def _value(number: Affine, held: Mapping[str, int]) -> int:
    """The number where the tensors that it is made of hold these."""
    return number.constant + sum(
        n * held["size" if atom.axis is not None else atom.tensor] for atom, n in number.terms
    )


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(60))
def test_what_is_known_of_a_number_holds_as_numbers_wrap(seed: int) -> None:
    draw = random.Random(seed)
    proto, names = _random_numbers(draw)
    onnx.checker.check_model(proto, full_check=True)
    integers = Integers(_site(Model(proto)))
    known = {name: integers.outside(name) for name in names}
    singles = {name: one for name, ints in known.items() if (one := single_of(ints))}
    assert "size" in singles
    for _ in range(12):
        feeds = {
            "n": np.array(draw.choice(NEAR["int64"]), np.int64),
            "m": np.array(draw.choice(NEAR["int64"]), np.int64),
            "k": np.array(draw.choice(NEAR["int32"]), np.int32),
            "x": np.zeros(draw.choice([0, 1, 2, 7]), np.float32),
        }
        given = ReferenceExecutor().run(proto, feeds).outputs
        held = {
            name: int(np.asarray(value))
            for name, value in {**feeds, **given}.items()
            if name != "x"
        }
        held |= {
            tensor.name: int(numpy_helper.to_array(tensor)) for tensor in proto.graph.initializer
        }
        for name, number in singles.items():
            difference = _value(number, held) - held[name]
            assert difference % (1 << 64) == 0, f"{name} is {held[name]}, not {number}"
            if number.fits():
                assert difference == 0, f"{name} is {held[name]}, not {number}"
        for permutation, other in itertools.permutations(singles, 2):
            if singles[permutation].at_least(singles[other]):
                assert held[permutation] >= held[other], f"{permutation} < {other}"


# -- how often a loop runs

_COMPARE = {
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
}
#: What is compared with which step; the last ones get nearer to their bound only by wrapping.
_STEPS = [("Less", 1), ("LessOrEqual", 1), ("Less", 3), ("LessOrEqual", 2)]
_STEPS += [("Greater", -1), ("GreaterOrEqual", -1), ("Greater", -2), ("GreaterOrEqual", -3)]
#: The type of the counter, and to which it is cast where it is compared; the type of the bound,
#: and to which that is.
_FORMS = [
    ("int64", (), "int64", ()),
    ("int32", (), "int32", ()),
    ("int32", ("int64",), "int64", ()),
    ("int64", ("int32",), "int64", ("int32",)),
    ("int64", ("int32", "int64"), "int64", ()),
    ("int64", (), "int64", ("int32", "int64")),
]
_MOST = 6


@dataclass(frozen=True)
class While:
    """A loop that ends where a counter gets to its bound, or after m iterations."""

    op: str
    step: int
    types: tuple[str, tuple[str, ...], str, tuple[str, ...]]
    starts: str  # whether the condition at first is the same one, another or none
    in_body: bool  # whether the bound is cast in the body
    limited: bool
    start: int | None = None  # where it is fixed
    bound: int | None = None

    @property
    def model(self) -> ModelProto:
        counter, seen, bound, bound_seen = self.types
        fixed = [f"{counter} step = {{{self.step}}}", "bool yes = {1}"]
        inputs = ["int64 m", "bool go"]
        for name, dtype, value in (("s", counter, self.start), ("n", bound, self.bound)):
            if value is None:
                inputs.append(f"{dtype} {name}")
            else:
                fixed.append(f"{dtype} {name} = {{{value}}}")
        conditions = {
            "same": f"{self.op} (s_seen, n_seen)",
            "given": "Identity (go)",
            "none": "Identity (yes)",
        }
        outside = "" if self.in_body and self.starts != "same" else _cast("n", "n", bound_seen)
        inside = _cast("n", "own", bound_seen) if self.in_body else "own_seen = Identity (n_seen)"
        return as_model(f"""
        <ir_version: 8, opset_import: ["" : 17]>
        counts ({", ".join(inputs)}) => ({counter} c_end, int64[K] all)
        <{", ".join(fixed)}>
        {{
            {_cast("s", "s", seen)}
            {outside}
            go0 = {conditions[self.starts]}
            c_end, all = Loop ({"m" if self.limited else '""'}, go0, s) <body = each
                (int64 i, bool go_in, {counter} c) => (bool go_out, {counter} c_out, int64 k) {{
                c_out = Add (c, step)
                k = Identity (i)
                {_cast("c_out", "c_out", seen)}
                {inside}
                go_out = {self.op} (c_out_seen, own_seen)
            }}>
        }}
        """)

    def drawn(self, draw: random.Random) -> Feeds:
        """Numbers that are near to each other, or near the limits."""
        counter, _, bound, _ = self.types
        n = draw.choice(NEAR[bound]) if self.bound is None else self.bound
        close = n - self.step * draw.randint(-2, _MOST) + draw.choice([-1, 0, 0, 1])
        close += draw.choice([0, 0, 0, 1 << 32, -(1 << 32)])
        s = draw.choice([close, close, draw.choice(NEAR[counter])])
        if self.start is not None:
            s = self.start
            n = n if self.bound is not None else draw.choice([n, s + self.step * 3, s + 1])
        return {
            "n": _wrapped(n, bound),
            "s": _wrapped(s, counter),
            "m": np.array(draw.choice([-(1 << 63), -1, 0, 1, 3, _MOST]), np.int64),
            "go": np.array(draw.random() < 0.8),
        }

    def trips(self, feeds: Feeds) -> int | None:
        """How often it runs; None if that is more often than anyone waits for."""
        _, seen, _, bound_seen = self.types
        counter, bound = feeds["s"], reduce(np.ndarray.astype, bound_seen, feeds["n"])
        for trips in range(_MOST + 3):
            go = self.starts == "none" or feeds["go"]
            if trips or self.starts == "same":
                go = _COMPARE[self.op](reduce(np.ndarray.astype, seen, counter), bound)
            if not go or (self.limited and trips >= feeds["m"]):
                return trips
            with np.errstate(over="ignore"):
                counter = np.asarray(counter + np.array(self.step, counter.dtype))
        return None


def _cast(name: str, result: str, types: Sequence[str]) -> str:
    """ONNX text that casts a value to one type after another, as `result`_seen."""
    lines = []
    for position, type_ in enumerate(types):
        to = helper.np_dtype_to_tensor_dtype(np.dtype(type_))
        lines.append(f"{result}_{position} = Cast <to = {to}> ({name})")
        name = f"{result}_{position}"
    return "\n".join([*lines, f"{result}_seen = Identity ({name})"])


def _whiles() -> Iterator[While]:
    draw = random.Random(3)
    for (op, step), types, starts in itertools.product(_STEPS, _FORMS, ("same", "given", "none")):
        for in_body, limited in itertools.product((False, True), repeat=2):
            one = While(op, step, types, starts, in_body, limited)
            yield one
            yield replace(one, start=draw.choice([0, 0, 1, draw.choice(NEAR[types[0]])]))
            yield replace(one, bound=draw.choice([0, 2, draw.choice(NEAR[types[2]])]))


def _check(loops: Sequence[While], draws: int) -> int:
    """Compare loops with what `count-loop` makes of them; answers how many it counted."""
    counted = 0
    draw = random.Random(5)
    onnxruntime = at_hand()
    for loop in loops:
        (first, *_) = Engine([rule_named("count-loop")]).fixpoint(Model.load(loop.model))
        counted += bool(first.rewritten)
        for position in range(draws if first.rewritten else 0):
            feeds = loop.drawn(draw)
            trips = loop.trips(feeds)
            if trips is None:
                continue
            taken = {value.name: feeds[value.name] for value in loop.model.graph.input}
            for model in (first.proto, loop.model) if not position else (first.proto,):
                for executor in (ReferenceExecutor(), onnxruntime)[: 1 if position else 2]:
                    rows = np.asarray(executor.run(model, taken).outputs["all"])
                    assert rows.shape == (trips,), (loop, feeds, executor.name)
    return counted


@pytest.mark.slow
def test_whiles_run_as_often_as_before_near_the_limits() -> None:
    loops = random.Random(1).sample(list(_whiles()), 80)
    assert _check(loops, 12) > 30


@pytest.mark.slow
def test_all_whiles_run_as_often_as_before_near_the_limits() -> None:
    assert _check(list(_whiles()), 12) > 500
