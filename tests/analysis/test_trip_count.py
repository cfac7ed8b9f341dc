"""How often a loop runs, as far as that is known before the model runs."""

from __future__ import annotations

import onnx
import pytest
from onnx import ModelProto

from passes.analysis.trip_count.trip_count import TripCount
from passes.ir import scope
from passes.ir.model import Model
from passes.loops.form import LoopForm
from passes.rule import Site
from tests.written import changed


def site_of(text: str, op: str = "Loop") -> tuple[Site, LoopForm]:
    """The (innermost) loop of a model in ONNX text."""
    return site_in(onnx.parser.parse_model(text), op)


def site_in(proto: ModelProto, op: str = "Loop") -> tuple[Site, LoopForm]:
    model = Model(proto)
    place = next(found for found in scope.walk_model(proto) if found.node.op_type == op)
    site = Site.at(model, place)
    return site, LoopForm.from_node(place.node, site.opset)


# -- trip count -------------------------------------------------------------------------------


SCAN = """
<ir_version: 8, opset_import: ["" : 16]>
g (float[2] h, float[5,2] x) => (float[2] y, float[A,B] z) {
  y, z = Scan <num_scan_inputs = 1,
      body = step (float[2] s, float[2] e) => (float[2] t, float[2] o) {
    t = Add (s, e)
    o = Neg (t)
  }> (h, x)
}
"""


def scan_over(dims: str, text: str = SCAN) -> TripCount:
    return TripCount(*site_of(changed(text, {"[5,2]": dims}), "Scan"))


def along(axis: int) -> str:
    """The Scan along another axis of `x`."""
    scanned = f"num_scan_inputs = 1, scan_input_axes = [{axis}]"
    return changed(SCAN, {"num_scan_inputs = 1": scanned})


def test_a_scan_runs_as_often_as_its_axis_is_long() -> None:
    assert scan_over("[5,2]").constant == 5
    assert scan_over("[T,2]").declared == "T"
    assert str(scan_over("[?,2]")) == "dynamic"
    assert str(scan_over("[]")) == "dynamic"


def test_the_axis_counts_from_either_end() -> None:
    assert scan_over("[2,7]", along(1)).constant == 7
    assert scan_over("[2,7]", along(-1)).constant == 7
    assert scan_over("[7,2]", along(-2)).constant == 7


def test_one_scanned_input_of_known_length_is_enough() -> None:
    count = TripCount(
        *site_of(
            """
            <ir_version: 8, opset_import: ["" : 16]>
            g (float[T] a, float[4] b) => (float[U] z) {
              z = Scan <num_scan_inputs = 2,
                body = add (float e, float f) => (float o) { o = Add (e, f) }> (a, b)
            }
            """,
            "Scan",
        )
    )
    assert count.constant == 4


@pytest.mark.parametrize(("lengths", "at_most"), [('""', False), ("lens", True)])
def test_the_lengths_of_a_scan_8_may_end_it_earlier(lengths: str, at_most: bool) -> None:
    text = """
    <ir_version: 3, opset_import: ["" : 8]>
    g (int64[3] lens, float[3,2] h, float[3,T,2] x) => (float[3,2] y, float[3,T,2] z) {
      y, z = Scan <num_scan_inputs = 1,
          body = step (float[2] s, float[2] e) => (float[2] t, float[2] o) {
        t = Add (s, e)
        o = Neg (t)
      }> (lens, h, x)
    }
    """
    text = changed(text, {"(lens, h, x)": f"({lengths}, h, x)"})
    count = TripCount(*site_of(text, "Scan"))
    assert count.constant is None
    assert count.conditional == at_most
    assert str(count) == ("<= T" if at_most else "T")


LOOP = """
<ir_version: 8, opset_import: ["" : 16]>
g (float[2] h, bool any, int64 many) => (float[2] y) <int64 n = {5}, bool c = {1}> {
  y = Loop <body = b (int64 i, bool go, float[2] s) => (bool on, float[2] t) {
    on = Identity (go)
    t = Neg (s)
  }> (n, c, h)
}
"""


def going_on(nodes: str, constants: str = "bool c = {1}") -> str:
    """`LOOP` whose body computes its condition by other nodes."""
    return changed(LOOP, {"on = Identity (go)": nodes, "bool c = {1}": constants})


