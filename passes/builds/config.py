"""The file that describes a build, `passes.toml` or `[tool.passes]` of `pyproject.toml`."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Annotated, Any, TypeVar

from passes.builds.pool import Limits
from passes.builds.sources import output_of
from passes.choices import Assumption
from passes.commands.declaring import Declared, Help, WrongOption, WrongValue, options_of
from passes.commands.options import Executing, Options, check_executor
from passes.commands.pipeline import Pipeline
from passes.commands.registry import UnknownCommand, command_named
from passes.commands.task import Task
from passes.commands.toml_lines import line_of
from passes.errors import End, WrongUsage, nearest
from passes.reports.summary import FAILING

FILE = "passes.toml"
_PROJECT = "pyproject.toml"
_IN_FILE = frozenset({"file"})
_MEGA = 1 << 20
_T = TypeVar("_T")


class BadConfig(WrongUsage):
    """The file of a build is invalid."""


@dataclass(frozen=True, kw_only=True)
class Verifying(Declared):
    """The table `[verify]`: how outcomes are verified."""

    enabled: Annotated[bool | None, Help("Execute the model before and after.", shown=_IN_FILE)] = (
        None
    )
    executor: Annotated[str | None, options_of(Executing)["executor"].help] = None
    inputs: Annotated[str | os.PathLike[str] | None, options_of(Executing)["inputs"].help] = None
    budget: Annotated[float | None, options_of(Executing)["verify_budget"].help] = None
    seed: Annotated[int | None, options_of(Executing)["seed"].help] = None
    allow_unverified: Annotated[bool | None, options_of(Options)["allow_unverified"].help] = None
    prove: Annotated[bool | None, options_of(Options)["prove"].help] = None
    require_proof: Annotated[str | None, options_of(Options)["require_proof"].help] = None
    certify: Annotated[bool | None, options_of(Options)["certify"].help] = None
    prove_budget: Annotated[float | None, options_of(Options)["prove_budget"].help] = None

    def check(self) -> None:
        """See that there is such an executor."""
        if self.executor is not None:
            check_executor(self.executor)

    def given(self) -> dict[str, Any]:
        """The options of commands that it sets."""
        names = {"enabled": "verify", "budget": "verify_budget"}
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return {names.get(name, name): value for name, value in values.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class Settings(Declared):
    """The settings of a build for models, and its overrides for some of them."""

    pipeline: Annotated[
        str | None, Help("The pipeline that models are taken through.", shown=_IN_FILE)
    ] = None
    output: Annotated[
        str | None,
        Help(
            "Where outcomes are written: {stem}, {name} and {suffix} are of the model's file, "
            "{folder} is its folder below the one that all models are in, {opset} the outcome's "
            "opset.",
            shown=_IN_FILE,
        ),
    ] = None
    dims: Annotated[
        Mapping[str, int | str] | None,
        Help(
            "Symbolic dims that are fixed, or equal to another one, in the models that have them.",
            shown=_IN_FILE,
        ),
    ] = None
    assume: Annotated[
        Sequence[str] | None,
        Help("What may be taken for granted, in every command.", Assumption, shown=_IN_FILE),
    ] = None
    strict: Annotated[
        bool | None,
        Help("Write nothing if something stays that a pipeline is to rewrite.", shown=_IN_FILE),
    ] = None
    time_limit: Annotated[
        float | None, Help("Seconds that a model may take.", least=0, shown=_IN_FILE)
    ] = None
    memory_limit: Annotated[
        int | None, Help("MiB of memory that a model may take.", least=1, shown=_IN_FILE)
    ] = None

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

    models: Annotated[Sequence[str], Help("Patterns of models.", shown=_IN_FILE)] = ()
    skip: Annotated[bool, Help("Leave these models out.", shown=_IN_FILE)] = False


@dataclass(frozen=True, kw_only=True)
class Build(Settings):
    """The keys of the file that are no tables of their own."""

    models: Annotated[
        Sequence[str], Help("Models: files, folders, or patterns with `**`.", shown=_IN_FILE)
    ] = ()
    jobs: Annotated[int, Help("Processes that work at a time.", least=1, shown=_IN_FILE)] = 1
    fail_on: Annotated[
        Sequence[str], Help("The outcomes that fail the build.", End, shown=_IN_FILE)
    ] = tuple(FAILING)
    results: Annotated[
        str | os.PathLike[str] | None,
        Help("A file that gets a line of JSON for each model.", shown=_IN_FILE),
    ] = None
    html: Annotated[
        str | os.PathLike[str] | None,
        Help("A page to look at: a table of the models, each with a page.", shown=_IN_FILE),
    ] = None
    cache: Annotated[bool, Help("Remember outcomes from run to run.", shown=_IN_FILE)] = True
    cache_dir: Annotated[
        str | os.PathLike[str] | None,
        Help("The folder of these outcomes, instead of the user's.", shown=_IN_FILE),
    ] = None


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
    return _Reader(path, text, start).config(table)


@dataclass(frozen=True)
class _Reader:
    """Reads tables of a file; `start` is the path of the table of the build."""

    path: Path
    text: str
    start: tuple[str, ...]

    def config(self, table: Mapping[str, Any]) -> Config:
        own = dict(table)
        verify = own.pop("verify", {})
        overrides = own.pop("overrides", [])
        pipelines = own.pop("pipelines", {})
        build = self.table(Build, own, (), ("verify", "overrides", "pipelines"))
        if not isinstance(overrides, list):
            raise self.wrong(("overrides",), "is no list of tables")
        if not isinstance(pipelines, dict):
            raise self.wrong(("pipelines",), "is no table of pipelines")
        config = Config(
            self.path,
            build,
            {name: self.pipeline(name, steps) for name, steps in pipelines.items()},
            self.table(Verifying, verify, ("verify",)),
            [self.override(number, one) for number, one in enumerate(overrides)],
        )
        named: dict[tuple[str | int, ...], str | None] = {(): build.pipeline}
        for number, (one, _) in enumerate(config.overrides):
            named["overrides", number] = one.pipeline
        for where, name in named.items():
            if name is not None and name not in config.pipelines:
                near = nearest(name, config.pipelines)
                raise self.wrong((*where, "pipeline"), f"there is no pipeline {name!r}; {near}")
        return config

    def override(self, number: int, table: Any) -> tuple[OverrideTable, Verifying]:
        where = ("overrides", number)
        if not isinstance(table, dict):
            raise self.wrong(where, "is no table")
        own = dict(table)
        verify = self.table(Verifying, own.pop("verify", {}), (*where, "verify"))
        read = self.table(OverrideTable, own, where, ("verify",))
        if not read.models:
            raise self.wrong(where, "names no models")
        return read, verify

    def pipeline(self, name: str, steps: Any) -> list[tuple[str, Mapping[str, Any]]]:
        where: tuple[str | int, ...] = ("pipelines", name)
        if not isinstance(steps, list) or not steps:
            raise self.wrong(where, "is no list of commands")
        return [self.step((*where, number), step) for number, step in enumerate(steps)]

    def step(self, where: tuple[str | int, ...], step: Any) -> tuple[str, Mapping[str, Any]]:
        """A command by its name, or a table of the command and its options."""
        own = dict(step) if isinstance(step, dict) else {"command": step}
        name = own.pop("command", None)
        if not isinstance(name, str):
            raise self.wrong(where, "names no command")
        try:
            declared = command_named(name).options
        except UnknownCommand as error:
            raise self.wrong(where, f"{error}") from error
        if isinstance(own.get("values"), dict):
            own["values"] = self.read_files(own["values"])
        values = self.values(declared, own, where, ("command",))
        if "inputs" in values:
            values["inputs"] = os.path.normpath(self.path.parent / values["inputs"])
        if f"{values.get('target')}".endswith(".toml"):
            values["target"] = os.path.normpath(self.path.parent / values["target"])
        self.made(declared, values, where)
        return name, values

    def read_files(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Values of inputs, with the content of the files that they name."""
        from passes.binding.values import read

        return {
            name: read(value, self.path.parent) if f"{value}".startswith("@") else value
            for name, value in values.items()
        }

    def table(
        self,
        declared: type[_T],
        table: Any,
        where: tuple[str | int, ...],
        beside: Sequence[str] = (),
    ) -> _T:
        """The options of a class that a table holds, `beside` keys that are read elsewhere."""
        if not isinstance(table, dict):
            raise self.wrong(where, "is no table")
        return self.made(declared, self.values(declared, table, where, beside), where)

    def values(
        self,
        declared: type,
        table: Mapping[str, Any],
        where: tuple[str | int, ...],
        beside: Sequence[str],
    ) -> dict[str, Any]:
        """Return the values of a table, by the names of the options."""
        known = {
            option.file_key: option
            for option in options_of(declared).values()
            if "file" in option.help.shown
        }
        values = {}
        for key, value in table.items():
            if key not in known:
                near = nearest(key, sorted([*known, *beside]))
                raise self.wrong((*where, key), f"there is no option {key!r}; {near}")
            option = known[key]
            try:
                values[option.name] = option.checked(value)
            except WrongOption as error:
                raise self.wrong((*where, key), error.sentence, " ") from error
        return values

    def made(self, declared: type[_T], values: dict[str, Any], where: tuple[str | int, ...]) -> _T:
        try:
            return declared(**values)
        except WrongValue as error:
            key = options_of(declared)[error.name].file_key
            raise self.wrong((*where, key), error.sentence, " ") from error
        except (TypeError, ValueError) as error:
            raise self.wrong(where, f"{error}") from error

    def wrong(self, where: tuple[str | int, ...], sentence: str, joint: str = ": ") -> BadConfig:
        """The error that names the file, the line and the key."""
        line = line_of(self.text, (*self.start, *where))
        place = f"{self.path}:{line}" if line else f"{self.path}"
        key = ".".join(map(str, where))
        return BadConfig(f"{place}: {key}{joint}{sentence}" if key else f"{place}: {sentence}")
