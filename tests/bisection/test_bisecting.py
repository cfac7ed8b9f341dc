"""What bisecting two models tells: signatures, executors, other converters, failures, folders."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, NodeProto, parser
from typer.testing import CliRunner

import passes
from passes.__main__ import app
from passes.bisection import bisecting
from passes.bisection.result import Bisection
from passes.verify.executor import Value
from passes.verify.reference import ReferenceExecutor
from passes.verify.reference.evaluator import Evaluator
from passes.verify.reference.kernels import kernel_for
from passes.verify.reference.machine import Frame, Kernel

DONE, FAILED, USAGE, NOT_PRODUCED, MISMATCH = range(5)
CONVERTED = Path(__file__).parent / "converted"

BEFORE = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[N] x) => (float[N] y) {
    a = Exp(x)
    b = Neg(a)
    y = Mul(b, x) }"""


def model(text: str = BEFORE) -> ModelProto:
    return parser.parse_model(text)


def converted(name: str) -> Bisection:
    """What is told of a model and of what another converter made of it."""
    return passes.bisect(CONVERTED / f"{name}.before.onnxtxt", CONVERTED / f"{name}.after.onnxtxt")


class TestOtherConverters:
    """Faults that others made: `converted/generate.py` tells how."""

    def test_a_resize_that_means_other_places(self) -> None:
        found = converted("resize")
        assert found.last is not None
        assert found.last.path == "main/relu_0"
        assert found.first is not None
        assert found.first.before.path == "main/resize_1"
        assert found.first.after.path == "main/resize_2"
        assert found.first.because[-1] == "it is Resize-11, in the original Resize-10"
        assert found.first.alone

    def test_a_softmax_over_another_axis(self) -> None:
        found = converted("softmax")
        assert found.first is not None
        assert found.first.after.path == "main/softmax_1"
        assert found.first.because == ["it is Softmax-13, in the original Softmax-11"]
        assert found.first.alone


class TestVerdicts:
    def test_models_that_agree(self) -> None:
        found = passes.bisect(
            model(), model(BEFORE.replace("a = Exp(x)", "e = Exp(x) a = Identity(e)"))
        )
        assert (found.verdict, found.first) == ("agree", None)

    def test_inputs_of_other_names_are_taken_in_order(self) -> None:
        text = """<ir_version: 8, opset_import: ["" : 17]>
            g (float[M] x_1) => (float[M] out) { x = Exp(x_1)  y = Neg(x)  out = Add(y, x_1) }"""
        found = passes.bisect(model(), model(text))
        assert found.first is not None
        assert found.first.after.path == "main/add_2"
        assert found.first.because == ["it is an Add, in the original a Mul"]

    def test_no_common_signature(self) -> None:
        text = """<ir_version: 8, opset_import: ["" : 17]>
            g (double[N] x) => (float[N] y) { y = Cast <to = 1> (x) }"""
        found = passes.bisect(model(), model(text))
        assert found.verdict == "unknown"
        sentence = "the input float[N] x is double[N] x in the other model"
        assert found.reason == f"the models have no common signature: {sentence}"

    def test_a_node_that_fails(self) -> None:
        text = """<ir_version: 8, opset_import: ["" : 17]>
            g (float[N] x) => (float[N] y) <int64[1] five = {5}> {
            a = Exp(x)  b = Neg(a)  c = Mul(b, x)  y = Reshape(c, five) }"""
        found = passes.bisect(model(), model(text))
        assert found.first is not None
        assert found.first.after.path == "main/reshape_3"
        assert found.first.sentence.startswith("it fails: ")

    def test_to_the_bit(self) -> None:
        after = model(
            BEFORE.replace(
                "y = Mul(b, x)", "c = Mul(b, x) z = Constant <value_float = 0.0> () y = Add(c, z)"
            )
        )
        assert passes.bisect(model(), after).verdict == "agree"
        found = passes.bisect(model(), after, exact=True)
        assert found.first is not None
        assert found.first.after.path == "main/add_4"


def test_values_for_which_there_is_no_room_are_computed_again() -> None:
    x = np.random.default_rng(0).standard_normal(2_000).astype(np.float32)
    found = passes.bisect(
        model(), model(BEFORE.replace("Neg(a)", "Abs(a)")), inputs={"x": x}, memory=1
    )
    assert found.first is not None
    assert found.first.after.path == "main/abs_1"
    assert found.first.cut is not None
    assert [value.size for value in found.first.cut.feeds.values()] == [2_000]