def fed(inputs: str) -> dict[str, str]:
    """A change of `LOOP`: another trip count and initial condition."""
    return {"(n, c, h)": f"({inputs}, h)"}


def of_trips(constant: str) -> str:
    return changed(LOOP, {"int64 n = {5}": constant})


def trips(text: str) -> str:
    return str(TripCount(*site_of(text)))


def test_a_loop_with_a_constant_trip_count() -> None:
    assert TripCount(*site_of(LOOP)).constant == 5
    assert trips(of_trips("int64[1] n = {5}")) == "5"
    assert trips(of_trips("int64 n = {-3}")) == "0", "M <= 0 runs none"
    assert trips(of_trips("int64 n = {9223372036854775807}")) == str((1 << 63) - 1)


def test_a_loop_with_a_computed_trip_count() -> None:
    assert trips(changed(LOOP, fed("many, c"))) == "dynamic"
    assert trips(changed(LOOP, fed('"", c'))) == "dynamic", "for ever"


def test_a_default_that_a_caller_may_override_is_no_constant() -> None:
    model = onnx.parser.parse_model(changed(LOOP, {"int64 many)": "int64 many, int64 n)"}))
    assert str(TripCount(*site_in(model))) == "dynamic"
    model.ir_version = 3
    assert str(TripCount(*site_in(model))) == "5", "up to IR 3 it cannot be overridden"


def test_a_condition_may_end_a_loop_earlier() -> None:
    computed = going_on("on = Not (go)")
    assert trips(computed) == "<= 5"
    assert TripCount(*site_of(computed)).constant is None
    assert trips(changed(LOOP, fed("n, any"))) == "<= 5", "it may be false at first"
    assert trips(changed(LOOP, {"bool c = {1}": "bool c = {0}"})) == "<= 5"


# -- condition --------------------------------------------------------------------------------


def always(text: str) -> bool:
    return not TripCount(*site_of(text)).conditional


def test_a_condition_that_is_passed_through() -> None:
    assert always(LOOP)
    assert always(going_on("a = Identity (go) on = Identity (a)"))
    assert always(changed(LOOP, {"on = Identity (go)": "", "(bool on,": "(bool go,"}))


def test_a_condition_that_is_made_of_true_ones() -> None:
    assert always(
        going_on(
            "yes = Constant <value_int = 1> () y = Cast <to = 9> (yes)"
            " a = And (go, y) b = Cast <to = 9> (a) on = And (b, go)"
        )
    )
    assert not always(going_on("no = Not (go) on = And (go, no)"))


def test_a_condition_that_is_omitted() -> None:
    assert always(changed(LOOP, fed('n, ""')))
    assert not always(changed(going_on("on = Not (go)"), fed('n, ""'))), "the body ends the loop"


def test_a_condition_that_is_the_constant_true() -> None:
    assert always(going_on("on = Constant <value = bool {1}> ()"))
    assert not always(going_on("on = Constant <value = bool {0}> ()"))
    assert always(going_on("on = Identity (c)")), "c is captured"
    assert always(going_on("on = Identity (d)", "bool c = {1}, bool d = {1}"))
    assert not always(going_on("on = Identity (d)", "bool c = {1}, bool d = {0}"))


