"""Certificates: what was proven of which models, so that it can be proven again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from typing import Any

from google.protobuf.message import Message
from onnx import TensorProto

from passes.choices import CERTIFICATE, PROOF_BUDGET, Executors
from passes.errors import NOT_PRODUCED, BadModel, PassesError
from passes.ir.external_data import tensors
from passes.ir.model import Model
from passes.ir.protos import copied, set_metadata
from passes.ir.versions import tools
from passes.proving.drawn.proving import prove_at_sizes
from passes.proving.narrowing import Executing, executed, prove_stated
from passes.proving.pair import Pair
from passes.proving.prover import attempt
from passes.reports.json_values import as_json, read_as
from passes.reports.proof import Proof, Scope

VERSION = 3
_TOOLS = ("passes", "onnx", "numpy")
#: How many characters of a certificate a sentence quotes at most.
_LONG = 120


class BadCertificate(PassesError):
    """A file or text that is not a certificate."""


class DoesNotHold(PassesError):
    """A certificate does not show what it states; the sentence names what differs."""

    exit_code = NOT_PRODUCED


@dataclass(frozen=True)
class Certificate:
    """What shows that a model answers as another one does.

    `before` and `after` are the digests of the models, `tools` the versions that wrote it. `scope`
    is what the proof covers, stated and drawn sizes included, and `assumed` what it assumes, in
    words.
    """

    version: int
    tools: Mapping[str, str]
    before: str
    after: str
    scope: Scope
    assumed: Sequence[str]

    @classmethod
    def of(cls, before: Model, after: Model, proof: Proof) -> Certificate:
        """The certificate of a proof.

        Raises:
            DoesNotHold: it rests on promises, which a certificate does not have.
        """
        if proof.promised:
            raise DoesNotHold(
                f"a certificate has no promises, and the proof rests on {proof.promised[0]}"
            )
        own = {name: tools()[name] for name in _TOOLS}
        return cls(VERSION, own, digest(before), digest(after), proof.scope, proof.assumed)

    @classmethod
    def read(cls, text: str) -> Certificate:
        """Read a certificate from its text.

        Raises:
            BadCertificate: it is not a certificate.
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
            why = _printable(f"key {error}" if isinstance(error, KeyError) else error)
            raise BadCertificate(f"is no certificate, or is cut short ({why})") from error
        raise DoesNotHold(
            f"it has version {_printable(version)}, and version {VERSION} is supported"
        )

    def to_json(self, indent: int | None = None) -> str:
        """The text of the file."""
        return as_json(asdict(self), indent)

    def check(self, before: Model, after: Model, budget: float = PROOF_BUDGET) -> Proof:
        """Prove again what the certificate states, and return the proof.

        Raises:
            DoesNotHold: it shows nothing of these models; the sentence names what differs.
        """
        for which, model, stated in (("first", before, self.before), ("second", after, self.after)):
            own = digest(model)
            if own != stated:
                raise DoesNotHold(
                    f"this certificate is for a different {which} model, with SHA-256 "
                    f"{_printable(stated[:16])}...; {model.file or 'the model'} has {own:.16}..."
                )
        proof = self._done_again(Pair.of(before, after), budget)
        if not proof.is_proven:
            by = _printable(", ".join(f"{name} {version}" for name, version in self.tools.items()))
            shown = proof.sentence() if proof.verdict == "disproven" else proof.line
            raise DoesNotHold(f"the proof, written by {by}, does not hold here; {shown}")
        again = replace(self, scope=proof.scope, assumed=proof.assumed)
        differs = _difference(json.loads(self.to_json()), json.loads(again.to_json()))
        if differs:
            raise DoesNotHold(differs)
        return proof

    def _done_again(self, pair: Pair, budget: float) -> Proof:
        """The proof for all sizes, else for stated ones, or at drawn ones, if no other sizes
        disprove it."""
        found = attempt(pair, budget)
        if not found.proof.is_proven:
            found = executed(pair, found, Executing(Executors.reference, budget))
        is_at_sizes = self.scope.method != "symbolic"
        if found.failure is not None or not (is_at_sizes or self.scope.stated):
            return found.proof
        if found.narrower is not None:
            return found.narrower
        if is_at_sizes:
            return prove_at_sizes(pair, budget)
        return prove_stated(pair, self.scope.stated, budget) or found.proof


def _difference(stated: Any, own: Any, path: str = "") -> str:
    """The first value that is another one than that of the proof; empty if there is none."""
    if type(stated) is type(own) is list:
        stated, own = dict(enumerate(stated)), dict(enumerate(own))
    if type(stated) is type(own) is dict:
        keys = {**own, **stated}
        parts = (_difference(stated.get(key), own.get(key), f"{path}.{key}") for key in keys)
        return next(filter(None, parts), "")
    sides = [_printable(as_json(one)) for one in (stated, own)]
    return "" if stated == own else f"its {path[1:]} is {sides[0]}, that of the proof {sides[1]}"


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


def _printable(text: object) -> str:
    """The beginning of what a certificate states, without characters that cannot be printed."""
    return "".join(one if one.isprintable() else "?" for one in f"{text}"[:_LONG])
