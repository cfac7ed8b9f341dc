"""The commands `prove` and `certificate check`: two model files, executed only where the proof
fails."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from passes.builds.task import reproduced
from passes.choices import PROOF_BUDGET, Assumption, RuleOptions
from passes.cli.parameters import give_parameters, model_arguments, options_from, parameters_of
from passes.cli.running import (
    Place,
    beside,
    check_report,
    check_reports,
    complain,
    fail,
    failing,
    progress,
    write,
)
from passes.commands.declaring import Help, WrongValue
from passes.commands.delivery import Reporting
from passes.commands.options import Binding, ExecutingBoth, ProofBudget
from passes.errors import FAILED, MISMATCH, NOT_PRODUCED

if TYPE_CHECKING:
    from passes.reports.proof import Proof

app = typer.Typer()
_certificate = typer.Typer(no_args_is_help=True)
app.add_typer(_certificate, name="certificate", help="Check the certificate of a proof.")


@dataclass(frozen=True, kw_only=True)
class Prove(ExecutingBoth, Binding, Reporting):
    """The options of `prove`."""

    budget: ProofBudget = PROOF_BUDGET
    assume: Annotated[
        Sequence[str],
        Help(
            "What was promised to the command that made the new model: `non-empty` that no input, "
            "batch, time or length is empty; `valid-inputs` is always assumed; repeatable.",
            Assumption,
        ),
    ] = ()
    max_trips: Annotated[
        int | None,
        Help(
            "Promised: no Loop whose trip count is unknown runs more than N times.",
            least=1,
            metavar="N",
        ),
    ] = None
    check_output: Annotated[
        str,
        Help(
            "With --max-trips: the output of the new model that tells whether the promise was "
            "kept; it is not compared.",
            metavar="NAME",
        ),
    ] = ""
    certify: Annotated[
        str | os.PathLike[str] | None,
        Help(
            "If it is proven, write its certificate to this file, for `certificate check`.",
            metavar="FILE",
        ),
    ] = None

    def check(self) -> None:
        """See that no option rests on one that is missing, or cannot be combined with."""
        super().check()
        if self.check_output and self.max_trips is None:
            raise WrongValue("check_output", "needs --max-trips")
        bound = self.dims or self.shapes or self.values
        promised = self.max_trips is not None or Assumption.non_empty in self.assume
        if self.certify is not None and (bound or promised):
            raise WrongValue("certify", "is for a proof without promises, bound dims or inputs")

    def promised(self) -> RuleOptions:
        """The promises and facts as commands that rewrite have them."""
        return RuleOptions(
            tuple(self.assume),
            dims=self.dims or {},
            shapes={name: tuple(shape) for name, shape in (self.shapes or {}).items()},
            values=self.values or {},
            max_trips=self.max_trips,
            check_output=self.check_output,
        )


@dataclass(frozen=True, kw_only=True)
class Checking(Reporting):
    """The options of `certificate check`."""

    budget: ProofBudget = PROOF_BUDGET


def _prove(before: Path, after: Path, **given: Any) -> None:
    """Prove that a model answers as another one does, or execute both to find a difference.

    Exit 0 if it is proven: for all inputs, sizes and trip counts, else for all floats at drawn
    sizes, else there up to the order of summation. Exit 4, with a reproducer folder, if the two
    models were executed and differ; 3 if there is neither a proof nor such inputs, with the term or
    the operator at which the proof ended: such a model may still be right.
    """
    from passes.check import load_checked
    from passes.errors import Disagreement
    from passes.proving import judging
    from passes.proving.promises import Promises, bound
    from passes.verify.inputs.given import load

    options = options_from(Prove, given)
    with failing():
        check_reports((options.json, options.certify), (before, after))
        promised = options.promised()
        loaded = [load_checked(path)[0] for path in (before, after)]
        with failing(before):
            old, new = bound(promised, *loaded)
        feeds = [] if options.inputs is None else [load(Path(options.inputs), old.proto)]
        executing = judging.Executing(options.executor, options.verify_budget, options.seed, feeds)
        with progress("proving"):
            found = judging.judge(old, new, options.budget, executing, Promises.of([promised]))
    proof = found.proof
    if options.json is not None:
        write(options.json, dumps(asdict(proof), indent=2) + "\n")
    if proof.verdict == "disproven":
        sides = (old.proto, new.proto)
        shown = Disagreement("main", proof.detail, sides, found.failure, (), exact=False)
        folder = after.with_name(f"{after.name}.reproducer")
        complain(reproduced(folder, shown, (before.parent, after.parent))[1])
        fail(f"{after}: {proof.sentence()}", MISMATCH)
    if not proof.is_proven:
        fail(f"{after}: {proof.sentence()}", NOT_PRODUCED)
    if options.certify is not None:
        from passes.proving.certificates.certificate import Certificate
        from passes.proving.certificates.guide import DoesNotHold

        try:
            made = Certificate.of(old, new, proof, found.choices, options.budget)
        except DoesNotHold as error:
            fail(f"{after}: {error}", error.exit_code)
        write(options.certify, made.to_json(2) + "\n")
    _tell(after, proof, options.json, options.certify)


def _check(before: Path, after: Path, certificate: Path | None = None, **given: Any) -> None:
    """Prove that a model answers as another one does, by a certificate and without searches.

    Exit 0 if the certificate holds; 3 if it does not, with what differs: a model, a decision, a
    relation between loops, or the version; 1 if it is no certificate.
    """
    from passes.check import load_checked
    from passes.proving.certificates.certificate import BadCertificate, Certificate, embedded
    from passes.proving.certificates.guide import DoesNotHold

    options = options_from(Checking, given)
    stated_in = after if certificate is None else certificate
    with failing():
        check_report(options.json, (before, after, stated_in))
        old, new = (load_checked(path)[0] for path in (before, after))
        try:
            text = embedded(new) if certificate is None else certificate.read_text("utf-8")
            proof = Certificate.read(text).check(old, new, options.budget)
        except (BadCertificate, DoesNotHold) as error:
            fail(f"{stated_in}: {error}", error.exit_code)
        except UnicodeDecodeError:
            fail(f"{stated_in}: is no certificate, but a binary file", FAILED)
        except OSError as error:
            fail(f"{stated_in}: cannot be read ({error.strerror})", FAILED)
    if options.json is not None:
        write(options.json, dumps(asdict(proof), indent=2) + "\n")
    _tell(after, proof, options.json)


def _tell(after: Path, proof: Proof, *files: Place | None) -> None:
    lines = [f"{after}: {proof.sentence()}", *(f"  {one}" for one in proof.rests_on)]
    beside(*files)("\n".join(lines))


_SIDES = {"before": "The original.", "after": "The model that is to answer as it does."}
give_parameters(_prove, [*model_arguments(**_SIDES), *parameters_of(Prove)])
app.command("prove", short_help="Prove two models equal, or show inputs on which they differ.")(
    _prove
)
_STATED = {"certificate": "The certificate; that in the metadata of AFTER by default."}
_FILES = model_arguments("certificate", **_SIDES, **_STATED)
give_parameters(_check, [*_FILES, *parameters_of(Checking)])
_certificate.command("check", short_help="Prove two models equal by a certificate.")(_check)
