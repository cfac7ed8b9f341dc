"""Which rules fire on the models of exporters, and by which command; then those that never do.

Use: `python -m tests.instruments.fired [RULE ...] [--only TEXT] [--part I/N]`.

Each rule runs on each exported model, alone, once its loops are raised, and in every command of
`tests.instruments.outputs` that has it, without verification. All rules on all models take some
30 minutes of one core.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import onnx
from onnx import ModelProto

import passes
from passes.commands.schedules import SCHEDULES, UPGRADE
from passes.errors import NotProduced, PassesError
from passes.ir.versions import SCAN_8
from passes.rule import load_rules
from passes.session import Result
from tests.instruments.outputs import COMMANDS
from tests.instruments.soak.commands import Command

FOLDER = Path(__file__).parents[2] / "golden_models" / "exported"
#: What makes Scans of the loops of exporters, which most rules about loops read.
READY = ("fold-constants", "inline-if", "prune-loop", "count-loop", "raise-loop")
#: What lets rules fire that are otherwise refused.
_ALLOWED = {
    "assume": ("valid-inputs", "non-empty"),
    "allow_reassociation": True,
    "contrib": True,
    "max_trips": 3,
}
#: The oldest opset that conversions down are tried to.
_OLDEST = 9


def models(only: str = "") -> list[Path]:
    """The exported models, of each case the one of the newest opset, and those with Scans of
    opset 8."""
    paths = sorted(FOLDER.glob("*/*.onnx"), key=_opset_of)
    newest = {(path.parent.name, path.name.split(".")[0]): path for path in paths}
    old = [path for path in paths if _opset_of(path) <= SCAN_8]
    return sorted(path for path in {*newest.values(), *old} if only in name_of(path))


def _opset_of(path: Path) -> int:
    return int(path.stem.partition(".opset")[2])


def name_of(path: Path) -> str:
    """The exporter, the case and the opset, as `torch/lstm.opset14`."""
    return f"{path.parent.name}/{path.stem}"


def alone(*rules: str) -> Callable[[ModelProto], Result]:
    """A command in which these rules run, and no other one."""
    return Command("simplify", options={**_ALLOWED, "rules": rules}).run


def commands(rules: Sequence[str]) -> Iterator[tuple[str, Callable[[ModelProto], Result]]]:
    """The commands in which any of these rules may fire, by label."""
    converting = {*UPGRADE.rules, "element-types"}
    named = [name for name in rules if name not in converting]
    for name in named:
        yield "alone", alone(name)
        yield "raised", alone(*READY, name)
    for label, command in COMMANDS.items():
        run = {name for phase in SCHEDULES[command.pipeline].phases for name in phase.rules}
        if not run.isdisjoint(rules if command.pipeline == "upgrade" else named):
            yield label, command.run
    if len(named) < len(rules):
        yield "down", partial(passes.convert, opset=_OLDEST, verify=False)


def fired(run: Callable[[ModelProto], Result], model: ModelProto) -> set[str]:
    """The rules that rewrite something when a command runs on a model."""
    try:
        report = run(model).report
    except NotProduced as error:
        report = error.report
    except PassesError:
        return set()
    return {record.rule for record in report.records if record.outcome == "rewritten"}


def survey(paths: Iterable[Path], rules: Sequence[str]) -> dict[str, list[str]]:
    """The models on which each rule fires, each with the first command by which it does."""
    found: dict[str, list[str]] = {name: [] for name in rules}
    for path in paths:
        model, seen = onnx.load(path), set[str]()
        for label, run in commands(rules):
            for name in found.keys() & fired(run, model) - seen:
                seen.add(name)
                found[name].append(f"{name_of(path)}, {label}")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, and the rules that never fired; exit code 1 if there are such."""
    parser = argparse.ArgumentParser(prog="python -m tests.instruments.fired", description=__doc__)
    parser.add_argument("rules", nargs="*", metavar="RULE")
    parser.add_argument("--only", default="", metavar="TEXT", help="models with this in their name")
    parser.add_argument("--part", default="0/1", metavar="I/N", help="every Nth model, from I on")
    options = parser.parse_args(arguments)
    part, step = map(int, options.part.split("/"))
    found = survey(models(options.only)[part::step], options.rules or [*load_rules()])
    for name, where in sorted(found.items(), key=lambda item: -len(item[1])):
        print(f"{name:22} {len(where):4} {where[0] if where else ''}".rstrip())
    never = [name for name, where in found.items() if not where]
    print(f"never: {', '.join(never) or 'none'}")
    return 1 if never else 0


if __name__ == "__main__":
    sys.exit(main())
