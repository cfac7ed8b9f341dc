"""The steps of ops that work element by element, run at the old opset and converted.

Each op is run for every type of element that onnxruntime has a kernel for, from the first opset
where it has one: all later steps follow from there.
"""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator
from proving import converted, drawn, ops, parsed, prove, run

import passes
from passes.rule import Refused

pytestmark = pytest.mark.sampled

HALVES = "float float16"
FLOATS = f"double {HALVES}"
SMALL = "int16 int8 uint16 uint8"
NUMBERS = f"{FLOATS} int32 int64 uint32 uint64 {SMALL}"

UNARY = {
    "Abs": {7: NUMBERS},
    "Acos": {7: HALVES},
    "Acosh": {9: HALVES},
    "Asin": {7: HALVES},
    "Asinh": {9: HALVES},
    "Atan": {7: HALVES},
    "Atanh": {9: HALVES},
    "Ceil": {7: FLOATS},
    "Celu": {12: "float"},
    "Cos": {7: FLOATS},
    "Cosh": {9: HALVES},
    "Elu": {7: HALVES},
    "Erf": {9: HALVES},
    "Exp": {7: FLOATS},
    "Floor": {7: FLOATS},
    "HardSigmoid": {7: HALVES},
    "HardSwish": {14: HALVES},
    "Identity": {7: f"bool string {NUMBERS}"},
    "IsInf": {10: "double float", 20: "float16"},
    "IsNaN": {9: FLOATS},
    "LeakyRelu": {7: HALVES},
    "Log": {7: FLOATS},
    "Mish": {18: HALVES},
    "Neg": {7: "double float float16 int16 int32 int64 int8"},
    "Reciprocal": {7: FLOATS},
    "Relu": {7: FLOATS, 14: "int32 int8"},
    "Round": {11: FLOATS},
    "Selu": {7: HALVES},
    "Sigmoid": {7: FLOATS},
    "Sign": {9: NUMBERS},
    "Sin": {7: FLOATS},
    "Sinh": {9: HALVES},
    "Softplus": {7: HALVES},
    "Softsign": {7: HALVES},
    "Sqrt": {7: FLOATS},
    "Tan": {7: HALVES},
    "Tanh": {7: FLOATS},
    "ThresholdedRelu": {10: HALVES},
}
BINARY = {
    "Add": {7: "double float float16 int32 int64 uint32 uint64", 14: SMALL},
    "BitShift": {11: "uint32 uint64 uint8"},
    "Div": {7: "double float float16 int32 int64 uint32 uint64", 14: SMALL},
    "Equal": {
        7: "bool int32 int64",
        11: "double float float16 int16 int8 uint16 uint32 uint64 uint8",
        19: "string",
    },
    "Greater": {7: FLOATS, 9: "int16 int32 int64 int8 uint16 uint32 uint64 uint8"},
    "GreaterOrEqual": {12: NUMBERS},
    "Less": {7: FLOATS, 9: "int16 int32 int64 int8 uint16 uint32 uint64 uint8"},
    "LessOrEqual": {12: NUMBERS},
    "Max": {7: HALVES, 8: "double", 12: "int32 int64 int8 uint32 uint64 uint8"},
    "Mean": {7: HALVES},
    "Min": {7: HALVES, 8: "double", 12: "int32 int64 int8 uint32 uint64 uint8"},
    "Mod": {10: NUMBERS},
    "Mul": {7: "double float float16 int32 int64 uint32 uint64", 14: SMALL},
    "PRelu": {7: HALVES},
    "Pow": {7: FLOATS, 12: "int32 int64"},
    "Sub": {7: "double float float16 int32 int64 uint32 uint64", 14: SMALL},
    "Sum": {7: FLOATS},
}
DTYPES = {"float": "float32", "double": "float64"}
SPECIAL = [np.nan, np.inf, -np.inf, -0.0, 0.0, 0.5, -0.5, 1.0, -1.0, 2.5, -3.7, 6e4]


