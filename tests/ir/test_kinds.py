"""Models of other packages are taken, and given back without copies of their weights."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs
import pytest
from onnx import ModelProto, helper, numpy_helper, parser

import passes
from passes.ir import kinds

WEIGHT = np.arange(6, dtype=np.float32).reshape(2, 3)
TEXT = """<ir_version: 8, opset_import: ["" : 17]>
g (float[3,2] x, float[3] s) => (float[3] y)
{
  last = Loop (trips, "", s) <body = b (int64 i, bool c, float[3] h) => (bool c2, float[3] h2) {
    c2 = Identity (c)
    r = Gather (x, i)
    m = MatMul (r, w)
    h2 = Add (h, m)
  }>
  y = MatMul (last, v)
}"""


def model() -> ModelProto:
    """A Loop whose body captures a weight, with another one after it."""
    made = parser.parse_model(TEXT)
    weights = {"trips": np.array(3), "w": WEIGHT, "v": WEIGHT.T @ WEIGHT}
    made.graph.initializer.extend(
        numpy_helper.from_array(value, name) for name, value in weights.items()
    )
    return made


def agree(before: Any, after: Any) -> bool:
    """Return whether models agree in the reference executor."""
    return passes.compare(before, after, executor="reference").verdict == "verified"


@pytest.fixture
def into_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """All weights in memory are so many, and so large, that a file has their data."""
    monkeypatch.setattr(kinds, "_MUCH", 0)
    monkeypatch.setattr(kinds, "_LARGE", 0)


def surgeon(made: ModelProto) -> gs.Graph:
    """The graph of onnx-graphsurgeon, with the weight as an array."""
    graph = gs.import_onnx(made)
    graph.tensors()["v"].values = WEIGHT.T @ WEIGHT
    return graph


def test_a_graph_of_graphsurgeon_is_taken_and_given_back() -> None:
    graph = surgeon(model())
    result = passes.upgrade(graph, opset=21, verify=False)
    back = result.to(gs.Graph)
    assert (back.opset, graph.opset) == (21, 17)
    assert agree(graph, back)


@pytest.mark.usefixtures("into_a_file")
def test_large_weights_of_graphsurgeon_are_the_same_arrays() -> None:
    graph = surgeon(model())
    result = passes.upgrade(graph, opset=21, verify=False)
    back = result.to(gs.Graph)
    assert back.tensors()["v"].values is graph.tensors()["v"].values
    assert agree(model(), gs.export_onnx(back))


@pytest.mark.usefixtures("into_a_file")
def test_lazy_values_of_graphsurgeon_stay_lazy() -> None:
    graph = gs.import_onnx(model())
    values = graph.tensors()["v"]._values
    back = passes.upgrade(graph, opset=21, verify=False).to(gs.Graph)
    assert back.tensors()["v"]._values is values
    assert isinstance(values, gs.ir.tensor.LazyValues)


@pytest.mark.usefixtures("into_a_file")
def test_an_outcome_with_its_weights_in_a_file_has_them_in_every_kind(tmp_path: Path) -> None:
    result = passes.upgrade(surgeon(model()), opset=21, verify=False)
    assert result.base_dir is not None
    assert {one.data_location for one in result.model.graph.initializer} == {
        onnx.TensorProto.EXTERNAL
    }
    for whole in (result.to(ModelProto), onnx.load_from_string(result.to(bytes))):
        assert {one.data_location for one in whole.graph.initializer} == {onnx.TensorProto.DEFAULT}
        assert agree(model(), whole)
    saved = result.save(tmp_path / "made.onnx")
    folder = Path(str(result.base_dir))
    again = passes.simplify(result)
    del result
    assert folder.exists(), "the next result needs its weights"
    del again
    assert not folder.exists()
    assert agree(model(), saved)


@pytest.mark.usefixtures("into_a_file")
def test_what_runs_in_chunks_has_its_weights_too() -> None:
    made = parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[T,2] x) => (float[T,2] y) { y = MatMul (x, w) }""")
    made.graph.initializer.append(numpy_helper.from_array(np.eye(2, dtype=np.float32), "w"))
    streamed = passes.stream(gs.import_onnx(made), axis="T")
    assert streamed.base_dir is not None
    assert (streamed.base_dir / "weights").exists()


