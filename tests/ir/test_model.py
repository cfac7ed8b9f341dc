"""A model file: loading it, what it says of itself, looking up who defines what."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, serialization

from passes.errors import BadModel
from passes.ir.model import Model

TEXT = """
<ir_version: 8, opset_import: ["ai.onnx" : 16, "local" : 3], producer_name: "hand">
g (float[2] x, float[2] k) => (float[2] y) <float[2] w = {1, 2}, float[2] k = {3, 4}>
{ t = Add (x, w) y = local.f (t) }
<domain: "local", opset_import: ["" : 14]> f (a) => (b) { b = Neg (a) }
<domain: "local", opset_import: ["other" : 1]> empty (a) => (b) { b = other.Neg (a) }
"""
SUFFIXES = {
    ".onnx": "protobuf",
    ".pb": "protobuf",
    ".unknown": "protobuf",
    ".textproto": "textproto",
    ".prototxt": "textproto",
    ".json": "json",
    ".onnxjson": "json",
    ".onnxtxt": "onnxtxt",
}


@pytest.fixture
def proto() -> ModelProto:
    return onnx.parser.parse_model(TEXT)


def written(path: Path, proto: ModelProto) -> Path:
    kind = SUFFIXES[path.suffix]
    data = serialization.registry.get(kind).serialize_proto(proto)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


# -- loading ----------------------------------------------------------------------------------


def test_a_proto_is_taken_as_it_is(proto: ModelProto) -> None:
    model = Model.load(proto)
    assert model.proto is proto, "and not copied"
    assert (model.path, model.base_dir, model.file) == (None, None, "")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_suffix_names_the_format(tmp_path: Path, proto: ModelProto, suffix: str) -> None:
    path = written(tmp_path / f"model{suffix}", proto)
    model = Model.load(str(path))
    assert model.proto.producer_name == "hand"
    assert [node.op_type for node in model.proto.graph.node] == ["Add", "f"]
    assert (model.path, model.base_dir, model.file) == (path, tmp_path, str(path))


def test_external_data_stays_where_it_is(tmp_path: Path, proto: ModelProto) -> None:
    weight = proto.graph.initializer[0]
    weight.ClearField("float_data")
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="w.bin")
    path = written(tmp_path / "model.onnx", proto)
    with pytest.raises(BadModel) as error:
        Model.load(path)
    assert str(error.value) == f"{path}: external data of 'w' is missing: 'w.bin'"
    (tmp_path / "w.bin").write_bytes(b"\0" * 8)
    loaded = Model.load(path).proto.graph.initializer[0]
    assert not loaded.raw_data
    assert loaded.data_location == TensorProto.EXTERNAL


def complaint(path: Path) -> str:
    with pytest.raises(BadModel) as error:
        Model.load(path)
    sentence = str(error.value)
    assert sentence.startswith(f"{path}: ")
    assert "\n" not in sentence, "one line"
    return sentence.removeprefix(f"{path}: ")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    assert complaint(tmp_path / "gone.onnx") == "cannot be read (No such file or directory)"
    assert complaint(tmp_path) == "cannot be read (Is a directory)"
    (tmp_path / "empty.onnx").touch()
    assert complaint(tmp_path / "empty.onnx") == "the file is empty"


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    "content", [b"hello world", b"\xff\xfe\x00", b"{", b"<ir_version: 8", b"graph { node { op: 3"]
)
def test_files_that_hold_no_model(tmp_path: Path, suffix: str, content: bytes) -> None:
    path = tmp_path / f"model{suffix}"
    path.write_bytes(content)
    assert complaint(path).startswith("is no ONNX model")


@pytest.mark.parametrize("suffix", [".onnx", ".textproto", ".json", ".onnxtxt"])
def test_truncated_files(tmp_path: Path, proto: ModelProto, suffix: str) -> None:
    path = written(tmp_path / f"model{suffix}", proto)
    path.write_bytes(path.read_bytes()[:-30])
    assert complaint(path).startswith("is no ONNX model")


def test_a_proto_without_a_graph_is_no_model(tmp_path: Path) -> None:
    path = written(tmp_path / "model.onnx", ModelProto(producer_name="nobody"))
    assert complaint(path) == "is no ONNX model (it has no graph)"


def test_nodes_get_the_short_name_of_the_domain_of_onnx() -> None:
    proto = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 17, "d" : 1]>
        g (bool c, float x) => (float y) {
            y = ai.onnx.If (c) <then_branch = t () => (float a) { a = ai.onnx.Neg (x) },
                else_branch = e () => (float b) { b = d.f (x) }>
        }
        <domain: "d", opset_import: ["" : 17]> f (a) => (b) { b = ai.onnx.Abs (a) }
    """)
    loaded = Model.load(proto)
    assert b"ai.onnx" in proto.SerializeToString(), "the caller's model does not change"
    assert b"ai.onnx" not in loaded.proto.SerializeToString()
    assert Model.load(loaded.proto).proto is loaded.proto


# -- opsets -----------------------------------------------------------------------------------


def test_opsets_of_the_model_and_of_its_functions(proto: ModelProto) -> None:
    model = Model(proto)
    used, empty = proto.functions
    assert model.opset() == 16, "ai.onnx is the standard domain, too"
    assert model.opset(domain="ai.onnx") == 16
    assert model.opset(proto.graph) == 16
    assert model.opset(domain="local") == 3
    assert model.opset(used) == 14
    assert model.opset(used, "local") == 0
    assert model.opset(empty) == 0, "it imports no standard operators"
    assert model.opset(domain="nobody") == 0


# -- looking up -------------------------------------------------------------------------------


def test_who_defines_what(proto: ModelProto) -> None:
    model, graph = Model(proto), proto.graph
    weight, producer = model.index(graph).initializers.get("w"), model.producer(graph, "t")
    assert weight is not None
    assert producer is not None
    assert (weight.name, producer.op_type) == ("w", "Add")
    assert model.index(graph).initializers.get("x") is None
    assert model.producer(graph, "w") is None
    assert model.index(graph).inputs == {"x", "k"}
    for name in ("x", "k", "w", "t", "y"):
        assert model.defines(graph, name)
    assert not model.defines(graph, "a")


def test_functions_define_names_of_their_own(proto: ModelProto) -> None:
    model, function = Model(proto), proto.functions[0]
    assert model.index(function).initializers.get("w") is None
    assert model.index(function).inputs == {"a"}
    assert model.defines(function, "b")
    assert not model.defines(function, "x")


def test_an_omitted_output_is_no_name() -> None:
    graph = helper.make_graph([helper.make_node("Split", ["x"], ["", "b"])], "g", [], [])
    model = Model(helper.make_model(graph))
    assert model.producer(model.proto.graph, "") is None
    assert model.producer(model.proto.graph, "b") is not None


def test_types_are_inferred_once(proto: ModelProto) -> None:
    model = Model(proto)
    assert model.types is model.types


def test_what_a_parser_quotes_is_cut_short(tmp_path: Path) -> None:
    path = tmp_path / "model.textproto"
    path.write_text("[" * 5000)
    with pytest.raises(BadModel) as caught:
        Model.load(path)
    assert len(str(caught.value)) < 1000
