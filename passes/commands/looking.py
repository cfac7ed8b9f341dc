"""The commands that execute nothing: what is in a model, what rules and operators are known."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from passes.choices import Batch, RuleOptions
from passes.commands.declaring import Source, argument, option, options_of
from passes.commands.delivery import CLI, Reporting
from passes.commands.options import Converting
from passes.commands.registry import Schema, command
from passes.commands.rewriting import Upgrade
from passes.commands.standalone import Output, Say, Standalone, TheModel, path_of, silent
from passes.errors import NOT_PRODUCED, PassesError, WrongUsage

if TYPE_CHECKING:
    from passes.inspection.inspecting import WantedGroups
    from passes.inspection.inspection import Inspection
    from passes.support.operators import Operators

#: Columns where the output is no terminal.
_WIDTH = 100
#: Kinds of loops that are looked into unless more is asked for: a screen of them.
_MOST = 40


class Operator(StrEnum):
    """An operator with bodies."""

    scan = "Scan"
    loop = "Loop"
    branch = "If"


@command(
    "inspect",
    short_help="Show every loop, and what the rules would do with it.",
    schema=Schema("Findings of inspect", "passes.inspection.inspection", "Inspection"),
)
@dataclass(frozen=True)
class Inspect(Converting, Reporting, Standalone):
    """Show the loops and Ifs of a model, and what the rules would do with them, or why not.

    Those that differ in names and weights at most are shown once, with a pattern of their paths;
    the rules are asked about the first of them. Of a folder, every model below it is shown. Nothing
    is executed.
    """

    model: TheModel
    _: KW_ONLY
    batch: Annotated[str, options_of(Upgrade)["batch"].help] = Batch.auto
    loops: Sequence[str] = option(
        (),
        "Show only the loops and Ifs whose path matches, as `main/*/scan_0`; repeatable.",
        flag="loop",
        metavar="PATTERN",
    )
    op: str | None = option(None, "Show only those of this operator.", Operator)
    rule: str | None = option(None, "Show only what this rule rewrites or refuses.", metavar="NAME")
    code: str | None = option(None, "Show only what is refused with this code.", metavar="CODE")
    depth: int | None = option(
        None, "Show only the N outermost levels of the tree.", least=1, metavar="N"
    )
    verbose: bool = option(
        False,
        "Show all kinds of loops, every name and sentence, and what every rule does.",
        shown=CLI,
    )

    def run(self, say: Say = silent) -> Inspection:
        """Return the loops and Ifs of a model, in groups that are alike, with the answers of each
        rule.

        Raises:
            BadModel: the input is no valid model.
            UnknownOpset: the installed onnx does not know the opset.
            TooNew: the model is newer than the opset.
        """
        return self._looked(self.model, self._wanted())

    def outputs(self, say: Say = silent) -> Iterator[Output]:
        from passes.commands.explanation import explanation
        from passes.engine.target_opset import TooNew

        if self.code is not None and explanation(self.code) is None:
            raise WrongUsage(f"no rule refuses with the code {self.code!r}")
        many = path_of(self.model).is_dir()
        if self.json is not None and many:
            raise WrongUsage("--json is for one model")
        self.asked()
        whole = self.verbose or self.json is not None
        narrowed = bool(self.loops or self.rule or self.code)
        wanted = self._wanted(None if whole or narrowed else _MOST, every_rule=whole)
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else _WIDTH
        for path in self.files():
            try:
                known = self._looked(path, wanted)
            except PassesError as error:
                new = isinstance(error, TooNew)
                sentence = f"{path}: {error}" if new else f"{error}"
                code = NOT_PRODUCED if new else error.exit_code
                one, every = ("", (sentence,)) if many else (sentence, ())
                yield Output(remarks=every, failure=one, exit_code=code)
            else:
                yield Output(
                    known.to_text(verbose=self.verbose, width=width), {"json": known.to_json}
                )

    def files(self) -> Sequence[Path]:
        from passes.builds.sources import found

        model = path_of(self.model)
        return [*map(Path, found([model]))] if model.is_dir() else [model]

    def _wanted(self, most: int | None = None, *, every_rule: bool = True) -> WantedGroups:
        from passes.inspection.inspecting import WantedGroups

        return WantedGroups(self.loops, self.op, self.rule, self.code, self.depth, most, every_rule)

    def _looked(self, model: Source, wanted: WantedGroups) -> Inspection:
        from passes.inspection.inspecting import inspect_model

        asked, release = self.asked()
        return inspect_model(model, asked, RuleOptions(batch=self.batch), release, wanted)


@command("list", short_help="List the rules.")
@dataclass(frozen=True)
class List(Standalone):
    """List the rules."""

    def run(self, say: Say = silent) -> str:
        from passes.reports.words import aligned
        from passes.rule import load_rules

        rules = sorted(load_rules().items())
        return "\n".join(aligned([[name, rule.summary] for name, rule in rules], indent=""))


@command("explain", short_help="Explain a rule or a code.")
@dataclass(frozen=True)
class Explain(Standalone):
    """Explain a rule, or the code of a refusal or a proof."""

    subject: str = argument("A rule, or the code of a refusal or a proof.", metavar="NAME")

    def run(self, say: Say = silent) -> str:
        from passes.commands.explanation import explanation, unexplained

        text = explanation(self.subject)
        if text is None:
            raise WrongUsage(unexplained(self.subject))
        return text


@command(
    "operators",
    short_help="Show what this tool can do with operators.",
    schema=Schema("Operators of passes", "passes.support.operators", "Operators"),
)
@dataclass(frozen=True)
class KnownOperators(Reporting, Standalone):
    """Show what this tool can do with an operator, or a table of all operators.

    Of one operator: what it is, what each part of this tool does with it, the steps of its versions
    to newer and older opsets, its types, and the targets that take it. A cell of the table is `yes`
    or `-`; `passes docs operators` explains the columns.
    """

    name: str = argument(
        "An operator, as Gather or com.microsoft::Attention.", metavar="NAME", default=""
    )
    _: KW_ONLY
    opset: int | None = option(
        None, "As of this opset of its domain; the newest by default.", least=1, metavar="N"
    )
    domain: str | None = option(
        None, "Only operators of a domain; `ai.onnx` is ONNX's own.", metavar="DOMAIN"
    )

    def run(self, say: Say = silent) -> Operators:
        """Return what is known of an operator, or of all.

        Raises:
            UnknownOperator: there is none; the sentence names those most like it.
        """
        from passes.support.reading import known_operators

        return known_operators(self.name, opset=self.opset, domain=self.domain)

    def outputs(self, say: Say = silent) -> Iterator[Output]:
        found = self.run(say)
        yield Output(found.to_text(whole=bool(self.name)), {"json": found.to_json})
