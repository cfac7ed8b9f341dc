"""Finds the models of a build: files, folders and globs, from arguments or a list in a file."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from passes.errors import WrongUsage

#: Suffixes of the files that a folder is searched for.
IN_FOLDERS = (".onnx", ".onnxtxt")


class NoModels(WrongUsage):
    """There is nothing at a path, or a pattern matches nothing."""


class SameOutput(WrongUsage):
    """Two models have one output."""


def found(patterns: Iterable[str | os.PathLike[str]], base: Path | None = None) -> list[str]:
    """The model files that paths, folders and patterns name, in order, each once. Folders are
    searched with all below them; patterns may have `**`; relative ones are relative to `base`.

    Raises:
        NoModels: one names nothing.
    """
    given = [os.fspath(pattern) for pattern in patterns]
    files: dict[str, None] = {}
    for text in given:
        path = os.path.normpath(os.path.join(base or "", text))
        there = _found(text, path)
        if len(given) > 1 and not os.path.lexists(there[0]):  # one alone is a model that fails
            raise NoModels(f"{text}: there is no such file")
        files.update(dict.fromkeys(there))
    return list(files)


def _found(given: str, path: str) -> Sequence[str]:
    if os.path.isdir(path):
        every = (os.path.join(at, name) for at, _, names in os.walk(path) for name in names)
        files = sorted(file for file in every if file.endswith(IN_FOLDERS))
        if not files:
            raise NoModels(f"{given}: the folder holds no {' or '.join(IN_FOLDERS)} file")
        return files
    if os.path.lexists(path) or not glob.has_magic(path):
        return [path]
    files = sorted(file for file in glob.glob(path, recursive=True) if os.path.isfile(file))
    if not files:
        raise NoModels(f"{given}: no file matches this pattern")
    return files


def listed(file: Path) -> list[str]:
    """The lines of a file, without blank ones and comments; relative paths are relative to where
    the program runs.

    Raises:
        NoModels: the file cannot be read, or has no such line.
    """
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise NoModels(f"{file}: cannot be read ({reason})") from error
    models = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    if not models:
        raise NoModels(f"{file}: names no model")
    return models


def shard(models: Sequence[str], part: str) -> Sequence[str]:
    """The part `I/N` of some models: every N-th, from the I-th on.

    Raises:
        WrongUsage: it is not of that form.
    """
    number, _, count = part.partition("/")
    if number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count):
        return models[int(number) - 1 :: int(count)]
    raise WrongUsage(f"the shard is {part!r}, not I/N with I from 1 to N")


def common_folder(models: Sequence[str]) -> str:
    """The deepest folder that all models are in."""
    return os.path.commonpath([os.path.dirname(os.path.abspath(model)) for model in models])


def output_of(template: str, model: str, folder: str) -> str:
    """The path that a template gives: `{stem}` is the file's name without its suffix, `{name}` the
    name, `{suffix}` the suffix, `{folder}` the model's folder below `folder`; `{opset}` stays.

    Raises:
        WrongUsage: the template has another field.
    """
    name = os.path.basename(model)
    stem, suffix = os.path.splitext(name)
    below = os.path.relpath(os.path.dirname(os.path.abspath(model)), folder)
    try:
        filled = template.format(stem=stem, name=name, suffix=suffix, folder=below, opset="{opset}")
    except (KeyError, IndexError, ValueError) as error:
        fields = "{stem}, {name}, {suffix}, {folder} and {opset}"
        sentence = f"the output {template!r} has another field than {fields}"
        raise WrongUsage(sentence) from error
    return os.path.normpath(filled)


def refuse_equal(outputs: Sequence[tuple[str, str]]) -> None:
    """See that models, with their outputs, do not share one.

    Raises:
        SameOutput: two do.
    """
    known: dict[str, str] = {}
    for model, output in outputs:
        place = os.path.abspath(output)
        if place in known:
            raise SameOutput(f"{known[place]} and {model} would both be written to {output}")
        known[place] = model
