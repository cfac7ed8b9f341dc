"""A folder with which anyone can see a mismatch again."""

from __future__ import annotations

import itertools
import os
import platform
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import onnx
from onnx import ModelProto, external_data_helper

from passes.ir.protos import copied
from passes.types import signature
from passes.verify.compare.trial import AUTHORITY
from passes.verify.compare.verdicts import Failure
from passes.verify.executor import Outcome
from passes.verify.inputs import given

#: Models beyond this many bytes keep their weights in a file beside them.
_ONE_FILE = 1 << 30
#: What a folder holds: both models, and the inputs.
BEFORE, AFTER = "before.onnx", "after.onnx"
DATA_SET = "test_data_set_0"

_README = """\
{sentence}

{seen}

before.onnx   the model, or the part of one, before the rewrite
after.onnx    the same after it
{data_set}/
  input_N.pb   the inputs, in the order of the model's inputs
  output_N.pb  what before.onnx answers{expected}
  after_N.pb   what after.onnx answers{actual}

{again}
"""
_AGAIN = """\
To find the first value that differs, in this folder:

  python -m passes bisect .{options}

To see it again:

  python -m passes verify before.onnx after.onnx --inputs {data_set}{options}"""
_BY_COMMAND = """\
To see it again, the same command with these inputs, from where it was called:

  {command} --inputs FOLDER/{data_set}"""
_PACKAGES = ("onnx", "onnxruntime", "numpy")


@dataclass(frozen=True)
class Circumstances:
    """The circumstances of a mismatch: the command, and the rewrites. `exact`: floats had to be
    equal bit for bit. `by_command`: the models have other inputs, so that it alone shows it."""

    command: str
    path: str
    rules: Sequence[str]
    exact: bool
    by_command: bool = False

    def lines(self, failure: Failure | None) -> Iterator[str]:
        """Yield the lines of the README.txt."""
        yield f"command    {self.command}"
        yield f"in         {Path.cwd()}"
        yield f"node       {self.path}"
        if self.rules:
            yield f"rule       {', '.join(self.rules)}"
        if failure is not None:
            yield f"executor   {failure.executor}"
            yield f"case       {failure.case.label}"
        yield f"versions   {', '.join(_versions())}"


def save(
    folder: Path,
    before: ModelProto,
    after: ModelProto,
    failure: Failure | None,
    *,
    sentence: str,
    seen: Circumstances,
    base_dir: Path | None = None,
    base_dir_after: Path | None = None,
) -> Path:
    """Write both models, the inputs of the case that failed, what both sides answer, and a
    README.txt.

    `sentence` describes the fault, `seen` how it was found. External data is read from `base_dir`
    (for `after` from `base_dir_after`, if given) and saved along. Nothing is overwritten: where
    `folder` exists, `folder-2` and so on is used. The folder appears when it is complete; its path
    is returned.
    Raises OSError.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = folder.parent / f".{folder.name}.{os.getpid()}.unfinished"
    unfinished.mkdir()
    try:
        _save_model(before, unfinished / BEFORE, base_dir)
        _save_model(after, unfinished / AFTER, base_dir_after or base_dir)
        _save_data(unfinished / DATA_SET, before, after, failure)
        text = _README.format(
            sentence=sentence,
            seen="\n".join(seen.lines(failure)),
            data_set=DATA_SET,
            expected=_answer(failure.expected if failure else None),
            actual=_answer(failure.actual if failure else None),
            again=(_BY_COMMAND if seen.by_command else _AGAIN).format(
                command=seen.command, data_set=DATA_SET, options=_options(seen, failure)
            ),
        )
        (unfinished / "README.txt").write_text(text, encoding="utf-8")
        return _publish(unfinished, folder)
    except BaseException:  # an interrupt leaves no unfinished folder, either
        shutil.rmtree(unfinished, ignore_errors=True)
        raise


def _publish(unfinished: Path, folder: Path) -> Path:
    """Rename to the first free name."""
    others = (folder.with_name(f"{folder.name}-{number}") for number in itertools.count(2))
    targets = itertools.chain([folder], others)
    return unfinished.rename(next(target for target in targets if not target.exists()))


def _save_model(model: ModelProto, path: Path, base_dir: Path | None) -> None:
    copy = copied(model)
    if base_dir is not None:
        external_data_helper.load_external_data_for_model(copy, str(base_dir))
    onnx.save_model(
        copy,
        str(path),
        save_as_external_data=copy.ByteSize() > _ONE_FILE,
        location=f"{path.name}.data",
    )


def _save_data(
    folder: Path, before: ModelProto, after: ModelProto, failure: Failure | None
) -> None:
    folder.mkdir()
    if failure is None:
        return
    given.write(folder, "input", failure.case.feeds, signature.feedable(before))
    sides = ("output", failure.expected, before), ("after", failure.actual, after)
    for name, outcome, model in sides:
        if outcome is not None:
            given.write(folder, name, outcome.outputs, model.graph.output)


def _answer(outcome: Outcome | None) -> str:
    return "" if outcome is not None else " (none: it does not answer)"


def _options(seen: Circumstances, failure: Failure | None) -> str:
    """The options with which `passes verify` sees the same."""
    alone = failure is not None and failure.executor == AUTHORITY
    return (f" --executor {AUTHORITY}" if alone else "") + (" --exact" if seen.exact else "")


def _versions() -> Iterator[str]:
    yield f"Python {platform.python_version()}"
    for name in _PACKAGES:
        try:
            yield f"{name} {metadata.version(name)}"
        except metadata.PackageNotFoundError:
            yield f"no {name}"
