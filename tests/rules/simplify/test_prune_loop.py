"""What loops do in vain or twice, where a golden model would say it less well."""

from __future__ import annotations

import pytest
from onnx import GraphProto, ModelProto, NodeProto

from passes.choices import RuleOptions
from passes.engine.schedules import SCHEDULES
from passes.session import Session
from passes.testing import as_model, assert_refused, assert_rewrite, options_of

pytestmark = pytest.mark.sampled

PRUNING = {"rules": ("prune-loop",)}


def loop_of(
    states: str, nodes: str, outputs: str, *, opset: int = 21, inputs: str = "", more: str = ""
) -> str:
    """A Loop of n iterations over `states` (name: initial value), all float[2]."""
    pairs = [state.split(":") for state in states.split()]
    fed = ", ".join(initial for _, initial in pairs)
    taken = ", ".join(f"float[2] {name}" for name, _ in pairs)
    given = ", ".join(f"float[2] {name}_out" for name, _ in pairs)
    finals = ", ".join(f"{name}_end" for name, _ in pairs)
    shown = ", ".join(f"float[2] {name}" for name in outputs.split())
    return f"""
    <ir_version: 8, opset_import: ["" : {opset}]>
    g (int64 n, float[2] h, float[2] x{inputs}) => ({shown}) {{
       {finals} = Loop <body = step (int64 i, bool go, {taken}) => (bool on, {given}) {{
          on = Identity (go) {nodes} }}> (n, "", {fed})
       {more}
    }}
    """


def pruned(model: str | ModelProto, **options: object) -> NodeProto:
    """The loop that is left."""
    after = assert_rewrite(model, pipeline="simplify", options={**PRUNING, **options})
    (node,) = [node for node in after.model.graph.node if node.op_type in ("Loop", "Scan")]
    return node


def states_of(node: NodeProto) -> list[str]:
    body: GraphProto = next(attribute.g for attribute in node.attribute if attribute.name == "body")
    return [value.name for value in body.input][2:]


@pytest.mark.parametrize(
    ("states", "nodes", "outputs", "left"),
    [
        # two states that are swapped start alike, and so stay alike
        ("a:h b:h", "a_out = Neg (b) b_out = Neg (a)", "a_end b_end", ["a"]),
        # started otherwise, they are two
        ("a:h b:x", "a_out = Neg (b) b_out = Neg (a)", "a_end b_end", ["a", "b"]),
        # only the third is updated otherwise; the others differ because of it, one after the other
        (
            "a:h b:h c:h d:h",
            "a_out = Neg (b) b_out = Neg (c) c_out = Exp (c) d_out = Neg (b)",
            "a_end b_end d_end",
            ["a", "b", "c"],
        ),
        # a recurrence of two that nothing reads
        ("a:h b:x c:x", "a_out = Neg (a) b_out = Sin (c) c_out = Cos (b)", "a_end", ["a"]),
        # the second is read by the first in the next iteration
        ("a:h b:x", "a_out = Neg (b) b_out = Sin (b)", "a_end", ["a", "b"]),
        # unchanged, and what is computed of it
        ("a:h k:x", "a_out = Mul (a, k) k_out = Identity (k)", "a_end k_end", ["a"]),
    ],
)
def test_which_carried_values_are_left(
    states: str, nodes: str, outputs: str, left: list[str]
) -> None:
    model = as_model(loop_of(states, nodes, outputs))
    if len(left) == len(states.split()):
        assert (
            Session(SCHEDULES["simplify"], None, options_of(PRUNING), None).run(model).model
            is model
        )
    else:
        assert states_of(pruned(model)) == left


def test_what_the_condition_is_made_of_stays() -> None:
    node = pruned("""
    <ir_version: 8, opset_import: ["" : 21]>
    g (float[2] h, bool c) => (float[2] y) <float one = {1}, float five = {5}, float zero = {0}> {
       y, count_end, other_end = Loop <
          body = step (int64 i, bool go, float[2] s, float count, float other) =>
          (bool on, float[2] s_out, float more, float rest) {
          s_out = Neg (s) more = Add (count, one) on = Less (more, five) rest = Exp (other) }>
          ("", c, h, zero, one)
    }
    """)
    assert states_of(node) == ["s", "count"]
    assert all(node.output)


