"""Verification: what each executor has a say on, and what is noted."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto
from verified_models import (
    REFERENCE,
    Pretend,
    before_and_after,
    beside_another,
    check,
    model,
    raising,
    refusing_after,
)

from passes.testing import assert_rewrite
from passes.verify.executor import (
    CRASHED,
    CannotRun,
    Feeds,
    InputsRefused,
    ModelFailed,
    Outcome,
    TookTooLong,
)
from passes.verify.reference import ReferenceExecutor
from tests.onnxruntime_at_hand import at_hand
from tests.verification import Verification, verify
from tests.written import changed


class TestSemantics:
    """What a failure on either side means, shown with executors that do as they are told."""

    def test_a_rewritten_model_that_fails_is_a_mismatch(self) -> None:
        def answer(side: str, feeds: Feeds) -> Any:
            return feeds["x"] if side == "before" else raising(ModelFailed("no"))

        found = verify(*before_and_after(), executors=[Pretend(answer)])
        where = "reference executor, exact values"
        assert found.reason == f"the rewritten model fails: no ({where})"

    def test_a_rewritten_model_that_answers_where_the_original_fails_is_right(self) -> None:
        def answer(side: str, feeds: Feeds) -> Any:
            fails = side == "before" and np.asarray(feeds["x"]).size > 6
            return raising(ModelFailed("too many")) if fails else feeds["x"]

        found = verify(*before_and_after(), executors=[Pretend(answer)])
        assert found.verdict == "verified"
        said = "reference: the rewritten model answers where the original fails"
        assert any(note.startswith(said) and "too many" in note for note in found.notes)

    def test_but_not_where_a_scan_refuses_its_inputs(self) -> None:
        """ONNX has no assert: rewrites write guards for lengths that do not fit."""

        def answer(side: str, feeds: Feeds) -> Any:
            fails = side == "before" and np.asarray(feeds["x"]).size > 6
            return raising(InputsRefused("lengths differ")) if fails else feeds["x"]

        found = verify(*before_and_after(), executors=[Pretend(answer)])
        assert found.verdict == "mismatch"
        assert "it answers where the original fails: lengths differ" in found.reason

    def test_a_rewritten_model_that_alone_ever_answers_is_a_mismatch(self) -> None:
        def answer(side: str, feeds: Feeds) -> Any:
            return feeds["x"] if side == "after" else raising(ModelFailed("no"))

        found = verify(*before_and_after(), executors=[Pretend(answer)])
        assert found.verdict == "mismatch"
        assert "it answers where the original fails: no" in found.reason

    def test_in_another_executor_it_is_not_compared(self) -> None:
        def answer(side: str, feeds: Feeds) -> Any:
            return feeds["x"] if side == "after" else raising(ModelFailed("no"))

        found = verify(*before_and_after(), executors=[Pretend(answer, "other")])
        assert (found.verdict, found.reason) == ("not-compared", "other: the original: no")

    def test_what_another_executor_answers_where_the_original_fails_does_not_count(self) -> None:
        """onnxruntime leaves out a dead node of the original that fails."""

        def other(side: str, feeds: Feeds) -> Any:
            return feeds["x"] if side == "before" else raising(ModelFailed("no"))

        fails = Pretend(lambda side, feeds: raising(ModelFailed("both")))
        found = verify(*before_and_after(), executors=[fails, Pretend(other, "other")])
        assert found.verdict == "not-compared"
        assert any("other answers where the original fails" in note for note in found.notes)

    @pytest.mark.parametrize("error", [ModelFailed("refused"), CannotRun("no kernel")])
    def test_what_another_executor_refuses_is_compared_with_the_reference(
        self, error: Exception
    ) -> None:
        def answer(side: str, feeds: Feeds) -> Any:
            return feeds["x"] if side == "after" else raising(error)

        executors = [Pretend(lambda side, feeds: feeds["x"]), Pretend(answer, "other")]
        found = verify(*before_and_after(), executors=executors)
        assert found.verdict == "verified"
        assert found.tallies["other"]["crossed"] > 10
        assert found.tallies["other"]["compared"] == 0

    def test_a_number_there_for_what_is_nan_before_and_after_proves_nothing(self) -> None:
        """onnxruntime's LSTM takes NaN for a number; which it answers, the original might show."""

        def nan(side: str, feeds: Feeds) -> Any:
            x = np.asarray(feeds["x"])
            return np.where(np.arange(x.size) == 0, np.float32(np.nan), x)

        def answer(side: str, feeds: Feeds) -> Any:
            return feeds["x"] if side == "after" else raising(CannotRun("no kernel"))

        found = verify(*before_and_after(), executors=[Pretend(nan), Pretend(answer, "other")])
        assert found.verdict == "verified"
        assert found.tallies["other"]["crossed"] > 10
        assert any("other makes numbers of NaN" in note for note in found.notes)

    def test_but_a_number_for_nan_in_the_reference_is_a_mismatch(self) -> None:
        def lost(side: str, feeds: Feeds) -> Any:
            x = np.asarray(feeds["x"])
            first = np.nan if side == "before" else 0.0
            return np.where(np.arange(x.size) == 0, np.float32(first), x)

        def answer(side: str, feeds: Feeds) -> Any:
            return feeds["x"] if side == "after" else raising(CannotRun("no kernel"))

        found = verify(*before_and_after(), executors=[Pretend(lost), Pretend(answer, "other")])
        assert found.verdict == "mismatch"

    def test_and_a_wrong_answer_there_is_a_mismatch(self) -> None:
        def answer(side: str, feeds: Feeds) -> Any:
            return np.asarray(feeds["x"]) + 1 if side == "after" else raising(ModelFailed("no"))

        executors = [Pretend(lambda side, feeds: feeds["x"]), Pretend(answer, "other")]
        found = verify(*before_and_after(), executors=executors)
        assert found.verdict == "mismatch"
        assert "before in the reference executor and" in found.reason

    @pytest.mark.parametrize(("wrong", "verdict"), [("y", "verified"), ("z", "mismatch")])
    def test_a_disagreement_excuses_the_outputs_that_it_is_about(
        self, wrong: str, verdict: str
    ) -> None:
        """Another executor is wrong on one output of the original; of large inputs it runs the
        rewritten model alone, and differs in y."""
        one, other = (model("(float[N] x) => (float[N] y, float[N] z) {y = Neg(x) z = Neg(x)}")
                      for _ in range(2))  # fmt: skip
        other.doc_string = "after"

        class Other(Pretend):
            def run(self, model: Any, feeds: Feeds, **_: Any) -> Outcome:
                x = np.asarray(feeds["x"])
                right = {"y": x, "z": x}
                if x.size <= 4:
                    return Outcome({**right, wrong: x + 1})
                if not model.doc_string:
                    raise ModelFailed("too large")
                return Outcome({**right, "y": x + 1})

        class Right(Pretend):
            def run(self, model: Any, feeds: Feeds, **_: Any) -> Outcome:
                x = np.asarray(feeds["x"])
                return Outcome({"y": x, "z": x})

        sides = [Right(lambda *_: 0), Other(lambda *_: 0, "other")]
        found = verify(one, other, executors=sides)
        assert found.verdict == verdict
        if verdict == "verified":
            assert any("as the original does there (exact values)" in note for note in found.notes)

    def test_strings_that_an_executor_loses_on_the_original_are_its_own_fault(self) -> None:
        def answer(side: str, feeds: Feeds) -> Any:
            lost = "" if side == "before" else "?"
            return np.array(["a", lost], object)

        right = Pretend(lambda side, feeds: np.array(["a", "b"], object))
        found = verify(*before_and_after(), executors=[right, Pretend(answer, "other")])
        assert found.verdict == "verified"
        assert any("other is wrong on the original, after, too" in note for note in found.notes)

    def test_a_failure_on_both_models_is_not_that_of_the_rewritten_one(self) -> None:
        found = beside_another(lambda side, feeds: raising(ModelFailed("no")))
        assert found.verdict == "verified"
        assert any(note.startswith("other fails on both models") for note in found.notes)

    @pytest.mark.parametrize(
        "why", ["Failed to allocate memory for 8 bytes", "std::bad_alloc", f"{CRASHED} (SIGKILL)"]
    )
    def test_a_rewritten_model_that_takes_too_much_is_a_mismatch(self, why: str) -> None:
        assert beside_another(refusing_after(why)).verdict == "mismatch"

    def test_a_kernel_of_an_old_operator_may_not_be_missing(self) -> None:
        before, after = before_and_after()
        after.opset_import[0].version += 1
        same = Pretend(lambda side, feeds: feeds["x"])
        for version, verdict in ((16, "mismatch"), (24, "verified")):
            why = f"cannot load: NOT_IMPLEMENTED: no implementation for Where({version}) node"
            found = verify(before, after, executors=[same, Pretend(refusing_after(why), "other")])
            assert found.verdict == verdict

    def test_executors_that_disagree_on_the_original_are_noted(self) -> None:
        executors = [
            Pretend(lambda side, feeds: feeds["x"]),
            Pretend(lambda side, feeds: np.asarray(feeds["x"]) + 1, "other"),
        ]
        found = verify(*before_and_after(), executors=executors)
        assert found.verdict == "verified"
        assert any("other and the reference executor disagree" in note for note in found.notes)

    def test_an_original_that_disagrees_with_itself_is_not_compared(self) -> None:
        rng = np.random.default_rng(0)

        def answer(side: str, feeds: Feeds) -> Any:
            return rng.random(3)

        found = verify(*before_and_after(), executors=[Pretend(answer)])
        assert found.verdict == "not-compared"
        assert "different answers on the same inputs" in found.reason

    def test_an_executor_that_only_rounds_differently_is_noted(self) -> None:
        def answer(side: str, feeds: Feeds) -> Any:
            shift = np.float32(1e-7) if side == "after" else np.float32(0)
            return np.asarray(feeds["x"]) + shift

        found = beside_another(answer)
        assert found.verdict == "verified"
        assert found.notes[0].startswith("other rounds differently before and after (")
        assert 0 < found.errors.absolute < 1e-6
        assert verify(*before_and_after(), executors=[Pretend(answer)]).verdict == "mismatch"

    def test_a_rewritten_model_of_a_newer_opset_that_another_executor_lacks_is_noted(self) -> None:
        before, after = before_and_after()
        after.opset_import[0].version += 1
        other = Pretend(refusing_after("cannot load: NOT_IMPLEMENTED"), "other")
        same = Pretend(lambda side, feeds: feeds["x"])
        found = verify(before, after, executors=[same, other])
        assert found.verdict == "verified"
        assert found.notes[0].startswith("other runs the original alone (")

    def test_a_kernel_that_only_the_rewritten_model_needs_is_a_mismatch(self) -> None:
        found = beside_another(refusing_after("cannot load: NOT_IMPLEMENTED"))
        assert found.verdict == "mismatch"
        assert "does not load there: NOT_IMPLEMENTED" in found.reason

    def test_a_rewritten_model_that_another_executor_finds_invalid_is_a_mismatch(self) -> None:
        found = beside_another(refusing_after("cannot load: two nodes"))
        assert found.verdict == "mismatch"
        assert "does not load there: two nodes" in found.reason

    def test_a_rewritten_model_that_always_ends_another_executor_is_a_mismatch(self) -> None:
        found = beside_another(refusing_after(f"{CRASHED} (SIGABRT)"))
        assert found.verdict == "mismatch"
        assert "the rewritten model ends it, the original runs" in found.reason

    def test_one_that_ends_it_on_some_inputs_is_a_mismatch_too(self) -> None:
        def answer(side: str, feeds: Feeds) -> Any:
            if side == "before" or len(np.asarray(feeds["x"])):
                return feeds["x"]
            raise CannotRun(f"{CRASHED} (SIGSEGV)")

        found = beside_another(answer)
        assert found.verdict == "mismatch"
        assert "the rewritten model ends it, the original runs" in found.reason

    def test_what_cannot_run_is_not_compared_and_soon_left_alone(self) -> None:
        executor = Pretend(lambda side, feeds: raising(CannotRun("no kernel for Foo")))
        found = verify(*before_and_after(), executors=[executor])
        assert found.verdict == "not-compared"
        assert found.reason == "reference: the original: no kernel for Foo"
        assert executor.runs == ["before"] * 3

    def test_empty_outputs_prove_nothing(self) -> None:
        found = verify(*before_and_after(), executors=[Pretend(lambda side, feeds: np.zeros(0))])
        assert (found.verdict, found.reason) == ("not-compared", "every compared output was empty")

    def test_outputs_that_are_always_empty_are_compared_as_such(self) -> None:
        text = (
            "(float[N] x) => (float[0] y) { e = Constant<value_ints = [0]>() y = Slice(x, e, e) }"
        )
        found = check(text, text)
        assert found.verdict == "verified"
        assert found.reason.startswith("its outputs are always empty")
        wrong = changed(
            text, {"y = Slice(x, e, e)": "z = Slice(x, e, e) y = Concat<axis = 0>(z, x)"}
        )
        assert check(text, wrong).verdict == "mismatch"

    @pytest.mark.parametrize(
        ("opset", "node", "signature"),
        [(11, "Squeeze <axes: ints = []> (x)", ""), (21, "Squeeze (x, axes)", ", int64[0] axes")],
    )
    def test_on_a_squeeze_of_no_axes_the_reference_executor_makes_no_claim(
        self, opset: int, node: str, signature: str
    ) -> None:
        """onnxruntime drops all axes of length 1, where the document drops none."""
        text = f"(float[1,N] x{signature}) => (float y) {{ z = {node} y = ReduceSum(z) }}"
        one = model(text, opset=opset)
        alone = verify(one, one, executors=[REFERENCE])
        assert alone.verdict == "not-compared"
        ort = at_hand()
        found = verify(one, one, executors=[REFERENCE, ort])
        assert found.verdict == "verified"
        assert found.tallies["reference"]["compared"] < found.tallies["onnxruntime"]["compared"]
        (note,) = found.notes
        assert "the reference executor did not compare these inputs" in note
        assert "runtimes differ in what an empty list of axes means" in note

    def test_without_executors_nothing_is_compared(self) -> None:
        assert verify(*before_and_after(), executors=[]).verdict == "not-compared"


