"""The proofs that commands ask for: they are tried, required, and certified."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from onnx import ModelProto

from passes.choices import CERTIFICATE, Proving, RuleOptions
from passes.errors import DoesNotFit, NotProduced
from passes.ir.model import Model
from passes.ir.protos import set_metadata

if TYPE_CHECKING:
    from passes.proving.prover import Attempt
    from passes.reports.report import Report
    from passes.verify.inputs.drawer import Case


class CannotCertify(DoesNotFit):
    """The proof would rest on promises, or would not be one of the model that was given."""


@dataclass(frozen=True)
class Proofs:
    """The ways to prove an outcome that commands ask for, and the options of all commands, with
    what they promise."""

    asked: Sequence[Proving]
    options: Sequence[RuleOptions]

    def refuse_to_certify(self, *, bound: bool) -> None:
        """Raise CannotCertify if a certificate is wanted that would rest on promises, or on inputs
        that are `bound`."""
        if not self._certifying:
            return
        from passes.proving.promises import Promises

        promises = replace(Promises.of(self.options), given=())
        under = [one.partition(": ")[0] for one in promises.sentences()]
        under += ["bound inputs"] if bound else []
        if under:
            raise CannotCertify(f"--certify: a proof with {' and '.join(under)} has no certificate")

    def attempt(
        self, model: Model, proto: ModelProto, say: Callable[[str], None]
    ) -> Attempt | None:
        """Return what the proof of an outcome found; None if no command asks for a proof."""
        if not self.asked:
            return None
        from passes.proving.narrowing import prove
        from passes.proving.promises import Promises

        say("proving")
        budget = max(proving.budget for proving in self.asked)
        return prove(model, Model(proto, model.path), budget, Promises.of(self.options))

    def cases(self, model: Model, attempt: Attempt | None, seed: int) -> Sequence[Case]:
        """The inputs on which the open questions of a proof depend; none without a proof."""
        if attempt is None:
            return ()
        from passes.proving.clues import cases_of

        return cases_of(model.proto, attempt.clues, seed)

    def require(self, report: Report) -> None:
        """Raise NotProduced if a proof is required and the report has none."""
        proof = report.proof
        if proof is not None and not all(one.accepts(proof.kind) for one in self.asked):
            reason = f"the outcome is {'only ' * proof.is_proven}{proof.line}"
            raise NotProduced.since(reason, report)

    def certify(self, model: Model, proto: ModelProto, attempt: Attempt | None) -> None:
        """Put the certificate of a proof into the outcome if a command asks for it, in place of one
        that the model had."""
        made = None
        if self._certifying and attempt is not None and attempt.proof.is_proven:
            from passes.proving.certificate import Certificate

            made = Certificate.of(model, Model(proto, model.path), attempt.proof).to_json()
        set_metadata(proto, CERTIFICATE, made)

    @property
    def _certifying(self) -> list[Proving]:
        """How to prove what is to be certified; empty if nothing is."""
        return [one for one in self.asked if one.certified]
