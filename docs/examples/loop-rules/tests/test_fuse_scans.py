"""fuse-scans: random bodies, names, many Scans, branches, and Scans that stay apart."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx import ModelProto
from random_scans import random_scan

import passes
from passes.ir import scope as scoping
from passes.testing import as_model, assert_rewrite
from tests.written import changed

RULE = {"rules": "fuse-scans"}


def scans(model: ModelProto) -> list[str]:
    """The paths of the graphs that hold the Scans, one for each Scan."""
    return [one.scope.path for one in scoping.walk_model(model) if one.node.op_type == "Scan"]


def beside(first: str, second: str) -> ModelProto:
    """A model of both graphs; in the bodies of the second, names stay, which the first has, too."""
    model, other = as_model(first), as_model(second).graph
    own = scoping.defined(other)
    scoping.rename_all(other, lambda name: f"{name}/2" if name in own else name)
    for field in ("node", "input", "output", "initializer"):
        getattr(model.graph, field).extend(getattr(other, field))
    return model


def trips(text: str) -> int | str:
    """The length of what a random Scan scans."""
    (dim,) = as_model(text).graph.input[-1].type.tensor_type.shape.dim
    return dim.dim_param or dim.dim_value


@pytest.mark.parametrize("seed", range(4))
def test_random_bodies(seed: int) -> None:
    """Axes and directions are drawn, too; only a Scan that holds others stays apart."""
    first = random_scan(seed)
    others = (random_scan(other) for other in range(100 + seed, 200))
    second = next(text for text in others if trips(text) == trips(first))
    one = assert_rewrite(beside(first, second), pipeline="simplify", options=RULE).model
    nested = any("inner" in text for text in (first, second))
    assert scans(one).count("main") == (2 if nested else 1)


def test_many_become_one_in_one_round() -> None:
    """A chain of heads, each read before the next."""
    head = """
        s_this, y_this = Scan <num_scan_inputs = 1,
            body = step (float[2] h, float[2] e) => (float[2] n, float[2] y) {
            n = Add (h, e)
            y = Tanh (n)
        }> (h, x)
        z_next = Add (z_this, s_this)
    """
    heads = [changed(head, {"_this": f"{n}", "_next": f"{n + 1}"}) for n in range(40)]
    text = """
    <ir_version: 8, opset_import: ["" : 18]>
    g (float[2] h, float[T,2] x, float[2] z0) => (float[2] z40) { HEADS }
    """
    text = changed(text, {"HEADS": "".join(heads)})
    result = assert_rewrite(text, pipeline="simplify", options=RULE)
    assert scans(result.model) == ["main"]
    assert [record.note for record in result.report.records] == ["40 Scans in one"]


def test_a_branch_and_a_function_have_scans_of_their_own() -> None:
    """Scans of one graph become one, those of a branch apart from those around it."""
    text = """
    <ir_version: 8, opset_import: ["" : 18]>
    g (bool c, float[2] h, float[T,2] x) => (float[2] s, float[2] t, float[2] r)
    {
        s, ys = Scan <num_scan_inputs = 1,
            body = step (float[2] h, float[2] e) => (float[2] n, float[2] y) {
            n = Add (h, e)
            y = Tanh (n)
        }> (h, x)
        t, zs = Scan <num_scan_inputs = 1,
            body = step (float[2] h, float[2] e) => (float[2] n, float[2] y) {
            n = Add (h, e)
            y = Tanh (n)
        }> (h, x)
        r = If (c) <
            then_branch = yes () => (float[2] u) {
                a, as = Scan <num_scan_inputs = 1,
                    body = step (float[2] h, float[2] e) => (float[2] n, float[2] y) {
                    n = Add (h, e)
                    y = Tanh (n)
                }> (h, x)
                b, bs = Scan <num_scan_inputs = 1,
                    body = step (float[2] h, float[2] e) => (float[2] n, float[2] y) {
                    n = Add (h, e)
                    y = Tanh (n)
                }> (h, x)
                u = Add (a, b)
            },
            else_branch = no () => (float[2] v) { v = Identity (h) }>
    }
    """
    assert scans(assert_rewrite(text, pipeline="simplify", options=RULE).model) == [
        "main",
        "main/if_1.then_branch",
    ]


def test_one_after_the_other() -> None:
    """A Scan that reads a result of another one stays, without a refusal."""
    text = """
    <ir_version: 8, opset_import: ["" : 18]>
    g (float[2] h, float[T,2] x) => (float[2] t)
    {
        s, ys = Scan <num_scan_inputs = 1,
            body = step (float[2] h, float[2] e) => (float[2] n, float[2] y) {
            n = Add (h, e)
            y = Tanh (n)
        }> (h, x)
        t, zs = Scan <num_scan_inputs = 1,
            body = step (float[2] h, float[2] e) => (float[2] n, float[2] y) {
            n = Add (h, e)
            y = Tanh (n)
        }> (s, x)
    }
    """
    result = passes.simplify(as_model(text), rules=["fuse-scans"])
    assert scans(result.model) == ["main", "main"]
    assert not result.report.refusals


@pytest.mark.parametrize(("inputs", "count"), [("", 1), (", int64 none", 2)])
def test_conditions_that_a_caller_may_change(inputs: str, count: int) -> None:
    """Ifs whose conditions are equal by default become one only if no caller overrides that."""
    branches = Path(__file__).parents[1] / "models" / "fuse-scans" / "branches.before.onnxtxt"
    text = changed(branches.read_text(), {"float[T,2] x)": f"float[T,2] x{inputs})"})
    made = passes.simplify(as_model(text), rules=["fuse-scans"]).model
    assert [node.op_type for node in made.graph.node].count("If") == count
