"""Random Scans whose bodies are drawn from the table of vectorisation rules."""

from __future__ import annotations

import random

from passes.errors import NotVerified
from passes.testing import assert_rewrite

#: Each writes `{out}`, a float[2,3], from other values of that type, captures and constants.
TEMPLATES = (
    "{out} = Tanh ({a})",
    "{out} = Sigmoid ({a})",
    "{out} = Add ({a}, {b})",
    "{out} = Sub ({a}, {b})",
    "{out} = Mul ({a}, {b})",
    "{out} = Max ({a}, {b})",
    "{out} = Add ({a}, row)",
    "{out} = Mul (half, {a})",
    "{out} = MatMul ({a}, W)",
    "{out} = MatMul (square, {a})",
    "{out} = Gemm <transB = 1> ({a}, W, row)",
    "{out} = Gemm ({a}, W, {b})",
    "{out} = Softmax <axis = -1> ({a})",
    "{out} = Softmax <axis = 0> ({a})",
    "{out} = LayerNormalization <axis = -1> ({a}, row)",
    "{out} = Identity ({a})",
    "{out} = Abs ({a})",
    "{out} = Clip ({a}, low, high)",
    "{out} = CumSum ({a}, axis_one)",
    "{out} = Neg ({a})",
    "{out}_s = ReduceSum <keepdims = 1> ({a}, axes_one)\n {out} = Sub ({a}, {out}_s)",
    "{out}_m = ReduceMax <keepdims = 1> ({a}, axes_one)\n {out} = Add ({a}, {out}_m)",
    "{out}_t = Transpose <perm = [1, 0]> ({a})\n {out} = Reshape ({out}_t, shape)",
    "{out}_u = Unsqueeze ({a}, axes_one)\n {out} = Squeeze ({out}_u, axes_one)",
    "{out}_c = Concat <axis = 1> ({a}, {b})\n {out} = Slice ({out}_c, ends, axes_four, axes_one)",
    "{out}_l = Less ({a}, {b})\n {out} = Where ({out}_l, {a}, {b})",
    "{out}_i = Cast <to = 7> ({a})\n {out}_j = Cast <to = 1> ({out}_i)\n"
    " {out} = Add ({out}_j, {a})",
    "{out}_n = Shape ({a})\n {out} = Expand (row, {out}_n)",
    "{out}_n = Shape ({a})\n {out}_f = Reshape ({a}, flat)\n {out} = Reshape ({out}_f, {out}_n)",
    "{out}_x, {out}_y = Split <axis = 1> ({a}, parts)\n"
    " {out} = Concat <axis = 1> ({out}_y, {out}_x)",
    "{out}_v, {out}_k = TopK <axis = 1> ({a}, three)\n {out} = Identity ({out}_v)",
    "{out} = Gather <axis = 0> (table, {index})",
    "{out} = Gather <axis = 1> ({a}, order)",
    '{out}_e = Einsum <equation = "ij,jk->ik"> ({a}, W)\n {out} = Relu ({out}_e)',
    "{out}_o = Greater ({a}, half)\n {out}_b = Cast <to = 6> ({out}_o)\n"
    " {out}_d = Cast <to = 1> ({out}_b)\n {out} = Add ({out}_d, {b})",
    "{out} = Scan <num_scan_inputs = 1, body = inner{n} (float[3] p{n}) => (float[3] q{n})"
    " {{ q{n} = Tanh (p{n}) }}> ({a})",
    "{out}_g = ReduceSum <keepdims = 0> ({a})\n {out}_h = Less ({out}_g, half)\n"
    " {out} = If ({out}_h) <then_branch = yes{n} () => (float[2,3] y{n}) {{ y{n} = Neg ({a}) }},"
    " else_branch = no{n} () => (float[2,3] z{n}) {{ z{n} = Tanh ({a}) }}>",
)
#: What a carried value may become: the last one by its name, or any value.
STEPS = ("{value}", "{value}", "{state}", "Add ({state}, {value})", "Max ({state}, {value})")
CONSTANTS = """
    half = Constant <value = float {0.5}> ()
    low = Constant <value = float {-1.0}> ()
    high = Constant <value = float {2.0}> ()
    axis_one = Constant <value = int64 {1}> ()
    axes_one = Constant <value = int64[1] {1}> ()
    axes_four = Constant <value = int64[1] {4}> ()
    ends = Constant <value = int64[1] {1}> ()
    shape = Constant <value = int64[2] {2, 3}> ()
    flat = Constant <value = int64[1] {-1}> ()
    parts = Constant <value = int64[2] {1, 2}> ()
    three = Constant <value = int64[1] {3}> ()
    order = Constant <value = int64[3] {2, 0, 1}> ()
"""


