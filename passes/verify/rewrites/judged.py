"""What becomes of an outcome once it is verified: it is right, refused, or made again without some
rewrites."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from onnx import ModelProto

from passes.binding.bound import Bound
from passes.choices import Half, RuleOptions, Verifying
from passes.engine.outcome import LeaveOut, Outcome, Pass
from passes.engine.rounds import Rewritten
from passes.errors import Mismatch, NotProduced, NotVerified
from passes.ir.model import Model
from passes.precision.casting import cast
from passes.reports.report import INVALID, NOT_VERIFIED, Checked, Report
from passes.types.signature import describe
from passes.types.signature import inputs as signature_inputs
from passes.verify.inputs.drawer import Case
from passes.verify.inputs.given import load
from passes.verify.rewrites.verifying import KnownVerifications, Verdicts, verify_rounds
from passes.verify.within.judging import Terms, judged
from passes.verify.within.raising import Search


def verified(
    model: Model,
    made: Outcome,
    passes: Sequence[Pass],
    verifying: Verifying,
    sought: Sequence[Case],
    bound: Bound,
    known: KnownVerifications,
    say: Callable[[str], None],
) -> Report:
    """Execute a model and the outcome of passes on it, and return the report on an outcome that may
    be written.

    `sought` are the cases of the open questions of a proof, which are executed, too; `known` what
    was found on regions before. Raises what `_judged` raises.
    """
    started = time.monotonic()
    say("verifying")
    options = [one.options for one in passes]
    assume = dict.fromkeys(one for each in options for one in each.assume)
    verifying = replace(verifying, assume=tuple(assume) or verifying.assume)
    check = next(filter(None, (one.check_output for one in options)), "")
    verdicts = verify_rounds(
        model, made.rounds, made.proto, verifying, say, check, known=known, sought=sought
    )
    checked = iter(verdicts.rewrites)
    records = [
        replace(one, checked=next(checked)) if one.outcome == "rewritten" else one
        for one in made.report.records
    ]
    spent = replace(made.report.spent, verifying=round(time.monotonic() - started, 3))
    report = replace(made.report, records=records, checked=verdicts.whole, spent=spent)
    return _judged(model, report, verdicts, verifying, passes[-1], f"{bound.binding}")


def judged_cast(
    before: Model,
    after: Model,
    report: Report,
    options: RuleOptions,
    verifying: Verifying,
) -> Report:
    """Execute a model before and after a cast, and return the report on an outcome that may be
    written, with its error. `options` are those of the cast, with the nodes that it left out.

    Raises:
        NotVerified: it could not be executed.
        LeaveOut: its error is larger than the largest that is allowed, unless nodes are left out,
            or onnxruntime lacks a kernel.
        NotProduced: it is so with whatever is left out.
    """
    started = time.monotonic()
    feeds = () if verifying.inputs is None else (load(Path(verifying.inputs), before.proto),)
    bound = options.retyping.max_error if options.retyping else None
    terms = Terms(bound, verifying.executor, verifying.seed, feeds, verifying.budget)
    found = judged(before, after, terms)
    within, left_out = found.within, options.left_out
    known = [path for (_, path), (code, _) in left_out.items() if code == "max-error"]
    seconds = report.spent.verifying + time.monotonic() - started
    spent = replace(report.spent, verifying=round(seconds, 3))
    report = replace(report, within=replace(within, raised=known), spent=spent)
    if within.failure and not verifying.allow_unverified:
        way = "--allow-unverified writes the model all the same"
        why = f"the outcome of the cast: {within.failure} [not-verified]; {way}"
        raise NotVerified(": ".join(filter(None, (report.file, why))), report)
    blamed = [("cast", path) for path in found.blamed if ("cast", path) not in left_out]
    if blamed and options.retyping and options.retyping.to == Half.float16:
        raise LeaveOut(dict.fromkeys(blamed, ("type", f"onnxruntime: {within.loads}")))
    if within.failure or within.holds or bound is None:
        return report

    def recast(paths: Sequence[str]) -> ModelProto:
        more = {("cast", path): ("max-error", "") for path in paths}
        return cast(before, replace(options, left_out={**left_out, **more}))[0]

    raised = Search(found, before, recast, bound, verifying.budget).run()
    if raised.nodes and not known:
        raise LeaveOut({("cast", path): ("max-error", why) for path, why in raised.nodes.items()})
    why = f"not within {bound:g}: {raised.why}" if raised.why else within.sentence
    raise NotProduced.since(f"{why} [max-error]", report)


def _judged(
    model: Model,
    report: Report,
    verdicts: Verdicts,
    verifying: Verifying,
    last: Pass,
    binding: str,
) -> Report:
    """Return the report on an outcome that may be written.

    `last` is the command that wrote it, `binding` what the inputs of the model are bound to.

    Raises:
        Mismatch: a rewrite disagrees with the original.
        NotVerified: no case of a rewrite that the result depends on could be compared.
        LeaveOut: no case of some others could be, or an executor does not load what they wrote.
        NotProduced: an executor does not load the outcome.
    """
    if verdicts.mismatch is not None:
        raise Mismatch(verdicts.mismatch, report)
    unverified = verdicts.unverified
    if binding and verdicts.whole and verdicts.whole.verdict != "verified":
        unverified = [*unverified, (None, verdicts.whole)]  # sizes were fixed everywhere
    if unverified and not verifying.allow_unverified:
        optional = [(one, short) for one, short in unverified if one and one.rule.optional]
        ways = _ways(model, hurried=verdicts.hurried)
        if verdicts.hurried or len(optional) < len(unverified):
            raise NotVerified(_not_verified(unverified, ways, binding), report)
        what = "no case could be compared"
        raise LeaveOut(
            {one.site: (NOT_VERIFIED, f"{what}, {short.reason}; {ways}") for one, short in optional}
        )
    if verdicts.there is not None and not verdicts.there.agrees:
        raise NotProduced.since(f"the outcome {verdicts.there}", report)
    if verdicts.unloadable is None:
        return report
    version, sentence, blame = verdicts.unloadable
    if not verdicts.stopped and last.may_be_for_another(version):
        return replace(report, warnings=(sentence,))
    if blame:
        raise LeaveOut({one.site: (INVALID, sentence) for one, _ in blame})
    hint = "" if last.target else "; --opset and --for choose another opset"
    raise NotProduced.since(sentence + hint, report)


def _not_verified(
    unverified: Sequence[tuple[Rewritten | None, Checked]], ways: str, binding: str
) -> str:
    rewritten, checked = unverified[0]
    path = rewritten.place.path if rewritten else "main"
    more = f" (and {len(unverified) - 1} more)" if len(unverified) > 1 else ""
    return (
        f"{path}: {f'with {binding} ' if binding else ''}no case could be compared, "
        f"{checked.reason}{more} [not-verified]; {ways}, "
        "--allow-unverified writes the model all the same"
    )


def _ways(model: Model, *, hurried: bool) -> str:
    """Return the options with which a user can make models comparable that were not."""
    if hurried:
        return "--verify-budget gives more time"
    inputs = ", ".join(describe(value) for value in signature_inputs(model.proto.graph))
    return f"--inputs gives what the model takes ({inputs})" if inputs else "it has no inputs"
