"""Regions: a site cut out as a model that stands alone, before and after."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import ModelProto, NodeProto, helper, numpy_helper

from passes.engine.fixpoint import Engine
from passes.engine.region import CannotCut, Region, cut
from passes.engine.rounds import Round
from passes.ir import scope
from passes.ir.model import Model
from passes.rule import Edit, Rewrite, Rule, Site
from passes.types.signature import describe
from passes.verify.executor import Value
from passes.verify.inputs.drawer import Hint
from passes.verify.inputs.hints import hints_for, model_hints
from passes.verify.reference import ReferenceExecutor


def product(site: Site) -> Edit:
    """Neg as a product with a constant."""
    weight = numpy_helper.from_array(np.array(-1, np.float32), site.fresh("minus"))
    return Edit(
        (helper.make_node("Mul", [*site.node.input, weight.name], site.node.output),), (weight,)
    )


def itself(site: Site) -> Edit:
    return Edit((site.node,))


def round_of(model: ModelProto | str, op: str = "Neg", rewrite: Rewrite = product) -> Round:
    proto = onnx.parser.parse_model(model) if isinstance(model, str) else model
    rule = Rule("toy", rewrite, lambda node, *_: node.op_type == op)
    return Engine([rule]).round(Model(proto))


def regions(model: ModelProto | str, op: str = "Neg", rewrite: Rewrite = product) -> list[Region]:
    outcome = round_of(model, op, rewrite)
    return [cut(outcome, rewrite) for rewrite in outcome.rewritten]


def hints(outcome: Round, seen: Sequence[dict[str, Value]] = ()) -> dict[str, Hint]:
    """What verification knows of the inputs of the only region."""
    (rewritten,) = outcome.rewritten
    ends = cut(outcome, rewritten, seen).before.graph.input
    return hints_for(rewritten.place.node, outcome.model.opset(), ends, seen)


def inputs(model: ModelProto) -> list[str]:
    return [describe(value) for value in model.graph.input]


def outputs(model: ModelProto) -> list[str]:
    return [describe(value) for value in model.graph.output]


#: A Scan with weights captured from the graph, from a Constant node, and from an input.
SCAN = """
<ir_version: 8, opset_import: ["" : 16]>
g (float[2] h, float[T,2] a, float[2] w, float[2] d) => (float[2] y, float[T,2] z)
<float[2] k = {1, 2}, float[2] d = {5, 6}> {
  c = Constant <value = float[2] {3, 4}> ()
  x = Abs (a)
  y, z = Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] e) => (float[2] t, float[2] o) {
    p = Mul (s, k) q = Add (p, c) r = Sub (q, w) u = Add (r, d) t = Add (u, e) o = Abs (t)
  }> (h, x)
}
"""


def test_captured_values_become_inputs_and_constants_stay() -> None:
    (region,) = regions(SCAN, "Scan", itself)
    assert inputs(region.before) == ["float[2] h", "float[T,2] x", "float[2] w", "float[2] d"]
    assert outputs(region.before) == ["float[2] y", "float[T,2] z"]
    constants = region.before.graph.initializer
    values = {constant.name: numpy_helper.to_array(constant).tolist() for constant in constants}
    assert values == {"k": [1, 2], "c": [3, 4]}, "d is a default: callers may override it"
    onnx.checker.check_model(region.before, full_check=True)
    onnx.checker.check_model(region.after, full_check=True)


def test_both_sides_run_and_have_the_same_signature() -> None:
    (region,) = regions(
        '<ir_version: 8, opset_import: ["" : 16]> g (float[2] x) => (float[2] y) { y = Neg (x) }'
    )
    assert inputs(region.before) == inputs(region.after) == ["float[2] x"]
    assert outputs(region.before) == outputs(region.after) == ["float[2] y"]
    assert [node.op_type for node in region.after.graph.node] == ["Mul"]
    feeds = {"x": np.array([1, -2], np.float32)}
    for side in (region.before, region.after):
        result = ReferenceExecutor().run(side, feeds).outputs["y"]
        assert isinstance(result, np.ndarray)
        assert result.tolist() == [-1, 2]


def test_a_site_in_a_body_has_what_it_sees_there_as_inputs() -> None:
    (region,) = regions("""
        <ir_version: 8, opset_import: ["" : 16]>
        g (float[T,2] x, int64[9] e) => (float[T,2] y) {
          y = Scan <num_scan_inputs = 1, body = b (float[2] e) => (float[2] o) { o = Neg (e) }> (x)
        }
    """)
    assert inputs(region.before) == ["float[2] e"]


def test_external_data_is_only_referred_to() -> None:
    model = onnx.parser.parse_model(SCAN)
    weight = model.graph.initializer[0]
    weight.ClearField("float_data")
    weight.ClearField("raw_data")
    weight.data_location = onnx.TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="not/there.bin")
    (region,) = regions(model, "Scan", itself)
    assert region.before.graph.initializer[0].external_data[0].value == "not/there.bin"


def test_sparse_initializers_become_inputs() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 16]> g (float[2] x) => (float[2] y) { y = Add (x, s) }'
    )
    sparse = model.graph.sparse_initializer.add(dims=[2])
    sparse.values.CopyFrom(numpy_helper.from_array(np.ones(1, np.float32), "s"))
    sparse.indices.CopyFrom(numpy_helper.from_array(np.ones(1, np.int64)))
    (region,) = regions(model, "Add", itself)
    assert inputs(region.before) == ["float[2] x", "float[2] s"]


def test_up_to_ir_3_constants_are_inputs_too_but_not_of_the_signature() -> None:
    (region,) = regions(
        """
        <ir_version: 3, opset_import: ["" : 8]>
        g (float[2] x, float[2] w) => (float[2] y) <float[2] w = {1, 2}>
        { t = Add (x, w) y = Neg (t) }
    """,
        "Add",
        itself,
    )
    assert inputs(region.before) == ["float[2] x", "float[2] w"]
    assert [tensor.name for tensor in region.before.graph.initializer] == ["w"]
    onnx.checker.check_model(region.before, full_check=True)


def test_omitted_outputs_are_left_out() -> None:
    model = onnx.parser.parse_model(SCAN)
    model.graph.node[2].output[0] = ""
    del model.graph.output[0]
    (region,) = regions(model, "Scan", itself)
    assert outputs(region.before) == ["float[T,2] z"]


def test_a_function_has_opsets_of_its_own() -> None:
    model = """
        <ir_version: 8, opset_import: ["" : 16, "local" : 1, "other" : 2]>
        g (float[2] x) => (float[2] y) { y = local.f (x) }
        <domain: "local", opset_import: ["ai.onnx" : 13, "local" : 7]> f (a) => (b) { b = Neg (a) }
    """
    (region,) = regions(model)
    for side in (region.before, region.after):
        imports = {entry.domain: entry.version for entry in side.opset_import}
        assert imports == {"ai.onnx": 13, "local": 7, "other": 2}
        assert not side.functions, "nothing there calls one"
    assert inputs(region.before) == ["float[2] a"]


def test_what_refers_to_attributes_of_its_function_cannot_stand_alone() -> None:
    outcome = round_of(
        """
        <ir_version: 8, opset_import: ["" : 16, "local" : 1]>
        g (bool c, float[2] x) => (float[2] y) { y = local.f <axis = 0> (c, x) }
        <domain: "local", opset_import: ["" : 16]> f <axis> (c, a) => (b) {
          b = If (c) <then_branch = y () => (p) { p = Softmax <axis: int = @axis> (a) },
                      else_branch = n () => (p) { p = Abs (a) }>
        }
        """,
        "If",
        itself,
    )
    with pytest.raises(CannotCut, match="refers to attributes of the function around it"):
        cut(outcome, outcome.rewritten[0])


def test_types_that_inference_cannot_find_come_from_what_was_seen() -> None:
    outcome = round_of("""
        <ir_version: 8, opset_import: ["" : 16, "other" : 1]>
        g (float[2] x) => (float[2] y) { t = other.Secret (x) y = Neg (t) }
    """)
    seen: Sequence[dict[str, Value]] = [{"t": np.zeros((2, 3), np.float16)}]
    region = cut(outcome, outcome.rewritten[0], seen)
    assert inputs(region.before) == ["float16[?,?] t"]
    assert hints(outcome, seen)["t"].natural == (seen[0]["t"],)
    assert inputs(cut(outcome, outcome.rewritten[0]).before) == ["? t"]


def test_a_rank_that_inference_cannot_find_comes_from_what_was_seen() -> None:
    outcome = round_of("""
        <ir_version: 8, opset_import: ["" : 16]>
        g (float[2] x, int64 n) => (float[2] y) {
            s = Loop (n, "", x) <body = b (int64 i, bool go, float[2] h)
                => (bool go_out, float[2] h_out) { go_out = Identity (go) h_out = Abs (h) }>
            y = Neg (s)
        }
    """)
    seen: Sequence[dict[str, Value]] = [{"s": np.zeros(2, np.float32)}]
    region = cut(outcome, outcome.rewritten[0], seen)
    assert inputs(region.before) == ["float[?] s"]
    assert region.guessed, "what is drawn need not fit"
    assert inputs(cut(outcome, outcome.rewritten[0]).before) == ["float[...] s"]


def test_a_loop_says_which_axes_agree_and_what_is_a_length() -> None:
    outcome = round_of(
        """
        <ir_version: 3, opset_import: ["" : 8]>
        g (int64[A] l, float[B,2] h, float[C,5,2] x) => (float[B,2] y, float[C,5,2] z) {
          y, z = Scan <num_scan_inputs = 1,
            body = b (float[2] s, float[2] e) => (float[2] t, float[2] o)
            { t = Add (s, e) o = Neg (t) }> (l, h, x)
        }
        """,
        "Scan",
        itself,
    )
    known = hints(outcome)
    dims = {name: hint.dims for name, hint in known.items()}
    assert dims == {"l": ("C",), "h": ("C", 2), "x": ("C", 5, 2)}, "one symbol for the batch"
    assert known["l"].length_of == 5


def test_an_input_that_any_loop_takes_for_lengths_holds_lengths() -> None:
    model = onnx.parser.parse_model("""
        <ir_version: 4, opset_import: ["" : 8]>
        g (int64[B] l, float[B,T] x, bool c) => (float[B,T] y, float[B,T] z) {
          y = Scan <num_scan_inputs = 1, body = b (float e) => (float o) { o = Neg (e) }> ("", x)
          z = If (c) <then_branch = t () => (float[B,T] one) {
            one = Scan <num_scan_inputs = 1,
              body = b (float e) => (float o) { o = Neg (e) }> (l, x)
          }, else_branch = f () => (float[B,T] other) { other = Neg (x) }>
        }
    """)
    hints = model_hints(Model(model))
    assert hints["l"].length_of == "T"
    assert hints["x"].dims == ("B", "T")


def test_the_body_tells_the_rank_of_what_it_is_fed() -> None:
    outcome = round_of(
        """
        <ir_version: 8, opset_import: ["" : 16]>
        g (float[2] x, float[T,3] w, int64 n, bool c) => (float[2] y, float[A,3] z) {
          h = Loop (n, "", x) <body = b (int64 i, bool go, float[2] s)
            => (bool go_out, float[2] s_out) { go_out = Identity (go) s_out = Neg (s) }>
          y, z = Scan <num_scan_inputs = 1,
            body = d (float[2] s, float[3] e) => (float[2] t, float[3] o)
            { t = Abs (s) o = Neg (e) }> (h, w)
        }
        """,
        "Scan",
        itself,
    )
    assert inputs(cut(outcome, outcome.rewritten[0]).before) == ["float[...] h", "float[T,3] w"]
    assert hints(outcome)["h"].dims == (2,)


def test_a_loop_of_another_domain_says_nothing() -> None:
    outcome = round_of(
        """
        <ir_version: 8, opset_import: ["" : 16, "other" : 1]>
        g (float[2] x) => (float[2] y) { y = other.Loop (x) }
        """,
        "Loop",
        itself,
    )
    assert hints(outcome) == {}


# -- identity ---------------------------------------------------------------------------------


def scan_model(names: dict[str, str], op: str = "Mul", weight: str = "{1, 2}") -> str:
    """A Scan that captures a weight; `names` replaces whole words."""
    text = f"""
        <ir_version: 8, opset_import: ["" : 16]>
        g (float[2] h, float[T,2] x) => (float[2] y) <float[2] w = {weight}> {{
          y = Scan <num_scan_inputs = 1, body = step (float[2] s, float[2] e) => (float[2] t)
            {{ p = {op} (s, w) t = Add (p, e) }}> (h, x)
        }}
    """
    return "".join(names.get(word, word) for word in re.split(r"(\W+)", text))


def identity(model: ModelProto | str) -> bytes:
    (region,) = regions(model, "Scan", itself)
    return region.identity()


PLAIN = identity(scan_model({}))


@pytest.mark.parametrize(
    "names",
    [
        {"h": "a", "x": "b", "y": "c"},
        {"w": "weight"},
        {"s": "z9", "e": "a0", "p": "q", "t": "aa"},
        {"step": "cell"},
        {"x": "v0", "h": "v1", "w": "v2", "p": "v3", "s": "v4"},
        {"T": "U"},
    ],
    ids=["ends", "constants", "inside", "body", "numbered", "symbol"],
)
def test_regions_that_differ_in_names_are_one(names: dict[str, str]) -> None:
    assert identity(scan_model(names)) == PLAIN


def test_names_docs_and_metadata_of_nodes_do_not_count() -> None:
    model = onnx.parser.parse_model(scan_model({}))
    for place in scope.walk_model(model):
        place.node.name, place.node.doc_string = f"node {place.index}", "by hand"
        place.node.metadata_props.add(key="origin", value=place.path)
    assert identity(model) == PLAIN


@pytest.mark.parametrize(
    "model",
    [
        scan_model({}, op="Sub"),
        scan_model({}, weight="{1, 3}"),
        scan_model({"T": "4"}),
        scan_model({"Add": "Mul"}),
        scan_model({"T": "unk__0"}),
    ],
    ids=["op", "constant", "type", "op inside", "made-up symbol"],
)
def test_regions_that_differ_in_anything_else_are_two(model: str) -> None:
    assert identity(model) != PLAIN


def test_what_is_captured_and_what_is_defined_inside_are_told_apart() -> None:
    """Even where the file already uses names as the numbering might give."""

    def region(read: str) -> bytes:
        return identity(f"""
            <ir_version: 8, opset_import: ["" : 16]>
            g (float[2] v3, float[T,2] x) => (float[2] y) {{
              y = Scan <num_scan_inputs = 1, body = b (float[2] v0, float[2] v1) => (float[2] v2)
                {{ v2 = Add ({read}, v1) }}> (v3, x)
            }}
        """)

    assert region("v0") != region("v3")


def test_the_rewritten_side_counts_too() -> None:
    def region(op: str) -> bytes:
        def rewrite(site: Site) -> Edit:
            node = NodeProto()
            node.CopyFrom(site.node)
            node.op_type = op
            return Edit((node,))

        (made,) = regions(
            '<ir_version: 8, opset_import: ["" : 16]> g (float x) => (float y) { y = Neg (x) }',
            rewrite=rewrite,
        )
        return made.identity()

    assert region("Abs") == region("Abs")
    assert region("Abs") != region("Sign")


def test_asking_for_the_identity_changes_nothing() -> None:
    (region,) = regions(SCAN, "Scan", itself)
    before = region.before.SerializeToString()
    region.identity()
    assert region.before.SerializeToString() == before


@pytest.mark.parametrize(("outside", "drawn"), [("unk__0", 4), ("W", "W")])
def test_a_size_that_inference_made_up_is_the_one_that_the_body_declares(
    outside: str, drawn: int | str
) -> None:
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 15]>
        g (float[W] s0, int64 n) => (float[4] s) {
            s = Loop <body = step (int64 i, bool c, float[4] a) => (bool d, float[4] b) {
                d = Identity (c) b = Neg (a) }> (n, "", s0) }
    """)
    fed = helper.make_tensor_value_info("s0", onnx.TensorProto.FLOAT, [outside])
    hints = hints_for(model.graph.node[0], 15, [fed])
    assert hints["s0"].dims == (drawn,)