def random_scan(seed: int, *, states: int | None = None) -> str:
    """A model of one Scan; how many values it carries is drawn, too, where it is not said."""
    rng = random.Random(seed)
    time = rng.choice(["T", "T", "0", "1", "3"])
    count = rng.randint(0, 2) if states is None else states
    carried = [f"s{number}" for number in range(count)]
    scanned = [_scanned(rng, number, time) for number in range(rng.randint(1, 2))]
    values = [*carried, *(f"x{number}" for number in range(len(scanned)))]
    lines = []
    for number in range(rng.randint(2, 8)):
        out = f"v{number}"
        template = rng.choice(TEMPLATES)
        a, b = rng.choice(values[-4:]), rng.choice(values)
        lines.append(template.format(out=out, a=a, b=b, index="index", n=number))
        values.append(out)
    ends = [_step(rng, state, values) for state in carried]
    kept = [rng.choice(values) for _ in range(rng.randint(1, 3))]
    lines += [line for line, _ in ends]
    lines += [f"c{number} = Identity ({value})" for number, value in enumerate(kept)]
    return _model(rng, time, carried, scanned, len(kept), "\n".join(lines))


def _scanned(rng: random.Random, number: int, time: str) -> tuple[str, int, int]:
    """Its shape, axis and direction."""
    axis = rng.choice([0, 0, 1, 2, -1])
    dims = ["2", "3"]
    dims.insert(axis % 3, time)
    return f"float[{','.join(dims)}] X{number}", axis, rng.randint(0, 1)


def _step(rng: random.Random, state: str, values: list[str]) -> tuple[str, str]:
    form = rng.choice(STEPS).format(state=state, value=rng.choice(values))
    out = f"{state}_out"
    return (f"{out} = {form}" if "(" in form else f"{out} = Identity ({form})"), out


def _model(
    rng: random.Random,
    time: str,
    carried: list[str],
    scanned: list[tuple[str, int, int]],
    kept: int,
    body: str,
) -> str:
    axes = [rng.choice([0, 0, 1, 2, -1]) for _ in range(kept)]
    ways = [rng.randint(0, 1) for _ in range(kept)]
    inputs = [f"float[2,3] S{number}" for number in range(len(carried))]
    inputs += [shape for shape, _, _ in scanned] + [f"int64[{time}] indices"]
    outputs = [f"float[2,3] F{number}" for number in range(len(carried))]
    outputs += [f"float[A{number},B{number},C{number}] Y{number}" for number in range(kept)]
    rows = [f"float[2,3] {name}" for name in carried]
    rows += [f"float[2,3] x{number}" for number in range(len(scanned))] + ["int64 index_t"]
    ends = [f"float[2,3] {name}_out" for name in carried]
    ends += [f"float[2,3] c{number}" for number in range(kept)]
    fed = [f"S{number}" for number in range(len(carried))]
    fed += [f"X{number}" for number in range(len(scanned))] + ["indices"]
    names = [f"F{number}" for number in range(len(carried))] + [f"Y{n}" for n in range(kept)]
    in_axes = [axis for _, axis, _ in scanned] + [0]
    in_ways = [way for _, _, way in scanned] + [rng.randint(0, 1)]
    lookup = (
        "two = Constant <value = int64 {2}> ()\n nine = Mod (index_t, two)\n"
        " pair = Constant <value = int64[2] {0, 1}> ()\n index = Add (pair, nine)"
    )
    return f"""<ir_version: 8, opset_import: ["" : 18]>
        g ({", ".join(inputs)}) => ({", ".join(outputs)})
        <float[3,3] W = {{1, 2, -1, 0.5, 0.25, 1, -2, 0, 1}}, float[3] row = {{1, -1, 0.5}},
         float[2,2] square = {{1, 0.5, -1, 2}},
         float[4,3] table = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}}> {{
            {", ".join(names)} = Scan <num_scan_inputs = {len(in_axes)},
                scan_input_axes = {in_axes}, scan_input_directions = {in_ways},
                scan_output_axes = {axes}, scan_output_directions = {ways},
                body = step ({", ".join(rows)}) => ({", ".join(ends)}) {{
                    {CONSTANTS} {lookup} {body}
                }}> ({", ".join(fed)}) }}"""


def check_random_scan(seed: int, pipeline: str) -> None:
    """Rewrite a random Scan; what is rewritten must agree, unless all of it is empty."""
    options = {"allow_reassociation": bool(seed % 2)}
    try:
        assert_rewrite(random_scan(seed), pipeline=pipeline, options=options)
    except (AssertionError, NotVerified) as error:
        if "every compared output was empty" not in str(error):
            raise
