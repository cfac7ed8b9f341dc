"""What is in the way of small models, by each fact that a profile may state."""

from __future__ import annotations

import pytest
from onnx import defs

from passes.check import load_checked
from passes.targets.findings import check, precision, unsupported
from passes.targets.profile import load, names, parsed
from passes.testing import as_model
from tests.written import changed

HEAD = 'name = "npu"\nsummary = "Some NPU"\n'
PLAIN = """
    <ir_version: 10, opset_import: ["" : 21]>
    g (float[N,2] x) => (float[N,2] y) { y = Neg (x) }
"""
BRANCH = """
    <ir_version: 10, opset_import: ["" : 21]>
    g (bool c, float[N] x) => (float[M] y) {
      y = If (c) <
        then_branch = a () => (float[N] p) { p = Neg (x) },
        else_branch = b () => (float[1] q) { q = Constant <value_floats = [1.0]> () }>
    }
"""
COUNTED = """
    <ir_version: 10, opset_import: ["" : 21]>
    g (bool c, float[2] x) => (float[2] y, float[K,2] z) {
      n = Constant <value_int = 70000> ()
      y, z = Loop (n, c, x) <body = b (int64 i, bool p, float[2] s)
          => (bool q, float[2] t, float[2] u) {
        q = Identity (p)
        t = Add (s, x)
        u = Identity (t)
      }>
    }
"""
WHILE = changed(COUNTED, {"Loop (n, c, x)": 'Loop ("", c, x)'})
SCANNED = """
    <ir_version: 10, opset_import: ["" : 21]>
    g (float[2] h, float[T,2] x, float[2] w) => (float[2] y) {
      k = Exp (w)
      y = Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] e) => (float[2] t) {
        m = Mul (e, k)
        t = Add (s, m)
      }> (h, x)
    }
"""
SUM = """
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[2] h, float[3,2] x) => (float[2] y, float[3,2] z) {
      y, z = Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] e)
          => (float[2] t, float[2] u) { t = Add (s, e) u = Identity (t) }> (h, x)
    }
"""
CHOSEN_BY_CALLERS = """
    <ir_version: 10, opset_import: ["" : 21, "my" : 1]>
    g (float[3,1,2] x, float[1,8,2] w, float[1,8,2] r) => (float[3,1,1,2] y) {
      y = my.lstm <way = "forward"> (x, w, r)
    }
    <opset_import: ["" : 21], domain: "my">
    lstm <way> (x, w, r) => (y) { y = LSTM <hidden_size = 2, direction: string = @way> (x, w, r) }
"""
LSTM = """
    <ir_version: 10, opset_import: ["" : 21]>
    g (float[3,1,2] x, float[1,8,2] w, float[1,8,2] r) => (float[3,1,1,2] y) {
      y = LSTM <hidden_size = 2, direction = "reverse", clip = 1.0> (x, w, r)
    }
"""
LISTED = """
    <ir_version: 10, opset_import: ["" : 21]>
    g (float[2] x) => (float[K,2] y) {
      s = SequenceConstruct (x, x)
      y = ConcatFromSequence <axis = 0, new_axis = 1> (s)
    }
"""
CALLED = """
    <ir_version: 10, opset_import: ["" : 21, "my" : 1]>
    g (float[2] x) => (float[2] y) { y = my.twice (x) }
    <domain: "my", opset_import: ["" : 21]>
    twice (a) => (b) { b = Add (a, a) }
"""


COUNTING = """
    <ir_version: 10, opset_import: ["" : 21]>
    g (float[4,N] x) => (float[K,2] y) <int64[2] sizes = {-1, 2}, int64[1] one = {1}> {
      n = Shape (x)
      k = Cast <to = 6> (n)
      m = Cast <to = 7> (k)
      even = Mul (m, one)
      z = Resize (x, "", "", even)
      y = Reshape (z, sizes)
    }
"""
RESIZED = """
    <ir_version: 10, opset_import: ["" : 21]>
    g (float16[1,1,2,2] x, float[4] s) => (float16[1,1,A,B] y) <float[4] scales = {1, 1, 2, 2}> {
      a = Resize (x, "", scales)
      y = Resize (a, "", s)
    }
"""


