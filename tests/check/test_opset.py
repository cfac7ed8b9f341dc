"""Versions of the model, its opsets and its operators."""

from __future__ import annotations

import onnx
import pytest
from onnx import helper

from passes.check import check
from passes.errors import BadModel
from passes.ir.model import Model

from .conftest import Complaint

NEWEST = onnx.defs.onnx_opset_version()


def relu(header: str, op: str = "Relu") -> str:
    return f"""
        <ir_version: 8, opset_import: [{header}]>
        g (float[2] x) => (float[2] y) {{ y = {op} (x) }}
    """


def test_opset_newer_than_the_installed_onnx(complaint: Complaint) -> None:
    assert complaint(relu('"" : 99')) == (
        f"opset 99 is imported, but the installed onnx {onnx.__version__} knows opsets up to "
        f"{NEWEST}"
    )


def test_opset_older_than_7(complaint: Complaint) -> None:
    assert complaint(relu('"" : 6')) == (
        "opset 6 is imported, but 7 is the oldest that is supported"
    )


def test_no_import_of_the_default_domain(complaint: Complaint) -> None:
    assert complaint(relu('"d" : 1')) == (
        "main/relu_0: there is no opset import for the default domain, which Relu belongs to"
    )


def test_imports_that_disagree(complaint: Complaint) -> None:
    assert complaint(relu('"" : 17, "ai.onnx" : 18')) == (
        "versions 17 and 18 of the default domain are both imported"
    )


def test_imports_of_another_domain_that_disagree(complaint: Complaint) -> None:
    assert complaint(relu('"" : 17, "d" : 1, "d" : 2')) == (
        "versions 1 and 2 of domain 'd' are both imported"
    )


def test_unknown_operator(complaint: Complaint) -> None:
    assert complaint(relu('"" : 13', "Foo")) == (
        "main/foo_0: opset 13 has no operator Foo, nor has any other that onnx "
        f"{onnx.__version__} knows"
    )


def test_operator_of_a_later_opset(complaint: Complaint) -> None:
    assert complaint(relu('"" : 13', "Gelu")) == (
        "main/gelu_0: opset 13 has no operator Gelu, which came with opset 20"
    )


def test_operator_that_was_removed(complaint: Complaint) -> None:
    assert complaint(relu('"" : 13', "Upsample")) == (
        "main/upsample_0: opset 13 has no operator Upsample, which was removed in opset 10"
    )


def test_operator_that_was_an_experiment(complaint: Complaint) -> None:
    """onnx's checker only warns of these on stderr."""
    assert complaint(relu('"" : 13', "Affine")) == (
        "main/affine_0: opset 13 has no operator Affine, nor has any other that onnx "
        f"{onnx.__version__} knows"
    )


def test_domain_without_an_import(complaint: Complaint) -> None:
    assert complaint(relu('"" : 13', "d.f")) == (
        "main/f_0: there is no opset import for domain 'd', which f belongs to"
    )


def test_unknown_operator_in_a_body(complaint: Complaint) -> None:
    assert (
        complaint("""
        <ir_version: 8, opset_import: ["" : 13]>
        g (bool c, float x) => (float y) {
          y = If (c) <
            then_branch = t () => (float a) { a = Gelu (x) },
            else_branch = e () => (float b) { b = Neg (x) }
          >
        }
    """)
        == "main/if_0.then_branch/gelu_0: opset 13 has no operator Gelu, which came with opset 20"
    )


def test_ir_version_newer_than_the_installed_onnx(complaint: Complaint) -> None:
    assert complaint(relu('"" : 13').replace("ir_version: 8", "ir_version: 99")) == (
        f"the model has IR version 99, but the installed onnx {onnx.__version__} knows versions "
        f"up to {int(onnx.IR_VERSION)}"
    )


def test_no_ir_version(complaint: Complaint) -> None:
    assert complaint(relu('"" : 13').replace("ir_version: 8", "ir_version: 0")) == (
        "the model has no IR version"
    )


def test_too_many_inputs(complaint: Complaint) -> None:
    assert (
        complaint("""
        <ir_version: 8, opset_import: ["" : 13]>
        g (float[2] x) => (float[2] y) { y = Relu (x, x) }
    """)
        == "main/relu_0: Relu has 2 inputs, but takes 1"
    )


def test_too_many_outputs(complaint: Complaint) -> None:
    assert (
        complaint("""
        <ir_version: 8, opset_import: ["" : 13]>
        g (float[2] x) => (float[2] y) { y, z = Relu (x) }
    """)
        == "main/relu_0: Relu has 2 outputs, but gives 1"
    )


def test_an_input_that_may_not_be_left_out(complaint: Complaint) -> None:
    assert (
        complaint("""
        <ir_version: 8, opset_import: ["" : 13]>
        g (float[2] x) => (float[2] y) { y = Add (, x) }
    """)
        == "main/add_0: input 0 of Add (A) is empty, but not optional"
    )


def test_anything_else_in_the_words_of_the_checker(complaint: Complaint) -> None:
    """The path is found among nodes of the same kind, and inside bodies."""
    assert complaint("""
        <ir_version: 8, opset_import: ["" : 13]>
        g (bool c, float x) => (float y) {
          z = Neg (x)
          y = If (c) <
            then_branch = t () => (float a) { k = Neg (z) a = Neg <axis = 3> (k) },
            else_branch = e () => (float b) { b = Neg (x) }
          >
        }
    """) == (
        "main/if_1.then_branch/neg_1: onnx's checker reports: Unrecognized attribute: axis for "
        "operator Neg"
    )


def test_bodies_deeper_than_a_file_can_hold(complaint: Complaint) -> None:
    """Built in memory; no parser reads such a file, and inference would run out of stack."""
    model = onnx.parser.parse_model(relu('"" : 13'))
    graph = model.graph
    for _ in range(40):
        node = graph.node.add(op_type="Loop", output=["o"])
        node.attribute.add(name="body", type=onnx.AttributeProto.GRAPH)
        graph = node.attribute[0].g
    graph.node.append(helper.make_node("Relu", ["x"], ["o"]))
    with pytest.raises(BadModel) as refused:  # the fixture would fail to serialize it
        check(Model(model))
    assert str(refused.value) == "main: graphs are nested more than 32 deep, which no file can hold"
