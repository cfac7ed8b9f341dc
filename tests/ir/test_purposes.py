"""What extra nodes are for: counted where they are written, and true of the option named."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import ModelProto

import passes
from passes.commands.schedules import SCHEDULES
from passes.engine.outcome import Pass
from passes.ir import scope
from passes.ir.names import Names
from passes.ir.purposes import GUARD_LENGTHS, GUARD_SIZES, HANDLE_NO_TRIPS, Extra, Purpose
from passes.session import Result, Session
from passes.testing import options_of
from passes.writing.author import Author

GOLDEN = Path(__file__).parents[2] / "golden_models"
GRU = GOLDEN / "binary" / "gru.onnx"


def node_count(model: ModelProto) -> int:
    return sum(1 for _ in scope.walk_model(model))


@pytest.mark.parametrize("batch", ["nest", "vectorize"])
@pytest.mark.parametrize("assumption", ["valid-inputs", "non-empty"])
def test_the_option_leaves_out_as_many_nodes_as_the_report_says(
    batch: str, assumption: str
) -> None:
    model = onnx.load(GRU)
    full = passes.upgrade(model, batch=batch, verify=False)
    short = passes.upgrade(model, batch=batch, verify=False, assume=[assumption])
    option = f"--assume {assumption}"
    extras = [extra for record in full.report.records for extra in record.extras]
    claimed = sum(extra.nodes for extra in extras if extra.option == option)
    assert claimed == node_count(full.model) - node_count(short.model)
    left = [extra for record in short.report.records for extra in record.extras]
    assert all(extra.option != option for extra in left)


@pytest.mark.parametrize(
    ("case", "assumption"),
    [
        ("hoist-invariants/scanned_length", "non-empty"),
        ("lower/state_of_symbols", "valid-inputs"),
        ("lower/two_lengths", "valid-inputs"),
        ("raise/vector_iteration", "non-empty"),
        ("raise/while_as_floats", "valid-inputs"),
        ("unroll/bounded_if_size_told_by_the_body", "valid-inputs"),
        ("unroll/lengths_must_agree", "valid-inputs"),
    ],
)
def test_the_rules_say_what_an_option_leaves_out(case: str, assumption: str) -> None:
    model = onnx.load(GOLDEN / f"{case}.before.onnxtxt")
    told = {entry.key: entry.value for entry in model.metadata_props}
    options = {key[7:]: value for key, value in told.items() if key.startswith("option ")}
    target = 21 if case.startswith("lower/") else None

    def outcome(assume: tuple[str, ...]) -> Result:
        given = {**options, "assume": ",".join(assume)}
        return Session([Pass(SCHEDULES[case.split("/")[0]], target, options_of(given))], None).run(
            model
        )

    full, short = outcome(()), outcome((assumption,))
    extras = [extra for record in full.report.records for extra in record.extras]
    claimed = sum(extra.nodes for extra in extras if extra.option == f"--assume {assumption}")
    assert claimed == node_count(full.model) - node_count(short.model) > 0


def test_peel_says_what_handles_a_loop_that_does_not_run() -> None:
    model = onnx.load(GOLDEN / "peel" / "while.before.onnxtxt")
    report = Session([Pass(SCHEDULES["peel"])], None).run(model).report
    (extra,) = [extra for record in report.records for extra in record.extras]
    assert (extra.purpose, extra.option) == (HANDLE_NO_TRIPS.what, "")


def test_flatten_scan_says_what_guards_the_sizes() -> None:
    model = onnx.load(GOLDEN / "flatten-scan" / "two_tensors.before.onnxtxt")
    report = Session([Pass(SCHEDULES["flatten-scan"])], None).run(model).report
    extras = [extra for record in report.records for extra in record.extras]
    assert [extra.purpose for extra in extras] == [GUARD_SIZES.what]


def test_what_is_not_written_in_the_end_is_not_counted() -> None:
    author = Author(21, Names("x"), "scan")
    with author.serving(GUARD_LENGTHS):
        kept = author.op("Neg", "x")
        author.op("Abs", "x")
    author.op("Identity", kept, outputs=["y"])
    assert author.extras(author.read(["y"])) == (
        Extra(1, GUARD_LENGTHS.what, GUARD_LENGTHS.option),
    )


def test_what_two_purposes_share_counts_for_neither() -> None:
    author = Author(21, Names("x"), "scan")

    def shape() -> str:
        return author.once("shape", lambda: author.op("Shape", "x"))

    with author.serving(GUARD_LENGTHS):
        first = author.op("Neg", shape())
    with author.serving(GUARD_SIZES):
        second = author.op("Abs", shape())
        author.op("Add", first, second)
    assert [(extra.nodes, extra.purpose) for extra in author.extras(author.nodes)] == [
        (1, GUARD_LENGTHS.what),
        (2, GUARD_SIZES.what),
    ]


def test_nodes_of_bodies_count() -> None:
    author = Author(21, Names("cx"), "scan")
    with author.serving(GUARD_SIZES):
        inner = author.inside("scan/none")
        value = inner.op("Neg", "x")
        info = onnx.helper.make_tensor_value_info(value, 1, None)
        branch = inner.graph("branch", [], [info])
        author.op("If", "c", then_branch=branch, else_branch=branch)
    assert [extra.nodes for extra in author.extras(author.nodes)] == [3]


def test_a_sentence() -> None:
    guard = Purpose("guard the lengths", "--assume valid-inputs")
    assert str(Extra(12, guard.what, guard.option)) == (
        "12 nodes guard the lengths; --assume valid-inputs leaves them out"
    )
    assert str(Extra(1, guard.what, guard.option)) == (
        "1 node guards the lengths; --assume valid-inputs leaves it out"
    )
    assert str(Extra(2, "count the rows")) == "2 nodes count the rows"