class TestCrashes:
    """Each costs a new process, so a side that crashes is not run on inputs alike for ever."""

    @staticmethod
    def verified(*sides: str) -> tuple[Verification, Counter[str]]:
        """The verdict beside one that crashes where x has elements, and how often, by side."""
        crashes: Counter[str] = Counter()

        def answer(side: str, feeds: Feeds) -> Any:
            if side in sides and np.asarray(feeds["x"]).size:
                crashes[side] += 1
                raise CannotRun(f"{CRASHED} (SIGFPE)")
            return feeds["x"]

        return beside_another(answer), crashes

    def test_a_few_are_enough_and_other_inputs_still_run(self) -> None:
        found, crashes = self.verified("before")
        assert found.verdict == "verified"
        assert crashes == {"before": 3}
        assert found.tallies["other"]["compared"] == 3  # without elements
        assert found.tallies["other"]["crossed"] == found.tallies["reference"]["compared"] - 3
        (note,) = found.notes
        assert note.startswith("other is not run on inputs like those that crash the original (")

    def test_where_both_sides_crash_both_are_spared(self) -> None:
        found, crashes = self.verified("before", "after")
        assert found.verdict == "verified"
        assert crashes == {"before": 3, "after": 3}

    def test_the_rewritten_model_is_not_spared_where_it_crashes_alone(self) -> None:
        """On empty inputs it crashes with the original, and on all others without it."""

        def answer(side: str, feeds: Feeds) -> Any:
            if side == "after" or not np.asarray(feeds["x"]).size:
                raise CannotRun(f"{CRASHED} (SIGFPE)")
            return feeds["x"]

        found = beside_another(answer)
        assert found.verdict == "mismatch"
        assert "the rewritten model ends it, the original runs" in found.reason

    def test_nor_where_it_crashed_when_the_original_failed(self) -> None:
        runs: Counter[str] = Counter()

        def answer(side: str, feeds: Feeds) -> Any:
            runs[side] += 1
            if runs["before"] > 4:
                return feeds["x"]
            raise ModelFailed("no") if side == "before" else CannotRun(f"{CRASHED} (SIGFPE)")

        found = beside_another(answer)
        assert found.verdict == "verified", found.reason
        assert runs["after"] > 4, "where the original runs, it runs, too"


