"""Loops and branches nested as deep as a file can hold them."""

from __future__ import annotations

from dataclasses import replace

from onnx import helper

from tests.instruments.generate.block import Block
from tests.instruments.generate.bodies import body_of
from tests.instruments.generate.loops import condition
from tests.instruments.generate.odd import odd
from tests.instruments.generate.values import BOOL, FLOAT, INT64, Value

#: The last is the most that protobuf reads back: each level is three messages of at most 100.
_LEVELS = (6, 12, 20, 30, 31)
_SHAPE = (2,)


@odd("deep")
def nest(b: Block) -> None:
    """Bodies in bodies, each of which adds to what it carries."""
    if b.depth:
        return
    often = 2  # loops that run more than once
    kinds = []
    for _ in range(b.choices.pick(_LEVELS)):
        kind = b.choices.pick(("loop", "if", "scan", "loop"))
        twice = kind == "loop" and often > 0 and b.choices.one_in(4)
        often -= twice
        kinds.append((kind, 2 if twice else 1))
    _level(b, b.want(FLOAT, _SHAPE), kinds)


def _level(b: Block, value: Value, kinds: list[tuple[str, int]]) -> Value:
    added = b.op("Add", value, b.drawn_constant(FLOAT, _SHAPE))
    if not kinds:
        return added
    (kind, trips), *inner = kinds
    result = replace(added, name="", data=None, rough=True)
    if kind == "if":
        return _if(b, added, result, inner)
    if kind == "scan" and b.program.opset >= 9:
        return _scan(b, added, result, inner)
    return _loop(b, added, result, inner, trips)


def _if(b: Block, value: Value, result: Value, inner: list[tuple[str, int]]) -> Value:
    decided = condition(b)
    deep, flat = b.inner(), b.inner()
    deeper = _level(deep, value, inner)
    ends = [
        replace(result, name=one.op("Identity", end).name)
        for one, end in ((deep, deeper), (flat, value))
    ]
    made = replace(result, name=b.name())
    graphs = [deep.graph("then", [], ends[:1]), flat.graph("else", [], ends[1:])]
    if b.choices.one_in(2):
        graphs.reverse()
    b.add(
        helper.make_node(
            "If", [decided.name], [made.name], then_branch=graphs[0], else_branch=graphs[1]
        ),
        [made],
    )
    return made


def _loop(b: Block, value: Value, result: Value, inner: list[tuple[str, int]], trips: int) -> Value:
    count = b.scalar(trips)
    head = [Value("", INT64, ()), Value("", BOOL, ())]
    body, (number, going, held) = body_of(b, [*head, replace(result, shape=_SHAPE)])
    deeper = _level(body, held, inner)
    ends = [body.op("Identity", going), replace(result, name=body.op("Identity", deeper).name)]
    made = replace(result, name=b.name())
    graph = body.graph("body", [number, going, held], ends)
    start = b.scalar(1, BOOL)
    b.add(
        helper.make_node("Loop", [count.name, start.name, value.name], [made.name], body=graph),
        [made],
    )
    return made


def _scan(b: Block, value: Value, result: Value, inner: list[tuple[str, int]]) -> Value:
    rows = b.want(FLOAT, (1, *_SHAPE))
    row = Value("", FLOAT, _SHAPE, rough=rows.rough)
    body, (held, one) = body_of(b, [replace(result, shape=_SHAPE), row])
    deeper = _level(body, body.op("Add", held, one), inner)
    end = replace(result, name=body.op("Identity", deeper).name)
    made = replace(result, name=b.name())
    graph = body.graph("body", [held, one], [end])
    b.add(
        helper.make_node(
            "Scan", [value.name, rows.name], [made.name], body=graph, num_scan_inputs=1
        ),
        [made],
    )
    return made
