"""Faults seeded into outcomes: pairs of a right model and one that is wrong on few inputs.

They were written before it was measured which of them verification finds, and inputs are drawn
without a look at them. `OUT_OF_REACH` says why some are not found. Those that are written out as
models (`written_values.py`, `written_loops.py`) have a witness.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.instruments.mutants.rare_outcomes import rare_pairs
from tests.instruments.mutants.written_loops import WRITTEN_LOOPS
from tests.instruments.mutants.written_values import WRITTEN_VALUES
from tests.written import changed

HEAD = "(float[B,T] x, int64 n, int64[B] k) => (float[B,T] y, int64[B] m)"
SIZES_OF_X = """
    zero = Constant <value_int = 0> ()  one = Constant <value_int = 1> ()
    one_f = Constant <value_float = 1.0> ()
    shape = Shape (x)  b = Gather (shape, zero)  t = Gather (shape, one)
"""
#: What is right: it makes u of x, and v of k.
ORIGINALS = {
    "moved": "u = Identity (x)  v = Identity (k)",
    "rounded": "q = Softplus (x)  u = Mul (q, x)  v = Add (k, n)",
    "summed": """
        v = Mul (k, k)
        h0 = ReduceSum <keepdims = 0> (x, axes)  hT, ut = Scan <num_scan_inputs = 1,
            scan_input_axes = [1], scan_output_axes = [1], body = step (float[B] h, float[B] x_t)
            => (float[B] h_out, float[B] u_t) {
            g = Tanh (h)  h_out = Add (g, x_t)  u_t = Identity (h_out) }> (h0, x)
        u = Identity (ut)""",
}


@dataclass(frozen=True)
class Pair:
    """A right model, a wrong one, and inputs that tell them apart, if those are known."""

    kind: str
    name: str
    before: str
    after: str
    witness: Mapping[str, Any] | None = None


def pairs() -> Iterator[Pair]:
    """Every fault, by kind."""
    for name, text in ORIGINALS.items():
        for kind, faults in (("sizes", SIZES), ("values", VALUES)):
            for fault, condition in faults.items():
                yield _where(kind, f"{fault}, {name}", text, condition)
    for fault, wrong in WHOLE.items():
        yield _made("whole numbers", fault, ORIGINALS["moved"], f"y = Identity (u)  {wrong}")
    for kind, cases in (
        ("trip counts", TRIPS),
        ("precision", PRECISION),
        ("chaos beside", _chaos()),
        ("hangs", HANGS),
        ("borders", BORDERS),
        ("large neighbours", NEIGHBOURS),
    ):
        for name, (text, right, wrong) in cases.items():
            yield Pair(kind, name, text.replace("@", right), text.replace("@", wrong))
    for kind, name, original, faulty in rare_pairs():
        yield Pair(kind, name, original, faulty)
    yield from written_pairs()


def written_pairs() -> Iterator[Pair]:
    """Those that are written out as models, with their witnesses."""
    for kind, cases in {**WRITTEN_VALUES, **WRITTEN_LOOPS}.items():
        for name, (right, wrong, witness) in cases.items():
            after = wrong if isinstance(wrong, str) else changed(right, wrong)
            yield Pair(kind, name, right, after, witness)


def _int(name: str, value: int) -> str:
    return f"{name} = Constant <value_int = {value}> ()  "


def _float(name: str, value: float) -> str:
    return f"{name} = Constant <value_float = {value}> ()  "


#: `bad`, a bool: of sizes.
SIZES = {
    "T >= 11": _int("c", 11) + "bad = GreaterOrEqual (t, c)",
    "T > 32": _int("c", 32) + "bad = Greater (t, c)",
    "B >= 9": _int("c", 9) + "bad = GreaterOrEqual (b, c)",
    "B > 16": _int("c", 16) + "bad = Greater (b, c)",
    "B == T > 3": _int("c", 3) + "e = Equal (b, t)  g = Greater (b, c)  bad = And (e, g)",
    "T == 2 B > 2": _int("c", 2) + "d = Add (b, b)  e = Equal (t, d)  g = Greater (b, c)"
    "  bad = And (e, g)",
    "B is a multiple of 8": _int("c", 8) + "r = Mod (b, c)  e = Equal (r, zero)"
    "  g = Greater (b, zero)  bad = And (e, g)",
    "T is odd above 8": _int("c", 8) + _int("two", 2) + "r = Mod (t, two)  e = Equal (r, one)"
    "  g = Greater (t, c)  bad = And (e, g)",
    "B == 1 < T": "e = Equal (b, one)  g = Greater (t, one)  bad = And (e, g)",
    "row 7": "rows = Range (zero, b, one)  " + _int("c", 7) + "e = Equal (rows, c)"
    "  bad = Unsqueeze (e, last)",
    "the last column of more than 8": "cols = Range (zero, t, one)  " + _int("c", 8)
    + "l = Sub (t, one)  e = Equal (cols, l)  g = Greater (t, c)  bad = And (e, g)",
}  # fmt: skip
#: `bad`, by elements of x or n.
VALUES = {
    "|x| > 12": "a = Abs (x)  " + _float("c", 12.0) + "bad = Greater (a, c)",
    "x < -1000": _float("c", -1000.0) + "bad = Less (x, c)",
    "0 < x < 0.001": _float("c", 0.001) + _float("z", 0.0) + "l = Less (x, c)"
    "  g = Greater (x, z)  bad = And (l, g)",
    "sum(x) > 40": "s = ReduceSum <keepdims = 0> (x)  " + _float("c", 40.0)
    + "bad = Greater (s, c)",
    "x == 0.5": _float("c", 0.5) + "bad = Equal (x, c)",
    "x == 2.75": _float("c", 2.75) + "bad = Equal (x, c)",
    "all of a row is negative": "g = ReduceMax <keepdims = 1> (x, last)  " + _float("z", 0.0)
    + "bad = Less (g, z)",
    "n > 9": _int("c", 9) + "bad = Greater (n, c)",
    "n == T": "bad = Equal (n, t)",
    "n is negative": "bad = Less (n, zero)",
}  # fmt: skip
WHOLE = {
    "k > 10": _int("c", 10) + "g = Greater (k, c)  i = Cast <to = 7> (g)  m = Add (v, i)",
    "k < -20": _int("c", -20) + "g = Less (k, c)  i = Cast <to = 7> (g)  m = Add (v, i)",
    "k == 300": _int("c", 300) + "g = Equal (k, c)  i = Cast <to = 7> (g)  m = Add (v, i)",
    "through int8": "s = Cast <to = 3> (v)  m = Cast <to = 7> (s)",
    "through uint8": "s = Cast <to = 2> (v)  m = Cast <to = 7> (s)",
    "through int32": "s = Cast <to = 6> (v)  m = Cast <to = 7> (s)",
    "through float": "s = Cast <to = 1> (v)  m = Cast <to = 7> (s)",
    "never below 0": "m = Max (v, zero)",
}

_TRIPS = """(float[N] x, int64 n) => (float[N] y) {
    one = Constant <value_int = 1> ()  two = Constant <value_int = 2> ()
    seven = Constant <value_int = 7> ()
    @
    y = Loop <body = step (int64 i, bool c, float[N] s) => (bool d, float[N] r) {
        d = Identity (c)  h = Sin (s)  r = Add (h, x) }> (m, , x) }"""
TRIPS = {
    "one fewer from 7 on": (
        _TRIPS,
        "m = Identity (n)",
        "g = GreaterOrEqual (n, seven)  i = Cast <to = 7> (g)  m = Sub (n, i)",
    ),
    "one more for 2": (
        _TRIPS,
        "m = Identity (n)",
        "g = Equal (n, two)  i = Cast <to = 7> (g)  m = Add (n, i)",
    ),
    "at most 16": (_TRIPS, "m = Identity (n)", _int("c", 16) + "m = Min (n, c)"),
    "even ones only": (
        _TRIPS,
        "m = Identity (n)",
        "odd = Mod (n, two)  l = Greater (n, seven)  z = Cast <to = 7> (l)  q = Mul (odd, z)"
        "  m = Sub (n, q)",
    ),
}

_COARSE = """(float[N] x, {coarse}[N] c) => (float[N] y, float[N] z) {{
    a = Constant <value_float = @> ()  p = Mul (x, a)  e = Exp (p)  y = Div (e, a)
    z = Cast <to = 1> (c) }}"""
_DOUBLE = """(double[N] x, double[N] w) => (double[N] y) {
    @  s = Add (p, w)  y = Atan (s) }"""
_SCALED = """(float[N,3] x, {coarse}[3] g) => (float[3] y) {{
    h0 = Constant <value = float[3] {{0.0, 0.0, 0.0}}> ()
    alpha = Constant <value_float = @> ()
    y = Scan <num_scan_inputs = 1, body = step (float[3] h, float[3] x_t) => (float[3] o) {{
        f = Cast <to = 1> (g)  p = Mul (x_t, alpha)  q = Add (h, p)  t = Tanh (q)
        o = Add (t, f) }}> (h0, x) }}"""
PRECISION = {
    **{
        f"{coarse} elsewhere, off by {off}": (
            _COARSE.format(coarse=coarse),
            "0.7",
            str(0.7 * (1 + off)),
        )
        for coarse, off in (
            ("bfloat16", 0.1),
            ("bfloat16", 0.01),
            ("bfloat16", 1e-4),
            ("float16", 0.01),
            ("float16", 1e-4),
            ("float16", 1e-5),
        )
    },
    **{
        f"alpha scaled by 10 % beside {coarse}": (
            _SCALED.format(coarse=coarse),
            "0.5",
            "0.55",
        )
        for coarse in ("bfloat16", "float16", "double")
    },
    "doubles multiplied as floats": (
        _DOUBLE,
        "p = Mul (x, w)",
        "f = Cast <to = 1> (x)  g = Cast <to = 1> (w)  q = Mul (f, g)  p = Cast <to = 11> (q)",
    ),
    "doubles through bfloat16": (
        _DOUBLE,
        "p = Mul (x, w)",
        "f = Cast <to = 16> (x)  g = Cast <to = 11> (f)  p = Mul (g, w)",
    ),
    "floats summed up as float16": (
        "(float[N,8] x) => (float[N] y) { a = Constant <value_ints = [1]> ()  @ }",
        "y = ReduceSum <keepdims = 0> (x, a)",
        "h = Cast <to = 10> (x)  s = ReduceSum <keepdims = 0> (h, a)  y = Cast <to = 1> (s)",
    ),
}


def _chaos() -> dict[str, tuple[str, str, str]]:
    """A recurrence that makes anything of its roundings, and what is fed by the inputs alone."""
    weights = np.random.default_rng(1).normal(0, 2.5, (4, 4)).astype(np.float32)
    items = ", ".join(map(str, weights.ravel()))

    def text(steady: str, joined: str, outputs: str, shape: str) -> str:
        return f"""(float[4] h, float[80,4] x) => (float[4] hT, {shape} y)
            <float[4,4] R = {{{items}}}> {{
            hT, y = Scan <num_scan_inputs = 1, body = step (float[4] h_in, float[4] x_t)
                => (float[4] h_out, {outputs} y_t) {{
                r = MatMul (h_in, R)  p = Add (r, x_t)  h_out = Tanh (p)
                {steady}  {joined} }}> (h, x) }}"""

    beside = "k = Sin (z)  ", "y_t = Concat <axis = 0> (h_out, k)", "float[8]", "float[80,8]"
    alone = "k = Sin (z)  ", "y_t = Identity (k)", "float[4]", "float[80,4]"
    half = _float("half", 0.5)
    wrong = {
        "of the wrong sign": "z = Neg (x_t)  ",
        "off by 1 %": _float("f", 1.01) + "z = Mul (x_t, f)  ",
        "off by 0.001": _float("f", 0.001) + "z = Add (x_t, f)  ",
        "halved": half + "z = Mul (x_t, half)  ",
    }
    return {
        f"{fault}, {name}": (
            text("@" + steady, joined, outputs, shape),
            "z = Identity (x_t)  ",
            seeded,
        )
        for name, (steady, joined, outputs, shape) in (("in its line", beside), ("alone", alone))
        for fault, seeded in wrong.items()
    } | {
        "the recurrence itself": (
            text("z = Add (@, x_t)  k = Sin (z)", *alone[1:]), "x_t", "r"
        )
    }  # fmt: skip


_HANG = """(float[N] x, int64 n) => (float[N] y) {
    two = Constant <value_int = 2> ()  six = Constant <value_int = 6> ()
    most = Constant <value_int = 4611686018427387904> ()
    @
    y = Loop <body = step (int64 i, bool c, float[N] s) => (bool d, float[N] r) {
        d = Identity (c)  r = Neg (s) }> (m, , x) }"""
HANGS = {
    f"for ever where n is {what}": (
        _HANG,
        "m = Identity (n)",
        f"is = {condition}  m = Where (is, most, n)",
    )
    for what, condition in (
        ("2", "Equal (n, two)"),
        ("above 6", "Greater (n, six)"),
        ("above 2", "Greater (n, two)"),
    )
}
_BORDER = "(float[N,5] x) => (%s y) { a = Constant <value_ints = [1]> ()  %s }"
BORDERS = {
    **{
        f"{op} of {right}, not of {wrong}": (
            _BORDER % ("bool[N,5]", f"c = Constant <value_float = @> ()  s = {of} (x)"
                       f"  y = {op} (s, c)"), str(right), str(wrong))
        for op, of, right, wrong in (
            ("Greater", "Sigmoid", 0.6, 0.7),
            ("Greater", "Tanh", 0.3, 0.32),
            ("LessOrEqual", "Sin", 0.1, 0.15),
            ("Less", "Erf", -0.2, -0.25),
            ("GreaterOrEqual", "Identity", 0.5, 0.5000001),
        )
    },
    "the largest for the smallest": (
        _BORDER % ("int64[N,1]", "s = Sigmoid (x)  y = @ <axis = 1> (s)"), "ArgMax", "ArgMin"),
    "another of equal ones": (
        _BORDER % ("int64[N,1]", "s = Relu (x)  y = ArgMax <axis = 1, select_last_index = @> (s)"),
        "0", "1"),
    "rounded, not cut": (
        _BORDER % ("int64[N,5]", "s = Sin (x)  w = Mul (s, x)  @  y = Cast <to = 7> (v)"),
        "v = Floor (w)", "v = Round (w)"),
    "the floor for the ceiling": (
        _BORDER % ("int64[N,5]", "s = Exp (x)  v = @ (s)  y = Cast <to = 7> (v)"),
        "Floor", "Ceil"),
    "how many are positive": (
        _BORDER % ("int64[N]", "z = Constant <value_float = 0.0> ()  s = Sin (x)  g = @ (s, z)"
                   "  i = Cast <to = 7> (g)  y = ReduceSum <keepdims = 0> (i, a)"),
        "Greater", "GreaterOrEqual"),
    "the order of the sorted": (
        _BORDER % ("int64[N,2]", "w = Constant <value_ints = [2]> ()  s = Sigmoid (x)"
                   "  v, y = TopK <axis = 1, largest = @> (s, w)"), "1", "0"),
    "sign of zero": (
        _BORDER % ("float[N,5]", "y = @ (x)"), "Sign", "Tanh"),
}  # fmt: skip
_NEIGHBOUR = """(float[N,2] x) => (float[N,2] y) {
    s = Constant <value = float[2] {%s, 1.0}> ()  b = Constant <value = float[2] {0.0, @}> ()
    t = Tanh (x)  p = Mul (t, s)  y = Add (p, b) }"""
NEIGHBOURS = {
    f"off by {wrong - 0.3:.3g} beside {scale:g}": (
        _NEIGHBOUR % f"{scale:.1f}", "0.3", str(wrong),
    )
    for scale, wrong in ((1e6, 0.8), (1e6, 0.301), (1e4, 0.3001), (100.0, 0.30001), (1e8, 0.4))
}  # fmt: skip

#: Why no draw shows these.
_NOT_LONG = "no axis beyond 67 is drawn where floats are carried through a loop"
OUT_OF_REACH = {
    "T > 128, scanned": _NOT_LONG,
    "B >= 129, scanned": _NOT_LONG,
    "beyond 2,000 elements, scanned": _NOT_LONG,
    "the number of bits": "a number that ends a loop is drawn small: it may count iterations",
    "a decimal that is equal": "the decimal is rounded, so it may be on either side of another one",
    "a quantized half": "the quotient of a QuantizeLinear may be rounded to either side",
}


def is_out_of_reach(pair: Pair) -> str:
    """Why a fault is not found; empty where it is to be."""
    return OUT_OF_REACH.get(pair.name, "")


def _where(kind: str, name: str, original: str, condition: str) -> Pair:
    """One is added to u where `bad`."""
    fault = f"{condition}  w = Add (u, one_f)  y = Where (bad, w, u)  m = Identity (v)"
    return _made(kind, name, original, fault)


def _made(kind: str, name: str, original: str, fault: str) -> Pair:
    axes = "axes = Constant <value_ints = [1]> ()  last = Constant <value_ints = [1]> ()  "
    right = f"{HEAD} {{ {axes} {original}  y = Identity (u)  m = Identity (v) }}"
    return Pair(kind, name, right, f"{HEAD} {{ {axes} {SIZES_OF_X} {original}  {fault} }}")