@pytest.mark.parametrize(
    ("facts", "model", "found"),
    [
        ("", PLAIN, []),
        ("[opset]\nmax = 18", PLAIN, [("opset", "main", "at opset 21, npu takes 0 to 18")]),
        ("[ir-version]\nmax = 9", PLAIN, [("ir-version", "main", "of IR version 10")]),
        (
            "dynamic-dims = false",
            PLAIN,
            [
                ("dynamic-dim", "x", "the dim 'N' of 'x' is no number"),
                ("dynamic-dim", "y", "the dim 'N' of 'y' is no number"),
            ],
        ),
        ("most-dims = 1", PLAIN, [("rank", "x", "2 dims"), ("rank", "y", "at most 1")]),
        ("functions = false", CALLED, [("function", "function my::twice", "model-local")]),
        ("refused = ['Add']", CALLED, [("operator", "twice", "the operator is not taken")]),
        ("[operators.LSTM]\nattributes = {direction = ['forward']}", CHOSEN_BY_CALLERS, []),
        (
            "refused-types = ['float']",
            PLAIN,
            [
                ("type", "x", "'x' is of the element type float"),
                ("type", "y", "'y' is of the element type float"),
                ("type", "main/neg_0", "element type float"),
            ],
        ),
        ("[operators]\nAbs = {}", PLAIN, [("operator", "main/neg_0", "is not listed")]),
        ("[operators]\nNeg = {}", PLAIN, []),
        (
            "[operators]\nNeg = {versions = [[6, 12]]}",
            PLAIN,
            [("operator-version", "main/neg_0", "version 13 is not taken, but 6 to 12")],
        ),
        ("[operators]\nNeg = {versions = [[6]]}", PLAIN, []),
        (
            "match = 'exact'\n[operators]\nNeg = {versions = [[6]]}",
            PLAIN,
            [("operator-version", "main/neg_0", "version 13")],
        ),
        (
            "[operators]\nNeg = {types = ['int64']}",
            PLAIN,
            [("type", "main/neg_0", "the element type float is not taken")],
        ),
        (
            "[operators.LSTM]\nattributes = {direction = ['forward']}\nconstant-inputs = [1]",
            LSTM,
            [
                ("constant-input", "main/lstm_0", "input 1 is no constant"),
                ("attribute", "main/lstm_0", "direction=reverse is not taken, but forward"),
            ],
        ),
        (
            "[operators.LSTM]\nwrong = {direction = ['reverse']}\nignored = ['clip', 7]",
            LSTM,
            [
                ("attribute", "main/lstm_0", "with direction=reverse it answers wrongly"),
                ("attribute", "main/lstm_0", "clip is ignored without a word"),
            ],
        ),
        ("[if]\ntaken = false", BRANCH, [("if", "main/if_0", "an If is not taken")]),
        ("[if]\nbranches = 'same rank'", BRANCH, []),
        (
            "[if]\nbranches = 'same shape'",
            BRANCH,
            [("if-branches", "main/if_0", "its branches do not give the same shape")],
        ),
        ("[loop]\ntaken = false", COUNTED, [("loop", "main/loop_1", "a Loop is not taken")]),
        (
            "[loop]\nmost-trips = 65535\notherwise = 'answers wrongly'\ncollected = 'padded'",
            COUNTED,
            [
                ("trip-count", "main/loop_1", "it runs up to 70000 times, at most 65535"),
                ("collected", "main/loop_1", "is padded to the trip count"),
            ],
        ),
        (
            "[loop]\ntrip-count = ['constant']\ncollected = 'static'\ncaptures = false",
            WHILE,
            [
                ("trip-count", "main/loop_1", "its trip count is absent, taken is constant"),
                ("collected", "main/loop_1", "is unknown before it runs"),
                ("captures", "main/loop_1", "its body reads values from outside"),
            ],
        ),
        ("[loop]\ncarried = 'same shape'", COUNTED, []),
        ("[scan]\nsymbols = false", SCANNED, []),
        (
            "[scan]\nsymbols = false",
            changed(SCANNED, {"(float[2] s": "(float[N] s"}),
            [("symbols", "main/scan_1", "its body declares sizes by symbols")],
        ),
        ("[scan]\ntaken = false", SCANNED, [("scan", "main/scan_1", "a Scan is not taken")]),
        (
            "[scan]\nstatic = true\ncaptures = false",
            SCANNED,
            [
                ("trip-count", "main/scan_1", "its length is not static"),
                ("captures", "main/scan_1", "reads values that are computed outside"),
            ],
        ),
        (
            "sequences = false",
            LISTED,
            [
                ("sequence", "main/sequenceconstruct_0", "sequences are not taken"),
                ("sequence", "main/concatfromsequence_1", "sequences are not taken"),
            ],
        ),
    ],
)
def test_what_is_in_the_way(facts: str, model: str, found: list[tuple[str, str, str]]) -> None:
    loaded, _ = load_checked(as_model(model))
    findings = check(loaded, parsed(HEAD + facts, "npu.toml")).findings
    assert [one.code for one in findings] == [code for code, _, _ in found]
    for finding, (_, path, sentence) in zip(findings, found, strict=True):
        assert path in finding.path.lower()
        assert sentence in finding.sentence
        wrong = "wrongly" in finding.sentence or "ignored" in finding.sentence
        assert not wrong or finding.otherwise == "answers wrongly"