def _cases(table: dict[str, dict[int, str]]) -> list[tuple[str, int, str]]:
    return [
        (op, opset, kind)
        for op, kinds in table.items()
        for opset, names in kinds.items()
        for kind in names.split()
    ]


def _values(kind: str, seed: int) -> np.ndarray:
    """Twelve values: for floats the special ones, in an order that the seed decides."""
    if kind in FLOATS.split():
        given = np.array(SPECIAL, DTYPES.get(kind, kind))
    elif kind == "string":
        given = np.array(["", "a", "b", "ü"] * 3, object)
    else:
        low = 0 if kind[0] in "ub" else -5
        given = (np.arange(12) + low).astype(kind)
    return np.random.default_rng(seed).permutation(given).reshape(3, 4)


def _places(kind: str) -> list[str]:
    return ["main", "if", "loop", "function"] if kind == "float" else ["main"]


@pytest.mark.parametrize(("op", "opset", "kind"), _cases(UNARY))
def test_unary(op: str, opset: int, kind: str) -> None:
    result = "bool" if op in ("IsInf", "IsNaN") else kind
    graph = f"({kind}[3,4] x) => ({result}[3,4] y) {{ y = {op}(x) }}"
    feeds = {"x": _values(kind, 1)}
    after = prove(graph, opset=opset, target=26, feeds=feeds, places=_places(kind))
    assert ops(after) == [op]


@pytest.mark.parametrize(("op", "opset", "kind"), _cases(BINARY))
def test_binary(op: str, opset: int, kind: str) -> None:
    attributes = {"BitShift": '<direction = "LEFT">'}.get(op, "")
    if op == "Mod" and kind in FLOATS.split():
        attributes = "<fmod = 1>"
    compares = op in ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")
    result = "bool" if compares else kind
    graph = f"""({kind}[3,4] x, {kind}[3,4] z) => ({result}[3,4] y)
        {{ y = {op}{attributes}(x, z) }}"""
    feeds = {"x": _values(kind, 1), "z": _values(kind, 2)}
    if op in ("Div", "Mod") and kind not in FLOATS.split():
        feeds["z"] = np.where(feeds["z"] == 0, 3, feeds["z"]).astype(kind)
    if op == "BitShift":
        feeds["z"] %= 8
    if op == "Pow" and kind not in FLOATS.split():
        feeds["z"] = abs(feeds["z"])
    after = prove(graph, opset=opset, target=26, feeds=feeds, places=_places(kind))
    assert ops(after) == [op]


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Sum", "Mean"])
@pytest.mark.parametrize("z", ["", "4", "3,1", "2,1,4"])
def test_broadcasting(op: str, z: str) -> None:
    y = "2,3,4" if z.count(",") == 2 else "3,4"
    graph = f"(float[3,4] x, float[{z}] z) => (float[{y}] y) {{ y = {op}(x, z) }}"
    opset = 8 if op in ("Max", "Min", "Sum", "Mean") else 7
    prove(graph.replace("[]", ""), opset=opset, target=26)


@pytest.mark.parametrize("op", ["Max", "Min", "Sum", "Mean"])
@pytest.mark.parametrize("inputs", ["x", "x, z", "x, z, x"])
def test_any_number_of_inputs(op: str, inputs: str) -> None:
    prove(
        f"(float[3,4] x, float[3,4] z) => (float[3,4] y) {{ y = {op}({inputs}) }}",
        opset=7,
        target=26,
        feeds={"x": _values("float", 1), "z": _values("float", 2)},
    )


@pytest.mark.parametrize(
    ("opset", "call"),
    [
        (7, "Elu<alpha = 0.3>"),
        (7, "HardSigmoid<alpha = 0.3, beta = 0.4>"),
        (7, "LeakyRelu<alpha = 0.3>"),
        (7, "Selu<alpha = 1.1, gamma = 2.0>"),
        (10, "ThresholdedRelu<alpha = 0.7>"),
        (12, "Celu<alpha = 0.3>"),
    ],
)
def test_attributes(opset: int, call: str) -> None:
    graph = f"(float[3,4] x) => (float[3,4] y) {{ y = {call}(x) }}"
    prove(graph, opset=opset, target=26, feeds={"x": _values("float", 1)})


