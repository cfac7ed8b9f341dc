"""Saving: wholly or not at all, beside the weights or with a copy of them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto

from passes.ir import save as saving
from passes.ir.model import Model
from passes.ir.save import CannotSave, check_target, save


@pytest.fixture
def proto() -> ModelProto:
    return onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 16], producer_name: "hand">
        g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add (x, w) }
    """)


def refer(tensor: TensorProto, location: str, offset: int = 0) -> None:
    """Let a tensor's data lie in a file."""
    tensor.ClearField("float_data")
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    tensor.external_data.add(key="offset", value=str(offset))


@pytest.fixture
def heavy(tmp_path: Path, proto: ModelProto) -> Path:
    """A model file in `from/`, with weights in two files of the same name."""
    folder = tmp_path / "from"
    for part, values in (("", [5, 6, 7]), ("deep", [8, 9])):
        (folder / part).mkdir(parents=True, exist_ok=True)
        (folder / part / "w.bin").write_bytes(np.array(values, "<f4").tobytes())
    second = proto.graph.initializer.add()
    second.CopyFrom(proto.graph.initializer[0])
    second.name = "v"
    refer(proto.graph.initializer[0], "w.bin", offset=4)
    refer(second, "deep/w.bin")
    save(proto, folder / "model.onnx")
    return folder / "model.onnx"


def names(folder: Path) -> list[str]:
    """Everything in a folder, hidden files too."""
    return sorted(entry.name for entry in folder.iterdir())


def weights(path: Path) -> dict[str, list[float]]:
    model = Model.load(path)
    return {tensor.name: model.read(tensor).tolist() for tensor in model.proto.graph.initializer}


# -- the file ---------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".onnx", ".pb", ".textproto", ".json", ".onnxtxt", ".other"])
def test_the_suffix_names_the_format(tmp_path: Path, proto: ModelProto, suffix: str) -> None:
    path = tmp_path / f"model{suffix}"
    save(proto, path)
    again = Model.load(path).proto
    assert [node.op_type for node in again.graph.node] == ["Add"]
    assert weights(path) == {"w": [1.0, 2.0]}
    assert names(tmp_path) == [path.name]


def test_a_saved_model_is_the_model_to_the_byte(tmp_path: Path, proto: ModelProto) -> None:
    save(proto, tmp_path / "model.onnx")
    assert (tmp_path / "model.onnx").read_bytes() == proto.SerializeToString()


def test_targets_that_cannot_be_written(tmp_path: Path, proto: ModelProto) -> None:
    path = tmp_path / "model.onnx"
    path.write_text("precious")
    gone = tmp_path / "gone" / "model.onnx"
    for target, sentence in (
        (path, f"{path}: exists already (use --force to write over it)"),
        (tmp_path, f"{tmp_path}: is a folder"),
        (gone, f"{gone}: there is no folder {gone.parent}"),
    ):
        with pytest.raises(CannotSave) as checked:
            check_target(target)
        with pytest.raises(CannotSave) as saved:
            save(proto, target)
        assert str(checked.value) == str(saved.value) == sentence
    assert path.read_text() == "precious"


def test_force_writes_over_a_file_and_keeps_its_permissions(
    tmp_path: Path, proto: ModelProto
) -> None:
    path = tmp_path / "model.onnx"
    path.write_text("old")
    path.chmod(0o640)
    save(proto, path, force=True)
    assert Model.load(path).proto == proto
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_new_file_gets_the_permissions_that_the_user_wants(
    tmp_path: Path, proto: ModelProto
) -> None:
    mask = os.umask(0o027)
    try:
        save(proto, tmp_path / "model.onnx")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "model.onnx").stat().st_mode) == 0o640