class TestWhoseFault:
    """What onnxruntime alone is wrong about is no fault of a rewrite, whoever else is asked."""

    SUM = Path(__file__).parents[2] / "golden_models/upgrade/sum.before.onnxtxt"

    @staticmethod
    def scan(outputs: str, nodes: str) -> ModelProto:
        return model(
            "(float[T,3] x, float[3] s, float[3] w) => (float[3] f, float[T,3] z) {"
            "f, z = Scan <num_scan_inputs = 1, body = step (float[3] h, float[3] v) => "
            f"(float[3] {outputs}) {{ n = Neg(w) m = Mul(v, n) g = Add(h, m) {nodes} }}> (s, x) }}"
        )

    @pytest.mark.parametrize("executor", ["both", "onnxruntime"])
    def test_a_scan_8_over_no_time_whose_state_it_does_not_write(self, executor: str) -> None:
        for robust, said in (
            (False, "onnxruntime fails on a Scan over nothing"),
            (True, "onnxruntime is wrong on the original, right after"),
        ):
            options = {"robust": robust}
            result = assert_rewrite(onnx.load(self.SUM), executor=executor, options=options)
            assert result.report.checked is not None
            assert any(said in note for note in result.report.checked.notes)

    @pytest.mark.parametrize("outputs", ["g, float[3] h", "g, float[3] v", "g, float[3] g"])
    @pytest.mark.parametrize("executor", ["both", "onnxruntime"])
    def test_outputs_of_bodies_that_it_leaves_uninitialised(
        self, outputs: str, executor: str
    ) -> None:
        result = assert_rewrite(self.scan(outputs, ""), pipeline="hoist", executor=executor)
        assert "hoist-invariants" in {record.rule for record in result.report.records}
        assert result.report.checked is not None
        assert result.report.checked.compared["onnxruntime"] > 10
        assert any("uninitialised" in note for note in result.report.checked.notes)

    @pytest.mark.parametrize("executors", [1, 2])
    def test_that_only_the_rewritten_model_has_is_a_mismatch(self, executors: int) -> None:
        ort = at_hand()
        found = verify(
            self.scan("g, float[3] i", "i = Identity(h)"),
            self.scan("g, float[3] h", ""),
            executors=[REFERENCE, ort][-executors:],
        )
        assert found.verdict == "mismatch"
        assert "(onnxruntime, " in found.reason

    @pytest.mark.parametrize(
        ("right", "number", "verdict"),
        [
            (np.nan, 1, "verified"),  # where the reference executor has a NaN, too
            (2.0, 1, "mismatch"),
            (np.nan, 2, "mismatch"),  # another element differs as well
        ],
    )
    def test_a_nan_that_it_takes_for_a_number_on_one_side(
        self, right: float, number: float, verdict: str
    ) -> None:
        """As onnxruntime's LSTM and GRU do."""

        def answer(side: str, feeds: Feeds) -> Any:
            return np.array([0.0, number, 1.0] if side == "after" else [np.nan, 1.0, 1.0])

        reference = Pretend(lambda side, feeds: np.array([right, 1.0, 1.0]))
        found = verify(*before_and_after(), executors=[reference, Pretend(answer, "other")])
        assert found.verdict == verdict
        if verdict == "verified":
            assert any(note.startswith("other makes numbers of NaN") for note in found.notes)

    def test_sizes_that_a_body_rules_out_count_where_it_runs(self) -> None:
        """An exporter may declare a body wrongly."""
        before = model("""(float[N] s, int64 n) => (float[M] h) {
          h = Loop (n, "", s) <body = b (int64 i, bool go, float[3] a) => (bool on, float[3] b) {
            on = Identity (go) b = Neg (a) }> }""")
        of_three = model("""(float[N] s, int64 n) => (float[M] h) <int64[1] three = {3}> {
          r = Reshape(s, three)
          h = Loop (n, "", r) <body = b (int64 i, bool go, float[3] a) => (bool on, float[3] b) {
            on = Identity (go) b = Neg (a) }> }""")
        assert verify(before, of_three, executors=[REFERENCE]).verdict == "mismatch"

    def test_a_cell_that_reads_what_ordinary_numbers_make_a_nan(self) -> None:
        model = onnx.load(self.SUM.parents[1] / "recognize-cell/gru.before.onnxtxt")
        (x,) = (value for value in model.graph.input if value.name == "x")
        x.name = "p"
        model.graph.input.add(name="q", type=x.type)
        model.graph.node.insert(0, onnx.helper.make_node("Div", ["p", "q"], ["x"]))
        result = assert_rewrite(model, pipeline="recognize-cell")
        assert "GRU" in str(result.model)

    def test_time_that_runs_out_meanwhile_leaves_a_mismatch(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def late(*arguments: Any, **options: Any) -> Any:
            raise CannotRun("took longer than 0 s")

        def answer(side: str, feeds: Feeds) -> Any:
            return np.asarray(feeds["x"]) + float(side == "after")

        monkeypatch.setattr(ReferenceExecutor, "run", late)
        found = verify(*before_and_after(), executors=[Pretend(answer, "other")])
        assert found.verdict == "mismatch"


def test_runs_that_do_not_end_take_little_time_once_others_ended() -> None:
    limits: list[float] = []

    class Slow(Pretend):
        def run(self, model: ModelProto, feeds: Feeds, **how: Any) -> Outcome:
            limits.append(how["timeout"])
            if len(limits) > 2:
                raise TookTooLong("on and on")
            return super().run(model, feeds, **how)

    found = verify(*before_and_after(), executors=[Slow(lambda side, feeds: feeds["x"])])
    assert found.verdict == "verified"
    assert limits == [10.0, 10.0, 4.0, 1.0, 1.0]


def test_an_answer_is_no_claim_where_the_reference_executor_fails_on_undeclared_sizes() -> None:
    """onnxruntime concatenates what is empty with anything, and answers uninitialised memory."""
    pair = (
        model("""(float[W] s0, float[4] v) => (float[4] y) <int64 once = {1}> {
            y = Loop <body = step (int64 i, bool go, float[4] s) => (bool on, float[4] t) {
                on = Identity (go) t = Identity (v) }> (once, "", s0) }"""),
        model("""(float[W] s0, float[4] v) => (float[4] y) <int64[1] first = {0}, int64 new = {1}> {
            a = Unsqueeze (s0, first)
            b = Unsqueeze (v, first)
            both = Concat <axis = 0> (a, b)
            y = Gather (both, new) }"""),
    )
    pair[0].doc_string, pair[1].doc_string = "before", "after"

    def answer(side: str, feeds: Feeds) -> Any:
        differs = side == "after" and np.shape(feeds["s0"]) != (4,)
        return np.asarray(feeds["v"]) + float(differs)

    found = verify(*pair, executors=[REFERENCE, Pretend(answer, "other")])
    assert found.verdict == "not-compared"
    sentence = "other differs where a loop's body returns other sizes than it declares"
    assert any(note.startswith(sentence) for note in found.notes)


def test_it_is_one_where_the_reference_executor_could_not_run_the_rewritten_model() -> None:
    """On undeclared sizes, too: only its word that the rewritten model fails excuses another."""

    class Unable(ReferenceExecutor):
        def run(self, model: ModelProto, feeds: Feeds, **how: Any) -> Outcome:
            if model.doc_string == "after":
                raise CannotRun("no kernel")
            return super().run(model, feeds, **how)

    text = """(float[W] s0, float[4] v) => (float[4] y) <int64 once = {1}> {
        y = Loop <body = step (int64 i, bool go, float[4] s) => (bool on, float[4] t) {
            on = Identity (go) t = Identity (v) }> (once, "", s0) }"""
    pair = model(text), model(text)
    pair[0].doc_string, pair[1].doc_string = "before", "after"

    def answer(side: str, feeds: Feeds) -> Any:
        return np.asarray(feeds["v"]) + float(side == "after")

    assert verify(*pair, executors=[Unable(), Pretend(answer, "other")]).verdict == "mismatch"