@pytest.mark.parametrize("attributes", ["detect_negative = 0", "detect_positive = 0"])
def test_is_inf_of_one_sign(attributes: str) -> None:
    graph = f"(float[3,4] x) => (bool[3,4] y) {{ y = IsInf<{attributes}>(x) }}"
    prove(graph, opset=10, target=26, feeds={"x": _values("float", 1)})


@pytest.mark.parametrize("slope", ["", "1", "4", "3,1"])
def test_prelu_slopes(slope: str) -> None:
    graph = f"(float[3,4] x, float[{slope}] s) => (float[3,4] y) {{ y = PRelu(x, s) }}"
    prove(graph.replace("[]", ""), opset=9, target=26)


@pytest.mark.parametrize("op", ["And", "Or", "Xor"])
def test_booleans(op: str) -> None:
    prove(f"(bool[3] x, bool[3] z) => (bool[3] y) {{ y = {op}(x, z) }}", opset=7, target=26)


@pytest.mark.parametrize("kind", ["float", "int64", "uint8", "string"])
def test_where(kind: str) -> None:
    graph = f"""(bool[3,1] c, {kind}[3,4] x, {kind}[4] z) => ({kind}[3,4] y)
        {{ y = Where(c, x, z) }}"""
    prove(graph, opset=9, target=26)


@pytest.mark.parametrize(("x", "z"), [("float", "int32"), ("int32", "float"), ("double", "int64")])
def test_pow_12_of_two_types(x: str, z: str) -> None:
    prove(f"({x}[3] x, {z}[3] z) => ({x}[3] y) {{ y = Pow(x, z) }}", opset=12, target=26)


# -- Mod and BitShift ----------------------------------------------------------------------

REMAINDERS = {"x": np.array([7, -7, 7, -7]), "z": np.array([3, 3, -3, -3])}


@pytest.mark.parametrize("opset", [10, 13])
@pytest.mark.parametrize("fmod", [0, 1])
def test_the_remainder_of_integers_keeps_its_sign(fmod: int, opset: int) -> None:
    """fmod of integers is in the documents of 10 and 28; 13 leaves it out, its tests do not."""
    graph = f"(int64[4] x, int64[4] z) => (int64[4] y) {{ y = Mod<fmod = {fmod}>(x, z) }}"
    prove(graph, opset=opset, target=26, feeds=REMAINDERS)
    after = converted(parsed(graph, opset), 28)
    (y,) = ReferenceEvaluator(after).run(None, REMAINDERS)
    assert y.tolist() == ([1, -1, 1, -1] if fmod else [1, 2, -2, -1])


@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
def test_bit_shift_28(direction: str) -> None:
    """onnxruntime has no opset 28; the reference runs it."""
    graph = f"""(uint8[4] x, uint8[4] z) => (uint8[4] y)
        {{ y = BitShift<direction = "{direction}">(x, z) }}"""
    feeds = {"x": np.array([1, 200, 7, 255], np.uint8), "z": np.array([0, 1, 3, 7], np.uint8)}
    model = parsed(graph, 11)
    before, after = (
        ReferenceEvaluator(one).run(None, feeds)[0] for one in (model, converted(model, 28))
    )
    np.testing.assert_array_equal(after, before)


@pytest.mark.parametrize(("op", "kind"), [("Celu", "float"), ("Mod", "int32")])
def test_28_is_as_before(op: str, kind: str) -> None:
    inputs, call = (f"{kind}[3] x", "x") if op == "Celu" else (f"{kind}[3] x, {kind}[3] z", "x, z")
    model = parsed(f"({inputs}) => ({kind}[3] y) {{ y = {op}({call}) }}", 13)
    after = converted(model, 28)
    feeds = {
        "x": np.array([-2, 3, 5], DTYPES.get(kind, kind)),
        "z": np.array([3, 2, -4], np.int32),
    }
    feeds = {value.name: feeds[value.name] for value in model.graph.input}
    expected = ReferenceEvaluator(model).run(None, feeds)
    np.testing.assert_array_equal(ReferenceEvaluator(after).run(None, feeds), expected)


