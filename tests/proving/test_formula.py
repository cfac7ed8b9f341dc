"""What the verdict shows of models that are not proven equal: formulas over their own names."""

from __future__ import annotations

import onnx.parser
import pytest

from passes.ir.model import Model
from passes.reports.proof import Proof
from tests.instruments.proven import for_all_sizes as prove
from tests.proving.test_wrong_pairs import WRONG, proof

#: Of each pair: the output, the parts that differ, what they are a part of, and where they do.
SHOWN = {
    "a break that only large inputs take": (
        "'y'[i]",
        "iterations while ReduceMax(s * w for j < 2) < 1000.0, at most 50",
        "50",
        "",
    ),
    "another captured value": ("'y'[i]", "v[i]", "w[i]", "the step of 's'"),
    "T > 121": ("'y'[i]", "x[i]", "Neg(x[i])", ""),
    "a comparison that NaN makes another one": (
        "'y'[i]",
        "not (x[i] < w[i])",
        "w[i] <= x[i]",
        "",
    ),
    "a sum in another order": ("'y'[i]", "w[i] + (v[i] + x[i])", "v[i] + w[i] + x[i]", ""),
    "rows read one too late": (
        "'z'[i, j]",
        "s after i iterations",
        "x[i, j] + (s after i iterations)",
        "",
    ),
    "a Reshape in place of a Transpose": (
        "'y'[i, j]",
        "x[j, i]",
        "x[(i*N + j) div 4, (i*N + j) mod 4]",
        "",
    ),
    "a size of nothing": ("'y', size of axis 1", "3", "2", ""),
}


def unproven(name: str) -> Proof:
    text, right, wrong = WRONG[name]
    return proof(text.replace("@", right), text.replace("@", wrong))


@pytest.mark.parametrize("name", SHOWN)
def test_the_parts_that_differ_are_formulas(name: str) -> None:
    found = unproven(name)
    assert (found.output, found.before, found.after, found.within) == SHOWN[name]
    assert found.sentence().startswith(f"{found.verdict}: {found.code}: output {found.output}")


def test_the_case_is_a_condition_of_the_output() -> None:
    assert unproven("T mod 16 == 15").detail == "for T mod 16 == 15"


def test_a_failure_names_the_node_and_the_path() -> None:
    found = unproven("a size that broadcasts where it is 1")
    assert found.code == "fails"
    assert found.detail.endswith(
        "main/reshape_1: it fails unless the number of elements stays the same"
    )
    assert found.where == ("N != M", "M != 1", "N == 1")


def test_an_operator_that_draws_random_numbers_has_its_path() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21]>
    g (float[T,2] x, float[2] h) => (float[2] y) {
        y = Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] r) => (float[2] t) {
            p = Add (s, r) t = RandomNormalLike (p) }> (h, x) }"""
    model = Model.load(onnx.parser.parse_model(text))
    found = prove(model, model)
    assert (found.code, found.node) == ("random", "main/scan_0.body/randomnormallike_1 before")


def test_states_of_one_name_are_told_apart_by_their_recurrences() -> None:
    text = """(float[T,2] x, float[T,2] z, float[2] h, float[2] g) => (float[2] y) {
        y = Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] r) => (float[2] t) {
            t = Add (s, r) }> (@) }"""
    found = proof(text.replace("@", "h, x"), text.replace("@", "g, z"))
    assert found.before == "s after T iterations, s = h[i], then x[j, i] + s"
    assert found.after == "s after T iterations, s = g[i], then s + z[j, i]"
