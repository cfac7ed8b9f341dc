"""The engine: innermost sites first, one rebuild of each list, to a fixpoint; with toy rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, helper, numpy_helper

from passes import rule as rules
from passes.choices import RuleOptions
from passes.engine.full_check import Invalidated
from passes.engine.rewriting import Engine, NotConverging, rewrite
from passes.engine.rounds import Round
from passes.engine.schedules import Phase
from passes.errors import BadModel
from passes.ir import scope
from passes.ir.constants import Constants
from passes.ir.model import Model
from passes.ir.selection import marked
from passes.rule import BrokenRule, Edit, NothingToDo, Refused, Rewrite, Rule, Site, register
from tests.written import changed

NESTED = """
<ir_version: 8, opset_import: ["" : 16]>
g (bool c, float[2] x) => (float[2] y) {
  first = Neg (x)
  y = If (c) <then_branch = a () => (float[2] p) { p = Neg (first) },
              else_branch = b () => (float[2] p) { p = Abs (first) }>
}
"""


def a_rule(op: str, rewrite: Rewrite, name: str = "toy") -> Rule:
    """A rule that considers every node of one op."""
    return Rule(name, rewrite, lambda node, opset, target: node.op_type == op)


def renaming(to: str) -> Rewrite:
    """Gives a node another op."""

    def rewrite(site: Site) -> Edit:
        node = onnx.NodeProto()
        node.CopyFrom(site.node)
        node.op_type = to
        return Edit((node,), note=f"to {to}")

    return rewrite


def refusing(code: str = "no") -> Rewrite:
    def rewrite(site: Site) -> Edit:
        raise Refused(code, f"never {site.node.op_type}", [site.path])

    return rewrite


def halving(site: Site) -> Edit:
    """Neg as a product with a shared constant."""
    weight = numpy_helper.from_array(np.array([-1], np.float32), "minus")
    node = helper.make_node("Mul", [*site.node.input, "minus"], site.node.output)
    return Edit((node,), (weight,), note="as a product")


def round_of(
    text: str | ModelProto, *used: Rule, target: int | None = None, **options: Any
) -> Round:
    proto = onnx.parser.parse_model(text) if isinstance(text, str) else text
    before = proto.SerializeToString()
    outcome = Engine(used, target, RuleOptions(**options)).round(Model(proto))
    assert proto.SerializeToString() == before, "the model as it was read stays"
    return outcome


def ops(model: ModelProto) -> list[str]:
    return [place.node.op_type for place in scope.walk_model(model)]


# -- one round --------------------------------------------------------------------------------


def test_every_site_at_every_depth_is_rewritten_in_place() -> None:
    outcome = round_of(NESTED, a_rule("Neg", renaming("Sign")))
    assert ops(outcome.proto) == ["Sign", "Sign", "Abs", "If"]
    assert [rewrite.place.path for rewrite in outcome.rewritten] == [
        "main/neg_0",
        "main/if_1.then_branch/neg_0",
    ]
    assert [rewrite.place.node.op_type for rewrite in outcome.rewritten] == ["Neg", "Neg"], (
        "as it was"
    )


def test_inner_sites_come_first_and_the_outer_rule_sees_their_edits() -> None:
    seen: list[list[str]] = []

    def looking(site: Site) -> Edit:
        seen.append([node.op_type for _, body in scope.subgraphs(site.node) for node in body.node])
        return Edit((site.node,))

    outcome = round_of(NESTED, a_rule("Neg", renaming("Sign")), a_rule("If", looking))
    assert seen == [["Sign", "Abs"]]
    assert [rewrite.place.node.op_type for rewrite in outcome.rewritten] == ["Neg", "Neg", "If"]
    branch = dict(scope.subgraphs(outcome.rewritten[-1].place.node))["then_branch"]
    assert branch.node[0].op_type == "Neg", "the record shows the node as it was read"


def test_where_nothing_is_considered_the_model_is_not_copied() -> None:
    outcome = round_of(NESTED, a_rule("Gather", renaming("Neg")))
    assert outcome.proto is outcome.model.proto
    assert (outcome.rewritten, outcome.refused) == ([], [])


def test_a_refusal_is_recorded_and_changes_nothing() -> None:
    outcome = round_of(NESTED, a_rule("Abs", refusing()))
    assert outcome.proto is outcome.model.proto
    (refusal,) = outcome.refused
    assert refusal.rule.name == "toy"
    assert refusal.place.path == "main/if_1.else_branch/abs_0"
    assert refusal.reason.code == "no"
    assert refusal.reason.sentence == "never Abs"
    assert refusal.reason.culprits == ("main/if_1.else_branch/abs_0",)
    assert str(refusal.reason) == "no: never Abs"


def test_where_one_rule_refuses_the_next_one_is_tried() -> None:
    first, second = a_rule("Abs", refusing(), "first"), a_rule("Abs", renaming("Relu"), "second")
    outcome = round_of(NESTED, first, second)
    assert [refusal.rule.name for refusal in outcome.refused] == ["first"]
    assert [rewrite.rule.name for rewrite in outcome.rewritten] == ["second"]
    assert not round_of(NESTED, second, first).refused, "the first that answers is enough"


def test_only_some_sites_are_asked_for() -> None:
    only = ("main/if_1.*",)
    model = marked(onnx.parser.parse_model(NESTED), only)
    outcome = round_of(model, a_rule("Neg", renaming("Sign")), only=only)
    assert ops(outcome.proto) == ["Neg", "Sign", "Abs", "If"]


def test_none_is_no_answer() -> None:
    def answer(site: Site) -> Any:
        return None

    with pytest.raises(BrokenRule, match="the rule 'toy' returned None at main/neg_0, not an Edit"):
        round_of(NESTED, a_rule("Neg", answer))


def test_an_edit_of_something_else_than_nodes() -> None:
    def answer(site: Site) -> Edit:
        return Edit((3,))  # type: ignore[arg-type]  # which is what is tested

    sentence = "the rule 'toy' returned an Edit with 3, which is no NodeProto, at main/neg_0"
    with pytest.raises(BrokenRule, match=sentence):
        round_of(NESTED, a_rule("Neg", answer))


def test_a_rule_of_another_package_that_cannot_consider_a_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def wanting(site: Site) -> Edit:
        """Want less than it is given."""
        raise NothingToDo

    monkeypatch.setattr(rules, "RULES", {})
    register("wanting", considers=lambda node: True)(wanting)  # type: ignore  # too few parameters
    sentence = r"the rule 'wanting' failed: considers\(Neg '', 16, 16\): TypeError: "
    with pytest.raises(BrokenRule, match=sentence):
        Engine([rules.RULES["wanting"]]).fixpoint(Model(onnx.parser.parse_model(NESTED)))


def test_a_rule_that_fails_is_named_with_the_site() -> None:
    def failing(site: Site) -> Edit:
        raise KeyError("axis")

    with pytest.raises(BrokenRule, match="the rule 'toy' failed at main/neg_0: KeyError: 'axis'"):
        round_of(NESTED, a_rule("Neg", failing))


def test_an_invalid_edit_is_the_fault_of_its_rule() -> None:
    rules = [a_rule("Neg", renaming("Sign"), "first"), a_rule("Abs", renaming("Abbs"), "second")]
    with pytest.raises(Invalidated) as raised:
        Engine(rules).fixpoint(Model(onnx.parser.parse_model(NESTED)))
    ((rewritten, why),) = raised.value.rewrites
    assert rewritten.site == ("second", "main/if_1.else_branch/abs_0")
    assert "opset 16 has no operator Abbs" in why


def test_an_edit_without_the_output_that_is_read_is_invalid() -> None:
    def unread(site: Site) -> Edit:
        return Edit((helper.make_node("Abs", site.node.input, ["other"]),))

    with pytest.raises(Invalidated) as raised:
        Engine([a_rule("Neg", unread)]).fixpoint(Model(onnx.parser.parse_model(NESTED)))
    (first, *_) = raised.value.rewrites
    assert first[0].site == ("toy", "main/neg_0")
    assert "'first' is defined nowhere" in first[1]


def test_an_invalid_node_is_said_with_its_path() -> None:
    def complaining(site: Site) -> Edit:
        raise BadModel("Neg has no body")

    with pytest.raises(BadModel) as error:
        round_of(NESTED, a_rule("Neg", complaining))
    assert str(error.value) == "main/neg_0: Neg has no body"


def test_edits_may_share_a_constant() -> None:
    outcome = round_of(
        """
        <ir_version: 8, opset_import: ["" : 16]>
        g (float[2] x) => (float[2] y) { a = Neg (x) b = Neg (a) y = Neg (b) }
        """,
        a_rule("Neg", halving),
    )
    assert ops(outcome.proto) == ["Mul", "Mul", "Mul"]
    assert [tensor.name for tensor in outcome.proto.graph.initializer] == ["minus"]
    onnx.checker.check_model(outcome.proto, full_check=True)


def test_an_edit_of_many_nodes_stands_where_the_one_stood() -> None:
    def doubling(site: Site) -> Edit:
        middle = site.fresh("middle")
        info = helper.make_tensor_value_info(middle, 1, [2])
        first = helper.make_node("Abs", site.node.input, [middle])
        return Edit((first, helper.make_node("Sqrt", [middle], site.node.output)), (), (info,))

    outcome = round_of(NESTED, a_rule("Neg", doubling))
    assert ops(outcome.proto) == ["Abs", "Sqrt", "Abs", "Sqrt", "Abs", "If"]
    branch = dict(scope.subgraphs(outcome.proto.graph.node[2]))["then_branch"]
    assert [value.name for value in outcome.proto.graph.value_info] == ["middle"]
    assert [value.name for value in branch.value_info] == ["middle_1"], "fresh at every depth"
    onnx.checker.check_model(outcome.proto, full_check=True)


def test_an_edit_of_no_nodes_removes_the_node() -> None:
    outcome = round_of(
        """
        <ir_version: 8, opset_import: ["" : 16]>
        g (float x) => (float y) { y = Neg (x) z = Abs (x) }
        """,
        a_rule("Abs", lambda site: Edit(())),
    )
    assert ops(outcome.proto) == ["Neg"]


def test_functions_get_constant_nodes() -> None:
    outcome = round_of(
        """
        <ir_version: 8, opset_import: ["" : 16, "local" : 1]>
        g (float[2] x) => (float[2] y) { y = local.f (x) }
        <domain: "local", opset_import: ["" : 16]> f (a) => (c) { b = Neg (a) c = Neg (b) }
        """,
        a_rule("Neg", halving),
    )
    assert [rewrite.place.path for rewrite in outcome.rewritten] == [
        "local.f/neg_0",
        "local.f/neg_1",
    ]
    assert ops(outcome.proto) == ["f", "Constant", "Mul", "Mul"]
    onnx.checker.check_model(outcome.proto, full_check=True)


@pytest.mark.parametrize(("ir_version", "inputs"), [(3, ["x", "minus"]), (4, ["x"])])
def test_up_to_ir_3_new_initializers_are_inputs_too(ir_version: int, inputs: list[str]) -> None:
    outcome = round_of(
        f"""
        <ir_version: {ir_version}, opset_import: ["" : 8]>
        g (float[2] x) => (float[2] y) {{ y = Neg (x) }}
        """,
        a_rule("Neg", halving),
    )
    assert scope.input_names(outcome.proto.graph) == inputs
    onnx.checker.check_model(outcome.proto, full_check=True)


def test_names_and_opsets_that_a_rule_is_told() -> None:
    told: list[tuple[str, int, int, bool]] = []

    def listening(site: Site) -> Edit:
        told.append((site.fresh("x"), site.opset, site.target, site.in_function))
        return Edit((site.node,))

    text = """
        <ir_version: 8, opset_import: ["" : 16, "local" : 1]>
        g (float[2] x) => (float[2] y) { t = Neg (x) y = local.f (t) }
        <domain: "local", opset_import: ["" : 13]> f (a) => (b) { b = Neg (a) }
    """
    listener = a_rule("Neg", listening)
    round_of(text, listener)
    round_of(text, listener, target=18)
    assert told == [
        ("x_1", 16, 16, False),
        ("x_2", 13, 13, True),
        ("x_1", 16, 18, False),
        ("x_2", 13, 18, True),
    ]


def test_thirty_bodies_deep() -> None:
    text = "float[2] y0) { y0 = Neg (x) }"
    for depth in range(1, 30):
        text = f"float[2] y{depth}) {{ y{depth} = If (c) <then_branch = b () => ({text}"
        text += ", else_branch = e () => (float[2] z) { z = Abs (x) }>}"
    outcome = round_of(
        f'<ir_version: 8, opset_import: ["" : 16]> g (bool c, float[2] x) => ({text}',
        a_rule("Neg", renaming("Sign")),
    )
    assert ops(outcome.proto)[0] == "Sign"
    assert outcome.rewritten[0].place.path.count("then_branch") == 29


def test_whatever_is_not_touched_stays_to_the_byte() -> None:
    model = onnx.parser.parse_model(NESTED)
    model.doc_string, model.graph.doc_string = "of the model", "of the graph"
    model.metadata_props.add(key="author", value="somebody")
    model.graph.quantization_annotation.add(tensor_name="x")
    model.graph.node[1].metadata_props.add(key="origin", value="layer 3")
    sparse = model.graph.sparse_initializer.add(dims=[2])
    sparse.values.name = "s"
    expected = onnx.ModelProto()
    expected.CopyFrom(model)
    expected.graph.node[0].op_type = "Sign"
    only = Rule("toy", renaming("Sign"), lambda node, *_: node.output[0] == "first")
    assert round_of(model, only).proto.SerializeToString() == expected.SerializeToString()


# -- to a fixpoint ----------------------------------------------------------------------------


def test_rules_run_until_nothing_changes() -> None:
    chain = [a_rule("Neg", renaming("Abs"), "first"), a_rule("Abs", renaming("Relu"), "second")]
    rounds = Engine(chain).fixpoint(Model(onnx.parser.parse_model(NESTED)))
    assert [len(round_.rewritten) for round_ in rounds] == [3, 2, 0]
    assert ops(rounds[-1].proto) == ["Relu", "Relu", "Relu", "If"]


def test_with_a_target_one_round_is_all() -> None:
    chain = [a_rule("Neg", renaming("Abs")), a_rule("Abs", renaming("Neg"))]
    assert len(Engine(chain, 18).fixpoint(Model(onnx.parser.parse_model(NESTED)))) == 1


def test_rules_that_undo_each_other_are_an_error() -> None:
    chain = [a_rule("Neg", renaming("Abs"), "there"), a_rule("Abs", renaming("Neg"), "back")]
    told = "the rules there, back still change the model after 33 rounds"  # one for the If
    with pytest.raises(NotConverging, match=told):
        Engine(chain).fixpoint(Model(onnx.parser.parse_model(NESTED)))


# -- phases -----------------------------------------------------------------------------------


#: Runs phases, and returns their names, with how much each rewrote.
Settled = Callable[[dict[str, str]], list[tuple[str, int]]]


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> Settled:
    """The phases that ran, each of a rule that gives an op another name, and what they rewrote."""

    def run(renamings: dict[str, str]) -> list[tuple[str, int]]:
        for op, name in renamings.items():
            monkeypatch.setitem(rules.RULES, op, a_rule(op, renaming(name), op))
        phases = [Phase(op, (op,)) for op in renamings]
        model = Model(onnx.parser.parse_model(NESTED))
        rounds = rewrite(model, [phases], None, RuleOptions())
        assert rounds[-1].after.proto is rounds[-1].proto
        ran: list[tuple[str, int]] = []
        for round_ in rounds:
            (name,), count = round_.rules, len(round_.rewritten)
            if ran and ran[-1][0] == name:
                ran[-1] = (name, ran[-1][1] + count)
            else:
                ran.append((name, count))
        return ran

    return run


def test_the_first_phase_that_may_find_something_runs_until_none_does(settled: Settled) -> None:
    assert settled({"Neg": "Exp", "Abs": "Exp"}) == [("Neg", 2), ("Abs", 1), ("Neg", 0)]
    assert settled({"Exp": "Cos", "Abs": "Exp", "Cos": "Sin"}) == [
        *(("Exp", 0), ("Abs", 1), ("Exp", 1), ("Abs", 0)),
        *(("Cos", 1), ("Exp", 0), ("Abs", 0)),
    ]


def test_phases_that_undo_each_other_are_told(settled: Settled) -> None:
    with pytest.raises(NotConverging, match="the phase 'Neg' still changes the model"):
        settled({"Neg": "Abs", "Abs": "Neg"})


# -- constants as a site sees them ------------------------------------------------------------


def constants_seen(text: str, *names: str) -> dict[str, Any]:
    """What the site of the (innermost) Neg is told of these names."""
    found: dict[str, Any] = {}

    def asking(site: Site) -> Edit:
        for name in names:
            value = site.constant(name)
            found[name] = None if value is None else value.tolist()
        return Edit((site.node,))

    round_of(text, a_rule("Neg", asking))
    return found


def test_constants_are_initializers_and_constant_nodes_of_any_enclosing_graph() -> None:
    text = """
        <ir_version: IR, opset_import: ["" : 16]>
        g (bool c, float[2] x, int64[1] default) => (float[2] y)
        <int64[1] w = {7}, int64[1] default = {9}> {
          k = Constant <value_ints = [1, 2]> ()
          e = Add (w, w)
          y = If (c) <then_branch = a () => (float[2] p) <int64 inner = {5}> { p = Neg (x) },
                      else_branch = b () => (float[2] p) { p = Abs (x) }>
        }
    """
    names = ("w", "k", "inner", "e", "x", "default", "nobody")
    newer = constants_seen(changed(text, {"IR": "8"}), *names)
    assert newer == dict(zip(names, [[7], [1, 2], 5, None, None, None, None], strict=True))
    assert constants_seen(changed(text, {"IR": "3"}), "default") == {"default": [9]}


def test_a_body_input_hides_an_outer_constant() -> None:
    text = """
        <ir_version: 8, opset_import: ["" : 16]>
        g (float[T,2] x) => (float[T,2] y) <float[2] e = {1, 2}> {
          y = Scan <num_scan_inputs = 1, body = b (float[2] e) => (float[2] o) { o = Neg (e) }> (x)
        }
    """
    assert constants_seen(text, "e") == {"e": None}


def test_a_sparse_initializer_hides_an_outer_constant() -> None:
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 16]>
        g (bool c, float[2] x) => (float[2] y) <float[2] s = {1, 2}> {
          y = If (c) <then_branch = a () => (float[2] p) { p = Neg (s) },
                      else_branch = b () => (float[2] p) { p = Abs (x) }>
        }
    """)
    sparse = dict(scope.subgraphs(model.graph.node[0]))["then_branch"].sparse_initializer.add()
    sparse.values.name = "s"
    place = next(entry for entry in scope.walk_model(model) if entry.node.op_type == "Neg")
    assert Constants(Model(model), place.scope).tensor("s") is None
    assert Constants(Model(model), scope.Scope("main", (0,), model.graph)).tensor("s")