@pytest.mark.parametrize(
    ("model", "found"),
    [
        (PLAIN, []),
        (COUNTED, []),
        (LSTM, []),
        (changed(PLAIN, {'"" : 21': '"" : 28'}), []),
        (changed(PLAIN, {"float[N,2]": "bfloat16[N,2]"}), ["type: the element type bfloat16"]),
        (
            """<ir_version: 10, opset_import: ["" : 22]>
            g (float[1,1,4,4] x, float[N,4] r, int64[N] b) => (float[N,1,1,1] y) {
              y = RoiAlign (x, r, b)
            }""",
            ["operator-version: version 22 is not taken"],
        ),
        (
            """<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>
            g (float[2] x) => (float[2] y) {
              a = com.microsoft.Gelu (x)
              y = com.microsoft.Nothing (a)
            }""",
            ["operator: the operator is not listed"],
        ),
    ],
)
def test_what_onnxruntime_does_not_load(model: str, found: list[str]) -> None:
    loaded, _ = load_checked(as_model(model))
    findings = check(loaded, load("onnxruntime")).findings
    assert len(findings) == len(found)
    for finding, wanted in zip(findings, found, strict=True):
        assert f"{finding.code}: {finding.sentence}".startswith(wanted)


BOTH_WAYS = changed(
    LSTM,
    {
        "float[1,": "float[2,",
        'direction = "reverse", clip = 1.0': 'direction = "bidirectional", activations = [ACTS]',
        "float[3,1,1,2] y": "float[3,2,1,2] y",
    },
)
SAME = '"Sigmoid", "Tanh", "Tanh"'


@pytest.mark.parametrize(
    ("target", "activations", "found"),
    [
        ("tract", f"{SAME}, {SAME}", []),
        ("tract", f'{SAME}, "Sigmoid", "Relu", "Tanh"', ["activations is ignored"]),
        ("openvino-2026", f"{SAME}, {SAME}", []),
        ("openvino-2026", f'{SAME}, "Sigmoid", "Relu", "Tanh"', ["activations of the second"]),
        ("openvino-2026", f'"Sigmoid", "Elu", "Tanh", {SAME}', ["activations=Elu is", "activati"]),
        ("migraphx", f'"Sigmoid", "Softsign", "Tanh", {SAME}', ["activations=Softsign is not"]),
    ],
)
def test_activations(target: str, activations: str, found: list[str]) -> None:
    loaded, _ = load_checked(as_model(changed(BOTH_WAYS, {"ACTS": activations})))
    findings = [one for one in check(loaded, load(target)).findings if one.op == "LSTM"]
    assert len(findings) == len(found)
    for finding, wanted in zip(findings, found, strict=True):
        assert finding.sentence.startswith(wanted)


def test_an_operator_that_is_unsupported_is_found_wherever_it_is() -> None:
    models = {"Neg": PLAIN, "If": BRANCH, "Loop": COUNTED, "Scan": SCANNED, "LSTM": LSTM}
    for profile in map(load, names()):
        for op, text in models.items():
            version = int(defs.get_schema(op, 21).since_version)
            findings = check(load_checked(as_model(text))[0], profile).findings
            found = any(one.op == op for one in findings)
            assert found or not unsupported(op, version, profile), (op, profile.name)


def test_an_operator_that_a_target_lacks() -> None:
    tract, scans = load("tract"), load("scan-only")
    assert unsupported("SequenceAt", 11, tract) == "sequences are not taken"
    assert unsupported("Unique", 11, tract) == "the operator is not taken"
    assert unsupported("Loop", 21, scans) == "the operator is not taken"
    assert unsupported("Scan", 21, scans) == ""
    assert unsupported("Attention", 99, load("onnxruntime")).startswith("version 99 is not taken")


def test_a_type_that_an_operator_leaves_no_choice_of_is_not_reported() -> None:
    profile = parsed(HEAD + "refused-types = ['int64']", "npu.toml")
    found = check(load_checked(as_model(COUNTING))[0], profile).findings
    assert [one.path for one in found] == ["main/mul_3"], "no Shape, no shape, no Cast"


def test_a_parameter_of_another_type_is_reported_unless_it_is_constant() -> None:
    profile = parsed(HEAD + "refused-types = ['float']", "npu.toml")
    found = check(load_checked(as_model(RESIZED))[0], profile).findings
    assert [one.path for one in found] == ["s", "main/resize_1"]


@pytest.mark.parametrize(
    ("model", "strongly", "sentence"),
    [
        (PLAIN, "true", "npu computes in the types of the model, and all floats are float32"),
        (PLAIN, "false", ""),
        (changed(PLAIN, {"float[N,2] y": "float16[N,2] y", "Neg": "Cast <to = 10>"}), "true", ""),
        (
            changed(PLAIN, {"float[N,2] x": "int32[N,2] x", "float[N,2] y": "int32[N,2] y"}),
            "true",
            "",
        ),
    ],
)
def test_a_strongly_typed_target_computes_in_float32(
    model: str, strongly: str, sentence: str
) -> None:
    profile = parsed(HEAD + f"strongly-typed = {strongly}", "npu.toml")
    said, _, _ = precision(load_checked(as_model(model))[0], profile).partition(" (")
    assert said == sentence
