"""Large weights lie in one file while a model is verified, and mean what they meant."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, helper, numpy_helper

import passes
from passes.choices import Verifying
from passes.engine.rewriting import Engine
from passes.ir.data_file import DataFile
from passes.ir.model import Model
from passes.rule import Edit, Rule, Site
from passes.verify.installed import OnnxRuntimeExecutor
from passes.verify.reference import ReferenceExecutor
from passes.verify.rewrites.verifying import verify_rounds
from passes.verify.rewrites.weight_file import WeightFile

DRAWN = np.random.default_rng(0).standard_normal((600, 512), dtype=np.float32)
#: An odd number of bytes, so that what lies behind it must be aligned.
ODD = np.ones(300_001, np.int8)


def model(weight: np.ndarray = DRAWN, *, default: bool = False) -> ModelProto:
    given = ", float[600,512] w" if default else ""
    made = onnx.parser.parse_model(f"""
        <ir_version: 8, opset_import: ["" : 17]>
        g (float[N,600] x{given}) => (float[N,512] y, int8[M] z, float[N,512] t)
        <float k = {{3}}> {{
            a = MatMul (x, w) y = Mul (a, k) z = Neg (odd) t = MatMul (x, same) }}
    """)
    for name, value in (("odd", ODD), ("w", weight), ("same", weight)):
        made.graph.initializer.append(numpy_helper.from_array(value, name))
    return made


FEEDS = {"x": np.ones((2, 600), np.float32)}


def test_large_weights_lie_in_the_file_once_and_small_ones_in_the_model() -> None:
    made = model()
    before = made.SerializeToString()
    with WeightFile(made, None) as weights:
        lean = weights.model(made)
        assert [one.name for one in lean.graph.initializer if one.data_location] == [
            *("odd", "w", "same")
        ]
        assert lean.ByteSize() < 2_000
        assert weights.base_dir is not None
        assert (weights.base_dir / "weights").stat().st_size < ODD.nbytes + DRAWN.nbytes + 4096
        assert weights.model(made) is lean
        back = onnx.ModelProto()
        back.CopyFrom(lean)
        onnx.load_external_data_for_model(back, str(weights.base_dir))
        for one, other in zip(back.graph.initializer, made.graph.initializer, strict=True):
            assert one.raw_data == other.raw_data
        assert back.graph.node == made.graph.node
    assert not weights.base_dir.exists()
    assert made.SerializeToString() == before


def test_executors_answer_as_they_do_with_the_weights_in_the_model() -> None:
    made = model()
    with OnnxRuntimeExecutor() as onnxruntime, WeightFile(made, None) as weights:
        for executor in (ReferenceExecutor(), onnxruntime):
            plain = executor.run(made, FEEDS).outputs
            lean = executor.run(weights.model(made), FEEDS, base_dir=weights.base_dir).outputs
            assert list(lean) == list(plain)
            for name, value in plain.items():
                np.testing.assert_array_equal(lean[name], value)


def test_a_default_that_a_caller_may_override_stays() -> None:
    with WeightFile(model(), None) as weights:
        lean = weights.model(model(default=True))
        external = [one.name for one in lean.graph.initializer if one.data_location]
        assert external == ["odd", "same"]


def test_a_model_with_external_data_stays_as_it_is(tmp_path: Path) -> None:
    onnx.save(model(), tmp_path / "m.onnx", save_as_external_data=True, location="w.bin")
    by_reference = onnx.load(tmp_path / "m.onnx", load_external_data=False)
    by_reference.graph.initializer.append(numpy_helper.from_array(DRAWN, "more"))
    with WeightFile(by_reference, tmp_path) as weights:
        assert weights.base_dir == tmp_path
        assert weights.model(by_reference) is by_reference


def test_on_a_full_disk_the_weights_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(DataFile, "_append", full)
    made = model()
    with WeightFile(made, None) as weights:
        assert weights.model(made) is made


def test_other_weights_at_one_place_make_another_tensor() -> None:
    """Regions are known by their bytes, also where they are verified again, with another file."""
    tensors = []
    for weight in (DRAWN, DRAWN + 1):
        made = model(weight)
        with WeightFile(made, None) as weights:
            tensors.append(weights.tensor(made.graph.initializer[2]))
    assert tensors[0] != tensors[1]


def test_a_weight_that_a_rewrite_changed_is_found() -> None:
    """What both sides of a comparison share are equal weights only."""
    before, after = model(), model(DRAWN * np.float32(1.01))
    with WeightFile(before, None) as weights:
        lean = [weights.model(one) for one in (before, after)]
        found = [
            ReferenceExecutor().run(one, FEEDS, base_dir=weights.base_dir).outputs["y"]
            for one in lean
        ]
    assert not np.array_equal(found[0], found[1])


@pytest.mark.parametrize("executor", ["reference", "onnxruntime"])
def test_a_conversion_is_verified_with_its_weights_in_the_file(executor: str) -> None:
    made = model()
    result = passes.upgrade(made, opset=21, executor=executor)
    assert result.report.checked is not None
    assert result.report.checked.verdict == "verified"
    assert result.model.graph.initializer == made.graph.initializer


def test_a_mismatch_shows_both_sides_with_their_weights_in_them() -> None:
    """A rule writes another large weight: what shows that is a model that stands alone."""
    read = Model(model())

    def spoiled(site: Site) -> Edit:
        wrong = numpy_helper.from_array(DRAWN * np.float32(1.01), site.fresh("wrong"))
        node = helper.make_node("MatMul", [site.node.input[0], wrong.name], site.node.output)
        return Edit((node,), (wrong,), exact=False)

    rule = Rule("spoiled", spoiled, lambda node, *_: node.op_type == "MatMul")
    round_ = Engine([rule]).round(read)
    verifying = Verifying(executor="reference")
    verdicts = verify_rounds(read, [round_], round_.proto, verifying, lambda _: None, known={})
    assert verdicts.mismatch is not None
    for side in verdicts.mismatch.sides:
        weights = [one for one in side.graph.initializer if one.dims == [600, 512]]
        assert weights
        assert all(one.raw_data and not one.data_location for one in weights)
