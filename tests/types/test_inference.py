"""Types of values: looked up by scope and name, inferred in bodies and functions too."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from passes.ir import scope
from passes.types.inference import ValueTypes
from passes.types.shape_inference import infer_shapes
from passes.types.signature import describe_type
from passes.types.value_types import dims_of, elem_type_of, is_known, tensor_type
from tests.written import changed


def parsed(text: str) -> ModelProto:
    return onnx.parser.parse_model(text)


def types_of(model: ModelProto | str) -> dict[str, str]:
    """The type of every node output, by path and name; `?` where it is unknown."""
    proto = parsed(model) if isinstance(model, str) else model
    types = ValueTypes(proto)
    seen = {}
    for place in scope.walk_model(proto):
        for name in place.node.output:
            found = types.of(place.scope, name)
            seen[f"{place.scope.path}/{name}"] = "?" if found is None else describe_type(found)
    return seen


def type_at(model: ModelProto, op: str, name: str) -> str:
    """The type of `name` as the (innermost) node of the given op sees it."""
    place = next(entry for entry in scope.walk_model(model) if entry.node.op_type == op)
    found = ValueTypes(model).of(place.scope, name)
    return "?" if found is None else describe_type(found)


# -- the words for types ----------------------------------------------------------------------


def test_dims_are_sizes_symbols_or_unknown() -> None:
    assert dims_of(tensor_type(TensorProto.FLOAT, (2, "N", None))) == (2, "N", None)
    assert dims_of(tensor_type(TensorProto.FLOAT, ())) == ()
    assert dims_of(tensor_type(TensorProto.FLOAT, None)) is None
    assert dims_of(None) is None


def test_what_is_no_tensor_has_no_element_type() -> None:
    assert elem_type_of(tensor_type(TensorProto.BOOL, None)) == TensorProto.BOOL
    sequence = helper.make_sequence_type_proto(tensor_type(TensorProto.FLOAT, (2,)))
    assert (elem_type_of(sequence), dims_of(sequence), elem_type_of(None)) == (0, None, 0)
    assert is_known(sequence)
    assert not is_known(onnx.TypeProto())


# -- graphs and bodies ------------------------------------------------------------------------


def test_a_symbol_that_one_value_alone_declares_does_not_hide_what_is_inferred() -> None:
    model = parsed(
        """<ir_version: 10, opset_import: ["" : 17]>
        g (bool c, float[T,2] x, float[3,2] k) => (float[M,2] y, float[3,2] z) {
          y = If (c) <
            then_branch = a () => (float[unk__7,2] p) { p = Neg (x) },
            else_branch = b () => (float[Abs_dim_0,2] q) { q = Abs (x) }>
          z = Scan <num_scan_inputs = 1, body = step (float[A,2] s, float[2] e) => (float[B,2] t) {
            m = Neg (s)
            t = Add (m, e)
          }> (k, x)
        }"""
    )
    types = types_of(model)
    assert types["main/if_0.then_branch/p"] == types["main/if_0.else_branch/q"] == "float[T,2]"
    assert types["main/scan_1.body/m"] == types["main/scan_1.body/t"] == "float[3,2]"


def test_a_symbol_that_two_values_declare_counts() -> None:
    body = """step (int64 i, bool on, float[A,B] s) => (bool go, float[A,C] t) {
        go = Identity (on) u = Neg (s) t = my.other (u) }"""
    model = parsed(
        f"""<ir_version: 10, opset_import: ["" : 17, "my" : 1]>
        g (bool c, float[N,N] x) => (float[O,N] y) {{ y = Loop <body = {body}> ("", c, x) }}"""
    )
    types = types_of(model)
    assert types["main/loop_0.body/t"] == "float[A,?]"


def test_inputs_initializers_and_inferred_values() -> None:
    model = parsed("""
        <ir_version: 8, opset_import: ["" : 16]>
        g (float[N,3] x) => (y) <float[3,4] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}>
        { t = MatMul (x, w) y = Shape (t) }
    """)
    assert type_at(model, "MatMul", "x") == "float[N,3]"
    assert type_at(model, "MatMul", "w") == "float[3,4]"
    assert types_of(model) == {"main/t": "float[N,4]", "main/y": "int64[2]"}
    assert type_at(model, "MatMul", "nobody") == "?"


def test_sparse_initializers_have_the_shape_of_the_whole() -> None:
    model = parsed(
        '<ir_version: 8, opset_import: ["" : 16]> g (float[2,3] x) => (y) { y = Add (x, s) }'
    )
    sparse = model.graph.sparse_initializer.add(dims=[2, 3])
    sparse.values.CopyFrom(numpy_helper.from_array(np.ones(1, np.float32), "s"))
    sparse.indices.CopyFrom(numpy_helper.from_array(np.ones(1, np.int64)))
    assert type_at(model, "Add", "s") == "float[2,3]"


#: The body's x is a slice of the outer x.
SCAN = """
    <ir_version: 8, opset_import: ["" : 16]>
    g (float[T,2] x, float[2] w) => (float[T,2] y) {
      y = Scan <num_scan_inputs = 1, body = b (float[2] x) => (float[2] z) {
        d = Cast <to = 11> (x)
        f = Cast <to = 1> (d)
        z = Mul (f, w)
      }> (x)
    }
