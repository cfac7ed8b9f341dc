"""External data: where a weight's bytes lie, read only when asked for, refused when not there."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from passes.errors import BadModel
from passes.ir.external_data import (
    ExternalTensor,
    byte_size,
    check_external_data,
    external_tensors,
    tensors,
)
from passes.ir.model import Model

STORED = sorted(set(helper.get_all_tensor_dtypes()) - {TensorProto.STRING})


def external(
    name: str = "w",
    dims: tuple[int, ...] = (2,),
    dtype: int = TensorProto.FLOAT,
    **entries: str | int,
) -> TensorProto:
    """A tensor whose data lies elsewhere: `location`, `offset` and `length` as given."""
    tensor = TensorProto(name=name, dims=dims, data_type=dtype)
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def model_with(*weights: TensorProto) -> ModelProto:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 16]> g (float[2] x) => (float[2] y) { y = Neg (x) }'
    )
    model.graph.initializer.extend(weights)
    return model


def complaint(folder: Path, tensor: TensorProto) -> str:
    """What is said against a model with this weight; empty where nothing is."""
    file = folder / "model.onnx"
    try:
        check_external_data(model_with(tensor), file.parent, str(file))
    except BadModel as error:
        return str(error).removeprefix(f"{file}: ")
    return ""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with 16 bytes in `w.bin`: the floats 1, 2, 3 and 4."""
    (tmp_path / "w.bin").write_bytes(np.array([1, 2, 3, 4], "<f4").tobytes())
    return tmp_path


# -- what is accepted, what is refused --------------------------------------------------------


def test_offset_and_length_may_be_left_out(folder: Path) -> None:
    assert complaint(folder, external(location="w.bin")) == ""
    assert complaint(folder, external(location="w.bin", offset=8, length=8)) == ""
    assert complaint(folder, external(dims=(4,), location="w.bin")) == ""


