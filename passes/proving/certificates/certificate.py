"""Certificates: what a proof chose, so that it is done again without its searches."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from itertools import zip_longest
from typing import Any

from google.protobuf.message import Message
from onnx import TensorProto

from passes.choices import CERTIFICATE, PROOF_BUDGET, Executors
from passes.errors import BadModel, PassesError
from passes.ir.external_data import tensors
from passes.ir.model import Model
from passes.ir.protos import copied, set_metadata
from passes.ir.versions import tools
from passes.proving.certificates.guide import Choices, DoesNotHold, printable
from passes.proving.drawn.proving import prove_at_sizes
from passes.proving.narrowing import Executing, executed, prove_stated
from passes.proving.pair import Pair
from passes.proving.prover import attempt
from passes.reports.json_values import as_json, read_as
from passes.reports.proof import Proof, Scope

VERSION = 2
_TOOLS = ("passes", "onnx", "numpy")


class BadCertificate(PassesError):
    """It is no certificate."""


@dataclass(frozen=True)
class Certificate:
    """What shows that a model answers as another one does.

    `before` and `after` are the digests of the models, `tools` the versions that wrote it. `scope`
    is what the proof covers, and `assumed` what it assumes, in words. A proof for all sizes has
    its `choices`; one at stated or drawn sizes has none, but the sizes are in its scope.
    """

    version: int
    tools: Mapping[str, str]
    before: str
    after: str
    scope: Scope
    assumed: Sequence[str]
    choices: Choices | None

    @classmethod
    def of(
        cls, before: Model, after: Model, proof: Proof, choices: Choices | None, budget: float
    ) -> Certificate:
        """The certificate of a proof, which has held without searches within `budget` seconds.

        Raises:
            DoesNotHold: it has not, or it rests on promises, which a certificate does not have.
        """
        if proof.promised:
            raise DoesNotHold(
                f"a certificate has no promises, and the proof rests on {proof.promised[0]}"
            )
        if choices is not None:  # what the search only tried is left out
            followed = attempt(Pair.of(before, after), budget, choices)
            if not followed.proof.is_proven:
                raise DoesNotHold(
                    f"there is no certificate: without searches, {followed.proof.line}"
                )
            choices = followed.choices
        own = {name: tools()[name] for name in _TOOLS}
        digests = digest(before), digest(after)
        return cls(VERSION, own, *digests, proof.scope, proof.assumed, choices)

    @classmethod
    def read(cls, text: str) -> Certificate:
        """The certificate that is written like this.

        Raises:
            BadCertificate: it is no certificate.
            DoesNotHold: it has another version.
        """
        try:
            values = json.loads(text)
            if not isinstance(values, dict):
                raise TypeError(f"it begins with {text[:1]}")
            version = read_as(int, values["version"])
            if version == VERSION:
                made = read_as(cls, values)
                assert isinstance(made, cls)
                made.to_json()  # an infinite bound is none
                return made
        except (TypeError, ValueError, KeyError, AttributeError, RecursionError) as error:
            why = printable(f"key {error}" if isinstance(error, KeyError) else error)
            raise BadCertificate(f"is no certificate, or is cut short ({why})") from error
        raise DoesNotHold(
            f"it has version {printable(version)}, and version {VERSION} is supported"
        )

    def to_json(self, indent: int | None = None) -> str:
        """The text of the file."""
        return as_json(asdict(self), indent)

    def check(self, before: Model, after: Model, budget: float = PROOF_BUDGET) -> Proof:
        """The proof, done again without searches.

        Raises:
            DoesNotHold: it shows nothing of these models; the sentence names what differs.
        """
        for which, model, stated in (("first", before, self.before), ("second", after, self.after)):
            own = digest(model)
            if own != stated:
                raise DoesNotHold(
                    f"this certificate is for a different {which} model, with SHA-256 "
                    f"{printable(stated[:16])}...; {model.file or 'the model'} has {own:.16}..."
                )
        choices = self.choices
        pair = Pair.of(before, after)
        if choices is None:
            proof = self._done_again(pair, budget)
        else:
            found = attempt(pair, budget, choices)
            proof, choices = found.proof, found.choices
        if not proof.is_proven:
            by = printable(", ".join(f"{name} {version}" for name, version in self.tools.items()))
            shown = proof.sentence() if proof.verdict == "disproven" else proof.line
            raise DoesNotHold(f"the proof, written by {by}, does not hold here; {shown}")
        again = replace(self, scope=proof.scope, assumed=proof.assumed, choices=choices)
        differs = _difference(json.loads(self.to_json()), json.loads(again.to_json()))
        if differs:
            raise DoesNotHold(differs)
        return proof

    def _done_again(self, pair: Pair, budget: float) -> Proof:
        """The proof for the stated sizes, or at drawn ones, if no other sizes disprove it."""
        found = attempt(pair, budget)
        if not found.proof.is_proven:
            found = executed(pair, found, Executing(Executors.reference, budget))
            if found.failure is not None:
                return found.proof
        if found.narrower is not None:
            return found.narrower
        if self.scope.stated and self.scope.method == "symbolic":
            return prove_stated(pair, self.scope.stated, budget) or found.proof
        return prove_at_sizes(pair, budget)


def _difference(stated: Any, own: Any, path: str = "") -> str:
    """Where what is stated is first another value than that of the proof, empty or empty."""
    pairs: Iterable[tuple[object, tuple[Any, Any]]]
    if type(stated) is type(own) is dict:
        pairs = ((key, (stated[key], own[key])) for key in own)
    elif type(stated) is type(own) is list:
        pairs = enumerate(zip_longest(stated, own))
    else:
        sides = [printable(as_json(one)) for one in (stated, own)]
        return (
            "" if stated == own else f"its {path[1:]} is {sides[0]}, that of the proof {sides[1]}"
        )
    return next(filter(None, (_difference(*pair, f"{path}.{key}") for key, pair in pairs)), "")


def digest(model: Model) -> str:
    """The SHA-256 of a model without certificate and doc strings, its weights by their values."""
    copy = copied(model.proto)
    set_metadata(copy, CERTIFICATE, None)
    for tensor in tensors(copy):
        value = model.read(tensor)
        content = repr(value.tolist()).encode() if value.dtype == object else value.tobytes()
        own = TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
        own.raw_data = sha256(content).digest()
        tensor.CopyFrom(own)
    _clear(copy)
    return sha256(copy.SerializeToString(deterministic=True)).hexdigest()


def _clear(message: Message) -> None:
    """Take out doc strings and empty texts, which formats do not tell from none."""
    for part, value in message.ListFields():
        if part.name == "doc_string" or (part.type == part.TYPE_STRING and value == ""):
            message.ClearField(part.name)
        elif part.type == part.TYPE_MESSAGE:
            for one in [value] if isinstance(value, Message) else value:
                _clear(one)


def embedded(model: Model) -> str:
    """The certificate in the metadata of a model. Raises BadModel if it has none."""
    found = [one.value for one in model.proto.metadata_props if one.key == CERTIFICATE]
    if not found:
        raise BadModel(f"there is no certificate in its metadata ({CERTIFICATE})", file=model.file)
    return found[0]