# -- Erf-13 --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("target", [13, 26])
def test_erf_of_integers_takes_the_way_over_float(kind: str, target: int) -> None:
    """onnxruntime has no Erf-9 of integers; the reference runs it."""
    model = parsed(f"({kind}[9] x) => ({kind}[9] y) {{ y = Erf(x) }}", 9)
    after = converted(model, target)
    onnx.checker.check_model(after, full_check=True)
    assert ops(after) == ["Cast", "Erf", "Cast"]
    feeds = {"x": np.array([-7, -6, -3, -1, 0, 1, 3, 6, 7], kind)}
    (expected,) = ReferenceEvaluator(model).run(None, feeds)
    assert expected.tolist() == [-1, -1, 0, 0, 0, 0, 0, 1, 1]
    np.testing.assert_array_equal(ReferenceEvaluator(after).run(None, feeds)[0], expected)
    np.testing.assert_array_equal(run(after, feeds)[0], expected)


@pytest.mark.parametrize("kind", ["uint8", "uint16", "uint32", "uint64"])
def test_erf_of_unsigned_integers(kind: str) -> None:
    after = converted(parsed(f"({kind}[3] x) => ({kind}[3] y) {{ y = Erf(x) }}", 9), 26)
    (actual,) = run(after, {"x": np.array([0, 3, 6], kind)})
    assert actual.tolist() == [0, 0, 1]


def test_erf_of_a_value_of_unknown_type_stays() -> None:
    """A model-local function that is called with two types of float."""
    model = onnx.parser.parse_model(
        """
        <ir_version: 8, opset_import: ["": 9, "local": 1]>
        graph (float[2] x, double[2] d) => (float[2] y, double[2] z)
            { y = local.F(x) z = local.F(d) }
        <domain: "local", opset_import: ["": 9]>
        F (x) => (y) { y = Erf(x) }
        """
    )
    assert [node.op_type for node in converted(model, 26).functions[0].node] == ["Erf"]


# -- down -----------------------------------------------------------------------------------

SPECIAL = np.array([-np.inf, -2.5, -1.5, -0.5, 0, 0.5, 1, 1.5, 2.5, 1e30, np.inf, np.nan])
INTS = np.array([-(2**31), -129, -5, -1, 0, 1, 3, 127, 2**31 - 1])
LONGS = np.array([-(2**63), -(2**62) - 1, -(2**33), -1, 0, 1, 2**32 + 1, 2**62 + 1, 2**63 - 1])


def _places_down(target: int) -> list[str]:
    """A function needs Constant-9 for integers."""
    return ["main", "function" if target >= 9 else "if"]


def _special(kind: str) -> np.ndarray:
    if kind in ("float", "double", "float16"):
        return SPECIAL.astype({"float": "f4", "double": "f8"}.get(kind, kind))
    wide = LONGS if kind.endswith("64") else INTS
    return wide.astype(kind)  # wraps around


def _pairs(kind: str) -> dict[str, np.ndarray]:
    values = _special(kind)
    return {"x": values.reshape(-1, 1), "z": values.reshape(1, -1)}


def _both_ways(
    expression: str, kind: str, opset: int, target: int, *, to: str = "", rtol: float = 0.0
) -> None:
    feeds = _pairs(kind)
    n = len(feeds["x"])
    graph = f"({kind}[{n},1] x, {kind}[1,{n}] z) => ({to or kind}[{n},{n}] y) {{ {expression} }}"
    prove(graph, opset=opset, target=target, feeds=feeds, places=_places_down(target), rtol=rtol)


@pytest.mark.parametrize("target", [11, 9, 7])
@pytest.mark.parametrize("kind", ["float", "double", "int32", "int64"])
@pytest.mark.parametrize("op", ["GreaterOrEqual", "LessOrEqual", "Greater", "Less", "Equal"])
def test_comparisons_down(op: str, kind: str, target: int) -> None:
    _both_ways(f"y = {op}(x, z)", kind, 12, target, to="bool")


