"""Commands of other distributions: a class of options and a schedule are all it takes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import onnx
import pytest
import typer
from typer.testing import CliRunner

from passes.cli.calling import enter
from passes.commands import registry
from passes.commands.pipeline import Pipeline
from passes.commands.registry import (
    BrokenCommands,
    UnknownCommand,
    command_named,
    command_of,
    load_commands,
)
from passes.commands.rewriting import Simplify
from passes.testing import as_model

NOOP = '''
"""A command without rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from passes.commands.declaring import Help
from passes.commands.options import Options
from passes.commands.registry import command


@command("noop", short_help="Check a model, and change nothing.", suffix="same")
@dataclass(frozen=True, kw_only=True)
class Noop(Options):
    """Check a model, and change nothing."""

    loudly: Annotated[bool, Help("Nothing yet.")] = False

    @property
    def schedule(self):
        from passes.engine.schedules import Schedule

        return Schedule("noop", ())
'''
MODEL = """
    <ir_version: 10, opset_import: ["" : 21]>
    g (float[2] x) => (float[2] y) { y = Neg (x) }
"""


@pytest.fixture
def third_party(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A distribution that declares a command; the text of its module may be broken."""
    load_commands()
    module = tmp_path / "acme_commands.py"
    module.write_text(NOOP)
    monkeypatch.syspath_prepend(tmp_path)
    added = EntryPoint("acme", "acme_commands", registry.GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: [added])
    load_commands.cache_clear()
    yield str(module)
    registry._COMMANDS.pop("noop", None)
    sys.modules.pop("acme_commands", None)
    load_commands.cache_clear()


@pytest.mark.usefixtures("third_party")
def test_a_command_of_another_distribution_is_one_declaration(tmp_path: Path) -> None:
    assert Pipeline([("noop", {"loudly": True})]).run(as_model(MODEL)).report.unchanged
    app = typer.Typer()
    for command in load_commands().values():
        enter(app, command)
    path = tmp_path / "m.onnx"
    onnx.save(as_model(MODEL), path)
    said = CliRunner().invoke(app, ["noop", str(path), "--loudly"])
    assert said.exit_code == 0, said.output
    assert "nothing to do" in said.output
    assert "Nothing yet." in CliRunner().invoke(app, ["noop", "--help"]).output


def test_commands_that_do_not_import_are_one_sentence(third_party: str) -> None:
    Path(third_party).write_text("import no_such_module")
    with pytest.raises(BrokenCommands, match=r"'acme' \(acme_commands\) do not load: No module"):
        load_commands()


def test_an_unknown_command_names_the_nearest() -> None:
    with pytest.raises(UnknownCommand, match="there is no command 'simplfy'; the nearest are simp"):
        command_named("simplfy")
    assert command_of(Simplify()) is command_named("simplify")