def test_a_state_whose_update_may_fail_stays_and_the_code_says_so() -> None:
    text = loop_of(
        "a:h b:x",
        "a_out = Neg (a) at = Cast <to = 7> (b) c = Gather (b, at) b_out = Add (b, c)",
        "a_end",
    )
    (sentence,) = assert_refused(text, "may-fail", pipeline="simplify", options=PRUNING)
    assert sentence == "'c' is unused, but might fail"
    assert states_of(pruned(text, assume="valid-inputs")) == ["a"]


def test_a_sum_cannot_fail_where_the_signature_says_that_its_sizes_are_one() -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 21]>
    g (float[2] h, float[3,2] x, float[N] v, float[N] w) => (float[2] y) {
       y = Scan <num_scan_inputs = 1, body = step (float[2] s, float[2] n) => (float[2] t) {
          in_vain = Add (v, w) t = Add (s, n) }> (h, x)
    }
    """
    pruned(text)
    other = text.replace("float[N] w", "float[M] w")
    assert_refused(other, "may-fail", pipeline="simplify", options=PRUNING)
    pruned(other, assume="valid-inputs")


SCANS = """
<ir_version: 8, opset_import: ["" : 21]>
g (float[2] h, float[{0},2] x, float[{1},2] v) => (float[2] y) {{
   y, z = Scan <num_scan_inputs = 3, scan_input_directions = [0, 1, 0],
      body = step (float[2] s, float[2] a, float[2] b, float[2] c) => (float[2] t, float[2] o) {{
      t = Add (s, a) o = Mul (b, c) }}> (h, x, x, v)
}}
"""


@pytest.mark.parametrize(
    ("sizes", "options", "left"),
    [
        (("3", "3"), {}, 1),
        (("T", "T"), {}, 2),
        (("3", "T"), {}, 2),
        (("T", "S"), {"assume": "valid-inputs"}, 1),
    ],
)
def test_a_scanned_input_goes_where_its_length_is_known(
    sizes: tuple[str, str], options: dict[str, str], left: int
) -> None:
    assert len(pruned(SCANS.format(*sizes), **options).input) == 1 + left


def test_a_captured_value_is_not_hidden_by_the_body() -> None:
    """The body may call a value of its own as the outer one is called in which it starts."""
    node = pruned("""
    <ir_version: 8, opset_import: ["" : 21]>
    g (int64 n, float[2] h, float[2] x) => (float[2] y) {
       y, k_end = Loop <body = step (int64 i, bool go, float[2] x, float[2] k) =>
          (bool on, float[2] s_out, float[2] k_out) {
          on = Identity (go) s_out = Mul (x, k) k_out = Identity (k) }> (n, "", h, x)
    }
    """)
    assert states_of(node) == ["x_1"]


def test_inner_bodies_that_use_a_name_for_something_else() -> None:
    """Of two equal states the first is called as an input of an inner body: both stay."""
    text = loop_of(
        "a:h b:h",
        "a_out = Loop <body = inner (int64 j, bool go_on, float[2] a) =>"
        " (bool further, float[2] p) {"
        ' further = Identity (go_on) q = Add (a, b) p = Neg (q) }> (n, "", a)'
        " b_out = Neg (b)",
        "a_end b_end",
    )
    after = assert_rewrite(
        text.replace("b_out = Neg (b)", "b_out = Neg (b) k = Neg (b)"),
        pipeline="simplify",
        options={"rules": ("prune-loop", "share-subexpressions")},
    )
    assert after.report.records


def test_a_sequence_that_is_carried_twice_stays_where_no_identity_takes_it() -> None:
    text = """
    <ir_version: 8, opset_import: ["" : {0}]>
    g (int64 n, float[2] h) => (float[2] y, float[2] z) <int64 zero = {{0}}> {{
       s = SequenceConstruct (h)
       e, f = Loop <body = step (int64 i, bool go, seq(float[2]) a, seq(float[2]) b) =>
          (bool on, seq(float[2]) a_out, seq(float[2]) b_out) {{
          on = Identity (go) a_out = SequenceInsert (a, h) b_out = SequenceInsert (b, h)
       }}> (n, "", s, s)
       y = SequenceAt (e, zero) z = SequenceAt (f, zero)
    }}
    """
    for opset in (13, 16):
        model = as_model(text.format(opset))
        assert (
            Session(SCHEDULES["simplify"], None, options_of(PRUNING), None).run(model).model
            is model
        )


def test_strings_that_differ_do_not_start_alike() -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 21]>
    g (int64 n) => (string[1] y, string[1] z) <string[1] one = {"a"}, string[1] other = {"b"}> {
       y, z = Loop <body = step (int64 i, bool go, string[1] a, string[1] b) =>
          (bool on, string[1] a_out, string[1] b_out) {
          on = Identity (go) a_out = StringConcat (a, a) b_out = StringConcat (b, b)
       }> (n, "", one, other)
    }
    """
    model = as_model(text)
    assert Session(SCHEDULES["simplify"], None, options_of(PRUNING), None).run(model).model is model
    same = as_model(text.replace('{"b"}', '{"a"}'))
    after = Session(SCHEDULES["simplify"], None, options_of(PRUNING), None).run(same).model
    assert len(after.graph.node[0].output) == 1


