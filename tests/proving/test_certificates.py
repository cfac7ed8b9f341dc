"""Certificates: what they show, and that nothing else is shown by them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import onnx.parser
import pytest

import passes
from passes.choices import CERTIFICATE
from passes.ir.model import Model
from passes.proving import certificate
from passes.proving.asked import CannotCertify
from passes.proving.certificate import BadCertificate, Certificate, DoesNotHold, digest
from passes.proving.pair import NoPair, Pair
from passes.proving.prover import attempt
from passes.reports.json_values import schema_of
from tests.called import called, called_elsewhere
from tests.instruments.proven import FOLDER, golden_pairs, sides
from tests.instruments.proven import at_drawn_sizes as prove_at_sizes

#: Pairs with cases, relations between loops, parts of indices, and early exits.
SAMPLE = (
    "flatten-scan/open_sizes",
    "lower/sum",
    "lower/scan_8",
    "peel/vector_iteration",
    "raise/reads",
    "unroll-partial/vector_iteration",
    "upgrade/lengths_computed",
)


@cache
def certified(before: Path) -> str | None:
    """The certificate of a golden pair as text, if it is proven for all sizes."""
    pair = sides(before)
    try:
        found = attempt(Pair.of(*pair), 20)
    except NoPair:
        return None
    if not found.proof.is_proven:
        return None
    return Certificate.of(*pair, found.proof).to_json()


def checked(pair: str, change: Callable[[dict[str, Any]], object]) -> None:
    """Check the certificate of a golden pair after a change of its values."""
    before = FOLDER / f"{pair}.before.onnxtxt"
    values = json.loads(certified(before) or "")
    change(values)
    Certificate.read(json.dumps(values)).check(*sides(before), 20)


@pytest.mark.parametrize(
    "part",
    [
        pytest.param(part, marks=[pytest.mark.slow] * part.startswith("unroll-partial"))
        for part in SAMPLE
    ],
)
def test_certificates_of_golden_pairs_hold(part: str) -> None:
    held = 0
    for path in golden_pairs(part)[:12]:
        text = certified(path)
        if text is not None:
            held += 1
            assert Certificate.read(text).check(*sides(path), 20).is_proven
    assert held


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", golden_pairs()[::2], ids=lambda path: f"{path.relative_to(FOLDER)}"
)
def test_the_certificate_of_a_golden_pair_holds(path: Path) -> None:
    text = certified(path)
    assert text is None or Certificate.read(text).check(*sides(path), 20).is_proven


def test_a_certificate_is_the_same_in_every_process(tmp_path: Path) -> None:
    sides = [str(FOLDER / f"flatten-scan/captures.{side}.onnxtxt") for side in ("before", "after")]
    here, there = tmp_path / "here.json", tmp_path / "there.json"
    called("prove", *sides, "--certify", f"{here}")
    called_elsewhere("prove", *sides, "--certify", f"{there}")
    assert here.read_text() == there.read_text()
    before, after = map(Model.load, sides)
    assert Certificate.read(here.read_text()).check(before, after).is_proven


def test_it_has_a_schema() -> None:
    text = certified(FOLDER / "flatten-scan/captures.before.onnxtxt")
    jsonschema.validate(json.loads(text or ""), schema_of(Certificate))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda it: it.update(version=2), "version 2, and version 3 is supported"),
        (lambda it: it.update(before="0" * 64), "a different first model"),
        (lambda it: it["assumed"].pop(), "its assumed.3 is null"),
        (lambda it: it["scope"].update(method="terms"), "its scope.draws.0 is null"),
    ],
)
def test_a_changed_statement_is_refused(
    change: Callable[[dict[str, Any]], object], sentence: str
) -> None:
    with pytest.raises(DoesNotHold, match=sentence):
        checked("lower/sum", change)


def test_a_certificate_of_one_pair_shows_nothing_of_another() -> None:
    text = certified(FOLDER / "lower/sum.before.onnxtxt") or ""
    other = sides(FOLDER / "flatten-scan/sum.before.onnxtxt")
    with pytest.raises(DoesNotHold, match="a different first model"):
        Certificate.read(text).check(*other)


def test_a_certificate_with_other_digests_shows_nothing_of_a_wrong_pair() -> None:
    before = FOLDER.parent / "tests/proving/false_proofs/einsum_broadcasts.before.onnxtxt"
    pair = sides(before)
    values = json.loads(certified(FOLDER / "lower/sum.before.onnxtxt") or "")
    values["before"], values["after"] = map(digest, pair)
    with pytest.raises(DoesNotHold, match="does not hold here"):
        Certificate.read(json.dumps(values)).check(*pair)


@pytest.mark.parametrize("end", [0, 1, 200, -1])
def test_a_truncated_certificate_is_none(end: int) -> None:
    text = certified(FOLDER / "lower/sum.before.onnxtxt") or ""
    with pytest.raises(BadCertificate, match="is no certificate, or is cut short"):
        Certificate.read(text[:end])


@pytest.mark.parametrize(
    "change",
    [
        lambda it: it.update(assumed=5),
        lambda it: it.pop("scope"),
        lambda it: it["scope"].update(draws=[{"shapes": 1}]),
        lambda it: it.update(choices=None),
        lambda it: it["scope"].update(bounds=[["y", float("inf")]]),
    ],
)
def test_another_form_is_no_certificate(change: Callable[[dict[str, Any]], object]) -> None:
    with pytest.raises(BadCertificate):
        checked("lower/sum", change)


def test_a_proof_at_drawn_sizes_has_a_certificate() -> None:
    before, after = sides(FOLDER / "unroll-partial/dynamic.before.onnxtxt")
    proof = prove_at_sizes(before, after)
    made = Certificate.of(before, after, proof)
    again = Certificate.read(made.to_json())
    assert again.check(before, after).scope.method == "terms"
    values = json.loads(made.to_json())
    values["scope"]["draws"].pop()
    with pytest.raises(DoesNotHold, match=re.escape("its scope.draws.6 is null")):
        Certificate.read(json.dumps(values)).check(before, after)


def test_the_metadata_of_an_outcome_has_it(tmp_path: Path) -> None:
    path = FOLDER / "lower/sum.before.onnxtxt"
    result = passes.lower(path, certify=True, verify=False)
    for name in ("lowered.onnx", "lowered.onnxtxt", "lowered.json"):
        after = Model.load(result.save(tmp_path / name))
        assert (
            Certificate.read(certificate.embedded(after)).check(Model.load(path), after).is_proven
        )
    again = passes.upgrade(result.model, opset=23, verify=False)
    assert all(one.key != CERTIFICATE for one in again.model.metadata_props)


def test_bound_inputs_have_no_certificate() -> None:
    with pytest.raises(CannotCertify, match="a proof with bound inputs has no certificate"):
        passes.lower(FOLDER / "lower/sum.before.onnxtxt", certify=True, dims={"T": 3})


def test_a_proof_at_drawn_sizes_is_disproven_at_others() -> None:
    text = '<ir_version: 10, opset_import: ["" : 21]> g (float[T] x) => (float[T] y) '
    before = Model.load(onnx.parser.parse_model(text + "{ y = Neg (x) }"))
    after = Model.load(
        onnx.parser.parse_model(
            text
            + """{ n = Neg (x) size = Size (x) many = Constant <value_int = 121> ()
            more = Greater (size, many) y = Where (more, x, n) }"""
        )
    )
    proof = prove_at_sizes(before, after)
    assert proof.is_proven
    forged = Certificate.of(before, after, proof)
    with pytest.raises(DoesNotHold, match=r"does not hold here; disproven by x: float32\[122\]"):
        forged.check(before, after)


@pytest.mark.parametrize("value", [float("nan"), [[["equal"]]], "soon", True])
def test_an_unknown_word_is_no_certificate(value: object) -> None:
    with pytest.raises(BadCertificate, match="not one of symbolic, terms"):
        checked("lower/sum", lambda it: it["scope"].update(method=value))


def test_a_sentence_shows_no_control_characters_of_a_certificate() -> None:
    with pytest.raises(DoesNotHold) as found:
        checked("lower/sum", lambda it: it["assumed"].append("\x9b31m\n" * 9999))
    assert str(found.value).isprintable()
    assert len(str(found.value)) < 300


def test_a_proof_that_rests_on_promises_has_no_certificate() -> None:
    with pytest.raises(CannotCertify, match="a proof with --assume non-empty has no certificate"):
        passes.lower(FOLDER / "lower/sum.before.onnxtxt", certify=True, assume=["non-empty"])
