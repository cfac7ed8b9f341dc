"""The user's own inputs: what is read, and one sentence for what is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper, parser

from passes.errors import PassesError
from passes.verify.inputs.arrays import numpy_dtype
from passes.verify.inputs.given import BadInputs, load, write


def model(signature: str, ir: int = 10) -> ModelProto:
    text = (
        f'<ir_version: {ir}, opset_import: ["" : 21]> g ({signature}) => (float r) {{ r = Neg(x) }}'
    )
    return parser.parse_model(text)


PLAIN = model("float[N,2] x, int64[N] i")
X, IDS = np.ones((3, 2), np.float32), np.arange(3)


def npz(folder: Path, **arrays: Any) -> Path:
    path = folder / "in.npz"
    np.savez(path, **arrays)
    return path


def test_an_npz_is_read_in_the_order_of_the_model(tmp_path: Path) -> None:
    values = load(npz(tmp_path, i=IDS, x=X), PLAIN)
    assert list(values) == ["x", "i"]
    np.testing.assert_array_equal(values["x"], X)


def test_strings_and_narrow_floats_survive_an_npz(tmp_path: Path) -> None:
    bfloat16 = np.array([1, -2], numpy_dtype(TensorProto.BFLOAT16))
    path = npz(tmp_path, x=bfloat16, s=np.array(["a", "é"]))
    values = load(path, model("bfloat16[N] x, string[N] s"))
    assert isinstance(values["x"], np.ndarray)
    assert values["x"].dtype == bfloat16.dtype
    np.testing.assert_array_equal(values["x"], bfloat16)
    np.testing.assert_array_equal(values["s"], ["a", "é"])


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"x": X}, "no value for input i; it has x"),
        ({"x": X, "i": IDS, "k": IDS}, "k is no input; the model has x, i"),
        ({"x": X.astype(np.float64), "i": IDS}, "input x is float32, float64 is given"),
        ({"x": X[0], "i": IDS}, "input x is float[N,2], shape [2] is given"),
        ({"x": X.T, "i": IDS}, "input x is float[N,2], shape [2, 3] is given"),
        ({"x": np.array([X], object), "i": IDS}, "cannot be read as .npz: Object arrays"),
    ],
)
def test_what_does_not_fit_is_said_in_one_sentence(
    arrays: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    path = npz(tmp_path, **arrays)
    with pytest.raises(BadInputs) as caught:
        load(path, PLAIN)
    assert str(caught.value).startswith(f"{path}: ")
    assert sentence in str(caught.value)
    assert isinstance(caught.value, PassesError)


def test_a_path_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadInputs, match="there is no such file or folder"):
        load(tmp_path / "nowhere.npz", PLAIN)


def test_a_file_that_is_no_npz(tmp_path: Path) -> None:
    path = tmp_path / "in.npz"
    path.write_bytes(b"nonsense")
    with pytest.raises(BadInputs, match=r"cannot be read as \.npz"):
        load(path, PLAIN)
    np.save(tmp_path / "in.npy", X)
    with pytest.raises(BadInputs, match="one array per input"):
        load(tmp_path / "in.npy", PLAIN)


def test_overridable_defaults_may_be_given_or_left_out(tmp_path: Path) -> None:
    defaulted = model("float[N,2] x, int64[N] i")
    defaulted.graph.initializer.append(numpy_helper.from_array(IDS, "i"))
    assert list(load(npz(tmp_path, x=X), defaulted)) == ["x"]
    assert list(load(npz(tmp_path, x=X, i=IDS), defaulted)) == ["x", "i"]
    defaulted.ir_version = 3  # it is a constant there
    assert list(load(npz(tmp_path, x=X, i=IDS), defaulted)) == ["x"]
    with pytest.raises(BadInputs, match="i is no input"):
        load(npz(tmp_path, x=X, i=IDS + 1), defaulted)


class TestFolder:
    """The layout of the onnx backend tests."""

    def test_values_of_every_kind_come_back(self, tmp_path: Path) -> None:
        declared = model(
            "float[N] x, string[N] t, seq(float[N]) s, optional(float[N]) o, optional(float[N]) p,"
            "seq(int64[N]) e, optional(seq(float[N])) q"
        )
        values = {
            "x": np.ones(2, np.float32),
            "t": np.array(["", "é"], object),
            "s": [np.ones(1, np.float32), np.zeros(2, np.float32)],
            "o": None,
            "p": np.zeros(2, np.float32),
            "e": [],
            "q": [np.ones(1, np.float32)],
        }
        write(tmp_path, "input", values, declared.graph.input)
        found = load(tmp_path, declared)
        assert list(found) == list(values)
        assert (found["o"], found["e"]) == (None, [])
        assert str(found) == str(values)

    def test_a_file_belongs_to_the_input_it_names_or_else_to_its_place(
        self, tmp_path: Path
    ) -> None:
        for number, (name, value) in enumerate([("i", IDS), ("x", X)]):
            proto = numpy_helper.from_array(value, name)
            (tmp_path / f"input_{number}.pb").write_bytes(proto.SerializeToString())
        np.testing.assert_array_equal(load(tmp_path, PLAIN)["x"], X)
        for number, value in enumerate([X, IDS]):
            proto = numpy_helper.from_array(value, "")
            (tmp_path / f"input_{number}.pb").write_bytes(proto.SerializeToString())
        np.testing.assert_array_equal(load(tmp_path, PLAIN)["x"], X)

    @pytest.mark.parametrize(
        ("files", "sentence"),
        [
            ({}, "it holds no input_0.pb"),
            ({"input_0.pb": X}, "no value for input i; it has x"),
            (
                {"input_0.pb": X, "input_1.pb": IDS, "input_2.pb": IDS},
                "the model has 2 inputs: x, i",
            ),
            ({"input_0.pb": X, "input_1.pb": b"\xff\xff"}, "input_1.pb: it cannot be read"),
            ({"input_0.pb": IDS, "input_1.pb": IDS}, "input x is float32, int64 is given"),
        ],
    )
    def test_what_is_wrong_is_said(
        self, files: dict[str, Any], sentence: str, tmp_path: Path
    ) -> None:
        for name, value in files.items():
            raw = isinstance(value, bytes)
            data = value if raw else numpy_helper.from_array(value).SerializeToString()
            (tmp_path / name).write_bytes(data)
        with pytest.raises(BadInputs) as caught:
            load(tmp_path, PLAIN)
        assert sentence in str(caught.value)

    def test_an_input_given_twice(self, tmp_path: Path) -> None:
        for number in range(2):
            proto = numpy_helper.from_array(X, "x")
            (tmp_path / f"input_{number}.pb").write_bytes(proto.SerializeToString())
        with pytest.raises(BadInputs, match="input x is given twice"):
            load(tmp_path, PLAIN)


def test_a_tensor_given_for_a_sequence(tmp_path: Path) -> None:
    with pytest.raises(BadInputs, match="input x is a sequence, a tensor is given"):
        load(npz(tmp_path, x=X), model("seq(float[N]) x"))


def test_an_item_of_a_sequence_that_does_not_fit(tmp_path: Path) -> None:
    proto = helper.make_sequence("x", 1, [numpy_helper.from_array(IDS)])
    (tmp_path / "input_0.pb").write_bytes(proto.SerializeToString())
    with pytest.raises(BadInputs, match=r"input x\[0\] is float32, int64 is given"):
        load(tmp_path, model("seq(float[N]) x"))