@pytest.mark.parametrize("target", [11, 9, 7])
@pytest.mark.parametrize("op", ["Max", "Min"])
@pytest.mark.parametrize("kind", ["int32", "int64", "uint32"])
def test_the_larger_of_integers_down(kind: str, op: str, target: int) -> None:
    if target > 8 or kind != "uint32":
        _both_ways(f"y = {op}(x, z)", kind, 12, target)


@pytest.mark.parametrize("op", ["Max", "Min", "Sum", "Mean"])
@pytest.mark.parametrize("shape", ["2,1", "3", "A,B"])
def test_broadcasting_before_8(op: str, shape: str) -> None:
    graph = f"(float[2,3] x, float[{shape}] z) => (float[M,N] y) {{ y = {op}(x, z, x) }}"
    z = SPECIAL[:3].astype(np.float32)
    given = {"2,1": z[:2].reshape(2, 1), "3": z, "A,B": z.reshape(1, 3)}[shape]
    after = prove(graph, opset=8, target=7, feeds={"z": given}, places=_places_down(7))
    assert ops(after)[-1] == op


def test_the_larger_double_before_8_is_written_with_a_warning() -> None:
    """onnxruntime has no kernel for it, the reference executor compares."""
    text = "(double[2] x, double[2] z) => (double[2] y) { y = Max(x, z) }"
    report = passes.convert(parsed(text, 8), opset=7).report
    assert report.checked.verdict == "verified"
    (warning,) = report.warnings
    assert "Could not find an implementation for Max(6)" in warning


@pytest.mark.parametrize("target", [9, 7])
@pytest.mark.parametrize("op", ["IsNaN", "IsInf", "Sign", "Round"])
@pytest.mark.parametrize("kind", ["float", "double"])
def test_tests_and_rounding_down(kind: str, op: str, target: int) -> None:
    x = _special(kind)
    to = "bool" if op.startswith("Is") else kind
    graph = f"({kind}[{len(x)}] x) => ({to}[{len(x)}] y) {{ y = {op}(x) }}"
    prove(graph, opset=11, target=target, feeds={"x": x}, places=_places_down(target))


@pytest.mark.parametrize("attributes", ["detect_positive = 0", "detect_negative = 0"])
def test_one_infinity_down(attributes: str) -> None:
    graph = f"(float[12] x) => (bool[12] y) {{ y = IsInf<{attributes}>(x) }}"
    feeds = {"x": _special("float")}
    prove(graph, opset=10, target=9, feeds=feeds, places=["main"])
    graph = "(float[12] x) => (bool[12] y) { y = IsInf<detect_positive=0, detect_negative=0>(x) }"
    prove(graph, opset=10, target=9, feeds=feeds, places=["main"])


@pytest.mark.parametrize("op", ["Sinh", "Cosh", "Asinh", "Acosh", "Atanh"])
def test_hyperbolic_functions_down(op: str) -> None:
    x = np.array([-80, -3, -0.9, -1e-6, -1e-12, 0, 1e-12, 1e-6, 1e-3, 0.9, 1, 3, 80, 1e30])
    if op in ("Sinh", "Cosh"):
        x = x[:-1]
    if op == "Acosh":
        x = x[x >= 1]
    if op == "Atanh":
        x = x[abs(x) < 1]
    graph = f"(float[{len(x)}] x) => (float[{len(x)}] y) {{ y = {op}(x) }}"
    feeds = {"x": x.astype(np.float32)}
    prove(graph, opset=9, target=7, feeds=feeds, places=_places_down(7), rtol=1e-6)


@pytest.mark.parametrize("op", ["Asinh", "Acosh", "Atanh"])
def test_inverse_hyperbolic_functions_of_double_are_refused(op: str) -> None:
    model = parsed(f"(double[2] x) => (double[2] y) {{ y = {op}(x) }}", 9)
    with pytest.raises(Refused, match="as a logarithm is less accurate"):
        converted(model, 8)


