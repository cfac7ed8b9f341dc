"""More faults seeded into outcomes: wrong on rare values, sizes and trip counts only.

They, too, were written before it was measured which of them verification finds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

#: The inputs and outputs of a model, what is right, and what is wrong.
Case = tuple[str, str, str]


def rare_pairs() -> Iterator[tuple[str, str, str, str]]:
    """Kind, name, the right model and the wrong one."""
    for kind, cases in _KINDS.items():
        for name, (signature, right, wrong) in cases.items():
            yield kind, name, f"{signature} {{ {right} }}", f"{signature} {{ {wrong} }}"


def _int(name: str, value: int) -> str:
    return f"{name} = Constant <value_int = {value}> ()  "


def _float(name: str, value: float) -> str:
    return f"{name} = Constant <value_float = {value}> ()  "


def _typed(name: str, dtype: str, value: int) -> str:
    return f"{name} = Constant <value = {dtype} {{{value}}}> ()  "


#: One is added to the floats u where `bad`.
_BAD = "  one_f = Constant <value_float = 1.0> ()  w = Add (u, one_f)  y = Where (bad, w, u)"
_SAME = "y = Identity (k)"


def _through(dtype: str, kind: int, own: int) -> Case:
    return (
        f"({dtype}[N] k) => ({dtype}[N] y)",
        _SAME,
        f"s = Cast <to = {kind}> (k)  y = Cast <to = {own}> (s)",
    )


def _bounded(dtype: str, op: str, bound: int) -> Case:
    return (
        f"({dtype}[N] k) => ({dtype}[N] y)",
        _SAME,
        _typed("c", dtype, bound) + f"y = {op} (k, c)",
    )


_NOT_NEGATIVE = "z = Constant <value = {0} {{0}}> ()  i = Cast <to = {1}> (k)  m = Max (i, z)  "
INTEGERS: dict[str, Case] = {
    "int64 as int32": _through("int64", 6, 7),
    "int64 as float": _through("int64", 1, 7),
    "int64 as double": _through("int64", 11, 7),
    "int32 as float": _through("int32", 1, 6),
    "uint8 as int8": (
        "(uint8[N] k) => (int32[N] y)",
        "y = Cast <to = 6> (k)",
        "i = Cast <to = 3> (k)  y = Cast <to = 6> (i)",
    ),
    "uint32 as int32": (
        "(uint32[N] k) => (uint32[N] y)",
        _SAME,
        _NOT_NEGATIVE.format("int32", 6) + "y = Cast <to = 12> (m)",
    ),
    "uint64 as int64": (
        "(uint64[N] k) => (uint64[N] y)",
        _SAME,
        _NOT_NEGATIVE.format("int64", 7) + "y = Cast <to = 13> (m)",
    ),
    "the largest int64": _bounded("int64", "Min", 2**63 - 2),
    "the smallest int64": _bounded("int64", "Max", 1 - 2**63),
    "the smallest int32": _bounded("int32", "Max", 1 - 2**31),
    "the largest int16": _bounded("int16", "Min", 2**15 - 2),
    "the smallest int8": _bounded("int8", "Max", -127),
    "compared by a difference": (
        "(int64[N] k, int64[N] l) => (bool[N] y)",
        "y = Greater (k, l)",
        _int("z", 0) + "d = Sub (k, l)  y = Greater (d, z)",
    ),
    "a scalar as int32": (
        "(int64[N] k, int64 n) => (int64[N] y)",
        "y = Add (k, n)",
        "i = Cast <to = 6> (n)  m = Cast <to = 7> (i)  y = Add (k, m)",
    ),
}

_NO_END = _int("z", 0) + "j = Max (i, z)  "


def _gathering(signature: str, text: str) -> Case:
    return (
        f"{signature} => (float[?,?] y)",
        text.replace("@", "i"),
        _NO_END + text.replace("@", "j"),
    )


FROM_THE_END: dict[str, Case] = {
    "Gather": _gathering("(float[5,3] x, int64[K] i)", "y = Gather (x, @)"),
    "Gather of columns": _gathering("(float[N,6] x, int64[K] i)", "y = Gather <axis = 1> (x, @)"),
    "Gather of one": (
        "(float[N,6] x, int64 i) => (float[N] y)",
        "y = Gather <axis = 1> (x, i)",
        _NO_END + "y = Gather <axis = 1> (x, j)",
    ),
    "the first one from the end": (
        "(float[5] x, int64[K] i) => (float[K] y)",
        "y = Gather (x, i)",
        _int("first", -5) + _int("next", -4) + "e = Equal (i, first)  j = Where (e, next, i)"
        "  y = Gather (x, j)",
    ),
    "starts of Slice": _gathering(
        "(float[5,3] x, int64[1] i)", "e = Constant <value_ints = [5]> ()  y = Slice (x, @, e)"
    ),
    "ends of Slice": _gathering(
        "(float[5,3] x, int64[1] i)", "s = Constant <value_ints = [0]> ()  y = Slice (x, s, @)"
    ),
    "GatherElements": _gathering("(float[4,3] x, int64[4,3] i)", "y = GatherElements (x, @)"),
    "GatherND": _gathering("(float[4,3] x, int64[K,1] i)", "y = GatherND (x, @)"),
    "ScatterElements": _gathering(
        "(float[4,3] x, int64[1,3] i, float[1,3] v)", "y = ScatterElements (x, @, v)"
    ),
    "ScatterND": _gathering(
        "(float[4,3] x, int64[1,1] i, float[1,3] v)", "y = ScatterND (x, @, v)"
    ),
    "OneHot": _gathering(
        "(int64[K] i, float[2] v)", _int("d", 5) + "y = OneHot (@, d, v)"
    ),
    "axes": _gathering("(float[N,3] x, int64[1] i)", "y = ReduceSum (x, @)"),
}  # fmt: skip

_MASKED = "zf = Constant <value_float = 0.0> ()  u = Where (m, x, zf)  "


def _masked(shape: str, bad: str, mask: str = "bool") -> Case:
    """A model that masks x, wrong where `bad`, of `i`: the mask as whole numbers."""
    of_mask = "" if mask == "bool" else "m = Cast <to = 9> (n)  "
    name = "m" if mask == "bool" else "n"
    last = "last = Constant <value_ints = [-1]> ()  "
    return (
        f"(float{shape} x, {mask}{shape} {name}) => (float{shape} y)",
        f"{of_mask}{_MASKED} y = Identity (u)",
        f"{of_mask}{_MASKED}{last}i = Cast <to = 7> (m)  {bad}{_BAD}",
    )


_ALL = "r = ReduceMin <keepdims = 0> (i)  bad = Cast <to = 9> (r)"
_NONE = "r = ReduceMax <keepdims = 0> (i)  s = Cast <to = 9> (r)  bad = Not (s)"
_ROW = "r = ReduceMin (i, last)  bad = Cast <to = 9> (r)"
_NO_ROW = "r = ReduceMax (i, last)  s = Cast <to = 9> (r)  bad = Not (s)"
_SOME = _int("zi", 0) + "all = ReduceMax <keepdims = 0> (i)  some = Cast <to = 9> (all)  "
_FLAGS = "abcdefg"


def _flags(count: int, op: str, negated: bool) -> Case:
    names = _FLAGS[:count]
    inputs = ", ".join(f"bool {name}" for name in names)
    joined = f"t0 = Identity ({names[0]})  "
    for place, name in enumerate(names[1:], 1):
        joined += f"t{place} = {op} (t{place - 1}, {name})  "
    last = f"t{count - 1}"
    return (
        f"(float[N] x, {inputs}) => (float[N] y, bool q)",
        f"u = Sin (x)  y = Identity (u)  q = Xor ({names[0]}, {names[-1]})",
        f"u = Sin (x)  {joined} bad = {'Not' if negated else 'Identity'} ({last})"
        f"{_BAD}  q = Xor ({names[0]}, {names[-1]})",
    )


MASKS: dict[str, Case] = {
    "all of 12": _masked("[12]", _ALL),
    "none of 12": _masked("[12]", _NONE),
    "all of a matrix": _masked("[B,T]", _ALL),
    "none of a matrix": _masked("[B,T]", _NONE),
    "all of a row of 16": _masked("[B,16]", _ROW),
    "none of a row of 16": _masked("[B,16]", _NO_ROW),
    "none of a row of 16, but of others": _masked(
        "[B,16]", _SOME + _NO_ROW.replace("bad", "none") + "  bad = And (none, some)"
    ),
    "all of a row of whole numbers": _masked("[B,16]", _ROW, "int64"),
    "none of a matrix of whole numbers": _masked("[B,T]", _NONE, "int64"),
    "all of six flags": _flags(6, "And", negated=False),
    "none of seven flags": _flags(7, "Or", negated=True),
}

_ROWS = "(float[N,8] x) => (float[N,?] y)"
_AXIS = "a = Constant <value_ints = [1]> ()  "
_DEVIATION = _AXIS + "m = ReduceMean (x, a)  d = Sub (x, m)  "
_MOMENTS = _DEVIATION + "p = Mul (x, x)  e = ReduceMean (p, a)  n = Mul (m, m)  v = Sub (e, n)  "
_SQUARES = _DEVIATION + "p = Mul (d, d)  v = ReduceMean (p, a)  "
_NORMAL = "c = Constant <value_float = 0.00001> ()  w = Add (v, c)  s = Sqrt (w)  y = Div (d, s)"


def _where(condition: str) -> Case:
    return _ROWS, "u = Sin (x)  y = Identity (u)", f"{_AXIS} u = Sin (x)  {condition}{_BAD}"


MAGNITUDES: dict[str, Case] = {
    "all are above 50": _where(
        _float("c", 50.0) + "b = Abs (x)  r = ReduceMin <keepdims = 0> (b)  bad = Greater (r, c)"
    ),
    "all are below 0.01": _where(
        _float("c", 0.01) + _float("z", 0.0) + "b = Abs (x)  r = ReduceMax <keepdims = 0> (b)"
        "  l = Less (r, c)  g = Greater (r, z)  bad = And (l, g)"
    ),
    "a row is large and none of it negative": _where(
        _float("c", 50.0) + "r = ReduceMin (x, a)  bad = Greater (r, c)"
    ),
    "a small spread": _where(
        _float("c", 0.01) + "l = ReduceMin (x, a)  h = ReduceMax (x, a)  b = Abs (h)"
        "  d = Sub (h, l)  f = Mul (b, c)  bad = Less (d, f)"
    ),
    "variance by moments": (_ROWS, _SQUARES + "y = Sqrt (v)", _MOMENTS + "y = Sqrt (v)"),
    "normalised by moments": (_ROWS, _SQUARES + _NORMAL, _MOMENTS + _NORMAL),
    "another epsilon": (
        _ROWS, _SQUARES + _NORMAL, _SQUARES + _NORMAL.replace("0.00001", "0.00002")
    ),
    "the mean in float16": (
        _ROWS,
        _DEVIATION + "y = Tanh (d)",
        _AXIS + "h = Cast <to = 10> (x)  r = ReduceMean (h, a)  m = Cast <to = 1> (r)"
        "  d = Sub (x, m)  y = Tanh (d)",
    ),
    "the sum of exponentials": (
        _ROWS,
        _AXIS + "y = ReduceLogSumExp (x, a)",
        _AXIS + "e = Exp (x)  s = ReduceSum (e, a)  y = Log (s)",
    ),
    "softmax without its maximum": (
        _ROWS,
        "y = Softmax <axis = 1> (x)",
        _AXIS + "e = Exp (x)  s = ReduceSum (e, a)  y = Div (e, s)",
    ),
}  # fmt: skip


def _flushed(dtype: str, own: int, tiny: str) -> Case:
    return (
        f"({dtype}[N] x) => ({dtype}[N] y)",
        "y = Identity (x)",
        f"d = Constant <value = double {{{tiny}}}> ()  o = Constant <value = double {{0.0}}> ()"
        f"  c = Cast <to = {own}> (d)  z = Cast <to = {own}> (o)"
        "  b = Abs (x)  l = Less (b, c)  y = Where (l, z, x)",
    )


DENORMALS: dict[str, Case] = {
    "float": _flushed("float", 1, "1.1754944e-38"),
    "float16": _flushed("float16", 10, "0.00006"),
    "double": _flushed("double", 11, "2.2e-308"),
    "their sign": (
        "(float[N] x) => (float[N] y)",
        "y = Sign (x)",
        _float("c", 1.1754944e-38) + "b = Abs (x)  l = Less (b, c)  s = Sign (x)"
        "  z = Constant <value_float = 0.0> ()  y = Where (l, z, s)",
    ),
    "whether there is any": (
        "(float[N] x) => (bool[N] y)",
        _float("z", 0.0) + "y = Equal (x, z)",
        _float("c", 1e-38) + "b = Abs (x)  y = Less (b, c)",
    ),
}

_COUNTED = "(float[N] x, int64 n) => (float[N] y)"
_LOOP = """y = Loop <body = step (int64 i, bool c, float[N] s) => (bool d, float[N] r) {
    d = Identity (c)  h = Sin (s)  r = Add (h, x) }> (m, , x)"""
_ENDED = """seven = Constant <value_int = 7> ()
    y = Loop <body = step (int64 i, bool c, float[N] s) => (bool d, float[N] r) {
    d = Less (i, seven)  h = Sin (s)  r = Add (h, x) }> (m, , x)"""
TRIPS: dict[str, Case] = {
    **{
        f"one fewer for {count}": (
            _COUNTED,
            f"m = Identity (n)  {_LOOP}",
            _int("c", count) + f"e = Equal (n, c)  i = Cast <to = 7> (e)  m = Sub (n, i)  {_LOOP}",
        )
        for count in (3, 4, 7, 8, 9, 17)
    },
    "a trip count as int32": (
        _COUNTED,
        f"m = Identity (n)  {_ENDED}",
        f"l = Cast <to = 6> (n)  m = Cast <to = 7> (l)  {_ENDED}",
    ),
    "one trip more, and one fewer": (
        _COUNTED,
        f"m = Identity (n)  {_ENDED}",
        _int("one", 1) + _int("z", 0) + "p = Add (n, one)  q = Max (p, z)  l = Sub (q, one)"
        f"  m = Max (l, z)  {_ENDED}",
    ),
}

_MATRIX = "(float[B,T] x) => (float[B,T] y)"
_SIZES = """z = Constant <value_int = 0> ()  one = Constant <value_int = 1> ()  shape = Shape (x)
    b = Gather (shape, z)  t = Gather (shape, one)  """
_SCANNED = """axes = Constant <value_ints = [1]> ()  h0 = ReduceSum <keepdims = 0> (x, axes)
    hT, u = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [1],
        body = step (float[B] h, float[B] x_t) => (float[B] o, float[B] u_t) {
        g = Tanh (h)  o = Add (g, x_t)  u_t = Identity (o) }> (h0, x)  """


def _sized(condition: str) -> dict[str, Case]:
    originals = {"moved": "u = Identity (x)  ", "rounded": "u = Sin (x)  ", "scanned": _SCANNED}
    return {
        name: (_MATRIX, f"{text}y = Identity (u)", f"{text}{_SIZES}{condition}{_BAD}")
        for name, text in originals.items()
    }


LONG: dict[str, Case] = {
    f"{name}, {original}": case
    for name, condition in {
        "T > 128": _int("c", 128) + "bad = Greater (t, c)",
        "B >= 129": _int("c", 129) + "bad = GreaterOrEqual (b, c)",
        "beyond 2,000 elements": _int("c", 2000) + "n = Mul (b, t)  bad = Greater (n, c)",
        "B == 1 beside T > 32": _int("c", 32) + "e = Equal (b, one)  g = Greater (t, c)"
        "  bad = And (e, g)",
        "T == 1 beside B > 32": _int("c", 32) + "e = Equal (t, one)  g = Greater (b, c)"
        "  bad = And (e, g)",
    }.items()
    for original, case in _sized(condition).items()
}

_SCALAR = "(float[N] x, int64 n) => (float[N] y)"
_TEXTS = "(string[N] s, float[N] x) => (float[N] y)"
_STRING = 'c = Constant <value_string = "%s"> ()  '
#: More constants than are drawn from.
_CROWD = "".join(f"c{n} = Constant <value_int = {1000 + n}> ()  e{n} = Greater (n, c{n})  "
                 f"i{n} = Cast <to = 1> (e{n})  " for n in range(40))  # fmt: skip
_CROWDED = _CROWD + "u = Sum (x, " + ", ".join(f"i{n}" for n in range(40)) + ")  "


def _one_number(dtype: str, number: str) -> Case:
    return (
        f"(float[N] x, {dtype} n) => (float[N] y)",
        "u = Sin (x)  y = Identity (u)",
        f"c = Constant <value = {dtype} {{{number}}}> ()  u = Sin (x)  bad = Equal (n, c){_BAD}",
    )


MENTIONED: dict[str, Case] = {
    "n == 3": _one_number("int64", "3"),
    "n == 11": _one_number("int64", "11"),
    "n == 1001, an int32": _one_number("int32", "1001"),
    "a scalar == 0.1": _one_number("float", "0.1"),
    "n == 77 beside 40 numbers of the original": (
        _SCALAR,
        _CROWDED + "y = Identity (u)",
        _CROWDED + _int("c", 77) + f"bad = Equal (n, c){_BAD}",
    ),
    "n == 3 in an If": (
        _SCALAR,
        "y = Sin (x)",
        _int("c", 3) + "e = Equal (n, c)  y = If (e) <then_branch = t () => (float[N] p) {"
        " p = Cos (x) }, else_branch = f () => (float[N] q) { q = Sin (x) }>",
    ),
    "an element == 41": (
        "(int64[N] k) => (int64[N] y)",
        _SAME,
        _int("c", 41) + "e = Equal (k, c)  i = Cast <to = 7> (e)  y = Add (k, i)",
    ),
    "an element == 13.25": (
        "(float[N] x) => (float[N] y)",
        "u = Sin (x)  y = Identity (u)",
        "u = Sin (x)  " + _float("c", 13.25) + f"bad = Equal (x, c){_BAD}",
    ),
    "a string": (
        _TEXTS,
        "u = Sin (x)  y = Identity (u)",
        "u = Sin (x)  " + _STRING % "other" + f"bad = Equal (s, c){_BAD}",
    ),
    "one of two strings": (
        _TEXTS,
        "u = Sin (x)  " + _STRING % "left" + f"bad = Equal (s, c){_BAD}",
        "u = Sin (x)  " + _STRING % "left" + "d = Constant <value_string = \"right\"> ()"
        f"  e = Equal (s, c)  f = Equal (s, d)  bad = Or (e, f){_BAD}",
    ),
    "another string": (
        _TEXTS,
        "u = Sin (x)  " + _STRING % "left" + f"bad = Equal (s, c){_BAD}",
        "u = Sin (x)  " + _STRING % "lift" + f"bad = Equal (s, c){_BAD}",
    ),
    "a stop word": (
        "(string[4] s) => (string[?] y)",
        "y = StringNormalizer <case_change_action = \"LOWER\"> (s)",
        "y = StringNormalizer <case_change_action = \"LOWER\", stopwords = [\"the\"]> (s)",
    ),
}  # fmt: skip

_VECTOR = "(float[N] x) => (float[N] y)"
_WEIGHED = "(float[N,6] x, bool[N,6] m) => (float[N,6] y)"


def _filled(fill: str, rest: str) -> str:
    return f"c = Constant <value = float {{{fill}}}> ()  s = Where (m, x, c)  {rest}"


INFINITIES: dict[str, Case] = {
    "a number": (
        _VECTOR,
        "y = Identity (x)",
        _float("c", 7.0) + "i = IsInf (x)  y = Where (i, c, x)",
    ),
    "the largest number": (
        _VECTOR,
        "y = Identity (x)",
        _float("l", -3.4e38) + _float("h", 3.4e38) + "y = Clip (x, l, h)",
    ),
    "of the other sign": (
        _VECTOR,
        "y = Identity (x)",
        "i = IsInf (x)  n = Neg (x)  y = Where (i, n, x)",
    ),
    "a mask of -10000": (
        _WEIGHED,
        _filled("-inf", "y = Identity (s)"),
        _filled("-10000.0", "y = Identity (s)"),
    ),
    "a mask of -10000 before Softmax": (
        _WEIGHED,
        _filled("-inf", "y = Softmax <axis = 1> (s)"),
        _filled("-10000.0", "y = Softmax <axis = 1> (s)"),
    ),
    "an exponential, bounded": (
        _VECTOR,
        "y = Exp (x)",
        _float("c", 60.0) + "m = Min (x, c)  y = Exp (m)",
    ),
    "a logarithm, bounded": (
        _VECTOR,
        "r = Relu (x)  y = Log (r)",
        _float("c", 1e-30) + "r = Relu (x)  m = Max (r, c)  y = Log (m)",
    ),
    "a quotient by zero": (
        _VECTOR,
        _float("o", 1.0) + "y = Div (o, x)",
        _float("o", 1.0) + _float("e", 1e-30) + "a = Abs (x)  m = Max (a, e)  s = Sign (x)"
        "  p = Mul (m, s)  q = Add (p, e)  y = Div (o, q)",
    ),
}  # fmt: skip

_WHOLE = "(float[N,5] x) => (int64[N,5] y)"
_LARGE = "c = Constant <value_float = 3.0e10> ()  s = Sigmoid (x)  p = Mul (s, c)  f = Floor (p)  "
ROUNDED: dict[str, Case] = {
    "at most 20000000": (
        _WHOLE,
        _LARGE + "y = Cast <to = 7> (f)",
        _LARGE + _int("m", 20_000_000) + "z = Cast <to = 7> (f)  y = Min (z, m)",
    ),
    "off by 1 %": (
        _WHOLE,
        _LARGE + "y = Cast <to = 7> (f)",
        _LARGE + _float("o", 1.01) + "g = Mul (f, o)  y = Cast <to = 7> (g)",
    ),
    "zero above 1e10": (
        _WHOLE,
        _LARGE + "y = Cast <to = 7> (f)",
        _LARGE + _float("o", 1e10) + _float("z", 0.0) + "l = Less (f, o)  g = Where (l, f, z)"
        "  y = Cast <to = 7> (g)",
    ),
    "5 more": (
        _WHOLE,
        "c = Constant <value_float = 1000.0> ()  e = Exp (x)  p = Mul (e, c)  f = Round (p)"
        "  y = Cast <to = 7> (f)",
        "c = Constant <value_float = 1000.0> ()  e = Exp (x)  p = Mul (e, c)  f = Round (p)"
        "  z = Cast <to = 7> (f)  v = Constant <value_int = 5> ()  y = Add (z, v)",
    ),
}  # fmt: skip

_KINDS: Mapping[str, Mapping[str, Case]] = {
    "large integers": INTEGERS,
    "from the end": FROM_THE_END,
    "masks and flags": MASKS,
    "one magnitude": MAGNITUDES,
    "denormals": DENORMALS,
    "more trip counts": TRIPS,
    "long axes": LONG,
    "mentioned by the wrong model": MENTIONED,
    "infinities": INFINITIES,
    "rounded to whole numbers": ROUNDED,
}
