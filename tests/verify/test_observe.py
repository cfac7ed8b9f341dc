"""Observing: which values the sites of a model really get when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from passes.engine.rewriting import Engine
from passes.engine.rounds import Rewritten
from passes.ir.model import Model
from passes.ir.scope import Key
from passes.rule import Edit, Rule
from passes.verify.inputs.hints import model_hints
from passes.verify.reference import executor as executing
from passes.verify.rewrites import observe as observing
from passes.verify.rewrites.observe import Seen, key_of, observe
from tests.written import changed


def sites(text: str, op: str = "Neg") -> tuple[Model, list[Rewritten]]:
    model = Model(onnx.parser.parse_model(text))
    rule = Rule("toy", lambda site: Edit((site.node,)), lambda node, *_: node.op_type == op)
    return model, Engine([rule]).round(model).rewritten


def seen(text: str, op: str = "Neg", **how: Any) -> tuple[Seen, list[Key]]:
    model, rewritten = sites(text, op)
    before = model.proto.SerializeToString()
    found = observe(model.proto, rewritten, model_hints(model), base_dir=None, **how)
    assert model.proto.SerializeToString() == before
    return found, [key_of(rewrite) for rewrite in rewritten]


DOUBLED = """
<ir_version: 8, opset_import: ["" : 16]>
g (float[2] x) => (float[2] y) { t = Add (x, x) y = Neg (t) }
"""
IN_A_LOOP = """
<ir_version: 8, opset_import: ["" : 16]>
g (float[T,2] x, float[2] w) => (float[T,2] y) {
  y = Scan <num_scan_inputs = 1, body = b (float[2] e) => (float[2] o) {
    s = Add (e, w) o = Neg (s)
  }> (x)
}
"""


def test_the_values_are_those_that_reach_the_site() -> None:
    x = np.array([1, 2], np.float32)
    found, (key,) = seen(DOUBLED, given=[{"x": x}])
    first = found[key][0]
    assert list(first) == ["t"]
    assert np.asarray(first["t"]).tolist() == [2, 4]


def test_a_site_in_a_body_is_seen_once_an_iteration() -> None:
    feeds = {"x": np.arange(6, dtype=np.float32).reshape(3, 2), "w": np.zeros(2, np.float32)}
    found, (key,) = seen(IN_A_LOOP, given=[feeds])
    values = [np.asarray(one["s"]).tolist() for one in found[key]]
    assert values[:3] == feeds["x"].tolist()
    assert len(values) == 4, "a few are enough"


def test_captured_values_are_seen_too() -> None:
    found, (key,) = seen(IN_A_LOOP, "Scan")
    assert {name for values in found[key] for name in values} == {"x", "w"}


def test_inputs_are_drawn_where_none_are_given_and_the_same_for_a_seed() -> None:
    def drawn(seed: int) -> list[bytes]:
        found, (key,) = seen(DOUBLED, seed=seed)
        return [np.asarray(one["t"]).tobytes() for one in found[key]]

    assert drawn(0)
    assert drawn(0) == drawn(0)
    assert drawn(0) != drawn(1)


def test_sites_with_the_same_node_name_are_told_apart() -> None:
    text = """
        <ir_version: 8, opset_import: ["" : 16]>
        g (float[2] x) => (float[2] z) { [same] y = Neg (x) a = Abs (y) [same] z = Neg (a) }
    """
    found, (first, second) = seen(text, given=[{"x": np.array([1, 2], np.float32)}])
    assert list(found[first][0]) == ["x"]
    assert list(found[second][0]) == ["a"]


def test_a_site_in_a_branch_of_a_function_is_found() -> None:
    text = """
        <ir_version: 8, opset_import: ["" : 16, "local" : 1]>
        g (bool c, float[2] x) => (float[2] y) { y = local.f (c, x) }
        <domain: "local", opset_import: ["" : 16]> f (c, a) => (b) {
          b = If (c) <then_branch = y () => (p) { p = Neg (a) },
                      else_branch = n () => (p) { p = Abs (a) }>
        }
    """
    x = np.array([1, 2], np.float32)
    found, (key,) = seen(text, given=[{"c": np.array(True), "x": x}])
    assert key == (1, 0, "then_branch", 0)
    assert np.asarray(found[key][0]["a"]).tolist() == [1, 2]


def test_inputs_that_the_model_does_not_take_tell_nothing() -> None:
    found, (key,) = seen(DOUBLED, given=[{"x": np.zeros(9, np.int8)}, {"nobody": None}])
    assert all(np.asarray(one["t"]).dtype == np.float32 for one in found[key])


def test_a_model_that_takes_no_inputs_at_all_tells_nothing() -> None:
    found, _ = seen("""
        <ir_version: 8, opset_import: ["" : 16, "other" : 1]>
        g (float[2] x) => (float[2] y) { t = other.Secret (x) y = Neg (t) }
    """)
    assert found == {}


def test_external_data_is_read_from_the_folder(tmp_path: Path) -> None:
    model, rewritten = sites(changed(DOUBLED, {"Add (x, x)": "Add (x, w)"}))
    (tmp_path / "w.bin").write_bytes(np.array([10, 20], "<f4").tobytes())
    weight = model.proto.graph.initializer.add(name="w", data_type=1, dims=[2])
    weight.data_location = onnx.TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="w.bin")
    given = [{"x": np.array([1, 2], np.float32)}]
    found = observe(model.proto, rewritten, {}, base_dir=tmp_path, given=given)
    assert np.asarray(found[key_of(rewritten[0])][0]["t"]).tolist() == [11, 22]


def test_without_sites_the_model_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: object, **__: object) -> None:
        raise AssertionError("it ran")

    monkeypatch.setattr(observing.ReferenceExecutor, "run", run)
    assert observe(sites(DOUBLED)[0].proto, [], {}, base_dir=None) == {}


def test_special_values_are_not_observed() -> None:
    """A region would take them for ordinary ones, on which every executor counts."""
    found, (key,) = seen("""<ir_version: 8, opset_import: ["" : 16]>
        g (float[N,40] x) => (float[N,40] y) { t = Identity (x) y = Neg (t) }""")
    values = [np.asarray(one["t"]) for one in found[key]]
    assert len(values) == 3
    assert all(np.abs(value).max() < 10 for value in values)


def test_a_model_is_made_ready_once_for_all_its_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    make = executing._evaluator

    def making(*parts: Any) -> Any:
        made.append(parts)
        return make(*parts)

    monkeypatch.setattr(executing, "_evaluator", making)
    given = [{"x": np.array([n, 2], np.float32)} for n in range(4)]
    found, (key,) = seen(DOUBLED, given=given)
    assert [np.asarray(one["t"])[0] for one in found[key]] == [0, 2, 4, 6]
    assert len(made) == 2  # the copy that is watched, and the model, of which inputs are learned
