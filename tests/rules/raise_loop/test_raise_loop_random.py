"""raise-loop and count-loop on random loops: each is raised and verified, or refused."""

from __future__ import annotations

import contextlib
import random

import pytest

from passes.errors import NotVerified
from passes.testing import assert_rewrite

pytestmark = pytest.mark.sampled

INDICES = ("i", "i + 1", "i - 1", "m - 1 - i", "size - 1 - i", "size - 2 - i", "c", "c + 1", "2 i")
TRIPS = ("size", "size - 1", "size + 1", "given", "fixed", "while")
BINARY = ("Add", "Sub", "Mul", "Max")


def random_loop(seed: int) -> str:
    """A loop over rows and columns of x [R, 4], and of w of the same shape or another."""
    rng = random.Random(seed)
    size = rng.choice(["R", "5"])
    other = rng.choice([size, "S"])
    trips = rng.choice(TRIPS)
    reads, names = [], ["h"]
    for number in range(rng.randint(0, 3)):
        tensor = rng.choice(["x", "w"])
        reads.append(_index(rng.choice(INDICES), f"at{number}"))
        reads.append(f"r{number} = Gather <axis = 0> ({tensor}, at{number})")
        names.append(f"r{number}")
    if rng.random() < 0.3:
        reads.append("number = Cast <to = 1> (i)")
        names.append("number")
    previous = "h"
    for number in range(rng.randint(1, 4)):
        reads.append(f"v{number} = {rng.choice(BINARY)} ({previous}, {rng.choice(names)})")
        previous = f"v{number}"
        names.append(previous)
    ends = f"h_out = Identity ({previous})\n y_row = Tanh ({rng.choice(names[1:])})"
    ends += "\n y = Add (y_row, h)"
    return _model(rng, trips, size, other, "\n".join(reads), ends)


def _index(form: str, name: str) -> str:
    parts = {
        "i": f"{name} = Identity (i)",
        "i + 1": f"{name} = Add (i, one)",
        "i - 1": f"{name} = Sub (i, one)",
        "m - 1 - i": f"{name}_l = Sub (last_trip, i)\n {name} = Identity ({name}_l)",
        "size - 1 - i": f"{name}_l = Sub (size, one)\n {name} = Sub ({name}_l, i)",
        "size - 2 - i": f"{name}_l = Sub (size, two)\n {name} = Sub ({name}_l, i)",
        "c": f"{name} = Identity (c)",
        "c + 1": f"{name} = Add (one, c)",
        "2 i": f"{name} = Add (i, i)",
    }
    return parts[form]


def _model(rng: random.Random, trips: str, size: str, other: str, body: str, ends: str) -> str:
    grows = rng.choice(["", "concat", "sequence"])
    counts = {
        "size": "m = Identity (size)",
        "size - 1": "m = Sub (size, one)",
        "size + 1": "m = Add (size, one)",
        "given": "m = Identity (n)",
        "fixed": f"m = Constant <value = int64 {{{rng.randint(1, 4)}}}> ()",
        "while": "m = Identity (n)\n go0 = Less (zero, n)",
    }
    is_while = trips == "while"
    condition = "go_out = Less (c_out, n)" if is_while else "go_out = Identity (go)"
    extra = {
        "": ("", "", "", "", ""),
        "concat": (
            "float[A,4] acc",
            "float[B,4] acc_out",
            ", a0",
            ", a_end",
            "y_1 = Unsqueeze (y, zeros)\n acc_out = Concat <axis = 0> (acc, y_1)",
        ),
        "sequence": (
            "seq(float[4]) acc",
            "seq(float[4]) acc_out",
            ", s0",
            ", s_end",
            "acc_out = SequenceInsert (acc, y)",
        ),
    }[grows]
    carried = f", {extra[0]}" if extra[0] else ""
    returned = f", {extra[1]}" if extra[1] else ""
    result = {"": "out = Identity (y_all)", "concat": "out = Identity (a_end)"}.get(
        grows, "out = ConcatFromSequence <axis = 1, new_axis = 1> (s_end)"
    )
    given = '"", go0' if is_while else 'm, ""'
    return f"""
    <ir_version: 8, opset_import: ["" : 17]>
    loops (float[{size},4] x, float[{other},4] w, float[4] h0, int64 n)
        => (float[4] h_end, float[P,Q] out, float[N,4] y_all)
    <int64[1] zeros = {{0}}, int64 zero = {{0}}, int64 one = {{1}}, int64 two = {{2}},
     int64[2] no_rows = {{0, 4}}>
    {{
        shape = Shape (x)
        size_1 = Gather (shape, zeros)
        size = Squeeze (size_1, zeros)
        s0 = SequenceEmpty <dtype = 1> ()
        a0 = ConstantOfShape (no_rows)
        {counts[trips]}
        last_trip = Sub (m, one)
        h_end, c_end{extra[3]}, y_all = Loop ({given}, h0, zero{extra[2]}) <body = step
            (int64 i, bool go, float[4] h, int64 c{carried})
            => (bool go_out, float[4] h_out, int64 c_out{returned}, float[4] y) {{
            {body}
            {ends}
            c_out = Add (c, one)
            {condition}
            {extra[4]}
        }}>
        {result}
    }}
    """


def raised_or_refused(seed: int, assume: str) -> None:
    """A loop that fails on whatever is drawn proves nothing; one that differs raises Mismatch."""
    with contextlib.suppress(NotVerified):
        assert_rewrite(random_loop(seed), pipeline="raise", options={"assume": assume})


@pytest.mark.parametrize("seed", range(12))
def test_a_random_loop_is_raised_or_refused(seed: int) -> None:
    raised_or_refused(seed, "")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12, 72))
def test_random_loops_are_raised_or_refused(seed: int) -> None:
    raised_or_refused(seed, "non-empty" if seed % 2 else "")
