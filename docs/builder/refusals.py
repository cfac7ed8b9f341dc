"""Every refusal of the golden models, as the command line shows it.

Each `golden_models/FOLDER/NAME.refused.onnxtxt` is given to the command that its folder and its
metadata name. A model that is not refused with its code fails the build of the documentation.
"""

from __future__ import annotations

import io
import re
import shlex
import sys
import tempfile
import warnings
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from unittest.mock import patch

import onnx

import passes.__main__
from passes.choices import Target
from passes.commands.declaring import options_of
from passes.commands.registry import rewriting_commands

ROOT = Path(__file__).parents[2]
_PREFIX = "option "
_REFUSED = re.compile(r"^  refused .* \[rule (?P<rule>[^ ,]+).*, code (?P<code>\S+)\]$", re.M)
_METADATA = re.compile(r",\s*metadata_props: \[.*?\]", re.DOTALL)


class NotRefused(Exception):
    """A model is not refused with the code that it names."""


@dataclass(frozen=True)
class Example:
    """A model that a rule refuses, the words of the command, and the line that it prints."""

    rule: str
    code: str
    model: Path
    words: tuple[str, ...]
    line: str

    @property
    def command(self) -> str:
        """The command, in the folder of the repository."""
        return shlex.join(("passes", *self.words))

    @property
    def text(self) -> str:
        """The model in ONNX text, without the metadata that a test reads."""
        return _METADATA.sub("", self.model.read_text(encoding="utf-8")).strip()


@cache
def examples() -> Mapping[tuple[str, str], list[Example]]:
    """The examples by rule and code; the shortest models come first.

    Raises:
        NotRefused: a model is not refused with the code that it names.
    """
    found: dict[tuple[str, str], list[Example]] = {}
    paths = sorted((ROOT / "golden_models").glob("*/*.refused.onnxtxt"))
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")  # onnx calls its text form experimental
        for path in sorted(paths, key=lambda path: path.stat().st_size):
            code, words = command_of(path)
            outcome = ["-o", f"{folder}/outcome.onnx", "--force"]
            lines = _refusals(printed := _printed([*words, *outcome]), code)
            if not lines and words[0] == "optimize":  # which regroups sums
                words.append("--keep-order")
                lines = _refusals(printed := _printed([*words, *outcome]), code)
            if not lines:
                raise NotRefused(f"{shlex.join(words)} does not print {code}, but: {printed}")
            rule = lines[0]["rule"]
            example = Example(rule, code, path, tuple(words), lines[0][0].strip())
            found.setdefault((rule, code), []).append(example)
    return found


def _refusals(printed: str, code: str) -> list[re.Match[str]]:
    return [match for match in _REFUSED.finditer(printed) if match["code"] == code]


def command_of(path: Path) -> tuple[str, list[str]]:
    """The code that a model names, and the command line that is to refuse it."""
    folder = path.parent.name
    metadata = {entry.key: entry.value for entry in onnx.load(path).metadata_props}
    options = {
        key.removeprefix(_PREFIX): value
        for key, value in metadata.items()
        if key.startswith(_PREFIX)
    }
    words = _command(folder, options)
    if "opset" in metadata or folder == "upgrade":
        words += ["--opset", metadata.get("opset", "9")]
    declared = options_of(rewriting_commands()[words[0]].options)
    for name, value in options.items():
        flag = f"--{declared[name].key}" if name in declared else f"--{name.replace('_', '-')}"
        words += [flag] if value == "yes" else [flag, value]
    return metadata["refused"], [words[0], f"{path.relative_to(ROOT)}", *words[1:]]


def _command(folder: str, options: dict[str, str]) -> list[str]:
    """The command that runs the schedule of a folder; options that it sets itself are removed."""
    if folder in rewriting_commands() and folder != "optimize":
        return [folder]
    if folder == "peel":
        options.setdefault("peel", "first")
        return ["unroll"]
    if folder == "unroll-partial":
        options.setdefault("factor", "2")
        return ["unroll"]
    flat = options.keys() & {"flat", "no_branches", "max_trips", "bounded"}
    for name in ("flat", "no_branches", "bounded"):
        options.pop(name, None)
    target = folder.removeprefix("optimize-")
    if target in set(Target):
        return ["optimize", "--target", target]
    words = ["optimize"] if folder == "optimize" else ["optimize", "--rule", folder]
    return [*words, "--target", Target.no_control_flow] if flat else words


def _printed(words: list[str]) -> str:
    """What the command prints, without the time that verification takes."""
    output = io.StringIO()
    with (
        patch.object(sys, "argv", ["passes", *words, "--no-verify"]),
        redirect_stdout(output),
        redirect_stderr(output),
        suppress(SystemExit),
    ):
        passes.__main__.main()
    return output.getvalue()