"""


def test_a_name_means_the_innermost_definition() -> None:
    model = parsed(SCAN)
    assert type_at(model, "Cast", "x") == "float[2]"
    assert type_at(model, "Scan", "x") == "float[T,2]"
    assert types_of(model)["main/scan_0.body/d"] == "double[2]"


def test_a_value_of_an_unknown_type_hides_the_outer_one_all_the_same() -> None:
    model = parsed("""
        <ir_version: 8, opset_import: ["" : 16, "local" : 1]>
        g (int64 n, bool c, float[2] x, float[7] e) => (float[2] y) {
          y = Loop <body = b (int64 i, bool go, float[2] s) => (bool on, float[2] t) {
            on = Identity (go)
            e = local.Secret (s)
            t = Abs (e)
          }> (n, c, x)
        }
    """)
    assert type_at(model, "Abs", "e") == "?"
    assert type_at(model, "Abs", "x") == "float[2]", "captured from outside"


def test_within_looks_at_one_scope_only() -> None:
    model = parsed(SCAN)
    place = next(scope.walk_model(model))
    types = ValueTypes(model)
    assert types.within(place.scope, "w") is None
    assert types.of(place.scope, "w") is not None


def test_sibling_bodies_with_the_same_names_are_told_apart() -> None:
    branch = "() => (float[A] r) { t = Cast <to = TYPE> (x) r = Cast <to = 1> (t) }"
    types = types_of(f"""
        <ir_version: 8, opset_import: ["" : 16]>
        g (bool c, float[2] x) => (float[2] y) {{
          y = If (c) <then_branch = a {branch.replace("TYPE", "6")},
                      else_branch = a {branch.replace("TYPE", "11")}>
        }}
    """)
    assert types["main/if_0.then_branch/t"] == "int32[2]"
    assert types["main/if_0.else_branch/t"] == "double[2]"


def test_nodes_of_the_same_name_are_told_apart() -> None:
    model = parsed("""
        <ir_version: 8, opset_import: ["" : 16]>
        g (bool c, float[2] x) => (float[2] y) {
          u = If (c) <then_branch = a () => (float[2] p) { p = Neg (x) },
                      else_branch = a () => (float[2] p) { p = Abs (x) }>
          v = Cast <to = 6> (u)
          w = If (c) <then_branch = a () => (int32[2] p) { p = Neg (v) },
                      else_branch = a () => (int32[2] p) { p = Abs (v) }>
          y = Cast <to = 1> (w)
        }
    """)
    for node in model.graph.node:
        node.name = "same"
    types = ValueTypes(model)
    negations = [entry for entry in scope.walk_model(model) if entry.node.op_type == "Neg"]
    found = [types.of(entry.scope, "p") for entry in negations]
    assert [describe_type(one) for one in found if one is not None] == ["float[2]", "int32[2]"]


@pytest.mark.parametrize("ir_version", [3, 8])
def test_a_body_that_lists_its_weights_as_inputs(ir_version: int) -> None:
    types = types_of(f"""
        <ir_version: {ir_version}, opset_import: ["" : 8]>
        g (float[B,T,2] x, float[B,3] h) => (float[B,3] y) {{
          y = Scan <num_scan_inputs = 1,
            body = cell (float[3] s, float[2] e, float[2,3] w) => (float[3] t)
            <float[2,3] w = {{1, 2, 3, 4, 5, 6}}> {{ p = MatMul (e, w) t = Add (p, s) }}> ("", h, x)
        }}
    """)
    assert types["main/scan_0.body/p"] == "float[3]"


def test_the_declaration_of_an_input_counts_more_than_a_stale_value_info() -> None:
    model = parsed(SCAN)
    body = model.graph.node[0].attribute[0].g
    body.value_info.append(helper.make_tensor_value_info("x", TensorProto.INT8, [9]))
    assert type_at(model, "Cast", "x") == "float[2]"


def test_what_a_caller_may_override_has_the_declared_type_and_no_value() -> None:
    text = """
        <ir_version: VERSION, opset_import: ["" : 16]>
        g (float[N] x, int64[2] shape) => (y)
        <float[6] x = {1, 2, 3, 4, 5, 6}, int64[2] shape = {2, 3}>
        { t = Reshape (x, shape) y = Neg (t) }
    """
    overridable = parsed(changed(text, {"VERSION": "4"}))
    assert type_at(overridable, "Reshape", "x") == "float[N]"
    dims = dims_of(ValueTypes(overridable).of(next(scope.scopes(overridable)), "t"))
    assert dims is not None
    assert not any(isinstance(dim, int) for dim in dims), "2 and 3 are only the default"
    assert types_of(parsed(changed(text, {"VERSION": "3"})))["main/t"] == "float[2,3]"


def test_a_model_that_inference_rejects_keeps_its_declared_types() -> None:
    model = parsed("""
        <ir_version: 8, opset_import: ["" : 16]>
        g (float[2] x, int64 n, bool c) => (float[2] y) <float[5] known>
        { known = Loop <body = b (int64 i) => (bool on) { on = Cast <to = 9> (i) }> (n, c, x)
          y = Neg (x) }
    """)
    types = types_of(model)
    assert types["main/known"] == "float[5]"
    assert types["main/y"] == "float[2]"


def test_large_weights_are_typed_but_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    model = parsed(
        '<ir_version: 8, opset_import: ["" : 16]> g (float[1,400] x) => (y) { y = MatMul (x, w) }'
    )
    weight = np.ones((400, 300), np.float32)
    model.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    sizes = []
    infer = onnx.shape_inference.infer_shapes

    def watched(proto: ModelProto, **how: bool) -> ModelProto:
        sizes.append(proto.ByteSize())
        return infer(proto, **how)

    monkeypatch.setattr(onnx.shape_inference, "infer_shapes", watched)
    before = model.SerializeToString()
    assert types_of(model) == {"main/y": "float[1,300]"}
    assert type_at(model, "MatMul", "w") == "float[400,300]"
    assert max(sizes) < 1000
    assert model.SerializeToString() == before


def test_nothing_is_inferred_before_somebody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[int] = []
    infer = onnx.shape_inference.infer_shapes
    monkeypatch.setattr(
        onnx.shape_inference,
        "infer_shapes",
        lambda proto, **how: runs.append(1) or infer(proto, **how),
    )
    model = parsed(SCAN)
    types = ValueTypes(model)
    assert not runs
    for name in ("x", "y"):
        types.of(next(scope.scopes(model)), name)
    assert runs == [1], "and then once"


# -- functions --------------------------------------------------------------------------------


def calling(main: str, *functions: str) -> ModelProto:
    """A model whose main graph has x (float[3,4]), w (float[5,4]) and k (int64[3,4])."""
    return parsed(f"""
        <ir_version: 10, opset_import: ["" : 16, "local" : 1]>
        g (float[3,4] x, float[5,4] w, int64[3,4] k) => (r) {{ {main} }}
        {"".join(f'<domain: "local", opset_import: ["" : 16, "local" : 1]> {f}' for f in functions)}
    """)


def test_a_function_is_typed_by_its_calls() -> None:
    model = calling("r = local.f (x)", "f (a) => (b) { t = Transpose (a) b = Neg (t) }")
    assert types_of(model)["local.f/t"] == "float[4,3]"


def test_calls_that_disagree_leave_open_what_differs() -> None:
    f = "f (a) => (b) { b = Neg (a) }"
    assert type_at(calling("r = local.f (x) s = local.f (w)", f), "Neg", "a") == "float[?,4]"
    assert type_at(calling("r = local.f (x) s = local.f (k)", f), "Neg", "a") == "?"
    rank = calling("r = local.f (x) s = Flatten <axis = 0> (x) t = Squeeze (s) u = local.f (t)", f)
    assert type_at(rank, "Neg", "a") == "float[...]"


def test_a_function_in_a_function() -> None:
    model = calling(
        "r = local.outer (x)",
        "inner (a) => (b) { b = Transpose (a) }",
        "outer (a) => (b) { t = Transpose (a) b = local.inner (t) }",
    )
    types = types_of(model)
    assert types["local.outer/t"] == "float[4,3]"
    assert types["local.inner/b"] == "float[3,4]"
    assert types["main/r"] == "float[3,4]"


def test_a_call_in_a_body_counts_with_what_it_sees_there() -> None:
    model = calling(
        "c = Constant <value = bool {1}> () "
        "r = If (c) <then_branch = a () => (p) { q = Transpose (x) p = local.f (q) }, "
        "else_branch = b () => (p) { p = Transpose (x) }>",
        "f (a) => (b) { b = Neg (a) }",
    )
    assert type_at(model, "Neg", "a") == "float[4,3]"


def test_a_function_that_nobody_calls_neither_has_types_nor_counts_as_a_caller() -> None:
    model = calling(
        "r = local.used (x)",
        "dead (a) => (b) { t = Shape (a) b = local.used (t) }",
        "used (a) => (b) { b = Neg (a) }",
    )
    types = types_of(model)
    assert types["local.used/b"] == "float[3,4]"
    assert types["local.dead/t"] == "?"


def test_functions_that_call_themselves_have_no_types() -> None:
    model = calling("r = local.f (x)", "f (a) => (b) { t = Neg (a) b = local.f (t) }")
    assert types_of(model)["local.f/t"] == "?"


def test_overloads_are_different_functions() -> None:
    model = parsed("""
        <ir_version: 10, opset_import: ["" : 16, "local" : 1]>
        g (float[2] x, int64[3] k) => (r, s) { r = local.f : one (x) s = local.f : two (k) }
        <domain: "local", overload: "one", opset_import: ["" : 16]> f (a) => (b) { b = Neg (a) }
        <domain: "local", overload: "two", opset_import: ["" : 16]> f (a) => (b) { b = Abs (a) }
    """)
    assert type_at(model, "Neg", "a") == "float[2]"
    assert type_at(model, "Abs", "a") == "int64[3]"


def test_an_attribute_that_all_calls_give_alike_is_known() -> None:
    f = "f <axis> (a) => (b) { t = Concat <axis: int = @axis> (a, a) b = Neg (t) }"
    alike = calling("r = local.f <axis = 1> (x) s = local.f <axis = 1> (x)", f)
    assert type_at(alike, "Neg", "t") == "float[3,8]"
    different = calling("r = local.f <axis = 1> (x) s = local.f <axis = 0> (x)", f)
    assert type_at(different, "Neg", "t") == "?", "never taken for 0"


def test_an_attribute_may_have_a_default() -> None:
    f = "f <axis: int = 1> (a) => (b) { t = Concat <axis: int = @axis> (a, a) b = Neg (t) }"
    assert type_at(calling("r = local.f (x)", f), "Neg", "t") == "float[3,8]"
    other = calling("r = local.f (x) s = local.f <axis = 0> (x)", f)
    assert type_at(other, "Neg", "t") == "?"


def test_an_omitted_argument_is_of_no_type() -> None:
    model = calling("r = local.f (x)", "f (a, more) => (b) { b = Clip (a, more) }")
    assert type_at(model, "Clip", "more") == "?"
    assert type_at(model, "Clip", "b") == "float[3,4]"


def test_bodies_in_functions() -> None:
    model = calling(
        "c = Constant <value = bool {1}> () r = local.f (x, c)",
        "f (a, c) => (b) { b = If (c) <then_branch = y () => (p) { p = Transpose (a) }, "
        "else_branch = n () => (p) { p = Transpose (a) }> }",
    )
    assert types_of(model)["local.f/if_0.then_branch/p"] == "float[4,3]"


@pytest.mark.parametrize("opset", [9, 13])
def test_branches_of_different_shapes(opset: int) -> None:
    """onnx takes the known size of one branch for that of the If before opset 11."""
    model = onnx.parser.parse_model(f"""
        <ir_version: 8, opset_import: ["" : {opset}]>
        g (bool c, float[0,2] none, float[N,2] some, float[3,2] three)
            => (float[A,B] y, float[D,2] z) {{
            inner = If (c) <then_branch = t () => (float[K,2] p) {{
                q = If (c) <then_branch = v () => (float[K,2] r) {{ r = Neg (some) }},
                    else_branch = w () => (float[M,2] s) {{ s = Neg (none) }}>
                p = Identity (q)
            }}, else_branch = e () => (float[M,2] u) {{ u = Neg (three) }}>
            y = Identity (inner)
            same = If (c) <then_branch = f () => (float[L,2] a) {{ a = Neg (three) }},
                else_branch = h () => (float[L,2] b) {{ b = Abs (three) }}>
            z = Neg (same)
        }}
    """)
    found = infer_shapes(model)
    types = {value.name: dims_of(value.type) for value in found.graph.value_info}
    assert not isinstance(types["inner"][0], int)
    assert types["inner"][1] == 2
    assert types["same"] == (3, 2)
    assert [list(node.output) for node in found.graph.node] == [["inner"], ["y"], ["same"], ["z"]]
