"""The command `operators`: a table, all that is known of one operator, and JSON."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

import jsonschema
import pytest

from passes.errors import DONE, USAGE
from tests.cli.calling import fails, run

NOT = """\
Not-1 of versions 1
what it is
  shape   elementwise  that of the first input; each element is computed from its own
  work    light        a few instructions, with the same bits however many elements there are
  fails   never        on no values
  folds   any          constants of any type
  values  exact        moved, compared, summed or multiplied: small dyadic numbers are not rounded
  rounds  never        it gives its operands, or a choice of them, to the last bit
  logic   yes          it takes truth values
what is done with it
  up        yes  by every step
  down      yes  to opset 7
  safe      yes
  exact     yes
  batches   yes  by a rule         passes/vectorize/ops/elementwise.py
  streams   yes  by a rule         passes/streaming/frame_by_frame.py
  executes  yes  by onnx's kernel
  proves    yes  by a model        passes/proving/operators/elementwise.py
  drawn     yes
  folds     yes
  integers  -
  sizes     yes
types, and those that kernels of onnxruntime lack in each release
  T  takes  bool
targets
"""


def test_all_that_is_known_of_an_operator() -> None:
    result = run("operators", "Not")
    assert result.stdout.startswith(NOT)
    assert "\n  tract            yes\n" in result.stdout.removeprefix(NOT)


def test_the_steps_of_its_versions() -> None:
    _, _, steps = run("operators", "DFT").stdout.partition("\nsteps\n")
    ways = [line.split()[:3] for line in steps.splitlines()[:3]]
    assert ways == [
        ["17", "down", "adapter:"],
        ["20", "up", "adapter:"],
        ["20", "down", "adapter:"],
    ]


def test_a_table_of_a_domain() -> None:
    head, *rows = run("operators", "--domain", "ai.onnx.ml").stdout.splitlines()
    assert head.split()[:5] == ["operator", "version", "up", "down", "safe"]
    assert rows[0].split()[:4] == ["ai.onnx.ml::ArrayFeatureExtractor", "1", "-", "-"]
    assert all(row.startswith("ai.onnx.ml::") for row in rows)


def test_a_name_in_a_domain() -> None:
    one = run("operators", "Attention", "--domain", "com.microsoft")
    assert one.stdout == run("operators", "com.microsoft::Attention").stdout


def test_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    schema = json.loads((resources.files("passes.builds") / "operators-1.schema.json").read_text())
    assert run("operators", "--json", "all.json").exit_code == DONE
    every = json.loads(Path("all.json").read_text())
    jsonschema.validate(every, schema)
    result = run("operators", "Gather", "--json", "-")
    assert result.stderr.startswith("Gather-13 of versions 1, 11, 13\n")
    (one,) = json.loads(result.stdout)["operators"]
    assert one in every["operators"]


def test_wrong_usage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "the nearest are Gather, " in fails(USAGE, "operators", "gather")
    assert "no operator of the domain 'my'; the nearest are " in fails(
        USAGE, "operators", "--domain", "my"
    )
