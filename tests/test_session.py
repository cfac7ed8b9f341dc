"""`passes.upgrade`: what a library user may rely on."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import ModelProto, parser

import passes
from tests.called import called, called_elsewhere

SUM = """<ir_version: 6, opset_import: ["" : 8]>
    g (int64[B] lens, float[B,2] h, float[B,T,2] x, float[2] w)
    => (float[B,2] y, float[B,T,2] z, float[B,2] n) {
    n = Neg(h)
    y, z = Scan <num_scan_inputs = 1,
        body = b (float[2] s, float[2] e) => (float[2] o, float[2] c) {
            o = Add(s, e)  c = Mul(o, w) }> (lens, h, x) }"""
OPSETS = (9, 10, 11, 12, 13, 16, 21, 26)


@pytest.fixture
def model() -> ModelProto:
    """A ragged sum with a weight captured, beside a node that has nothing to do with it."""
    made: ModelProto = parser.parse_model(SUM)
    untouched = made.graph.node[0]
    untouched.name = "the negative"
    untouched.doc_string = "h, negated"
    untouched.metadata_props.add(key="who", value="me")
    made.metadata_props.add(key="author", value="somebody")
    made.doc_string = "sums"
    return made


def signature(model: ModelProto) -> list[bytes]:
    ends = [*model.graph.input, *model.graph.output]
    return [one.SerializeToString(deterministic=True) for one in ends]


def upgraded(model: ModelProto, opset: int = 9) -> passes.Result:
    return passes.upgrade(model, opset=opset, verify=False)


@pytest.mark.parametrize("opset", OPSETS)
def test_a_valid_model_with_the_same_signature(model: ModelProto, opset: int) -> None:
    after = upgraded(model, opset).model
    onnx.checker.check_model(after, full_check=True)
    assert signature(after) == signature(model)
    assert after.opset_import[0].version == opset


def test_the_argument_stays_as_it_is(model: ModelProto) -> None:
    before = model.SerializeToString(deterministic=True)
    passes.upgrade(model, opset=9, executor="reference", verify_budget=2)
    assert model.SerializeToString(deterministic=True) == before


def test_what_is_not_touched_stays_to_the_byte(model: ModelProto) -> None:
    after = upgraded(model).model
    (kept,) = [node for node in after.graph.node if node.name == "the negative"]
    assert kept.SerializeToString() == model.graph.node[0].SerializeToString()
    assert after.metadata_props == model.metadata_props
    assert after.doc_string == "sums"


@pytest.mark.parametrize("opset", OPSETS)
def test_upgraded_again_there_is_nothing_to_do(model: ModelProto, opset: int) -> None:
    once = upgraded(model, opset)
    twice = upgraded(once.model, opset)
    assert twice.report.unchanged
    assert twice.model.SerializeToString(deterministic=True) == once.model.SerializeToString(
        deterministic=True
    )


def test_the_bytes_do_not_depend_on_hashes(model: ModelProto, tmp_path: Path) -> None:
    files = [f"{tmp_path / name}.onnx" for name in ("m", "here", "there")]
    onnx.save(model, files[0])
    called("upgrade", files[0], "-o", files[1], "--no-verify")
    called_elsewhere("upgrade", files[0], "-o", files[2], "--no-verify")
    assert Path(files[1]).read_bytes() == Path(files[2]).read_bytes()


def test_the_report_names_every_rewrite(model: ModelProto) -> None:
    result = passes.upgrade(model, opset=9, executor="reference", verify_budget=5)
    (record,) = result.report.records
    assert (record.rule, record.path, record.op) == ("scan-8", "main/scan_1", "Scan")
    assert record.checked is not None
    assert record.checked.verdict == "verified"
    assert result.report.checked is not None
    assert result.report.checked.verdict == "verified"


def test_without_verification_there_is_no_verdict(model: ModelProto) -> None:
    report = upgraded(model).report
    assert report.checked is None
    assert all(record.checked is None for record in report.records)


def test_a_path_gives_the_folder_of_its_weights(model: ModelProto, tmp_path: Path) -> None:
    onnx.save(model, tmp_path / "m.onnx")
    result = passes.upgrade(tmp_path / "m.onnx", opset=9, verify=False)
    assert result.base_dir == tmp_path
    assert upgraded(model).base_dir is None


def test_no_time_is_no_verdict(model: ModelProto) -> None:
    with pytest.raises(passes.NotVerified) as caught:
        passes.upgrade(model, opset=9, verify_budget=0)
    assert caught.value.report.checked is not None
    assert caught.value.report.checked.verdict == "not-compared"
    allowed = passes.upgrade(model, opset=9, verify_budget=0, allow_unverified=True)
    assert allowed.model.opset_import[0].version == 9


def test_a_refusal_has_the_report(model: ModelProto) -> None:
    with pytest.raises(passes.NotProduced) as caught:
        passes.upgrade(model, opset=9, batch="unroll")
    assert [record.code for record in caught.value.report.refusals] == ["batch-not-static"]


@pytest.mark.parametrize("options", [{"batch": "some"}, {"executor": "mine"}])
def test_wrong_options(model: ModelProto, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="not"):
        passes.upgrade(model, **options)


def test_an_opset_that_onnx_does_not_know_is_refused_first(model: ModelProto) -> None:
    with pytest.raises(passes.PassesError, match="opset 99"):
        passes.upgrade(model, opset=99, verify=False)


OLD_LOOP = """
    <ir_version: 6, opset_import: ["" : 11]>
    g (int64 m, float[2] x) => (float[2] y, float[k,2] ys) {
        y, ys = Loop <body = b (int64 n, bool c, float[2] s) => (bool d, float[2] t, float[2] u)
            { d = Identity (c) t = Neg (s) u = Add (s, t) }> (m, , x) }
