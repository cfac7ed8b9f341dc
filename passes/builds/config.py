"""The file that describes a build, `passes.toml` or `[tool.passes]` of `pyproject.toml`."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, TypeVar

from passes.builds.pool import Limits
from passes.builds.sources import output_of
from passes.choices import Assumption
from passes.commands.declaring import (
    Declared,
    Help,
    Place,
    WrongOption,
    WrongValue,
    option,
    options_of,
)
from passes.commands.options import Executing, Options
from passes.commands.pipeline import Pipeline
from passes.commands.registry import UnknownCommand, command_named
from passes.commands.task import Task
from passes.commands.toml_lines import located
from passes.errors import End, WrongUsage, nearest
from passes.reports.json_values import Unreadable
from passes.reports.summary import FAILING

FILE = "passes.toml"
_PROJECT = "pyproject.toml"
_MEGA = 1 << 20
_T = TypeVar("_T")


class BadConfig(WrongUsage):
    """The file of a build is invalid."""


def _setting(default: Any, text: str, among: type[StrEnum] | None = None, **more: Any) -> Any:
    """An option that only the file has."""
    return option(default, text, among, shown=frozenset({"file"}), **more)


def _as(declared: type, name: str) -> Any:
    """An option of commands, which is not set by default."""
    return field(default=None, metadata={Help: options_of(declared)[name].help})


@dataclass(frozen=True, kw_only=True)
class Verifying(Declared):
    """The table `[verify]`: how outcomes are verified."""

    enabled: bool | None = _setting(None, "Execute the model before and after.")
    executor: str | None = _as(Executing, "executor")
    inputs: Place | None = _as(Executing, "inputs")
    budget: float | None = _as(Executing, "verify_budget")
    seed: int | None = _as(Executing, "seed")
    allow_unverified: bool | None = _as(Options, "allow_unverified")
    prove: bool | None = _as(Options, "prove")
    require_proof: str | None = _as(Options, "require_proof")
    certify: bool | None = _as(Options, "certify")
    prove_budget: float | None = _as(Options, "prove_budget")

    def given(self) -> dict[str, Any]:
        """The options of commands that it sets."""
        names = {"enabled": "verify", "budget": "verify_budget"}
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return {names.get(name, name): value for name, value in values.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class Settings(Declared):
    """The settings of a build for models, and its overrides for some of them."""

    pipeline: str | None = _setting(None, "The pipeline that models are taken through.")
    output: str | None = _setting(
        None,
        "Where outcomes are written: {stem}, {name} and {suffix} are of the model's file, "
        "{folder} is its folder below the one that all models are in, {opset} the outcome's opset.",
    )
    dims: Mapping[str, int | str] | None = _setting(
        None, "Symbolic dims that are fixed, or equal to another one, in the models that have them."
    )
    assume: Sequence[str] | None = _setting(
        None, "What may be taken for granted, in every command.", Assumption
    )
    strict: bool | None = _setting(
        None, "Write nothing if something stays that a pipeline is to rewrite."
    )
    time_limit: float | None = _setting(None, "Seconds that a model may take.", least=0)
    memory_limit: int | None = _setting(None, "MiB of memory that a model may take.", least=1)

    def over(self, other: Settings) -> Settings:
        """Return these settings, completed by those of another."""
        given = {one.name: getattr(self, one.name) for one in fields(Settings)}
        known = {name: value for name, value in given.items() if value is not None}
        if self.dims is not None:
            known["dims"] = {**(other.dims or {}), **self.dims}
        return replace(other, **known)


@dataclass(frozen=True, kw_only=True)
class OverrideTable(Settings):
    """The table `[[overrides]]`: settings of the models that match one of some patterns."""

    models: Sequence[str] = _setting((), "Patterns of models.")
    skip: bool = _setting(False, "Leave these models out.")


@dataclass(frozen=True, kw_only=True)
class Build(Settings):
    """The keys of the file that are no tables of their own."""

    models: Sequence[str] = _setting((), "Models: files, folders, or patterns with `**`.")
    jobs: int = _setting(1, "Processes that work at a time.", least=1)
    fail_on: Sequence[str] = _setting(tuple(FAILING), "The outcomes that fail the build.", End)
    results: Place | None = _setting(None, "A file that gets a line of JSON for each model.")
    html: Place | None = _setting(
        None, "A page to look at: a table of the models, each with a page."
    )
    cache: bool = _setting(True, "Remember outcomes from run to run.")
    cache_dir: Place | None = _setting(None, "The folder of these outcomes, instead of the user's.")


@dataclass(frozen=True)
class Config:
    """A build, as the file at `path` describes it: paths in it are relative to its folder.
    `pipelines` are lists of commands with what each was given."""

    path: Path
    build: Build
    pipelines: Mapping[str, Sequence[tuple[str, Mapping[str, Any]]]]
    verify: Verifying = field(default_factory=Verifying)
    overrides: Sequence[tuple[OverrideTable, Verifying]] = ()

    @property
    def folder(self) -> Path:
        """The folder of the file."""
        return self.path.parent

    @property
    def failing(self) -> tuple[End, ...]:
        """The outcomes that fail the build."""
        return tuple(map(End, self.build.fail_on))

    def task(self, model: str, folder: str, pipeline: str | None) -> tuple[Task, Limits] | None:
        """The task of a model, which has a path; `folder` is the one that all models are in.
        None where it is left out.

        Raises:
            BadConfig: there is no pipeline of a name.
            WrongUsage: the output is no template.
        """
        settings: Settings = self.build
        given = self.verify.given()
        named = Path(os.path.relpath(model, self.folder)).as_posix()
        for override, verify in self.overrides:
            if any(fnmatch(named, pattern) for pattern in override.models):
                if override.skip:
                    return None
                settings = override.over(settings)
                given |= verify.given()
        if "inputs" in given:
            given["inputs"] = os.path.normpath(self.folder / given["inputs"])
        if settings.assume:
            given["assume"] = settings.assume
        chosen = self.pipeline(pipeline or settings.pipeline, given)
        output = os.path.join(self.folder, settings.output or "build/{folder}/{name}")
        task = Task(
            model,
            replace(chosen, dims=settings.dims or {}, lenient=True),
            output_of(output, model, folder),
            strict=bool(settings.strict),
            force=True,
        )
        memory = None if settings.memory_limit is None else settings.memory_limit * _MEGA
        return task, Limits(settings.time_limit, memory)

    def pipeline(self, name: str | None, given: Mapping[str, Any]) -> Pipeline:
        """Return the pipeline of a name, or the only one; `given` are options of all commands, for
        each option that a command does not set itself.

        Raises:
            BadConfig: there is none of that name, or there are several.
        """
        if name is None:
            if len(self.pipelines) != 1:
                known = ", ".join(self.pipelines)
                which = f"the key `pipeline` names none of {known}" if known else "is empty"
                raise BadConfig(f"{self.path}: pipelines: {which}")
            (name,) = self.pipelines
        if name not in self.pipelines:
            near = nearest(name, self.pipelines)
            raise BadConfig(f"{self.path}: there is no pipeline {name!r}; {near}")
        return Pipeline([(command, {**given, **own}) for command, own in self.pipelines[name]])


def find(folder: Path) -> Path | None:
    """The file of the build in a folder or one above it, relative to the folder."""
    above = [Path(os.path.relpath(one, folder)) for one in folder.resolve().parents]
    for place in (Path(), *above):
        if (folder / place / FILE).exists():
            return place / FILE
        project = folder / place / _PROJECT
        if project.exists() and b"[tool.passes" in project.read_bytes():
            return place / _PROJECT
    return None


def load(path: Path) -> Config:
    """Read the file of a build.

    Raises:
        BadConfig: it cannot be read, is no TOML, or has a key or value that there is not; the
            sentence names the file, the line and the key.
    """
    try:
        text = path.read_text(encoding="utf-8")
        table = tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise BadConfig(f"{path}: cannot be read ({reason})") from error
    except tomllib.TOMLDecodeError as error:
        raise BadConfig(f"{path}: is no TOML: {error}") from error
    start: tuple[str, ...] = ()
    if path.name == _PROJECT:
        start = ("tool", "passes")
        table = table.get("tool", {}).get("passes", {})
    try:
        return _config(path, table)
    except Unreadable as error:
        raise BadConfig(located(path, text, error, start)) from error


def _config(path: Path, table: Mapping[str, Any]) -> Config:
    """The build that a table describes. Raises Unreadable, as all that follow."""
    build = _table(Build, table, (), ("verify", "overrides", "pipelines"))
    overrides, pipelines = table.get("overrides", []), table.get("pipelines", {})
    if not isinstance(overrides, list):
        raise Unreadable(("overrides",), "is no list of tables")
    if not isinstance(pipelines, dict):
        raise Unreadable(("pipelines",), "is no table of pipelines")
    config = Config(
        path,
        build,
        {name: _pipeline(path.parent, name, steps) for name, steps in pipelines.items()},
        _table(Verifying, table.get("verify", {}), ("verify",)),
        [_override(number, one) for number, one in enumerate(overrides)],
    )
    named: dict[tuple[str | int, ...], str | None] = {(): build.pipeline}
    for number, (one, _) in enumerate(config.overrides):
        named["overrides", number] = one.pipeline
    for where, name in named.items():
        if name is not None and name not in config.pipelines:
            near = nearest(name, config.pipelines)
            raise Unreadable((*where, "pipeline"), f"there is no pipeline {name!r}; {near}")
    return config


def _override(number: int, table: Any) -> tuple[OverrideTable, Verifying]:
    where = ("overrides", number)
    read = _table(OverrideTable, table, where, ("verify",))
    if not read.models:
        raise Unreadable(where, "names no models")
    return read, _table(Verifying, table.get("verify", {}), (*where, "verify"))


def _pipeline(folder: Path, name: str, steps: Any) -> list[tuple[str, Mapping[str, Any]]]:
    where: tuple[str | int, ...] = ("pipelines", name)
    if not isinstance(steps, list) or not steps:
        raise Unreadable(where, "is no list of commands")
    return [_step(folder, (*where, number), step) for number, step in enumerate(steps)]


def _step(folder: Path, where: tuple[str | int, ...], step: Any) -> tuple[str, Mapping[str, Any]]:
    """A command by its name, or a table of the command and its options."""
    own = dict(step) if isinstance(step, dict) else {"command": step}
    name = own.get("command")
    if not isinstance(name, str):
        raise Unreadable(where, "names no command")
    try:
        declared = command_named(name).options
    except UnknownCommand as error:
        raise Unreadable(where, f"{error}") from error
    if isinstance(own.get("values"), dict):
        own["values"] = _read_files(folder, own["values"])
    values = _values(declared, own, where, ("command",))
    if "inputs" in values:
        values["inputs"] = os.path.normpath(folder / values["inputs"])
    if f"{values.get('target')}".endswith(".toml"):
        values["target"] = os.path.normpath(folder / values["target"])
    _made(declared, values, where)
    return name, values


def _read_files(folder: Path, values: Mapping[str, Any]) -> dict[str, Any]:
    """Values of inputs, with the content of the files that they name."""
    from passes.binding.values import read

    return {
        name: read(value, folder) if f"{value}".startswith("@") else value
        for name, value in values.items()
    }


def _table(
    declared: type[_T],
    table: Any,
    where: tuple[str | int, ...],
    beside: Sequence[str] = (),
) -> _T:
    """The options of a class that a table holds, `beside` keys that are read elsewhere."""
    if not isinstance(table, dict):
        raise Unreadable(where, "is no table")
    return _made(declared, _values(declared, table, where, beside), where)


def _values(
    declared: type,
    table: Mapping[str, Any],
    where: tuple[str | int, ...],
    beside: Sequence[str],
) -> dict[str, Any]:
    """The values of a table, by the names of the options, without those of keys `beside`."""
    known = {option.file_key: option for option in options_of(declared, "file").values()}
    values = {}
    for key, value in table.items():
        if key in beside:
            continue
        if key not in known:
            near = nearest(key, sorted([*known, *beside]))
            raise Unreadable((*where, key), f"there is no option {key!r}; {near}")
        option = known[key]
        try:
            values[option.name] = option.checked(value)
        except WrongOption as error:
            raise Unreadable((*where, key), error.sentence, " ") from error
    return values


def _made(declared: type[_T], values: dict[str, Any], where: tuple[str | int, ...]) -> _T:
    try:
        return declared(**values)
    except WrongValue as error:
        key = options_of(declared)[error.name].file_key
        raise Unreadable((*where, key), error.sentence, " ") from error
    except (TypeError, ValueError) as error:
        raise Unreadable(where, f"{error}") from error
