"""What is known of operators as data, which the JSON file holds, and as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from passes.reports.json_values import document
from passes.reports.words import aligned

#: The version of the JSON file: a field may be added within it, none is removed or renamed.
VERSION = 1


@dataclass(frozen=True)
class Trait:
    """A cell of the table of operators: `value` as it is written there, and what it means."""

    column: str
    value: str
    meaning: str


@dataclass(frozen=True)
class Ability:
    """Whether a part of this tool can do something with an operator, and how, or what becomes of
    the operator otherwise. `file`: the source of what does it, if that is about this operator."""

    name: str
    holds: bool
    note: str = ""
    file: str = ""


@dataclass(frozen=True)
class VersionStep:
    """A step of conversion: `up` to a version from the one before, or `down` from it, back."""

    version: int
    way: Literal["up", "down"]
    text: str


@dataclass(frozen=True)
class ElementTypes:
    """The types that a type variable of an operator `takes`, or for which no release of onnxruntime
    has a kernel, which it `lacks`."""

    variable: str
    what: Literal["takes", "lacks"]
    types: Sequence[str]


@dataclass(frozen=True)
class KnownOperator:
    """An operator: `name` is `my::Add` in another domain than ONNX's. Of its `versions`, `version`
    is the one that all but the steps is about, 0 if the installed onnx has no document of it; if
    the operator is `deprecated` it is the last one before that. `targets` tells why each target
    takes no node of it; empty if it takes some."""

    name: str
    version: int
    deprecated: bool
    versions: Sequence[int]
    steps: Sequence[VersionStep]
    traits: Sequence[Trait]
    abilities: Sequence[Ability]
    types: Sequence[ElementTypes]
    targets: Mapping[str, str]


@dataclass(frozen=True)
class Operators:
    """Operators, by name."""

    operators: Sequence[KnownOperator]
    schema_version: int = VERSION

    def to_json(self) -> str:
        """All of it as JSON, of the schema `passes/builds/operators-1.schema.json`."""
        return document(self)

    def to_text(self, *, whole: bool = False) -> str:
        """A line for each operator, or the `whole` that is known of each."""
        return "\n\n".join(map(text_of, self.operators)) if whole else table_of(self.operators)


def cells_of(one: KnownOperator) -> Mapping[str, str]:
    """The cells of an operator by column: its version, what can be done with it, and the number of
    targets that take it."""
    held = {ability.name: answer(ability.holds) for ability in one.abilities}
    taken = f"{sum(not refusal for refusal in one.targets.values())}/{len(one.targets)}"
    return {"operator": one.name, "version": f"{one.version or '-'}", **held, "targets": taken}


def answer(holds: bool) -> str:
    """The cell of a column that is true or not."""
    return "yes" if holds else "-"


def table_of(operators: Sequence[KnownOperator]) -> str:
    """A line for each operator, below the columns."""
    rows = [cells_of(one) for one in operators]
    return "\n".join(aligned([[*rows[0]], *([*row.values()] for row in rows)], indent=""))


def text_of(one: KnownOperator) -> str:
    """All that is known of an operator, in parts."""
    versions = f"-{one.version} of versions {', '.join(map(str, one.versions))}"
    lines = [one.name + versions * bool(one.version) + ", deprecated" * one.deprecated]
    parts: Mapping[str, Sequence[Sequence[str]]] = {
        "what it is": [[trait.column, trait.value, trait.meaning] for trait in one.traits],
        "what is done with it": [
            [each.name, answer(each.holds), each.note, each.file] for each in one.abilities
        ],
        "steps": [[f"{step.version}", step.way, step.text] for step in one.steps],
        "types, and those that kernels of onnxruntime lack in each release": [
            [each.variable, each.what, " ".join(each.types)] for each in one.types
        ],
        "targets": [[target, refusal or answer(True)] for target, refusal in one.targets.items()],
    }
    for title, rows in parts.items():
        lines += [title, *aligned(rows)] if rows else []
    return "\n".join(lines)