def test_a_condition_that_is_an_initializer_of_the_body() -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 16]>
    g (float[2] h, int64 n) => (float[2] y) <bool c = {1}> {
      y = Loop <body = b (int64 i, bool go, float[2] s) => (bool on, float[2] t) <bool on = {1}> {
        t = Neg (s)
      }> (n, c, h)
    }
    """
    assert always(text)
    assert not always(changed(text, {"bool on = {1}": "bool on = {0}"}))


def test_a_body_input_that_is_called_like_the_initial_condition_is_another_value() -> None:
    """`c` inside is what the loop carries: false, after the first iteration."""
    assert not always(
        """
        <ir_version: 8, opset_import: ["" : 16]>
        g (bool other, int64 n) => (bool y) <bool c = {1}> {
          y = Loop <body = b (int64 i, bool go, bool c) => (bool on, bool d)
            { on = Identity (c) d = Not (c) }> (n, c, other)
        }
        """
    )


def test_a_condition_that_an_attribute_of_the_function_gives_is_not_known() -> None:
    assert not always(
        """
        <ir_version: 8, opset_import: ["" : 16, "local" : 1]>
        g (float[2] h, int64 n) => (float[2] y) { y = local.f <go_on = bool {1}> (h, n) }
        <domain: "local", opset_import: ["" : 16]> f <go_on> (h, n) => (y) {
          c = Constant <value = bool {1}> ()
          y = Loop <body = b (int64 i, bool go, float[2] s) => (bool on, float[2] t)
            { on = Constant <value: tensor = @go_on> () t = Neg (s) }> (n, c, h)
        }
        """
    )


# -- the first iteration ----------------------------------------------------------------------

SIZED = """
    <ir_version: 8, opset_import: ["" : 16]>
    g (float{dims} x, float[2] h, bool any) => (float[2] y)
    <int64 axis = {{0}}, int64[1] one = {{1}}, bool c = {{1}}, bool no = {{0}}> {{
      sizes = Shape (x)
      size = Gather (sizes, axis)
      more = Add (size, one)
      y = Loop <body = b (int64 i, bool go, float[2] s) => (bool on, float[2] t)
        {{ on = {on} t = Neg (s) }}> ({count}, {start}, h)
    }}
"""


def sized(
    count: str = "size", *, dims: str = "[N]", start: str = "c", on: str = "Identity (go)"
) -> TripCount:
    """The trip count of a Loop over the first axis of `x`, or one more."""
    return TripCount(*site_of(SIZED.format(count=count, dims=dims, start=start, on=on)))


def test_a_trip_count_that_follows_from_sizes() -> None:
    assert sized(dims="[3]").static == 3
    assert sized(dims="[3]").constant is None, "nodes in front tell it"
    assert sized("more", dims="[3]").static == 4
    assert sized().static is None
    assert str(sized("more").size) == "N + 1"
    assert sized(dims="[3]", start="any").static is None
    assert sized(dims="[3]", on="Not (go)").static is None


def test_whether_an_iteration_runs() -> None:
    assert not sized().always_runs
    assert sized().runs_if_non_empty
    assert sized("more").always_runs
    assert not sized("more").evidently_runs, "it takes a proof"
    assert not sized("more", start="any").always_runs
    assert sized("more", on="Not (go)").always_runs, "the body has no say in the first one"
    assert sized('""', on="Not (go)").always_runs
    assert sized(dims="[0]").never_runs
    assert sized(start="no", on="Not (go)").static == 0
    assert sized("one").at_most_once
    assert not sized("more").at_most_once


def test_the_first_iteration_of_scans() -> None:
    assert scan_over("[5,2]").always_runs
    assert scan_over("[0,2]").never_runs
    assert scan_over("[1,2]").at_most_once
    assert not scan_over("[T,2]").always_runs
    assert scan_over("[T,2]").runs_if_non_empty


@pytest.mark.parametrize(("condition", "equalities"), [("same", True), ("both", False)])
def test_what_guards_a_trip_count(condition: str, equalities: bool) -> None:
    """A flag that the caller gives says more than that two sizes are equal."""
    count = TripCount(
        *site_of(f"""
        <ir_version: 8, opset_import: ["" : 16]>
        g (float[N] x, float[M] z, float[2] h, bool flag) => (float[2] y)
        <int64[1] zero = {{0}}, int64[1] one = {{1}}> {{
          n = Shape (x)
          m = Shape (z)
          same = Equal (n, m)
          both = And (same, flag)
          shape = Shape (zero)
          impossible = Add (shape, one)
          wanted = Where ({condition}, shape, impossible)
          nothing = Reshape (zero, wanted)
          count = Add (n, nothing)
          y = Loop <body = b (int64 i, bool go, float[2] s) => (bool on, float[2] t)
            {{ on = Identity (go) t = Neg (s) }}> (count, "", h)
        }}
        """)
    )
    assert count.guards == {"nothing"}
    assert count.only_equalities == equalities
    assert [str(zero) for zero in count.zeros] == (["N - M"] if equalities else [])