def test_external_data_is_mapped_in_a_graph_of_graphsurgeon(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(model(), path, save_as_external_data=True, location="w.bin", size_threshold=0)
    back = passes.upgrade(path, opset=21, verify=False).to(gs.Graph)
    np.testing.assert_array_equal(back.tensors()["v"].values, WEIGHT.T @ WEIGHT)
    assert agree(path, back)


def test_a_graph_that_graphsurgeon_cannot_write_is_refused_in_a_sentence() -> None:
    graph = surgeon(model())
    graph.outputs[0].dtype = None
    with pytest.raises(passes.BadModel, match=r"the onnx_graphsurgeon\.Graph cannot be read \("):
        passes.upgrade(graph)


def test_another_object_is_refused_with_the_list_of_what_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for package in ("onnx_ir", "torch"):  # an import of them fails
        monkeypatch.setitem(sys.modules, package, None)
    wrong: Any = [model()]
    functions: list[Any] = [passes.upgrade, passes.inspect, passes.Pipeline(["simplify"]).run]
    functions += [lambda one: passes.compare(one, one), lambda one: passes.prove(one, one)]
    for function in functions:
        with pytest.raises(TypeError) as raised:
            function(wrong)
        assert str(raised.value) == (
            "a model is one of a path, the bytes of a file, ModelProto, onnx_ir.Model, "
            "onnx_graphsurgeon.Graph, torch.onnx.ONNXProgram, or a Result, not 'list'"
        )
    with pytest.raises(TypeError, match=r"a model is given as one of ModelProto, bytes, onnx_ir"):
        passes.simplify(model()).to(list)
    name: Any = "onnx_ir.Model"
    with pytest.raises(TypeError, match=r", not as 'onnx_ir\.Model'$"):
        passes.simplify(model()).to(name)
    assert passes.simplify(model()).to(ModelProto).graph.name == "g"


class TestOnnxIr:
    """The models of onnx_ir."""

    def given(self, made: ModelProto) -> Any:
        """A model with its weight as a tensor of onnx_ir."""
        onnx_ir = pytest.importorskip("onnx_ir")
        read = onnx_ir.from_proto(made)
        read.graph.initializers["w"].const_value = onnx_ir.tensor(WEIGHT, name="w")
        return read

    def test_a_model_is_taken_and_given_back(self) -> None:
        read = self.given(model())
        back = passes.upgrade(read, opset=21, verify=False).to(type(read))
        assert (back.opset_imports, read.opset_imports) == ({"": 21}, {"": 17})
        assert agree(read, back)

    @pytest.mark.usefixtures("into_a_file")
    def test_large_weights_are_the_same_tensors(self) -> None:
        read = self.given(model())
        weight = read.graph.initializers["w"].const_value
        back = passes.upgrade(read, opset=21, verify=False).to(type(read))
        assert back.graph.initializers["w"].const_value is weight
        assert read.graph.initializers["w"].const_value is weight
        assert agree(model(), back)

    def test_external_tensors_keep_their_path(self, tmp_path: Path) -> None:
        onnx_ir = pytest.importorskip("onnx_ir")
        path = tmp_path / "model.onnx"
        onnx.save(model(), path, save_as_external_data=True, location="w.bin", size_threshold=0)
        back = passes.upgrade(onnx_ir.load(path), opset=21, verify=False).to(onnx_ir.Model)
        weight = back.graph.initializers["w"].const_value
        assert Path(weight.path) == tmp_path / "w.bin"
        assert agree(path, back)

    def test_external_tensors_of_two_folders_are_both_read(self, tmp_path: Path) -> None:
        onnx_ir = pytest.importorskip("onnx_ir")
        read = self.given(model())
        for name in ("w", "trips"):
            folder = tmp_path / name
            folder.mkdir()
            value = read.graph.initializers[name]
            (tensor,) = onnx_ir.external_data.convert_tensors_to_external(
                [value.const_value], folder, "data.bin"
            )
            value.const_value = tensor
        result = passes.upgrade(read, opset=21, verify=False)
        assert agree(model(), result)
        weight = result.to(onnx_ir.Model).graph.initializers["w"].const_value
        assert Path(weight.path) == tmp_path / "w" / "data.bin"

    def test_missing_external_data_is_refused_in_a_sentence(self, tmp_path: Path) -> None:
        onnx_ir = pytest.importorskip("onnx_ir")
        path = tmp_path / "model.onnx"
        onnx.save(model(), path, save_as_external_data=True, location="w.bin", size_threshold=0)
        read = onnx_ir.load(path)
        (tmp_path / "w.bin").unlink()
        with pytest.raises(passes.BadModel, match=r"^external data of '\w+' is missing: 'w\.bin'$"):
            passes.upgrade(read)

    def test_sparse_initializers_cannot_be_given(self) -> None:
        onnx_ir = pytest.importorskip("onnx_ir")
        made = parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
            g (float[3] x) => (float[3] y) { y = Add (x, w) }""")
        values = numpy_helper.from_array(np.array([1, 2], np.float32), "w")
        indices = numpy_helper.from_array(np.array([0, 2]), "w_indices")
        made.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [3]))
        result = passes.simplify(made)
        with pytest.raises(passes.BadModel, match="no sparse initializers, as 'w' is one"):
            result.to(onnx_ir.Model)
        assert agree(made, result.to(gs.Graph))