def test_the_data_is_on_the_disk_before_the_model_appears(
    heavy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "new" / "model.onnx"
    target.parent.mkdir()
    steps: list[str] = []
    sync, rename = os.fsync, os.replace

    def synced(descriptor: int) -> None:
        steps.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        sync(descriptor)

    def renamed(source: str, to: Path) -> None:
        steps.append("rename")
        rename(source, to)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", renamed)
    save(Model.load(heavy).proto, target, base_dir=heavy.parent)
    assert steps == ["file", "file", "file", "rename", "folder"]


def test_a_folder_that_cannot_be_synced_is_no_failure(
    tmp_path: Path, proto: ModelProto, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync = os.fsync

    def refuses(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(22, "Invalid argument")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", refuses)
    save(proto, tmp_path / "model.onnx")
    assert Model.load(tmp_path / "model.onnx").proto == proto


# -- failures leave nothing behind ------------------------------------------------------------


def fails(*_: object) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("call", ["fsync", "replace", "chmod"])
def test_nothing_is_left_where_the_disk_refuses(
    heavy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    target = tmp_path / "new" / "model.onnx"
    target.parent.mkdir()
    model = Model.load(heavy).proto
    monkeypatch.setattr(os, call, fails)
    with pytest.raises(CannotSave) as error:
        save(model, target, base_dir=heavy.parent)
    assert str(error.value) == f"{target}: cannot be written (No space left on device)"
    assert names(target.parent) == []


def test_the_old_file_stays_where_the_disk_refuses(
    tmp_path: Path, proto: ModelProto, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.onnx"
    path.write_text("precious")
    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(CannotSave):
        save(proto, path, force=True)
    assert path.read_text() == "precious"
    assert names(tmp_path) == ["model.onnx"]


def test_nothing_is_left_where_the_user_interrupts(
    heavy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "new" / "model.onnx"
    target.parent.mkdir()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save(Model.load(heavy).proto, target, base_dir=heavy.parent)
    assert names(target.parent) == []


def test_nothing_is_left_where_the_weights_are_gone(heavy: Path, tmp_path: Path) -> None:
    target = tmp_path / "new" / "model.onnx"
    target.parent.mkdir()
    model = Model.load(heavy).proto
    (heavy.parent / "deep" / "w.bin").unlink()
    with pytest.raises(CannotSave, match="No such file or directory"):
        save(model, target, base_dir=heavy.parent)
    assert names(target.parent) == []


def test_a_file_that_appears_meanwhile_is_not_deleted(
    heavy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "new" / "model.onnx"
    target.parent.mkdir()
    taken = target.parent / "taken.bin"
    taken.write_text("somebody else's")
    monkeypatch.setattr(saving, "_free_name", lambda path, source: taken)
    with pytest.raises(CannotSave, match="File exists"):
        save(Model.load(heavy).proto, target, base_dir=heavy.parent)
    assert taken.read_text() == "somebody else's"


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root writes everywhere"
)
def test_a_read_only_folder(tmp_path: Path, proto: ModelProto) -> None:
    folder = tmp_path / "closed"
    folder.mkdir()
    folder.chmod(0o555)
    with pytest.raises(CannotSave, match="Permission denied"):
        save(proto, folder / "model.onnx")


# -- external data ----------------------------------------------------------------------------


def test_beside_the_original_the_data_is_shared(heavy: Path) -> None:
    before = names(heavy.parent)
    model = Model.load(heavy).proto
    save(model, heavy.with_name("new.onnx"), base_dir=heavy.parent)
    assert names(heavy.parent) == sorted([*before, "new.onnx"])
    assert weights(heavy.with_name("new.onnx")) == {"w": [6.0, 7.0], "v": [8.0, 9.0]}


def test_the_same_folder_by_another_name_is_the_same_folder(heavy: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(heavy.parent)
    before = names(heavy.parent)
    model = Model.load(heavy).proto
    save(model, tmp_path / "alias" / "new.onnx", base_dir=heavy.parent)
    assert names(heavy.parent) == sorted([*before, "new.onnx"])


def test_elsewhere_the_data_is_copied_under_new_names(heavy: Path, tmp_path: Path) -> None:
    target = tmp_path / "new" / "small.onnx"
    target.parent.mkdir()
    model = Model.load(heavy).proto
    untouched = model.SerializeToString()
    said: list[str] = []
    save(model, target, base_dir=heavy.parent, progress=said.append)
    assert names(target.parent) == ["small-1.w.bin", "small.onnx", "small.w.bin"]
    assert weights(target) == {"w": [6.0, 7.0], "v": [8.0, 9.0]}
    assert not any((target.parent / name).is_symlink() for name in names(target.parent))
    assert said == [
        "copying 12 bytes of weights to small.w.bin",
        "copying 8 bytes of weights to small-1.w.bin",
    ]
    assert model.SerializeToString() == untouched, "the argument keeps its references"


@pytest.mark.parametrize("suffix", [".onnx", ".json", ".textproto", ".onnxtxt"])
def test_writing_over_a_model_takes_its_copied_data_away(
    heavy: Path, tmp_path: Path, suffix: str
) -> None:
    target = tmp_path / f"to{suffix}"
    save(Model.load(heavy).proto, target, base_dir=heavy.parent)
    assert len(names(tmp_path)) > 2  # beside the folder of the original: the model and its data
    without = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 16]> g (float[2] x) => (float[2] y) { y = Neg (x) }
    """)
    save(without, target, force=True)
    assert names(tmp_path) == ["from", target.name]


def test_a_copy_never_writes_over_anything(heavy: Path, tmp_path: Path) -> None:
    target = tmp_path / "new" / "small.onnx"
    target.parent.mkdir()
    (target.parent / "small.w.bin").write_text("mine")
    save(Model.load(heavy).proto, target, base_dir=heavy.parent)
    assert (target.parent / "small.w.bin").read_text() == "mine"
    assert weights(target) == {"w": [6.0, 7.0], "v": [8.0, 9.0]}


def test_a_file_that_several_weights_share_is_copied_once(
    tmp_path: Path, proto: ModelProto
) -> None:
    (tmp_path / "w.bin").write_bytes(b"\0" * 16)
    for position in range(2):
        tensor = proto.graph.initializer.add()
        tensor.CopyFrom(proto.graph.initializer[0])
        tensor.name = f"shared {position}"
        refer(tensor, "w.bin", offset=8 * position)
    target = tmp_path / "new" / "model.onnx"
    target.parent.mkdir()
    save(proto, target, base_dir=tmp_path)
    assert names(target.parent) == ["model.onnx", "model.w.bin"]
    assert weights(target)["shared 1"] == [0.0, 0.0]


def test_weights_are_written_one_by_one_to_the_same_bytes(
    tmp_path: Path, proto: ModelProto, monkeypatch: pytest.MonkeyPatch
) -> None:
    proto.doc_string = "after the graph"
    proto.metadata_props.add(key="also", value="after it")
    proto.graph.doc_string = "after the initializers"
    for size in (0, 31, 32, 4096, 1 << 20):
        tensor = proto.graph.initializer.add(name=f"v_{size}", data_type=TensorProto.UINT8)
        tensor.dims.append(size)
        tensor.raw_data = bytes(size)
    save(proto, tmp_path / "whole.onnx")
    monkeypatch.setattr(saving, "_HEAVY", 1 << 10)
    save(proto, tmp_path / "parts.onnx")
    assert (tmp_path / "parts.onnx").read_bytes() == (tmp_path / "whole.onnx").read_bytes()


def test_a_model_that_protobuf_cannot_read_is_not_written(
    tmp_path: Path, proto: ModelProto, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saving, "_HEAVY", 0)
    monkeypatch.setattr(saving, "_MOST", 10)
    with pytest.raises(CannotSave, match="more than 2 GiB"):
        save(proto, tmp_path / "model.onnx")
    assert names(tmp_path) == []