def test_erf_is_refused_before_9() -> None:
    model = parsed("(float[2] x) => (float[2] y) { y = Erf(x) }", 13)
    assert ops(converted(model, 9)) == ["Erf"]
    with pytest.raises(Refused, match="no op before Erf-9 computes the error function"):
        converted(model, 8)


@pytest.mark.parametrize("kind", ["float", "int64", "string"])
@pytest.mark.parametrize(("x", "z"), [("2,3", "2,3"), ("", "3"), ("2,1", "1,3"), ("0,3", "1,3")])
def test_where_down(x: str, z: str, kind: str) -> None:
    graph = (
        f"(bool[1,3] c, {kind}[{x}] x, {kind}[{z}] z) => ({kind}[M,N] y) {{ y = Where(c, x, z) }}"
    )
    graph = graph.replace("[]", "")
    model = parsed(graph, 9)
    prove(graph, opset=9, target=7, feeds=drawn(model), places=_places_down(7))


def test_where_of_unknown_sizes() -> None:
    graph = "(bool[A] c, int64[B] x, int64[C] z) => (int64[D] y) { y = Where(c, x, z) }"
    prove(graph, opset=9, target=7, feeds={"x": LONGS[[0, -1]]}, places=_places_down(7))
    model = parsed(graph.replace("int64", "float"), 9)
    with pytest.raises(Refused, match="opset 8 has no Where") as refused:
        converted(model, 8)
    assert refused.value.code == "unknown-rank"


@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_relu_of_integers_down(kind: str) -> None:
    values = _special(kind)
    graph = f"({kind}[9] x) => ({kind}[9] y) {{ y = Relu(x) }}"
    model = parsed(graph, 14)
    for target in (13, 11, 9):
        after = converted(model, target)
        onnx.checker.check_model(after, full_check=True)
        assert run(after, {"x": values})[0].tolist() == np.maximum(values, 0).tolist()


@pytest.mark.parametrize(
    ("kind", "exponent"),
    [("float", "int64"), ("float", "int32"), ("double", "float"), ("float", "double")],
)
def test_pow_of_two_types_down(kind: str, exponent: str) -> None:
    feeds = {"x": np.array([-2.5, -1, 0.5, 3]), "z": np.array([-2, 3, 0, 5])}
    types = {"float": "f4", "double": "f8"}
    feeds["x"] = feeds["x"].astype(types[kind])
    feeds["z"] = feeds["z"].astype(types.get(exponent, exponent))
    graph = f"({kind}[4] x, {exponent}[4] z) => ({kind}[4] y) {{ y = Pow(x, z) }}"
    for target in (11, 7):
        prove(graph, opset=12, target=target, feeds=feeds, places=_places_down(target), rtol=1e-6)


@pytest.mark.parametrize("kind", ["float", "int32", "int64"])
def test_a_fixed_exponent_down(kind: str) -> None:
    graph = f"({kind}[4] x) => ({kind}[4] y) <int64 n = {{3}}> {{ y = Pow(x, n) }}"
    after = prove(graph, opset=12, target=7, places=["main"], rtol=1e-6)
    wanted = {"float": ["Pow"], "int32": ["Cast", "Cast", "Pow", "Cast"]}
    assert ops(after) == wanted.get(kind, ["Mul", "Mul", "Identity"])


def test_pow_of_int64_by_an_unknown_exponent_is_refused() -> None:
    model = parsed("(int64[2] x, int64[2] z) => (int64[2] y) { y = Pow(x, z) }", 12)
    with pytest.raises(Refused, match="Pow-7 does not support int64, and no float type"):
        converted(model, 11)


@pytest.mark.parametrize("target", [9, 7])
@pytest.mark.parametrize("fmod", [0, 1])
@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_mod_of_integers_down(kind: str, fmod: int, target: int) -> None:
    values = _special(kind)[1:]
    feeds = {"x": values.reshape(-1, 1), "z": values[(values != 0) & (values != -1)].reshape(1, -1)}
    m, n = feeds["x"].size, feeds["z"].size
    graph = f"""({kind}[{m},1] x, {kind}[1,{n}] z) => ({kind}[{m},{n}] y)
        {{ y = Mod<fmod = {fmod}>(x, z) }}"""
    prove(graph, opset=10, target=target, feeds=feeds, places=_places_down(target))


