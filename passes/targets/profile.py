"""The form of a profile: what a target takes, refuses, and takes but answers wrongly.

Each fact may tell how sure it is: `measured` by running it, `stated` by the target's documents,
read in its `source`, or `inferred`. What a profile does not mention is taken.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Literal

from onnx import TensorProto

from passes.choices import Target
from passes.commands.toml_lines import line_of, located
from passes.errors import WrongUsage, nearest
from passes.onnxruntime.releases import release_of
from passes.reports.json_values import Unreadable, read_as
from passes.reports.report import Confidence, Otherwise

_RELEASE = "onnxruntime=="
#: Operators that every reader of models folds or passes on.
NO_KERNELS = frozenset({"Constant", "Identity"})
_ELEMENTS = {name.lower(): number for name, number in TensorProto.DataType.items()}
#: Which values of several branches or iterations have to agree.
BranchAgreement = Literal["any", "same rank", "same shape"]


class BadProfile(WrongUsage):
    """There is no such profile, or it is not of the form of one."""


@dataclass(frozen=True)
class Source:
    """The source of facts: a title, and a date or commit."""

    title: str
    kind: Confidence = "stated"
    date: str = ""
    commit: str = ""


@dataclass(frozen=True)
class Range:
    """Versions that are taken, from `min` to `max`."""

    min: int = 0
    max: int | None = None
    confidence: Confidence = "stated"
    note: str = ""

    def __contains__(self, version: int) -> bool:
        return self.min <= version and (self.max is None or version <= self.max)

    def __str__(self) -> str:
        return f"{self.min} to {self.max}" if self.max is not None else f"{self.min} and newer"


@dataclass(frozen=True)
class OperatorSupport:
    """The accepted uses of an operator. `versions` are pairs of a first and a last version, or a
    first one alone; `types` the element types of its values; `constant-inputs` the positions of
    inputs that have to be constants; `attributes` the values that an attribute may have. With a
    value in `wrong`, or an attribute or input in `ignored`, the target accepts the node and answers
    wrongly; the same is true of activations of a second direction that differ, with `one-
    direction`."""

    versions: Sequence[Sequence[int]] = ()
    types: Sequence[str] = ()
    constant_inputs: Sequence[int] = ()
    attributes: Mapping[str, Sequence[str | int]] = field(default_factory=dict)
    wrong: Mapping[str, Sequence[str | int]] = field(default_factory=dict)
    ignored: Sequence[str | int] = ()
    one_direction: bool = False
    domain: str = ""
    confidence: Confidence = "stated"
    note: str = ""


@dataclass(frozen=True)
class IfSupport:
    """The accepted Ifs. `branches`: how far the outputs of both branches have to agree; `constant`:
    an If with a constant condition is accepted in any case."""

    taken: bool = True
    branches: BranchAgreement = "any"
    constant: bool = False
    sequences: bool = True
    confidence: Confidence = "stated"
    note: str = ""


@dataclass(frozen=True)
class LoopSupport:
    """The accepted Loops. `trip-count`: the kinds of it; `most-trips`: the largest that is accepted
    as it is; `otherwise`: the consequence for others. `collected`: the length of collected outputs
    may be any, has to be static, or these are padded to the trip count, which is wrong if the loop
    ends early. `carried`: how far a carried value has to agree with its next value."""

    taken: bool = True
    trip_count: Sequence[Literal["constant", "computed", "absent"]] = (
        *("constant", "computed", "absent"),
    )
    most_trips: int | None = None
    otherwise: Otherwise = "refuses"
    carried: BranchAgreement = "any"
    collected: Literal["any", "static", "padded"] = "any"
    sequences: bool = True
    captures: bool = True
    confidence: Confidence = "stated"
    note: str = ""

    @property
    def reach(self) -> int:
        """The number of Loops that are accepted: none, some, or all."""
        any_count = len(self.trip_count) == 3 and self.most_trips is None and self.captures
        any_values = self.carried != "same shape" and self.collected == "any"
        return self.taken + (self.taken and any_count and any_values)


@dataclass(frozen=True)
class ScanSupport:
    """The accepted Scans: `versions`; the `lengths` of rows that a Scan-8 may have; a length that
    is `static`, at most `most` and maybe `zero`; `captures` of values that are computed outside;
    `symbols` among the sizes that the body declares."""

    taken: bool = True
    versions: Range = field(default_factory=Range)
    lengths: bool = True
    static: bool = False
    most: int | None = None
    zero: bool = True
    captures: bool = True
    symbols: bool = True
    confidence: Confidence = "stated"
    note: str = ""

    @property
    def reach(self) -> int:
        """The number of Scans that are accepted, except those of version 8: none, some, or all."""
        any_length = self.zero and self.captures and not self.static and self.most is None
        return self.taken + (self.taken and any_length)


@dataclass(frozen=True)
class Profile:
    """A target. `runtime` is the executor that `check --run` takes, if there is one. `match`:
    whether an operator whose last known version has no end takes newer ones, too, or only that
    `exact` one. Operators that `operators` does not list are refused, if it lists any, and so are
    `refused` ones and element types. A `strongly-typed` target computes in the types of the
    model, whatever it could have chosen."""

    name: str
    summary: str
    version: str = ""
    runtime: str = ""
    sources: Sequence[Source] = ()
    opset: Range = field(default_factory=Range)
    ir_version: Range = field(default_factory=Range)
    match: Literal["newer", "exact"] = "newer"
    operators: Mapping[str, OperatorSupport] = field(default_factory=dict)
    refused: Sequence[str] = ()
    refused_types: Sequence[str] = ()
    strongly_typed: bool = False
    functions: bool = True
    dynamic_dims: bool = True
    dynamic_rank: bool = True
    most_dims: int | None = None
    sequences: bool = True
    optionals: bool = True
    if_: IfSupport = field(default_factory=IfSupport)
    loop: LoopSupport = field(default_factory=LoopSupport)
    scan: ScanSupport = field(default_factory=ScanSupport)
    notes: Sequence[str] = ()

    @cached_property
    def listed(self) -> frozenset[str]:
        """The operators that are listed."""
        return frozenset(self.operators)

    def listing(self, op: str) -> OperatorSupport | None:
        """What is known of an operator, as `op_of` names it; nothing of what is always taken."""
        return None if op in NO_KERNELS else self.operators.get(op.replace("::", "."))

    def lacks(self, op: str) -> bool:
        """Return whether the target takes no such operator."""
        branches = self.if_.taken or self.if_.constant
        held = {"If": branches, "Loop": self.loop.taken, "Scan": self.scan.taken}
        listed = not self.operators or op in NO_KERNELS or self.listing(op) is not None
        return op in self.refused or not held.get(op, listed)

    @property
    def form(self) -> Target:
        """The form of loops of which it takes most; none, if it takes only some of each."""
        scans = 0 if "Scan" in self.refused else self.scan.reach
        loops = 0 if "Loop" in self.refused else self.loop.reach
        if max(scans, loops) == 0 or scans == loops == 1:
            return Target.no_control_flow
        return Target.scan_only if scans >= loops else Target.loop_only


def elements(names: Sequence[str]) -> frozenset[int]:
    """The element types of names, as `float`; unknown ones are left out."""
    return frozenset(_ELEMENTS[name.lower()] for name in names if name.lower() in _ELEMENTS)


def names() -> list[str]:
    """The names of the profiles that the package ships."""
    folder = resources.files("passes.targets") / "profiles"
    return sorted(file.name.removesuffix(".toml") for file in folder.iterdir())


def load(name: str) -> Profile:
    """The profile of a name, or in the file at a path that ends in `.toml`; of a release of
    onnxruntime, as in `onnxruntime==1.20`, what it loads.

    Raises:
        BadProfile: there is none, or it has an unknown key, or a value of another type.
        UnknownRelease: it names a release that is not known.
    """
    if name.endswith(".toml"):
        try:
            text = Path(name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is no text"
            raise BadProfile(f"{name}: cannot be read ({reason})") from error
        return parsed(text, name)
    if name.startswith(_RELEASE):
        release, newest = release_of(name), load(_RELEASE.rstrip("="))
        return replace(
            newest,
            name=name,
            version=f"1.{release.minor}",
            opset=replace(newest.opset, max=release.opset),
            ir_version=replace(newest.ir_version, max=release.ir_version),
        )
    if name not in names():
        raise BadProfile(
            f"there is no target {name!r}; {nearest(name, names())}; a path of a profile of your "
            "own ends in .toml"
        )
    file = resources.files("passes.targets") / "profiles" / f"{name}.toml"
    return parsed(file.read_text(encoding="utf-8"), name)


def parsed(text: str, file: str) -> Profile:
    """The profile that a text holds. Raises what `load` raises."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadProfile(f"{file}: is no TOML: {error}") from error
    try:
        profile: Profile = read_as(Profile, table, spelled=_key)
    except Unreadable as error:
        raise BadProfile(located(file, text, error)) from error
    _check_names(profile, text, file)
    return profile


def _key(name: str) -> str:
    """The key of a field in a file."""
    return name.strip("_").replace("_", "-")


def _check_names(profile: Profile, text: str, file: str) -> None:
    """See that the operators of the standard domain that are named are there, and the element
    types: what is misspelled would be taken."""
    import onnx.defs

    known = {schema.name for schema in onnx.defs.get_all_schemas() if schema.domain == ""}
    named: list[tuple[tuple[str, ...], str]] = [(("refused",), name) for name in profile.refused]
    typed: list[tuple[tuple[str, ...], str]] = [
        (("refused-types",), name) for name in profile.refused_types
    ]
    for name, operator in profile.operators.items():
        named += [] if operator.domain else [(("operators", name), name)]
        typed += [(("operators", name, "types"), one) for one in operator.types]
    for what, there, names in (("operator", known, named), ("element type", {*_ELEMENTS}, typed)):
        for where, name in names:
            if name not in there and name.lower() not in there:
                key = ".".join(where) if name in where else f"{'.'.join(where)}: {name!r}"
                near = nearest(name, there)
                place = f"{file}:{line_of(text, where)}"
                raise BadProfile(f"{place}: {key}: onnx has no such {what}; {near}")