def test_in_a_function() -> None:
    after = assert_rewrite(
        """
    <ir_version: 8, opset_import: ["" : 21, "local" : 1]>
    g (int64 n, float[2] h, float[2] w) => (float[2] y) { y = local.f (n, h, w) }
    <domain: "local", opset_import: ["" : 21]> f (n, h, w) => (y) {
       y, k_end, r = Loop <body = step (int64 i, bool go, float[2] s, float[2] k, float[2] q) =>
          (bool on, float[2] s_out, float[2] k_out, float[2] q_out) {
          on = Identity (go) s_out = Mul (s, k) k_out = Identity (k) q_out = Exp (q)
       }> (n, "", h, w, w)
    }
    """,
        pipeline="simplify",
        options=PRUNING,
    )
    assert list(after.model.functions[0].node[0].input) == ["n", "", "h"]


def test_random_numbers_are_drawn_as_often_as_before() -> None:
    text = loop_of(
        "a:h b:x",
        "r = RandomNormal <shape = [2], seed = 1.0> () a_out = Add (a, r)"
        " q = RandomNormal <shape = [2], seed = 1.0> () b_out = Add (b, q)",
        "a_end",
    )
    model = as_model(text)
    after = Session(SCHEDULES["simplify"], None, RuleOptions(), None).run(model).model
    body = next(
        attribute.g for attribute in after.graph.node[0].attribute if attribute.name == "body"
    )
    assert [node.op_type for node in body.node].count("RandomNormal") == 2


def test_a_chain_of_loops_of_which_only_the_last_is_read() -> None:
    """Each loop collects for the next one only."""
    steps = "".join(
        f"h{i + 1}, x{i + 1} = Scan <num_scan_inputs = 1,"
        f" body = s{i} (float[2] s, float[2] n) => (float[2] t, float[2] o)"
        " { t = Add (s, n) o = Tanh (n) }>"
        f" (h, x{i}) "
        for i in range(40)
    )
    model = as_model(
        '<ir_version: 8, opset_import: ["" : 21]> g (float[2] h, float[3,2] x0) => (float[2] h1)'
        f" {{ {steps} }}"
    )
    after = Session(SCHEDULES["simplify"], None, options_of(PRUNING), None).run(model).model
    assert [list(node.output) for node in after.graph.node] == [["h1"]]


@pytest.mark.parametrize(
    ("loop", "gone"),
    [
        (
            "Loop <body = b (int64 i, bool go, float[2] s) => (bool on, float[2] t) {"
            ' on = Less (i, n) t = Neg (s) }> (n, "", h)',
            True,
        ),
        # a while might never end
        (
            "Loop <body = b (int64 i, bool go, float[2] s) => (bool on, float[2] t) {"
            ' on = Less (i, n) t = Neg (s) }> ("", yes, h)',
            False,
        ),
        (
            "Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] n) => (float[2] t) {"
            " t = Add (s, n) }> (h, x)",
            True,
        ),
        (
            "Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] n) => (float[2] t) {"
            " r = RandomNormalLike (n) t = Add (s, r) }> (h, x)",
            False,
        ),
        # lengths may differ
        (
            "Scan <num_scan_inputs = 2, body = b (float[2] s, float[2] n, float[2] m) =>"
            " (float[2] t) { t = Add (s, n) }> (h, x, v)",
            False,
        ),
    ],
)
def test_a_loop_that_nobody_reads(loop: str, gone: bool) -> None:
    text = f"""
    <ir_version: 8, opset_import: ["" : 21]>
    g (int64 n, bool yes, float[2] h, float[T,2] x, float[T,2] v) => (float[2] y) {{
       y = Neg (h) in_vain = {loop} }}
    """
    after = Session(SCHEDULES["simplify"], None, options_of(PRUNING), None).run(as_model(text))
    assert (len(after.model.graph.node) == 1) == gone
    if gone:
        assert_rewrite(text, pipeline="simplify", options=PRUNING)
