"""Binding inputs to shapes and values: what the user of a model knows of them."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from typer.testing import CliRunner

import passes
from passes.__main__ import app
from passes.binding.dims import UnknownDim
from passes.binding.inputs import CannotBind, UnknownInput, parsed_shape
from passes.binding.values import parsed
from passes.commands.rewriting import Hoist, Lower
from passes.errors import USAGE, WrongUsage
from passes.reports.json_values import as_json
from passes.reports.report_file import Ran
from passes.reports.summary import Row
from passes.testing import as_model
from passes.types.signature import describe

#: An input decides which branch runs, as in detectors of voices.
DETECTOR = """<ir_version: 8, opset_import: ["" : 16]>
vad (float[?,?] input, float[2,batch,4] state, bool fast) => (float[?,?] y, float[2,batch,4] next) {
   y = If (fast) <
      then_branch = yes () => (float[?,?] a) { a = Neg (input) },
      else_branch = no () => (float[?,?] b) { b = Exp (input) }>
   next = Identity (state)
}"""


def signature(model: onnx.ModelProto) -> str:
    inputs, outputs = (
        ", ".join(map(describe, values)) for values in (model.graph.input, model.graph.output)
    )
    return f"({inputs}) => ({outputs})"


def text(graph: str, ir_version: int = 8, opset: int = 16) -> onnx.ModelProto:
    return as_model(f'<ir_version: {ir_version}, opset_import: ["" : {opset}]> {graph}')


def verified(result: passes.Result) -> onnx.ModelProto:
    assert result.report.checked is not None
    assert result.report.checked.verdict == "verified"
    assert result.report.checked.compared["onnxruntime"] > 0
    onnx.checker.check_model(result.model, full_check=True)
    return result.model


def test_the_branch_that_an_input_decides_is_all_that_is_left() -> None:
    result = passes.simplify(
        as_model(DETECTOR), values={"fast": True}, shapes={"input": (1, 576)}, verify_budget=10
    )
    model = verified(result)
    assert [node.op_type for node in model.graph.node] == ["Neg", "Identity"]
    assert signature(model) == (
        "(float[1,576] input, float[2,batch,4] state) => (float[1,576] y, float[2,batch,4] next)"
    )
    assert not model.graph.initializer
    assert result.report.bound == (
        "input: float[?,?] -> float[1,576]",
        "fast: bool -> the constant True",
        "y: float[?,?] -> float[1,576]",
    )
    assert "  bound: fast: bool -> the constant True\n" in result.report.to_text()


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "command",
    [passes.upgrade, passes.lower, passes.raise_, passes.unroll, passes.hoist, passes.optimize],
)
def test_every_command_binds_and_verifies_also_where_no_rule_does_anything(command: Any) -> None:
    result = command(
        as_model(DETECTOR), values={"fast": False}, shapes={"state": (2, 1, 4)}, verify_budget=5
    )
    model = verified(result)
    assert signature(model).startswith("(float[?,?] input, float[2,1,4] state) => ")
    assert not result.report.unchanged
    with pytest.raises(passes.NotVerified):
        command(as_model(DETECTOR), values={"fast": False}, verify_budget=0)


def test_convert_binds_too() -> None:
    model = verified(passes.convert(as_model(DETECTOR), opset=13, values={"fast": True}))
    assert [value.name for value in model.graph.input] == ["input", "state"]


def test_a_shape_fixes_the_dims_that_bear_a_name_everywhere() -> None:
    model = text("g (float[N,3] x, float[N] w) => (float[N,3] y) { y = Neg (x) }")
    result = verified(passes.lower(model, shapes={"x": (5, None)}))
    assert signature(result) == "(float[5,3] x, float[5] w) => (float[5,3] y)"


def test_a_value_fixes_the_dims_that_bear_a_name_everywhere() -> None:
    model = text("g (float[N,3] x, float[N,3] w) => (float[N,3] y) { y = Mul (x, w) }")
    result = verified(passes.lower(model, values={"w": np.ones((2, 3), np.float32)}))
    assert signature(result) == "(float[2,3] x) => (float[2,3] y)"
    assert [tensor.name for tensor in result.graph.initializer] == ["w"]


def test_an_input_of_unknown_rank_gets_one() -> None:
    model = text("g (float[] x) => (float[] y) { y = Neg (x) }")
    result = verified(passes.lower(model, shapes={"x": (2, 3)}))
    assert signature(result) == "(float[2,3] x) => (float[2,3] y)"


def test_sizes_are_inferred_through_to_the_outputs() -> None:
    model = text("""g (float[N,?,4] x) => (float[A,B,C] y, float[D] z) {
        y = Transpose <perm = [1, 0, 2]> (x)
        all = Constant <value_ints = [-1]> ()
        z = Reshape (y, all)
    }""")
    result = verified(passes.lower(model, shapes={"x": (2, 5, 4)}))
    assert signature(result) == "(float[2,5,4] x) => (float[5,2,4] y, float[40] z)"


def test_what_is_declared_of_values_is_no_proof_of_the_sizes_of_outputs() -> None:
    model = text("""g (float[?,3] x, int64[1] n) => (float[?] y) <float[21] flat> {
        flat = Reshape (x, n)
        y = Neg (flat)
    }""")
    result = passes.lower(model, shapes={"x": (2, 3)}, verify=False).model
    assert signature(result) == "(float[2,3] x, int64[1] n) => (float[?] y)"


def test_what_bodies_and_values_declare_otherwise_is_inferred_again() -> None:
    model = text("""g (float[?,3] x, bool c) => (float[?,3] y) <float[7,3] t> {
        t = Neg (x)
        y = If (c) <then_branch = yes () => (float[7,3] a) { a = Neg (t) },
                    else_branch = no () => (float[7,3] b) { b = Exp (t) }>
    }""")
    result = passes.lower(model, shapes={"x": (2, 3)}, verify_budget=10)
    assert result.report.checked is not None
    assert result.report.checked.verdict == "verified"
    assert "[7" not in onnx.printer.to_text(result.model)
    assert "float[2,3] t" in onnx.printer.to_text(result.model)


def test_an_output_that_declares_another_size_is_refused() -> None:
    model = text("g (float[?,3] x) => (float[7,3] y) { y = Neg (x) }")
    wrong = "with --shape x=2,3 the model is invalid: "
    with pytest.raises(passes.NotProduced, match=wrong) as raised:
        passes.lower(model, shapes={"x": (2, 3)})
    assert raised.value.report.bound == ("x: float[?,3] -> float[2,3]",)


def test_sizes_on_which_the_original_fails_are_not_verified() -> None:
    model = text("""g (float[?,3] x, int64[2] s) => (float[?,2] y) { y = Reshape (x, s) }""")
    sentence = r"main: with --shape x=3,3 --set s=\[4, 2\] no case could be compared, "
    with pytest.raises(passes.NotVerified, match=sentence):
        passes.lower(model, values={"s": [4, 2]}, shapes={"x": (3, 3)}, verify_budget=5)


def test_a_default_that_callers_may_override_is_replaced() -> None:
    model = text("""g (float[N,3] x, float[3] w) => (float[N,3] y) <float[3] w = {1, 2, 3}> {
        y = Mul (x, w) }""")
    result = verified(passes.lower(model, values={"w": [4, 5.5, 6]}))
    assert signature(result) == "(float[N,3] x) => (float[N,3] y)"
    (tensor,) = result.graph.initializer
    assert onnx.numpy_helper.to_array(tensor).tolist() == [4, 5.5, 6]


def test_at_ir_3_a_constant_is_still_listed_as_an_input() -> None:
    model = text(
        "g (float[N] x, int64 k) => (float[N] y) { f = Cast <to = 1> (k) y = Mul (x, f) }", 3, 9
    )
    result = passes.lower(model, values={"k": 3})
    onnx.checker.check_model(result.model)
    assert [tensor.name for tensor in result.model.graph.initializer] == ["k"]
    assert [value.name for value in result.model.graph.input] == ["x", "k"]
    assert result.report.bound == ("k: int64 -> the constant 3",)


def test_a_constant_that_nothing_reads_is_left_out() -> None:
    model = text("g (float[N] x, int64 k) => (float[N] y) { y = Neg (x) }")
    assert not verified(passes.lower(model, values={"k": 3})).graph.initializer


def test_a_constant_may_be_an_output_and_a_string() -> None:
    model = text("g (float[N] x, string mode) => (float[N] y, string mode) { y = Neg (x) }")
    result = verified(passes.lower(model, values={"mode": "fast"}))
    assert signature(result) == "(float[N] x) => (float[N] y, string mode)"


def test_dtypes_that_numpy_lacks_take_numbers() -> None:
    model = text("g (bfloat16[2] x) => (float[2] y) { y = Cast <to = 1> (x) }")
    result = verified(passes.lower(model, values={"x": [0.5, 3]}))
    (tensor,) = result.graph.initializer
    assert tensor.data_type == onnx.TensorProto.BFLOAT16


ALL = text("""g (float[N,3] x, float[N] w, int8 k, seq(float) q, bool c, bool[1] one, int64[2] n)
    => (float[N,3] y) { y = Neg (x) }""")


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"shapes": {"xs": (1, 3)}}, UnknownInput, "the model has no input 'xs'; the nearest are"),
        ({"values": {"cc": 1}}, UnknownInput, "the model has no input 'cc'; the nearest are c, "),
        ({"shapes": {"x": (1,)}}, CannotBind, "the input 'x' is float[N,3], [1] is given"),
        ({"shapes": {"x": (1, 4)}}, CannotBind, "the input 'x' is float[N,3], [1,4] is given"),
        ({"shapes": {"q": (1,)}}, CannotBind, "the input 'q' is seq(float), no tensor"),
        ({"values": {"q": 1.0}}, CannotBind, "the input 'q' is seq(float), no tensor"),
        (
            {"shapes": {"x": (2, 3), "w": (4,)}},
            CannotBind,
            "the dim 'N' is fixed to 2 and to 4 by 'w'",
        ),
        (
            {"shapes": {"x": (2, 3)}, "dims": {"N": 5}},
            CannotBind,
            "the dim 'N' is fixed to 5 and to 2 by 'x'",
        ),
        ({"dims": {"M": 5}}, UnknownDim, "no input has a dim 'M'; there are: N"),
        (
            {"shapes": {"w": (2,)}, "values": {"w": [1.0, 2.0]}},
            CannotBind,
            "the input 'w' is given a shape and a value",
        ),
        ({"values": {"k": 1.5}}, CannotBind, "the input 'k' is int8, 1.5 is given"),
        ({"values": {"k": True}}, CannotBind, "the input 'k' is int8, True is given"),
        ({"values": {"k": "1"}}, CannotBind, "the input 'k' is int8, '1' is given"),
        ({"values": {"k": 300}}, CannotBind, "the input 'k' is int8, which cannot hold 300"),
        ({"values": {"k": np.int64(3)}}, CannotBind, "the input 'k' is int8, int64 is given"),
        ({"values": {"k": [3]}}, CannotBind, "the input 'k' is int8, [1] is given"),
        ({"values": {"c": 1}}, CannotBind, "the input 'c' is bool, 1 is given"),
        ({"values": {"one": True}}, CannotBind, "the input 'one' is bool[1], a scalar is given"),
        ({"values": {"n": [1, 2, 3]}}, CannotBind, "the input 'n' is int64[2], [3] is given"),
        ({"values": {"w": [1e39]}}, CannotBind, "'w' is float32, which cannot hold 1e+39"),
        ({"values": {"w": [[1.0], 2.0]}}, CannotBind, "lists of different lengths are given"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(
    options: dict[str, Any], error: type[WrongUsage], sentence: str
) -> None:
    with pytest.raises(error) as raised:
        passes.lower(ALL, **options)
    assert sentence in str(raised.value)
    assert raised.value.exit_code == USAGE


def test_values_of_no_kind_are_refused_before_a_model_is_read() -> None:
    with pytest.raises(TypeError, match="values is wrong: None is no number, bool, string"):
        passes.lower("no such model.onnx", values={"x": None})
    with pytest.raises(TypeError, match="values is wrong: a list of arrays is no value"):
        passes.lower("no such model.onnx", values={"x": [np.ones(2), np.ones(2)]})
    with pytest.raises(TypeError, match=r"shapes is .* not a mapping from names to shapes"):
        passes.lower("no such model.onnx", shapes={"x": [-1]})


def test_options_compare_pickle_and_tell_values_apart() -> None:
    array = np.array([1.0, 2.0], np.float32)
    options = Hoist(values={"x": array, "k": 1}, shapes={"y": [1, None]})
    array[0] = 9  # the options hold what was given
    same = Hoist(values={"x": np.array([1, 2], np.float32), "k": 1}, shapes={"y": [1, "?"]})
    assert options == same == pickle.loads(pickle.dumps(options))
    assert options.shapes == {"y": (1, None)}
    told = {
        as_json(Ran.of(Hoist(values={"x": value})).options)
        for value in (1, True, 1.0, "1", -0.0, 0.0, float("nan"), [1], array, array[::-1])
    }
    assert len(told) == 10


def test_commands_of_a_pipeline_bind_together_and_may_not_contradict() -> None:
    pipeline = passes.Pipeline(
        [Lower(values={"fast": True}), ("simplify", {"shapes": {"input": [1, 2]}})],
        dims={"batch": 1},
    )
    model = verified(pipeline.run(as_model(DETECTOR)))
    assert signature(model).startswith("(float[1,2] input, float[2,1,4] state) => (float[1,2] y")
    for first, second in ((True, False), (True, 1)):
        contradiction = [Lower(values={"fast": first}), Hoist(values={"fast": second})]
        with pytest.raises(CannotBind, match=f"'fast' is fixed to {first} and to {second}"):
            passes.Pipeline(contradiction).run(as_model(DETECTOR))


def test_the_users_inputs_may_have_the_constant_as_well(tmp_path: Path) -> None:
    model = text("g (float[N] x, float k) => (float[N] y) { y = Mul (x, k) }")
    x, k = np.ones(3, np.float32), np.float32(2)
    np.savez(tmp_path / "given.npz", x=x, k=k)
    np.savez(tmp_path / "other.npz", x=x, k=k + 1)
    verified(passes.lower(model, values={"k": 2.0}, inputs=tmp_path / "given.npz"))
    with pytest.raises(passes.PassesError, match="k is no input; the model has x"):
        passes.lower(model, values={"k": 2.0}, inputs=tmp_path / "other.npz")


class TestCommandLine:
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.chdir(tmp_path)
        onnx.save(as_model(DETECTOR), "vad.onnx")
        onnx.save(text("g (float[N] x, float[N] w) => (float[N] y) { y = Mul (x, w) }"), "w.onnx")
        np.save("w.npy", np.array([1, 2], np.float32))
        np.savez("w.npz", w=np.array([1, 2], np.float32))
        Path("junk.npy").write_text("junk")
        return tmp_path

    def test_a_model_is_bound(self) -> None:
        call = "optimize vad.onnx -o out.onnx --set fast=true --shape input=1,576 --dim batch=1"
        done = CliRunner().invoke(app, [*call.split(), "--verify-budget", "5", "--json", "r.json"])
        assert done.exit_code == 0, done.output
        expected = "(float[1,576] input, float[2,1,4] state) => (float[1,576] y, float[2,1,4] next)"
        assert signature(onnx.load("out.onnx")) == expected
        report = json.loads(Path("r.json").read_text())
        assert report["commands"][0]["options"]["values"] == {"fast": True}
        assert report["commands"][0]["options"]["shapes"] == {"input": [1, 576]}
        assert report["bound"][0] == "input: float[?,?] -> float[1,576]"

    def test_what_is_only_bound_is_written_beside_the_model(self) -> None:
        done = CliRunner().invoke(app, ["lower", "w.onnx", "--set", "w=@w.npy"])
        assert done.exit_code == 0, done.output
        assert signature(onnx.load("w.lowered.onnx")) == "(float[2] x) => (float[2] y)"

    @pytest.mark.parametrize(
        ("argument", "sentence"),
        [
            ("--set=w=@none.npy", "none.npy: cannot be read (No such file or directory)"),
            ("--set=w=@junk.npy", "junk.npy: is no .npy file"),
            ("--set=w=@w.npz", "w.npz: is an .npz file; one array is wanted, as an .npy"),
            ("--set=w=[1,2,[3]]", "lists of different lengths are given"),
            ("--set=w", "'w' is not of the form NAME=VALUE"),
            ("--shape=w=a", "'w=a' is not of the form NAME=SIZE,SIZE,..."),
            ("--shape=v=3", "the model has no input 'v'; the nearest are"),
            ("--dim=M=3", "no input has a dim 'M'; there are: N"),
        ],
    )
    def test_wrong_usage(self, folder: Path, argument: str, sentence: str) -> None:
        before = sorted(folder.iterdir())
        done = CliRunner().invoke(app, ["lower", "w.onnx", "-o", "out.onnx", argument])
        assert done.exit_code == USAGE
        assert sentence in done.output
        assert sorted(folder.iterdir()) == before

    def test_lowest_binds_nothing(self) -> None:
        done = CliRunner().invoke(app, ["convert", "w.onnx", "--lowest", "--shape", "x=2"])
        assert done.exit_code == USAGE
        assert "does not go together with --shape" in done.output

    def test_a_build_binds_and_the_content_of_a_file_counts(self, folder: Path) -> None:
        build = folder / "below"
        build.mkdir()
        (build / "passes.toml").write_text("""models = ["../w.onnx"]
            cache-dir = "cache"
            [pipelines]
            bound = [{command = "lower", values = {w = "@../w.npy"}, shapes = {x = ["?"]}}]""")

        def ran() -> tuple[str, bool, list[float]]:
            rows: list[Row] = []
            passes.run(build / "passes.toml", listener=lambda row, number, total: rows.append(row))
            (row,) = rows
            (w,) = onnx.load(row.output).graph.initializer
            return row.end, row.cached, onnx.numpy_helper.to_array(w).tolist()

        assert ran() == ("written", False, [1, 2])
        assert ran() == ("written", True, [1, 2])
        np.save("w.npy", np.array([3, 4], np.float32))
        assert ran() == ("written", False, [3, 4])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("sr=16000", 16000),
        ("sr=-1.5", -1.5),
        ("sr=true", True),
        ("sr=fast", "fast"),
        ('sr="16000"', "16000"),
        ("sr=a=b", "a=b"),
        ("sr=[[1,2],[3,4]]", ((1, 2), (3, 4))),
    ],
)
def test_values_are_read_as_json_and_else_are_strings(given: str, expected: object) -> None:
    assert parsed(given) == ("sr", expected)
    assert type(parsed(given)[1]) is type(expected)


def test_shapes_are_read() -> None:
    assert parsed_shape("a:0=1, ?,576") == ("a:0", (1, None, 576))
    for wrong in ("x", "x=", "=1", "x=1,", "x=-1", "x=n"):
        with pytest.raises(ValueError, match="NAME=SIZE,SIZE"):
            parsed_shape(wrong)