def test_mod_of_floats_is_refused_before_10() -> None:
    model = parsed("(float[2] x, float[2] z) => (float[2] y) { y = Mod<fmod = 1>(x, z) }", 13)
    with pytest.raises(Refused, match="no op before Mod-10 divides floats with a remainder"):
        converted(model, 9)


def test_mod_28_of_floats_down() -> None:
    model = parsed("(float[3,1] x, float[1,4] z) => (float[3,4] y) { y = Mod(x, z) }", 28)
    after = converted(model, 13)
    onnx.checker.check_model(after, full_check=True)
    x = np.array([[-7.5], [2], [0]], np.float32)
    z = np.array([[2, -2, 3, np.inf]], np.float32)
    (found,) = run(after, {"x": x, "z": z})
    expected = x - np.floor(x / z) * z
    expected[0, 3], expected[1, 3], expected[2, 3] = np.inf, 2, 0
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
@pytest.mark.parametrize("kind", ["uint32", "uint8"])
def test_bit_shift_down(kind: str, direction: str, fixed: bool) -> None:
    x, by = np.array([0, 1, 7, 200, 255]).astype(kind), np.array([0, 7, 2, 1, 3]).astype(kind)
    inputs = f"{kind}[5] x" if fixed else f"{kind}[5] x, {kind}[5] by"
    weight = f"<{kind}[5] by = {{0, 7, 2, 1, 3}}>" if fixed else ""
    graph = f"""({inputs}) => ({kind}[5] y) {weight}
        {{ y = BitShift<direction = "{direction}">(x, by) }}"""
    after = converted(parsed(graph, 11), 10)
    assert ops(after)[-1] == ("Mul" if direction == "LEFT" else "Div")
    shifted = np.left_shift(x, by) if direction == "LEFT" else np.right_shift(x, by)
    feeds = {"x": x} if fixed else {"x": x, "by": by}
    (found,) = ReferenceEvaluator(after).run(None, feeds)
    assert found.tolist() == shifted.tolist()


@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
@pytest.mark.parametrize("kind", ["int32", "int64", "uint32"])
def test_bit_shift_28_down(kind: str, direction: str) -> None:
    """Signed integers, negative amounts, and such as are beyond the width."""
    x, by = _special(kind), np.array([0, 1, 2, 70, -1, 31, 32, 4, 1]).astype(kind)
    graph = f"""({kind}[9] x, {kind}[9] by) => ({kind}[9] y)
        {{ y = BitShift<direction = "{direction}">(x, by) }}"""
    model = parsed(graph, 28)
    (expected,) = ReferenceEvaluator(model).run(None, {"x": x, "by": by})
    for target in (27, 13):
        after = converted(model, target)
        onnx.checker.check_model(after, full_check=True)
        (found,) = ReferenceEvaluator(after).run(None, {"x": x, "by": by})
        assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("target", [17, 13])
@pytest.mark.parametrize("op", ["And", "Or", "Xor"])
@pytest.mark.parametrize("kind", ["int32", "int64", "uint8", "int8"])
def test_bitwise_down(kind: str, op: str, target: int) -> None:
    _both_ways(f"y = Bitwise{op}(x, z)", kind, 18, target)


@pytest.mark.parametrize("kind", ["int32", "uint32", "int64", "uint64"])
def test_bitwise_not_down(kind: str) -> None:
    graph = f"({kind}[9] x) => ({kind}[9] y) {{ y = BitwiseNot(x) }}"
    model = parsed(graph, 18)
    (found,) = ReferenceEvaluator(converted(model, 13)).run(None, {"x": _special(kind)})
    assert found.tolist() == np.bitwise_not(_special(kind)).tolist()
