"""Scan-8 models that once were upgraded wrongly, or refused for no reason."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from onnx import GraphProto, ModelProto, numpy_helper

import passes
from passes.ir.scope import walk_model
from passes.session import Mismatch
from passes.testing import as_model, assert_rewrite
from passes.verify.executor import ModelFailed
from passes.verify.installed import OnnxRuntimeExecutor
from passes.verify.reference import ReferenceExecutor
from passes.writing import spelling
from passes.writing.author import Author
from tests.onnxruntime_at_hand import at_hand

FOLDER = Path(__file__).parents[2] / "golden_models"
HEAD = '<ir_version: 6, opset_import: ["" : 8]>'
needs_onnxruntime = pytest.mark.skipif(
    not OnnxRuntimeExecutor.available(), reason="onnxruntime is not installed"
)

NO_STATE = f"""{HEAD} g (int64[B] lens, float[B,T,2] x) => (float[B,T,2] z) {{
    z = Scan <num_scan_inputs = 1,
        body = b (float[2] e) => (float[2] o) {{ o = Neg(e) }}> (lens, x) }}"""
RAGGED = f"""{HEAD} g (int64[B] lens, float[B,2] h, float[B,T,2] x)
    => (float[B,2] y, float[B,T,2] z) {{
    y, z = Scan <num_scan_inputs = 1, directions = [1],
        body = b (float[2] s, float[2] e) => (float[2] o, float[2] c) {{
            o = Sub(s, e)  c = Identity(o) }}> (lens, h, x) }}"""
LOOKUP = f"""{HEAD} g (int64[B] lens, int64[B,T] ids, float[3,2] table) => (float[B,T,2] z) {{
    z = Scan <num_scan_inputs = 1,
        body = b (int64 i) => (float[2] c) {{ c = Gather(table, i) }}> (lens, ids) }}"""

SCAN_8 = "passes.converters.scan_8"


def upgraded(model: str, **options: Any) -> ModelProto:
    """The model after the upgrade, not verified: the tests look for themselves."""
    return passes.upgrade(as_model(model), verify=False, **options).model


def outputs_of(model: Any, **feeds: Any) -> Mapping[str, Any]:
    """What the reference executor answers."""
    return ReferenceExecutor().run(model, feeds).outputs


def test_the_valid_prefix_is_read_from_its_end() -> None:
    model = upgraded(RAGGED, opset=9)
    x = np.arange(6, dtype=np.float32).reshape(1, 3, 2)
    got = outputs_of(model, lens=np.array([2]), h=np.zeros((1, 2), np.float32), x=x)
    np.testing.assert_array_equal(got["z"][0], [[-2, -3], [-2, -4], [0, 0]])
    np.testing.assert_array_equal(got["y"], [[-2, -4]])


@pytest.mark.parametrize("batch", ["nest", "auto"])
@pytest.mark.parametrize("length", [-1, 4])
def test_a_length_out_of_range_fails_as_before(batch: str, length: int) -> None:
    for model in (as_model(RAGGED), upgraded(RAGGED, opset=13, batch=batch)):
        with pytest.raises(ModelFailed):
            outputs_of(
                model,
                lens=np.array([length]),
                h=np.ones((1, 2), np.float32),
                x=np.ones((1, 3, 2), np.float32),
            )


def test_what_lies_behind_the_length_is_not_looked_up() -> None:
    model = upgraded(LOOKUP, opset=9)
    ids = np.array([[1, 99, 99], [99, 99, 99], [0, 1, 2]])
    table = np.arange(6, dtype=np.float32).reshape(3, 2)
    feeds = {"lens": np.array([1, 0, 3]), "ids": ids, "table": table}
    got = outputs_of(model, **feeds)["z"]
    np.testing.assert_array_equal(got, outputs_of(as_model(LOOKUP), **feeds)["z"])


@pytest.mark.parametrize("opset", [9, 13])
@needs_onnxruntime
def test_a_row_of_length_0_runs_in_onnxruntime_where_nothing_is_carried(opset: int) -> None:
    model = upgraded(NO_STATE, opset=opset, batch="nest", robust=True)
    feeds = {"lens": np.array([2, 0]), "x": np.ones((2, 2, 2), np.float32)}
    executor = at_hand()
    got = executor.run(model, feeds).outputs["z"]
    np.testing.assert_array_equal(got, [[[-1, -1], [-1, -1]], [[0, 0], [0, 0]]])


def test_nothing_is_written_but_the_scan() -> None:
    """Batch and time are open, and the signature says that the inputs agree on the batch."""
    model = upgraded((FOLDER / "upgrade" / "sum.before.onnxtxt").read_text(), opset=13)
    assert [node.op_type for node in model.graph.node] == ["Scan"]


def test_few_nodes_read_the_lengths() -> None:
    model = passes.upgrade(FOLDER / "binary" / "gru.onnx", verify=False).model
    assert sum(1 for _ in walk_model(model)) <= 37


@needs_onnxruntime
def test_a_negative_zero_that_is_read_reaches_the_quotient() -> None:
    """Where of onnxruntime loses it, so it chooses the other way round."""
    path = FOLDER / "upgrade" / "divided_by_a_gathered_row.before.onnxtxt"
    model = upgraded(path.read_text(), opset=21)
    x = np.array([[[-0.0, 2]], [[1, -0.0]]], np.float32)
    feeds = {"lens": np.array([1, 1]), "h": np.ones((2, 2), np.float32), "x": x}
    executor = at_hand()
    got = executor.run(model, {**feeds, "i": np.zeros((2, 1), np.int64)}).outputs["y"]
    np.testing.assert_array_equal(got, [[-np.inf, 0.5], [1, -np.inf]])


@needs_onnxruntime
def test_no_time_steps_fail_in_onnxruntime_and_do_not_end_it() -> None:
    model = upgraded(RAGGED, opset=21)
    feeds = {"lens": np.zeros(2, np.int64), "h": np.ones((2, 2), np.float32)}
    with pytest.raises(ModelFailed):
        at_hand().run(model, {**feeds, "x": np.ones((2, 0, 2), np.float32)})


@pytest.mark.parametrize("batch", ["vectorize", "mask", "nest"])
@pytest.mark.parametrize("declared", ["N", "?"])
def test_sizes_that_are_not_said_to_agree_must_agree(batch: str, declared: str) -> None:
    text = f"""{HEAD} g (float[B,2] h, float[{declared},T,2] x) => (float[B,2] y) {{
        y = Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] e) => (float[2] o) {{
            o = Add(s, e) }}> ("", h, x) }}"""
    model = upgraded(text, opset=13, batch=batch)
    feeds = {"h": np.ones((1, 2), np.float32), "x": np.ones((3, 2, 2), np.float32)}
    for one in (as_model(text), model):
        with pytest.raises(ModelFailed):
            outputs_of(one, **feeds)


@pytest.mark.parametrize("sizes", [(0, 2), (2, 0), (0, 0)])
@pytest.mark.parametrize("batch", ["vectorize", "mask", "nest"])
@pytest.mark.parametrize("robust", [False, True])
def test_there_may_be_nothing_to_run(sizes: tuple[int, int], batch: str, robust: bool) -> None:
    model = upgraded(RAGGED, opset=13, batch=batch, robust=robust)
    feeds = {
        "lens": np.zeros(sizes[0], np.int64),
        "h": np.ones((sizes[0], 2), np.float32),
        "x": np.ones((*sizes, 2), np.float32),
    }
    expected = outputs_of(as_model(RAGGED), **feeds)
    answers = [outputs_of(model, **feeds)]
    if robust and OnnxRuntimeExecutor.available():
        executor = at_hand()
        answers.append(executor.run(model, feeds).outputs)
    for answer in answers:
        assert {name: value.size for name, value in answer.items()} == {
            name: value.size for name, value in expected.items()
        }
        np.testing.assert_array_equal(answer["y"], expected["y"])
        if sizes[0] or batch == "vectorize":  # a loop over no rows does not know their length
            assert answer["z"].shape == expected["z"].shape


@pytest.mark.parametrize("batch", ["auto", "vectorize", "mask", "nest"])
def test_one_scanned_input_alone(batch: str) -> None:
    """There is no other size that its batch and time could disagree with."""
    model = f"""{HEAD} g (float[B,T,2] x) => (float[B,T,2] z) {{
        z = Scan <num_scan_inputs = 1,
            body = b (float[2] e) => (float[2] o) {{ o = Neg(e) }}> ("", x) }}"""
    upgraded(model, opset=13, batch=batch)


@needs_onnxruntime
def test_doubles_that_were_floats_may_differ_by_what_floats_may() -> None:
    """onnxruntime cannot load the original (an output is omitted) and rounds Sigmoid otherwise."""
    model = f"""{HEAD} g (float[B,6] h, float[B,T,6] x) => (double[B,T,6] z) {{
        "", z = Scan <num_scan_inputs = 1,
            body = b (float[6] s, float[6] e) => (float[6] o, double[6] c) {{
                o = Identity(s)  r = Sigmoid(e)  c = Cast <to = 11> (r) }}> ("", h, x) }}"""
    assert_rewrite(model, opset=9)


def node_names(graph: GraphProto) -> list[list[str]]:
    """The names of the nodes of a graph, and of each graph in it."""
    inner = [one.g for node in graph.node for one in node.attribute if one.HasField("g")]
    own = [node.name for node in graph.node if node.name]
    return [own, *(names for one in inner for names in node_names(one))]


@pytest.mark.parametrize("batch", ["nest", "vectorize", "mask"])
@pytest.mark.parametrize("case", ["both branches of an If", "fixed lengths"])
def test_no_two_nodes_of_a_graph_share_a_name(batch: str, case: str) -> None:
    """onnxruntime loads no model in which they do."""
    models = {
        "both branches of an If": f"""{HEAD} g (float[B,2] h, float[B,T,2] x) => (float[B,2] y) {{
            y = Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] e) => (float[2] o) {{
                n = ReduceSum <keepdims = 0> (e)  c = Less(n, n)
                o = If (c) <then_branch = t () => (float[2] p) {{ [same] p = Add(s, e) }},
                    else_branch = f () => (float[2] q) {{ [same] q = Sub(s, e) }}> }}>
                ("", h, x) }}""",
        "fixed lengths": f"""{HEAD} g (float[2,4,2] x) => (float[2,4,2] z)
            <int64[2] lens = {{3, 1}}> {{
            [the_scan] z = Scan <num_scan_inputs = 1,
                body = b (float[2] e) => (float[2] o) {{ o = Neg(e) }}> (lens, x) }}""",
    }
    model = upgraded(models[case], opset=13, batch=batch)
    for names in node_names(model.graph):
        assert len(set(names)) == len(names)


class Unsteady(ReferenceExecutor):
    """Answers what it likes on special values: sums of extremes depend on their order, and in
    onnxruntime the order on where the terms lie in memory."""

    name = "onnxruntime"

    def run(self, model: Any, feeds: Any, **options: Any) -> Any:
        outcome = super().run(model, feeds, **options)
        if any(not np.all(np.isfinite(one)) for one in feeds.values()):
            version = model.opset_import[0].version
            outcome.outputs.update(
                {k: np.full_like(v, version) for k, v in outcome.outputs.items()}
            )
        return outcome


def test_a_second_executor_has_no_say_on_special_values_that_the_first_found_equal() -> None:
    from passes.verify.inputs.drawer import Hint
    from tests.verification import verify

    before = as_model(RAGGED)
    after = upgraded(RAGGED, opset=9)
    executors = [ReferenceExecutor(), Unsteady()]
    found = verify(before, after, executors=executors, hints={"lens": Hint(length_of="T")})
    assert found.verdict == "verified", found.reason


class TestVerificationStopsFaults:
    """Faults put into the rule on purpose: none of them may be called verified."""

    @staticmethod
    def upgrade(model: str, where: str, fault: Any, *, robust: bool = False) -> None:
        options = {"batch": "nest", "robust": robust}
        with patch(where, fault), pytest.raises(Mismatch):
            assert_rewrite(model, opset=9, options=options, executor="reference")

    def test_states_not_selected(self) -> None:
        def select(author: Author, condition: str, new: str, *others: Any) -> str:
            return new

        self.upgrade(RAGGED, "passes.writing.spelling.select", select, robust=True)

    def test_a_prefix_one_too_long(self) -> None:
        right = spelling.prefix

        def prefix(author: Author, value: str, length: str, elem_type: int) -> str:
            return right(author, value, author.op("Add", length, author.ints(1)), elem_type)

        self.upgrade(RAGGED, "passes.writing.spelling.prefix", prefix)

    def test_padding_that_is_not_zero(self) -> None:
        def zeros(author: Author, shape: str, elem_type: int) -> str:
            return spelling.filled(author, shape, elem_type, 1)

        self.upgrade(RAGGED, "passes.writing.spelling.zeros", zeros)

    def test_padding_of_minus_zero(self) -> None:
        def zeros(author: Author, shape: str, elem_type: int) -> str:
            value = numpy_helper.from_array(np.array([-0.0], np.float32), "value")
            return author.op("ConstantOfShape", shape, value=value)

        self.upgrade(RAGGED, "passes.writing.spelling.zeros", zeros)

    def test_every_row_on_the_inputs_of_the_first(self) -> None:
        def rows(author: Author, lengths: str, *_: str, **__: bool) -> str:
            everyone = spelling.arange(author, author.op("Shape", lengths))
            return author.op("Mul", everyone, author.ints(0))

        self.upgrade(RAGGED, f"{SCAN_8}.upgraded_scan.borrowed_rows", rows, robust=True)

    def test_a_row_of_length_0_on_its_own_padding(self) -> None:
        """The padding may hold an index that the original never looks up."""
        model = f"""{HEAD} g (int64[B] lens, float[B,2] h, int64[B,T] ids, float[3,2] table)
            => (float[B,2] y) {{ y = Scan <num_scan_inputs = 1,
                body = b (float[2] s, int64 i) => (float[2] o) {{
                    r = Gather(table, i)  o = Add(s, r) }}> (lens, h, ids) }}"""

        def rows(author: Author, lengths: str, *_: str, **__: bool) -> str:
            return spelling.arange(author, author.op("Shape", lengths))

        self.upgrade(model, f"{SCAN_8}.upgraded_scan.borrowed_rows", rows, robust=True)

    def test_a_negative_length_of_the_only_row(self) -> None:
        def in_range(author: Author, lengths: str, time: str) -> str:
            return author.op("Not", author.op("Greater", lengths, time))

        self.upgrade(RAGGED, "passes.writing.guards._in_range", in_range, robust=True)

    def test_scanned_inputs_of_different_times(self) -> None:
        model = f"""{HEAD} g (int64[B] lens, float[B,T,2] x, float[B,U,2] v)
            => (float[B,T,2] z) {{ z = Scan <num_scan_inputs = 2,
                body = b (float[2] e, float[2] f) => (float[2] o) {{ o = Add(e, f) }}>
                (lens, x, v) }}"""
        self.upgrade(model, f"{SCAN_8}.sequence_lens._agree", lambda *_: [])
