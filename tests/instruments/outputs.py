"""Hash what every command writes, and compare with an earlier table.

Use: `python -m tests.instruments.outputs [--update] [--table FILE] [--only TEXT] [--part I/N]`.

Every golden and exported model goes through every pipeline, without verification, and the SHA-256
of what is written, cut to four digits, is held against a table: a line a model, a column a command.
Where nothing is written the refusal codes stand in place of it, so sentences may change; `=` is the
model as it was. A change of the code that is not to change any outcome leaves the table as it is:
make it before with `--update`, compare after. All of it takes some 70 minutes of one core.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import onnx
from onnx import ModelProto

from passes.commands.schedules import SCHEDULES
from passes.errors import NotProduced, PassesError
from tests.instruments.soak.commands import Command

FOLDER = Path(__file__).parents[2] / "golden_models"
_DIGITS = 4
_OTHERS = ("upgrade", "unroll-partial", "peel")
_ASSUMED = {"assume": ("valid-inputs", "non-empty"), "allow_reassociation": True}
COMMANDS: Mapping[str, Command] = {
    **{name: Command(name) for name in SCHEDULES if name not in _OTHERS},
    "upgrade": Command("upgrade"),
    "upgrade-26": Command("upgrade", 26),
    "vectorize": Command("upgrade", options={"batch": "vectorize"}),
    "nest": Command("upgrade", options={"batch": "nest"}),
    "unroll-factor": Command("unroll-partial", options={"factor": 2}),
    "unroll-bounded": Command("unroll", options={"max_trips": 3}),
    "peel-first": Command("peel", options={"peel": "first"}),
    "peel-last": Command("peel", options={"peel": "last"}),
    "optimize-assumed": Command("optimize", options=_ASSUMED),
    "optimize-contrib": Command("optimize", options={**_ASSUMED, "contrib": True}),
}

#: What each command gave, by its label.
Row = Mapping[str, str]


def models(only: str = "") -> list[Path]:
    """The models, those before a rewrite, whose path has `only` in it."""
    found = [*FOLDER.glob("*/*.before.onnxtxt"), *FOLDER.glob("*/*.refused.onnxtxt")]
    found += FOLDER.glob("**/*.onnx")
    return sorted(path for path in found if only in _name_of(path))


def _name_of(path: Path) -> str:
    return path.relative_to(FOLDER).as_posix()


def row_of(path: Path) -> Row:
    """What every command makes of a model."""
    model = onnx.load(path)
    return {label: _made(command, model) for label, command in COMMANDS.items()}


def _made(command: Command, model: ModelProto) -> str:
    try:
        after = command.run(model).model
    except NotProduced as error:
        codes = {record.code for record in error.report.refusals if not record.optional}
        return ",".join(sorted(codes)) or type(error).__name__
    except PassesError as error:
        return type(error).__name__
    if after is model:
        return "="
    return hashlib.sha256(after.SerializeToString(deterministic=True)).hexdigest()[:_DIGITS]


def _read(table: Path) -> dict[str, Row]:
    if not table.exists():
        return {}
    head, *lines = table.read_text().splitlines()
    labels = head.split("\t")[1:]
    cells = (line.split("\t") for line in lines)
    rows = {name: values for name, *values in cells}
    # a row that was stored before there was a new command says nothing certain
    return {
        name: dict(zip(labels, values, strict=True))
        for name, values in rows.items()
        if len(values) == len(labels)
    }


def _write(table: Path, rows: Mapping[str, Row]) -> None:
    lines = ["\t".join(["model", *COMMANDS])]
    lines += ["\t".join([name, *rows[name].values()]) for name in sorted(rows)]
    table.write_text("\n".join(lines) + "\n")


def _differences(name: str, row: Row, known: Row) -> list[str]:
    """How a row differs from a known one, a line a command."""
    pairs = ((label, known.get(label, "nothing"), made) for label, made in row.items())
    return [
        f"{name}: {label}: {before} -> {made}" for label, before, made in pairs if before != made
    ]


def _rows(paths: Iterable[Path], jobs: int) -> dict[str, Row]:
    paths = list(paths)
    with ProcessPoolExecutor(jobs) as pool:
        return dict(zip(map(_name_of, paths), pool.map(row_of, paths, chunksize=4), strict=True))


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, or with `--update` store; exit code 1 where there is a difference."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.instruments.outputs", description=__doc__
    )
    parser.add_argument("--update", action="store_true", help="store what is written now")
    parser.add_argument("--table", type=Path, default=Path("outputs.tsv"), metavar="FILE")
    parser.add_argument("--only", default="", metavar="TEXT", help="models with this in their path")
    parser.add_argument("--part", default="0/1", metavar="I/N", help="every Nth model, from I on")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N")
    options = parser.parse_args(arguments)
    first, step = map(int, options.part.split("/"))
    rows = _rows(models(options.only)[first::step], options.jobs)
    known = _read(options.table)
    found = [
        line for name, row in rows.items() for line in _differences(name, row, known.get(name, {}))
    ]
    if options.update:
        _write(options.table, {**known, **rows})
        found = []
    print("\n".join([*found, f"{len(rows)} models, {len(COMMANDS)} commands each"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