"""


@pytest.mark.parametrize("command", [passes.raise_, passes.optimize, passes.simplify])
def test_a_model_keeps_its_opset_unless_another_is_asked_for(
    command: Callable[..., passes.Result],
) -> None:
    old = parser.parse_model(OLD_LOOP)
    kept = command(old, verify=False)
    assert kept.report.opsets == (11, 11)
    asked = command(old, opset=18, executor="reference", verify_budget=5)
    assert asked.report.opsets == (11, 18)
    assert asked.model.opset_import[0].version == 18
    assert command(asked.model, opset=18, verify=False).model is asked.model


@pytest.mark.parametrize(("opset", "target"), [(9, 21), (20, 21), (21, 21), (23, 23)])
def test_a_model_goes_to_the_default_opset_unless_it_is_newer(opset: int, target: int) -> None:
    body = "{ y = Relu(x) }"
    text = f'<ir_version: 4, opset_import: ["" : {opset}]> g (float[2] x) => (float[2] y) {body}'
    result = passes.upgrade(parser.parse_model(text), verify=False)
    assert result.report.opsets == (opset, target)
    assert result.model.opset_import[0].version == target
    assert result.model.ir_version == (4 if opset == target else 10)


def test_the_default_opset_is_not_older_than_that_of_a_function() -> None:
    text = """<ir_version: 10, opset_import: ["" : 18, "my" : 1]>
        g (float[2] x) => (float[2] y) { y = my.f(x) }
        <domain: "my", opset_import: ["" : 23]> f (x) => (y) { y = Relu(x) }"""
    result = passes.upgrade(parser.parse_model(text), verify=False)
    assert result.report.opsets == (18, 23)
    assert result.model.functions[0].opset_import[0].version == 23


def test_a_scan_8_is_upgraded_whether_an_opset_is_asked_for_or_not(model: ModelProto) -> None:
    assert passes.lower(model, verify=False).report.opsets == (8, 21)
    assert passes.lower(model, opset=13, verify=False).report.opsets == (8, 13)


def test_scans_of_two_functions_and_a_branch_are_all_found() -> None:
    body = """Scan <num_scan_inputs = 1, body = b (float[2] e) => (float[2] o)
        { o = Neg(e) }>"""
    text = f"""<ir_version: 8, opset_import: ["" : 8, "own" : 1]>
        g (bool c, int64[B] lens, float[B,T,2] x) => (float[B,T,2] y, float[B,T,2] z) {{
            y = own.f (lens, x)
            z = If (c) <then_branch = t () => (float[B,T,2] u) {{ u = {body} (lens, x) }},
                else_branch = e () => (float[B,T,2] v) {{ v = Identity(x) }}> }}
        <domain: "own", opset_import: ["" : 8]>
        f (l, a) => (r) {{ r = {body} (l, a) }}"""
    report = upgraded(parser.parse_model(text)).report
    paths = sorted(record.path for record in report.records)
    assert paths == ["main/if_1.then_branch/scan_0", "own.f/scan_0"]


def test_the_budget_holds_for_a_loop_that_runs_for_ages() -> None:
    model = parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 11]>
        g (float[2] x) => (float[2] y) {
            ages = Constant <value = int64 {4611686018427387904}> ()
            y = Loop (ages, "", x) <body = step (int64 i, bool go, float[2] s)
                => (bool go_on, float[2] t) {
                row = Unsqueeze <axes = [0]> (s)
                t = Squeeze <axes = [0]> (row)
                go_on = Identity (go)
            }>
        }""")
    started = time.monotonic()
    try:
        report = passes.upgrade(model, opset=13, verify_budget=1.0).report
    except passes.NotVerified as error:  # there was no time for the two steps, either
        report = error.report
    assert time.monotonic() - started < 8
    assert report.checked is not None
    assert report.checked.verdict == "not-compared"
    assert "its Loops in one another execute more than" in report.checked.reason