@pytest.mark.parametrize(
    ("tensor", "sentence"),
    [
        (external(), "external data of 'w' has no usable location"),
        (external(location="w.bin", offset=-4), "external data of 'w' has no usable location"),
        (external(location="w.bin", length=-1), "external data of 'w' has no usable location"),
        (
            external(location="w.bin", offset="far"),
            "external data of 'w': invalid literal for int() with base 10: 'far'",
        ),
        (external(location="gone.bin"), "external data of 'w' is missing: 'gone.bin'"),
        (external(location="."), "external data of 'w' is missing: '.'"),
        (external(location="/w.bin"), "external data of 'w' points outside the folder: '/w.bin'"),
        (
            external(location="a/../w.bin"),
            "external data of 'w' points outside the folder: 'a/../w.bin'",
        ),
        (
            external(dims=(5,), location="w.bin"),
            "external data of 'w' wants 20 bytes at 0 of 'w.bin', which has 16",
        ),
        (
            external(location="w.bin", offset=12),
            "external data of 'w' wants 8 bytes at 12 of 'w.bin', which has 16",
        ),
        (
            external(location="w.bin", length=4),
            "external data of 'w' has length 4, its dims and type make 8 bytes",
        ),
        (
            external(location="w.bin", length=16),
            "external data of 'w' has length 16, its dims and type make 8 bytes",
        ),
        (
            external(location="w" * 300),
            "external data of 'w' has no usable location: File name too long",
        ),
        (
            external(location="w\0.bin"),
            "external data of 'w' is missing: 'w\\x00.bin'",
        ),
        (external(dtype=99, location="w.bin"), "'w' has the unknown data type 99"),
        (external(dtype=0, location="w.bin"), "'w' has the unknown data type 0"),
        (external(dims=(-2,), location="w.bin"), "'w' has the dims [-2]"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(
    folder: Path, tensor: TensorProto, sentence: str
) -> None:
    assert complaint(folder, tensor) == sentence


def test_symbolic_links_are_refused(folder: Path) -> None:
    (folder / "link.bin").symlink_to("w.bin")
    (folder / "sub").mkdir()
    (folder / "there").symlink_to("sub")
    (folder / "sub" / "w.bin").write_bytes(b"\0" * 8)
    assert complaint(folder, external(location="sub/w.bin")) == ""
    assert "is a symbolic link: 'link.bin'" in complaint(folder, external(location="link.bin"))
    assert "is a symbolic link" in complaint(folder, external(location="there/w.bin"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_may_not_be_read(folder: Path) -> None:
    (folder / "w.bin").chmod(0)
    assert "may not be read" in complaint(folder, external(location="w.bin"))


def test_every_external_tensor_is_found() -> None:
    """Of the graph, of bodies, sparse, in attributes, in functions and their defaults."""
    model = onnx.parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 16, "local" : 1]>
        g (bool c, float[2] x) => (float[2] y) {
          y = If (c) <then_branch = a () => (float[2] p) <float[2] inner = {1, 2}>
                        { k = Constant <value = float[2] {1, 2}> () p = Add (k, inner) },
                      else_branch = b () => (float[2] p) { p = local.f (x) }>
        }
        <domain: "local", opset_import: ["" : 16]>
        f (a) => (b) { k = Constant <value = float[2] {3, 4}> () b = Add (a, k) }
    """)
    default = model.functions[0].attribute_proto.add(name="w", type=onnx.AttributeProto.TENSOR)
    default.t.name = "default"
    sparse = model.graph.sparse_initializer.add(dims=[2])
    sparse.values.name, sparse.indices.name = "values", "indices"
    node = model.graph.node.add(op_type="Constant", output=["s"])
    attribute = node.attribute.add(name="sparse_value", type=onnx.AttributeProto.SPARSE_TENSOR)
    attribute.sparse_tensor.values.name = "sparse attribute"
    for position, tensor in enumerate(tensors(model)):
        tensor.name = tensor.name or f"unnamed {position}"
        tensor.data_location = TensorProto.EXTERNAL
    names = [tensor.name for tensor in external_tensors(model)]
    assert {"inner", "values", "indices", "default", "sparse attribute"} < set(names)
    assert len(names) == 8, "two Constants, and the indices of the sparse attribute"


# -- reading ----------------------------------------------------------------------------------


def stored(
    folder: Path, dtype: int, count: int, offset: int = 0
) -> tuple[TensorProto, TensorProto]:
    """A tensor of raw bytes, in the model and beside it."""
    inline = TensorProto(name="w", dims=[count], data_type=dtype)
    inline.raw_data = (bytes(range(1, 250)) * 4)[: byte_size(inline)]
    (folder / "w.bin").write_bytes(b"\xff" * offset + inline.raw_data + b"\xff\xff\xff")
    return inline, external("w", (count,), dtype, location="w.bin", offset=offset)


@pytest.mark.parametrize("dtype", STORED, ids=TensorProto.DataType.Name)
@pytest.mark.parametrize("count", [5, 1, 0])
def test_a_weight_of_any_type_reads_like_the_same_bytes_in_the_model(
    tmp_path: Path, dtype: int, count: int
) -> None:
    inline, beside = stored(tmp_path, dtype, count, offset=3)
    model = Model(model_with(beside), tmp_path / "model.onnx")
    value, expected = model.read(beside), model.read(inline)
    assert value.dtype == expected.dtype == helper.tensor_dtype_to_np_dtype(dtype)
    assert value.shape == (count,)
    assert value.tobytes() == expected.tobytes()


def test_a_scalar_and_a_matrix(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(np.arange(6, dtype="<i8").tobytes())
    where = ExternalTensor("w.bin", 0, None)
    scalar = external(dims=(), dtype=TensorProto.INT64)
    matrix = external(dims=(2, 3), dtype=TensorProto.INT64)
    assert where.read(scalar, tmp_path).shape == ()
    assert where.read(matrix, tmp_path).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_reading_maps_the_file_instead_of_loading_it(folder: Path) -> None:
    value = ExternalTensor("w.bin", 4, None).read(external(), folder)
    assert value.tolist() == [2, 3]
    base = value
    while isinstance(base.base, np.ndarray):
        base = base.base
    assert isinstance(base, np.memmap)
    assert not value.flags.writeable, "the user's file is never changed"


def test_the_model_of_a_caller_has_no_folder_to_read_from() -> None:
    tensor = external(location="w.bin")
    with pytest.raises(BadModel, match="the data of 'w' is external, but the model has no file"):
        Model(model_with(tensor)).read(tensor)


@pytest.mark.parametrize(
    ("dtype", "count", "size"),
    [
        (TensorProto.FLOAT, 3, 12),
        (TensorProto.BFLOAT16, 3, 6),
        (TensorProto.BOOL, 3, 3),
        (TensorProto.COMPLEX128, 3, 48),
        (TensorProto.INT4, 3, 2),
        (TensorProto.UINT4, 4, 2),
        (TensorProto.FLOAT4E2M1, 1, 1),
        (TensorProto.INT2, 5, 2),
        (TensorProto.FLOAT8E5M2, 3, 3),
        (TensorProto.FLOAT6E2M3, 5, 4),
        (TensorProto.INT4, 0, 0),
    ],
)
def test_sizes_in_bytes(dtype: int, count: int, size: int) -> None:
    assert byte_size(TensorProto(data_type=dtype, dims=[count])) == size


def test_reading_a_weight_that_lies_in_the_model() -> None:
    tensor = numpy_helper.from_array(np.array([[1, -2]], np.int16), "w")
    assert Model(model_with(tensor)).read(tensor).tolist() == [[1, -2]]
    strings = helper.make_tensor("s", TensorProto.STRING, [2], [b"a", b"\xc3\xa9"])
    assert Model(model_with(strings)).read(strings).tolist() == ["a", "é"]
