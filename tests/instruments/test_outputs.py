"""The table of what every command writes: what is as it was, and what is not, is told."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.instruments import outputs

_MODEL = "simplify/one_trip_of_a_known_size.before.onnxtxt"


def test_a_changed_cell_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    two = {label: outputs.COMMANDS[label] for label in ("simplify", "lower")}
    monkeypatch.setattr(outputs, "COMMANDS", two)
    table = tmp_path / "outputs.tsv"
    compare = ["--table", str(table), "--only", _MODEL, "--jobs", "1"]
    same = "1 models, 2 commands each"

    assert outputs.main(["--update", *compare]) == 0
    assert outputs.main(compare) == 0
    assert capsys.readouterr().out.splitlines() == [same, same]

    head, row = table.read_text().splitlines()
    model, simplified, lowered = row.split("\t")
    assert (head, model) == ("model\tsimplify\tlower", _MODEL)
    assert lowered == "="  # no Scan
    assert re.fullmatch("[0-9a-f]{4}", simplified)
    table.write_text(f"{head}\n{model}\tabcd\t{lowered}\n")
    assert outputs.main(compare) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"{_MODEL}: simplify: abcd -> {simplified}",
        same,
    ]
