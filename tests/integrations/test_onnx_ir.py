"""Commands as passes of onnx_ir, alone and between its own passes."""

from __future__ import annotations

import pytest
from onnx import ModelProto, parser

import passes
from passes.commands.registry import rewriting_commands

onnx_ir = pytest.importorskip("onnx_ir")
common = pytest.importorskip("onnx_ir.passes.common")
integration = pytest.importorskip("passes.integrations.onnx_ir")


def model() -> ModelProto:
    """A Loop of three iterations at opset 17."""
    return parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[3,2] x, float[2] s) => (float[2] y)
        <int64 trips = {3}>
        {
          unused = Neg (s)
          y = Loop (trips, "", s) <body = b (int64 i, bool c, float[2] h)
            => (bool c2, float[2] h2) {
            c2 = Identity (c)
            r = Gather (x, i)
            h2 = Add (h, r)
          }>
        }""")


def test_there_is_a_pass_for_each_command_that_rewrites() -> None:
    names = [one.options.__name__ for one in rewriting_commands().values()]
    assert {"Upgrade", "Unroll", "Optimize", "Cast"} <= set(names) < set(dir(integration))
    made = [getattr(integration, name) for name in names]
    assert all(issubclass(one, onnx_ir.passes.FunctionalPass) for one in made)
    assert integration.Upgrade is integration.Upgrade
    assert integration.Upgrade.__doc__ == rewriting_commands()["upgrade"].options.__doc__


def test_passes_run_in_a_pass_manager_with_those_of_onnx_ir() -> None:
    given = onnx_ir.from_proto(model())
    unroll = integration.Unroll(max_nodes=500)
    manager = onnx_ir.passes.PassManager(
        [common.RemoveUnusedNodesPass(), integration.Upgrade(opset=21), unroll], steps=2
    )
    result = manager(given)
    assert result.modified
    assert [node.op_type for node in result.model.graph] == ["Gather", "Add"] * 3
    assert result.model.opset_imports == {"": 21}
    assert passes.compare(model(), result.model).verdict == "verified"
    assert unroll.report.unchanged, "in the second step"


def test_a_sequence_leaves_what_it_is_given() -> None:
    given = onnx_ir.from_proto(model())
    result = onnx_ir.passes.Sequential(integration.Simplify(), integration.Unroll())(given)
    assert result.modified
    assert given.graph.num_nodes() == 2
    assert onnx_ir.to_proto(given) == onnx_ir.to_proto(onnx_ir.from_proto(model()))


def test_a_model_without_anything_to_do_is_not_modified() -> None:
    lower = integration.Lower()
    result = lower(onnx_ir.from_proto(model()))
    assert not result.modified
    assert lower.report.unchanged


def test_wrong_options_are_refused_when_the_pass_is_made() -> None:
    with pytest.raises(TypeError, match=r"argument 'opst'; the nearest .* opset"):
        integration.Upgrade(opst=21)
    with pytest.raises(TypeError, match="opset is 'new', not a whole number"):
        integration.Upgrade(opset="new")
    with pytest.raises(AttributeError, match="has no attribute 'Downgrade'"):
        integration.Downgrade  # noqa: B018


def test_a_refusal_is_the_cause_of_the_error_of_the_manager() -> None:
    words = onnx_ir.from_proto(
        parser.parse_model("""<ir_version: 10, opset_import: ["" : 21]>
        split (string[N] x) => (string[N,K] words, int64[N] count) {
          words, count = StringSplit <delimiter = ","> (x)
        }""")
    )
    with pytest.raises(passes.NotProduced):
        integration.Convert(opset=13)(words)
    with pytest.raises(onnx_ir.passes.PassError) as raised:
        onnx_ir.passes.Sequential(integration.Convert(opset=13))(words)
    assert isinstance(raised.value.__cause__, passes.NotProduced)
