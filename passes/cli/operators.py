"""The command `operators`: what is known of an operator, and what this tool can do with it."""

from __future__ import annotations

from dataclasses import dataclass
from inspect import Parameter
from typing import Annotated, Any

import typer

from passes.cli.parameters import give_parameters, options_from, parameters_of
from passes.cli.running import beside, check_report, failing, write
from passes.commands.declaring import Help
from passes.commands.delivery import Reporting

app = typer.Typer()


@dataclass(frozen=True, kw_only=True)
class Shown(Reporting):
    """The options of `operators`."""

    opset: Annotated[
        int | None,
        Help("As of this opset of its domain; the newest by default.", least=1, metavar="N"),
    ] = None
    domain: Annotated[
        str | None,
        Help("Only operators of a domain; `ai.onnx` is ONNX's own.", metavar="DOMAIN"),
    ] = None


def _operators(name: str | None, **given: Any) -> None:
    """Show what this tool can do with an operator, or a table of all operators.

    Of one operator: what it is, what each part of this tool does with it, the steps of its versions
    to newer and older opsets, its types, and the targets that take it. A cell of the table is `yes`
    or `-`; docs/operators.md explains the columns.
    """
    from passes.support.reading import known_operators

    options = options_from(Shown, given)
    with failing():
        check_report(options.json, [])
        found = known_operators(name or "", opset=options.opset, domain=options.domain)
    beside(options.json)(found.to_text(whole=bool(name)))
    if options.json is not None:
        write(options.json, found.to_json())


_HELP = typer.Argument(help="An operator, as Gather or com.microsoft::Attention.", metavar="NAME")
_NAME = Annotated[str | None, _HELP]
_ARGUMENT = Parameter("name", Parameter.KEYWORD_ONLY, default=None, annotation=_NAME)
give_parameters(_operators, [_ARGUMENT, *parameters_of(Shown)])
app.command("operators", short_help="Show what this tool can do with operators.")(_operators)
