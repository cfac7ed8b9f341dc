"""The command `inspect`: the loops of a model, and the answers of the rules about them."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from passes.choices import Batch, RuleOptions
from passes.cli.parameters import (
    THE_MODEL,
    give_parameters,
    model_arguments,
    options_from,
    parameters_of,
)
from passes.cli.running import beside, check_report, complain, fail, failing, write
from passes.commands.declaring import Help, options_of
from passes.commands.delivery import Reporting
from passes.commands.options import Converting
from passes.commands.rewriting import Upgrade
from passes.errors import DONE, NOT_PRODUCED, USAGE, PassesError, WrongUsage

app = typer.Typer()
#: Columns where the output is no terminal.
_WIDTH = 100
#: Kinds of loops that are looked into unless more is asked for: a screen of them.
_MOST = 40


class Operator(StrEnum):
    """An operator with bodies."""

    scan = "Scan"
    loop = "Loop"
    branch = "If"


@dataclass(frozen=True, kw_only=True)
class Inspect(Converting, Reporting):
    """The options of `inspect`."""

    batch: Annotated[str, options_of(Upgrade)["batch"].help] = Batch.auto
    loops: Annotated[
        Sequence[str],
        Help(
            "Show only the loops and Ifs whose path matches, as `main/*/scan_0`; repeatable.",
            flag="loop",
            metavar="PATTERN",
        ),
    ] = ()
    op: Annotated[str | None, Help("Show only those of this operator.", Operator)] = None
    rule: Annotated[
        str | None, Help("Show only what this rule rewrites or refuses.", metavar="NAME")
    ] = None
    code: Annotated[
        str | None, Help("Show only what is refused with this code.", metavar="CODE")
    ] = None
    depth: Annotated[
        int | None, Help("Show only the N outermost levels of the tree.", least=1, metavar="N")
    ] = None
    verbose: Annotated[
        bool, Help("Show all kinds of loops, every name and sentence, and what every rule does.")
    ] = False


def _inspect(model: Path, **given: Any) -> None:
    """Show the loops and Ifs of a model, and what the rules would do with them, or why not.

    Those that differ in names and weights at most are shown once, with a pattern of their paths;
    the rules are asked about the first of them. Of a folder, every model below it is shown. Nothing
    is executed.
    """
    from passes.builds.sources import found
    from passes.cli.explanation import explanation
    from passes.engine.target_opset import TooNew
    from passes.inspection.inspecting import WantedGroups, inspect_model

    options = options_from(Inspect, given)
    whole = options.verbose or options.json is not None
    narrowed = bool(options.loops or options.rule or options.code)
    wanted = WantedGroups(
        options.loops,
        options.op,
        options.rule,
        options.code,
        options.depth,
        most=None if whole or narrowed else _MOST,
        every_rule=whole,
    )
    if options.code is not None and explanation(options.code) is None:
        fail(f"no rule refuses with the code {options.code!r}", USAGE)
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else _WIDTH
    code = DONE
    with failing():
        models = [model] if not model.is_dir() else [*map(Path, found([model]))]
        if options.json is not None and model.is_dir():
            raise WrongUsage("--json is for one model")
        check_report(options.json, models)
        asked, release = options.asked()
    for one in models:
        try:
            known = inspect_model(one, asked, RuleOptions(batch=options.batch), release, wanted)
        except PassesError as error:
            worse = NOT_PRODUCED if isinstance(error, TooNew) else error.exit_code
            sentence = f"{one}: {error}" if isinstance(error, TooNew) else f"{error}"
            if not model.is_dir():
                fail(sentence, worse)
            complain(sentence)
            code = max(code, worse)
            continue
        beside(options.json)(known.to_text(verbose=options.verbose, width=width))
        if options.json is not None:
            write(options.json, known.to_json())
    if code:
        raise typer.Exit(code)


give_parameters(_inspect, [*model_arguments(model=THE_MODEL), *parameters_of(Inspect)])
app.command("inspect", short_help="Show every loop, and what the rules would do with it.")(_inspect)
