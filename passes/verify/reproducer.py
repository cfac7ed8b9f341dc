"""A folder with which anyone can see a mismatch again."""

from __future__ import annotations

import itertools
import os
import shutil
from pathlib import Path

import onnx
from onnx import ModelProto, external_data_helper

from passes.verify import signature, value_files
from passes.verify.executor import Feeds, Outcome

#: Models beyond this many bytes keep their weights in a file beside them.
_ONE_FILE = 1 << 30
DATA_SET = "test_data_set_0"

_README = """\
{sentence}

before.onnx   the model, or the part of one, before the rewrite
after.onnx    the same after it
{data_set}/
  input_N.pb   the inputs, in the order of the model's inputs
  output_N.pb  what before.onnx answers{expected}

To see it again, in this folder:

  python -m passes verify before.onnx after.onnx --inputs {data_set}
"""


def save(
    folder: Path,
    before: ModelProto,
    after: ModelProto,
    feeds: Feeds,
    *,
    sentence: str,
    expected: Outcome | None = None,
    base_dir: Path | None = None,
    base_dir_after: Path | None = None,
) -> Path:
    """Write both models, `feeds`, the outputs `expected` of `before` and a README.txt.

    `sentence` says what is wrong. External data is read from `base_dir` (for `after` from
    `base_dir_after`, if given) and saved along. Nothing is overwritten: where `folder` exists,
    `folder-2` and so on is used. The folder appears when it is complete; its path is returned.
    Raises OSError.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = folder.parent / f".{folder.name}.{os.getpid()}.unfinished"
    unfinished.mkdir()
    try:
        _save_model(before, unfinished / "before.onnx", base_dir)
        _save_model(after, unfinished / "after.onnx", base_dir_after or base_dir)
        _save_data(unfinished / DATA_SET, before, feeds, expected)
        known = "" if expected is not None else " (none: it fails)"
        text = _README.format(sentence=sentence, data_set=DATA_SET, expected=known)
        (unfinished / "README.txt").write_text(text, encoding="utf-8")
        return _publish(unfinished, folder)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise


def _publish(unfinished: Path, folder: Path) -> Path:
    """Rename to the first free name."""
    for number in itertools.count(1):
        target = folder if number == 1 else folder.with_name(f"{folder.name}-{number}")
        if not target.exists():
            return unfinished.rename(target)
    raise AssertionError("numbers do not end")


def _save_model(model: ModelProto, path: Path, base_dir: Path | None) -> None:
    copy = ModelProto()
    copy.CopyFrom(model)
    if base_dir is not None:
        external_data_helper.load_external_data_for_model(copy, str(base_dir))
    onnx.save_model(
        copy,
        str(path),
        save_as_external_data=copy.ByteSize() > _ONE_FILE,
        location=f"{path.name}.data",
    )


def _save_data(folder: Path, model: ModelProto, feeds: Feeds, expected: Outcome | None) -> None:
    folder.mkdir()
    value_files.write(folder, "input", feeds, signature.feedable(model))
    if expected is not None:
        value_files.write(folder, "output", expected.outputs, model.graph.output)
