"""The command `prove`: two model files, no input at all."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from json import dumps
from pathlib import Path
from typing import Annotated, Any

import typer

from passes.cli.parameters import give_parameters, model_arguments, options_from, parameters_of
from passes.cli.running import check_report, fail, failing, tell, write
from passes.commands.declaring import Says
from passes.commands.delivery import Reporting
from passes.errors import NOT_PRODUCED

app = typer.Typer()


@dataclass(frozen=True, kw_only=True)
class Prove(Reporting):
    """The options of `prove`."""

    budget: Annotated[
        float, Says("Give up after this many seconds.", least=0, metavar="SECONDS")
    ] = 20.0


def _prove(before: Path, after: Path, **given: Any) -> None:
    """Prove that a model answers as another one does: for all sizes, else at drawn sizes.

    Exit 0 if that is proven: for all inputs, sizes and trip counts, for all floats at the sizes
    that are named, or there up to the order of summation. Exit 3 if it is not, with the term or
    the operator at which the proof ended: such a model may still be right.
    """
    from passes.check import load_checked
    from passes.verify.prove.drawn.proving import prove_in_turn

    options = options_from(Prove, given)
    with failing():
        check_report(options.json, (before, after))
        old, new = (load_checked(path)[0] for path in (before, after))
        proof = prove_in_turn(old, new, options.budget)
    if options.json is not None:
        write(options.json, dumps(asdict(proof), indent=2) + "\n")
    if not proof.is_proven:
        fail(f"{after}: {proof.sentence()}", NOT_PRODUCED)
    tell(
        "\n".join([f"{after}: {proof.sentence()}", *(f"  assumed: {one}" for one in proof.assumed)])
    )


_SIDES = {"before": "The original.", "after": "The model that is to answer as it does."}
give_parameters(_prove, [*model_arguments(**_SIDES), *parameters_of(Prove)])
app.command("prove", short_help="Prove two models equal, without executing them.")(_prove)