class Elsewhere(ReferenceExecutor):
    """An executor in which a Sub is off by one."""

    def __init__(self) -> None:
        super().__init__(kernels=self.kernel)

    @property
    def name(self) -> str:
        return "elsewhere"

    @staticmethod
    def kernel(node: NodeProto, evaluator: Evaluator) -> Kernel:
        right = kernel_for(node, evaluator)

        def wrong(operands: list[Value], frame: Frame) -> Sequence[Any]:
            return [np.asarray(value + 1, value.dtype) for value in right(operands, frame)]

        return wrong if node.op_type == "Sub" else right


def test_what_another_executor_alone_does_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    """The models agree in the reference executor."""
    chosen = [ReferenceExecutor(), Elsewhere()]
    monkeypatch.setattr(bisecting, "executors", lambda which: nullcontext(chosen))
    after = model(BEFORE.replace("b = Neg(a)", "zero = Sub(a, a) b = Sub(zero, a)"))
    found = passes.bisect(model(), after)
    assert found.executor == "elsewhere"
    assert found.first is not None
    assert found.first.after.path == "main/sub_2"
    assert found.first.cut is not None
    assert found.first.cut.shown == ["elsewhere"]
    assert found.notes == ("the models agree in the reference executor, not in elsewhere",)


class TestCommandLine:
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.chdir(tmp_path)
        onnx.save(model(), "a.onnx")
        onnx.save(model(BEFORE.replace("Neg(a)", "Sqrt(a)")), "b.onnx")
        return tmp_path

    def test_what_it_writes_shows_the_same(self, folder: Path) -> None:
        result = CliRunner().invoke(app, ["bisect", "a.onnx", "b.onnx", "--json", "r.json"])
        assert result.exit_code == MISMATCH, result.output
        assert "first to differ  main/sqrt_1: b[" in result.stdout
        assert "because          it is a Sqrt, in the original a Neg" in result.stdout
        assert "written          b.onnx.bisect: both sides cut to 1 node" in result.stdout
        told = json.loads((folder / "r.json").read_text())
        assert told["first"]["before"]["path"] == "main/neg_1"
        for side, op in (("before", "Neg"), ("after", "Sqrt")):
            (node,) = onnx.load(f"b.onnx.bisect/{side}.onnx").graph.node
            assert node.op_type == op
        again = CliRunner().invoke(app, ["bisect", "b.onnx.bisect", "-o", "again"])
        assert again.exit_code == MISMATCH, again.output
        assert "first to differ  main/sqrt_0: b[" in again.stdout
        assert (folder / "again" / "README.txt").exists()

    def test_what_verify_writes_names_the_command(self) -> None:
        found = CliRunner().invoke(app, ["verify", "a.onnx", "b.onnx", "--executor", "reference"])
        assert found.exit_code == MISMATCH
        assert (
            "`python -m passes bisect b.onnx.reproducer` finds the first value that differs"
            in found.stderr
        )
        again = CliRunner().invoke(app, ["bisect", "b.onnx.reproducer"])
        assert again.exit_code == MISMATCH
        assert "first to differ  main/sqrt_1" in again.stdout

    def test_given_inputs(self) -> None:
        np.savez("x.npz", x=np.ones(4, np.float32))
        arguments = ["bisect", "a.onnx", "b.onnx", "--inputs", "x.npz", "--json", "r.json"]
        assert CliRunner().invoke(app, arguments).exit_code == MISMATCH
        assert json.loads(Path("r.json").read_text())["case"] == "given inputs 0"

    @pytest.mark.parametrize(
        ("arguments", "code", "said"),
        [
            (["a.onnx", "a.onnx"], DONE, "the models agree"),
            (["a.onnx"], USAGE, "a.onnx: is no folder; name two models, or a folder"),
            (["gone"], USAGE, "gone: there is no such folder; name two models, or a folder"),
            (["a.onnx", "c.onnx"], FAILED, "c.onnx: cannot be read (No such file"),
            (
                ["a.onnx", "b.onnx", "--executor", "tract"],
                USAGE,
                "not one of reference, onnxruntime, both",
            ),
        ],
    )
    def test_exit_codes(self, arguments: list[str], code: int, said: str) -> None:
        result = CliRunner().invoke(app, ["bisect", *arguments])
        assert result.exit_code == code, result.output
        assert said in result.output