def test_an_attribute_of_the_function_is_no_constant() -> None:
    text = """
        <ir_version: 8, opset_import: ["" : 16, "local" : 1]>
        g (float[2] x) => (float[2] y) { y = local.f <v = 3> (x) }
        <domain: "local", opset_import: ["" : 16]>
        f <v> (a) => (b) { k = Constant <value_int: int = @v> () b = Neg (a) }
    """
    assert constants_seen(text, "k") == {"k": None}


# -- registering ------------------------------------------------------------------------------


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> dict[str, Rule]:
    empty: dict[str, Rule] = {}
    monkeypatch.setattr(rules, "RULES", empty)
    return empty


def test_a_rule_is_told_by_its_docstring(registry: dict[str, Rule]) -> None:
    @register("toy", considers=lambda *_: True, optional=True)
    def toy(site: Site) -> Edit:
        """Does nothing.

        Before: and after, the same.

        Refuses:
        - `too-large`: the site is too large
        - `bad-day`: it rains
        """
        return Edit((site.node,))

    rule = registry["toy"]
    assert rule.rewrite is toy
    assert rule.optional
    assert rule.summary == "Does nothing."
    assert rule.documentation.splitlines()[2] == "Before: and after, the same."
    assert rule.refusal_codes == {"too-large": "the site is too large", "bad-day": "it rains"}


def test_names_are_given_once_and_docstrings_are_due(registry: dict[str, Rule]) -> None:
    def documented(site: Site) -> Edit:
        """Does nothing."""
        return Edit((site.node,))

    add = register("toy", considers=lambda *_: True)
    assert add(documented) is documented
    add(documented)
    with pytest.raises(ValueError, match="two rules are called 'toy'"):
        add(refusing())
    with pytest.raises(ValueError, match="the rule 'silent' has no docstring"):
        register("silent", considers=lambda *_: True)(refusing())
    assert list(registry) == ["toy"]
