"""Every small change to a loop is caught: other ops, operands, directions, outputs, lengths."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from onnx import ModelProto, NodeProto, parser

from passes.ir import scope
from passes.verify.inputs.drawer import Hint
from passes.verify.reference import ReferenceExecutor
from tests.verification import verify

SCAN_BODY = """body = b (float[S] i, float[S] e, float[S] f) => (float[S] o, float[S] c, float[S] d)
    { a = Mul(i, e)  o = Add(a, f)  c = Sub(o, i)  d = Max(e, f) }"""
MODELS = {
    "Scan-8": f"""<ir_version: 6, opset_import: ["" : 8]>
        g (int64[B] lens, float[B,S] s0, float[B,T,S] x, float[B,T,S] v)
        => (float[B,S] s, float[B,T,S] y, float[B,T,S] u) {{ s, y, u = Scan
            <num_scan_inputs = 2, directions = [0, 1], {SCAN_BODY}> (lens, s0, x, v) }}""",
    "Scan-11": f"""<ir_version: 8, opset_import: ["" : 13]>
        g (float[S] s0, float[T,S] x, float[T,S] v) => (float[S] s, float[T,S] y, float[T,S] u)
        {{ s, y, u = Scan <num_scan_inputs = 2, scan_input_directions = [0, 1],
            scan_output_directions = [1, 0], {SCAN_BODY}> (s0, x, v) }}""",
    "Loop": """<ir_version: 8, opset_import: ["" : 13]>
        g (int64 m, bool c0, float[S] s0, float[S] z) => (float[S] s, float[T,S] y)
        { s, y = Loop <body = b (int64 n, bool c, float[S] i) => (bool k, float[S] o, float[S] d) {
            a = Mul(i, z)  o = Add(a, s0)  d = Sub(o, i)  r = ReduceSum <keepdims = 0> (o)
            t = Constant <value = float {20}> ()  k = Less(r, t) }> (m, c0, s0) }""",
}
OPS = ("Add", "Sub", "Mul", "Max", "Min")
HINTS = {"Scan-8": {"lens": Hint(length_of="T")}}


def copy(model: ModelProto, index: int) -> tuple[ModelProto, NodeProto]:
    """A copy, and its node at `index` of the walk."""
    result = ModelProto()
    result.CopyFrom(model)
    return result, list(scope.walk_model(result))[index].node


def mutants(model: ModelProto) -> Iterator[tuple[str, ModelProto]]:
    for index, place in enumerate(scope.walk_model(model)):
        mutate = _arithmetic if place.node.op_type in OPS else _loop
        if place.node.op_type in (*OPS, "Scan", "Loop"):
            yield from mutate(model, index, place.node)


def _arithmetic(model: ModelProto, index: int, node: NodeProto) -> Iterator[tuple[str, ModelProto]]:
    for op in OPS:
        if op != node.op_type:
            mutant, changed = copy(model, index)
            changed.op_type = op
            yield f"{op} for {node.op_type}", mutant
    for place, old in enumerate(node.input):
        for new in ("i", "e", "f"):
            mutant, changed = copy(model, index)
            changed.input[place] = new
            known = any(name == new for p in scope.walk_model(model) for name in p.node.input)
            if known and new != old:
                yield f"{new} for {old} in {node.op_type}", mutant


def _loop(model: ModelProto, index: int, node: NodeProto) -> Iterator[tuple[str, ModelProto]]:
    for i, attribute in enumerate(node.attribute):
        for place in range(len(attribute.ints)):
            mutant, changed = copy(model, index)
            changed.attribute[i].ints[place] ^= 1
            yield f"{attribute.name}[{place}]", mutant
    for place in range(len(node.output) - 1):
        mutant, changed = copy(model, index)
        pair = node.output[place], node.output[place + 1]
        changed.output[place + 1], changed.output[place] = pair
        yield f"{' and '.join(pair)} swapped", mutant
    for place in range({"Loop": 2}.get(node.op_type, int(model.opset_import[0].version == 8))):
        mutant, changed = copy(model, index)
        changed.input[place] = ""
        yield f"{node.input[place]} left out", mutant


@pytest.mark.sampled(2)
@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("name", MODELS)
def test_every_mutant_is_caught(name: str, exact: bool) -> None:
    model = parser.parse_model(MODELS[name])
    executors, hints = [ReferenceExecutor()], HINTS.get(name, {})

    def verdict(after: ModelProto) -> str:
        found = verify(model, after, executors=executors, hints=hints, exact=exact, case_timeout=1)
        return found.verdict

    assert verdict(model) == "verified"
    verdicts = {what: verdict(mutant) for what, mutant in mutants(model)}
    assert len(verdicts) > 12
    assert {what for what, said in verdicts.items() if said != "mismatch"} == set()
