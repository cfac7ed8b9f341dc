"""Many models: rows, the cache, limits, an interrupted batch, and what is in each other's way."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import pytest

from passes.builds.batch import Batch, local
from passes.builds.cache import BadCache, Cache
from passes.builds.pool import Ended, Limits
from passes.builds.sources import SameOutput
from passes.builds.worker import Work
from passes.commands.pipeline import Pipeline
from passes.commands.places import InTheWay
from passes.commands.task import Task
from passes.errors import FAILED, MISMATCH, NOT_PRODUCED, CannotWrite, End
from passes.reports.summary import Row, Summary
from passes.testing import as_model
from tests.written import changed

NEGATED = """
    <ir_version: 10, opset_import: ["" : 21]>
    g (float[2] x, bool c) => (float[2] y) {
      k = Constant <value_int = 1> ()
      y = Loop (k, c, x) <body = b (int64 i, bool p, float[2] s) => (bool q, float[2] t) {
        q = Identity (p)
        unused = Exp (s)
        t = Neg (s)
      }>
    }
"""
NOTHING = """
    <ir_version: 10, opset_import: ["" : 21]>
    g (float[2] x) => (float[2] y) { y = Neg (x) }
"""
SIMPLIFY = Pipeline([("simplify", {"executor": "reference"})])


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    onnx.save(as_model(NEGATED), "loop.onnx")
    onnx.save(as_model(NOTHING), "plain.onnx")
    Path("bad.onnx").write_bytes(b"no model")
    return tmp_path


def here(works: Iterable[Work]) -> Iterator[tuple[Work, Row | Ended]]:
    """An engine without processes."""
    for work in works:
        yield work, work.done()


def refuses(works: Iterable[Work]) -> Iterator[tuple[Work, Row | Ended]]:
    """An engine for batches that have nothing to do."""
    raise AssertionError([work.task.model for work in works])


def tasks(*models: str, **changes: Any) -> list[tuple[Task, Limits]]:
    found = [Task(model, SIMPLIFY, f"out/{model}", force=True) for model in models]
    return [(replace(task, **changes), Limits()) for task in found]


def rows(path: str = "results.jsonl") -> list[dict[str, object]]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def test_a_row_for_each_model() -> None:
    told: list[tuple[str, int, int]] = []
    batch = Batch(tasks("loop.onnx", "plain.onnx", "bad.onnx"), here, None, Path("results.jsonl"))
    summary = batch.run(lambda row, number, total: told.append((row.model, number, total)))
    assert told == [("loop.onnx", 1, 3), ("plain.onnx", 2, 3), ("bad.onnx", 3, 3)]
    assert dict(summary.ends) == {End.WRITTEN: 1, End.UNCHANGED: 1, End.INVALID: 1}
    assert summary.exit_code == FAILED
    written, unchanged, invalid = rows()
    assert (written["end"], written["output"]) == ("written", "out/loop.onnx")
    assert (unchanged["end"], unchanged["output"]) == ("unchanged", "out/plain.onnx")
    assert Path("out/plain.onnx").read_bytes() == Path("plain.onnx").read_bytes()
    assert str(invalid["error"]).startswith("bad.onnx: is no ONNX model")
    report = written["report"]
    assert isinstance(report, dict)
    assert report["commands"][0]["command"] == "simplify"
    assert report["input"][0]["bytes"] == Path("loop.onnx").stat().st_size


def test_processes_do_the_same(folder: Path) -> None:
    every = tasks("loop.onnx", "plain.onnx", "bad.onnx")
    with_processes = Batch(every, local(2), None, Path("a.jsonl")).run()
    by_processes = Path("out/loop.onnx").read_bytes()
    alone = Batch(every, here, None, Path("b.jsonl")).run()
    assert Path("out/loop.onnx").read_bytes() == by_processes
    assert with_processes.ends == alone.ends
    ends = [
        sorted((row["model"], row["end"], row["error"]) for row in rows(f"{n}.jsonl")) for n in "ab"
    ]
    assert ends[0] == ends[1]


class TestTheCache:
    def test_a_second_run_has_nothing_to_do(self, folder: Path) -> None:
        every = tasks("loop.onnx", "plain.onnx")
        first = Batch(every, here, folder / "cache").run()
        second = Batch(every, refuses, folder / "cache", Path("results.jsonl")).run()
        assert (first.cached, second.cached) == (0, 2)
        assert first.ends == second.ends
        assert all(row["cached"] for row in rows())

    def test_an_outcome_that_is_gone_or_changed_is_written_anew(self, folder: Path) -> None:
        every = tasks("loop.onnx")
        Batch(every, here, folder / "cache").run()
        outcome = Path("out/loop.onnx").read_bytes()
        for spoil in (Path.unlink, lambda path: path.write_bytes(b"spoilt")):
            spoil(Path("out/loop.onnx"))
            assert Batch(every, refuses, folder / "cache").run().cached == 1
            assert Path("out/loop.onnx").read_bytes() == outcome

    @pytest.mark.parametrize(
        "change",
        [
            {"pipeline": Pipeline([("simplify", {"executor": "reference", "seed": 1})])},
            {"pipeline": replace(SIMPLIFY, dims={"T": 1}, lenient=True)},
            {"strict": True},
            {"output": "out/loop.onnxtxt"},
        ],
    )
    def test_another_task_is_done(self, folder: Path, change: dict[str, object]) -> None:
        Batch(tasks("loop.onnx"), here, folder / "cache").run()
        assert Batch(tasks("loop.onnx", **change), here, folder / "cache").run().cached == 0

    def test_a_changed_profile_is_another_task(self, folder: Path) -> None:
        def cached(*refused: str) -> int:
            facts = f'name = "npu"\nsummary = "Some NPU"\nrefused = {[*refused]}\n'
            Path("npu.toml").write_text(facts)
            strict = Pipeline([("optimize", {"target": "npu.toml", "executor": "reference"})])
            every = tasks("loop.onnx", pipeline=strict, strict=True)
            return Batch(every, here, folder / "cache").run().cached

        assert [cached("Neg"), cached("Neg"), cached("Exp")] == [0, 1, 0]

    def test_a_changed_model_is_done(self, folder: Path) -> None:
        Batch(tasks("loop.onnx", "plain.onnx"), here, folder / "cache").run()
        onnx.save(as_model(changed(NEGATED, {"Neg (s)": "Abs (s)"})), "loop.onnx")
        summary = Batch(tasks("loop.onnx", "plain.onnx"), here, folder / "cache").run()
        assert (summary.total, summary.cached) == (2, 1)

    def test_changed_weights_in_another_file_are_a_change(self, folder: Path) -> None:
        model = as_model("""
            <ir_version: 10, opset_import: ["" : 21]>
            g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Mul (x, w) }
        """)
        (weight,) = model.graph.initializer
        weight.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(weight), "w"))
        onnx.external_data_helper.set_external_data(weight, "w.bin")
        onnx.save(model, "heavy.onnx")
        every = tasks("heavy.onnx")
        Batch(every, here, folder / "cache").run()
        assert Batch(every, refuses, folder / "cache").run().cached == 1
        Path("w.bin").write_bytes(bytes(8))
        assert Batch(every, here, folder / "cache").run().cached == 0

    @pytest.mark.parametrize("kind", ["json", "model"])
    def test_a_damaged_entry_is_a_miss_with_a_remark(self, folder: Path, kind: str) -> None:
        every = tasks("loop.onnx")
        Batch(every, here, folder / "cache").run()
        Path("out/loop.onnx").unlink()
        (entry,) = (folder / "cache").glob(f"*.{kind}")
        entry.write_bytes(b"{")
        remarks: list[str] = []
        summary = Batch(every, here, folder / "cache").run(
            lambda row, number, total: remarks.extend(row.remarks)
        )
        assert (summary.cached, dict(summary.ends)) == (0, {End.WRITTEN: 1})
        assert "this entry of the cache is damaged, and is not used" in remarks[0]
        assert Batch(every, refuses, folder / "cache").run().cached == 1

    def test_what_depends_on_the_machine_is_not_stored(self, folder: Path) -> None:
        def ended(works: Iterable[Work]) -> Iterator[tuple[Work, Row | Ended]]:
            for work in works:
                yield work, Ended(End.TIME, "was ended after 1 seconds", 1.0)

        summary = Batch(tasks("loop.onnx"), ended, folder / "cache").run()
        assert (dict(summary.ends), summary.exit_code) == ({End.TIME: 1}, FAILED)
        assert Batch(tasks("loop.onnx"), here, folder / "cache").run().cached == 0

    def test_a_folder_that_cannot_be_made(self, folder: Path) -> None:
        Path("file").touch()
        with pytest.raises(BadCache, match="file/cache: the cache cannot be written"):
            Batch(tasks("loop.onnx"), here, Path("file/cache")).run()

    def test_a_full_disk_stores_nothing_and_fails_nothing(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        Cache(folder / "cache").prepare()
        monkeypatch.setattr(Cache, "_write", full)
        assert Batch(tasks("loop.onnx"), here, folder / "cache").run().exit_code == 0
        assert not list((folder / "cache").iterdir())


def test_an_interrupted_batch_goes_on_where_it_was(folder: Path) -> None:
    def interrupted(works: Iterable[Work]) -> Iterator[tuple[Work, Row | Ended]]:
        for number, work in enumerate(works):
            if number == 1:
                raise KeyboardInterrupt
            yield work, work.done()

    every = tasks("loop.onnx", "plain.onnx")
    with pytest.raises(KeyboardInterrupt):
        Batch(every, interrupted, folder / "cache", Path("results.jsonl")).run()
    assert [row["model"] for row in rows()] == ["loop.onnx"]
    summary = Batch(every, here, folder / "cache", Path("results.jsonl")).run()
    assert (summary.total, summary.cached) == (2, 1)
    assert [row["model"] for row in rows()] == ["loop.onnx", "plain.onnx"]


@pytest.mark.parametrize(
    ("every", "results", "kind", "sentence"),
    [
        (
            [("loop.onnx", "o.onnx"), ("plain.onnx", "./o.onnx")],
            None,
            SameOutput,
            "loop.onnx and plain.onnx would both be written to ./o.onnx",
        ),
        (
            [("loop.onnx", "plain.onnx"), ("plain.onnx", "o.onnx")],
            None,
            InTheWay,
            "plain.onnx: the outcome of loop.onnx would be written over a model",
        ),
        (
            [("loop.onnx", "o.onnx")],
            "loop.onnx",
            InTheWay,
            "loop.onnx: is a model or an outcome, not a place for results",
        ),
        (
            [("loop.onnx", "plain.onnx/o.onnx")],
            None,
            CannotWrite,
            "plain.onnx: the folder cannot be made (File exists)",
        ),
        ([("loop.onnx", "o.onnx")], "out", CannotWrite, "out: cannot be written (Is a directory)"),
    ],
)
def test_what_is_in_the_way_is_found_before_any_work(
    every: Sequence[tuple[str, str]], results: str | None, kind: type[Exception], sentence: str
) -> None:
    os.mkdir("out")
    given = [(Task(model, SIMPLIFY, output), Limits()) for model, output in every]
    with pytest.raises(kind, match=f"^{re.escape(sentence)}$"):
        Batch(given, refuses, None, None if results is None else Path(results)).run()


def test_results_that_can_no_longer_be_written() -> None:
    with pytest.raises(CannotWrite, match=r"/dev/full: cannot be written \(No space left"):
        Batch(tasks("loop.onnx"), here, None, Path("/dev/full")).run()


class TestTheSummary:
    def of(self, *found: tuple[End, int]) -> Summary:
        summary = Summary()
        for number, (end, code) in enumerate(found):
            error = f"{number}.onnx: 100%\nwrong" if code else ""
            summary.add(Row(f"{number}.onnx", "", end, code, error, {"carries": 2}))
        return summary

    def test_the_exit_code_is_that_of_the_worst(self) -> None:
        refused, broken = (End.REFUSED, NOT_PRODUCED), (End.INVALID, FAILED)
        assert self.of((End.WRITTEN, 0)).exit_code == 0
        assert self.of((End.WRITTEN, 0), refused).exit_code == NOT_PRODUCED
        assert self.of(broken, refused).exit_code == FAILED
        assert self.of(broken, (End.MISMATCH, MISMATCH), refused).exit_code == MISMATCH
        allowed = Summary([End.MISMATCH])
        allowed.add(Row("m.onnx", "", End.REFUSED, NOT_PRODUCED))
        assert allowed.exit_code == 0

    def test_text_and_markdown(self) -> None:
        summary = self.of((End.WRITTEN, 0), (End.REFUSED, NOT_PRODUCED))
        assert summary.to_text() == (
            "2 models, 0.0 s of work\n  written       1\n  refused       1\n"
            "refusals:\n  carries       4"
        )
        markdown = summary.to_markdown()
        assert "| refused | 1 |" in markdown
        assert "| 1.onnx | refused | 1.onnx: 100%<br>wrong |" in markdown

    def test_annotations_are_escaped_and_few(self) -> None:
        summary = self.of(*[(End.REFUSED, NOT_PRODUCED)] * 12, (End.MISMATCH, MISMATCH))
        first, *_, last = lines = summary.annotations()
        assert len(lines) == 10
        assert first == "::error file=12.onnx,title=12.onnx::12.onnx: 100%25%0Awrong"
        assert last == "::error title=passes::4 more models fail the build"
