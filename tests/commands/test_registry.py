"""Commands of other distributions: a class of options and a schedule are all it takes."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import onnx
import pytest
import typer
from typer.testing import CliRunner, Result

from passes.__main__ import enter
from passes.builds import schemas
from passes.commands import registry
from passes.commands.functions import function_of, rewriting
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
COUNT = '''
"""A command that rewrites nothing."""

from __future__ import annotations

import json
from dataclasses import KW_ONLY, asdict, dataclass
from typing import Annotated

from passes.commands.declaring import Help
from passes.commands.delivery import Reporting
from passes.commands.registry import Schema, command
from passes.commands.standalone import Standalone, TheModel, silent

VERSION = 1


@dataclass(frozen=True)
class Loops:
    """The number of loops."""

    loops: int

    def to_text(self):
        return f"{self.loops} loops"

    def to_json(self):
        return json.dumps(asdict(self))


@command("count", short_help="Count loops.", schema=Schema("Loops", __name__, "Loops"))
@dataclass(frozen=True)
class Count(Reporting, Standalone):
    """Count the loops of a model."""

    model: TheModel
    _: KW_ONLY
    ops: Annotated[str, Help("The operators that are counted.")] = "Scan,Loop"

    def run(self, say=silent):
        from passes.ir.scope import walk_model
        from passes.session import loaded

        nodes = walk_model(loaded(self.model)[0].proto)
        return Loops(sum(one.node.op_type in self.ops.split(",") for one in nodes))
'''
MODEL = """
    <ir_version: 10, opset_import: ["" : 21]>
    g (float[2] x) => (float[2] y) { y = Neg (x) }
"""
LOOP = """
    <ir_version: 8, opset_import: ["" : 17]>
    g (int64 n, float[2] x) => (float[2] y) {
      y = Loop (n, , x) <body = b (int64 i, bool c, float[2] s) => (bool d, float[2] t) {
        d = Identity (c)  t = Neg (s) }>
    }
"""


@pytest.fixture
def third_party(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A distribution that declares a command; the text of its module may be broken."""
    load_commands()
    module = tmp_path / "acme_commands.py"
    module.write_text(NOOP)
    (tmp_path / "acme_counts.py").write_text(COUNT)
    monkeypatch.syspath_prepend(tmp_path)
    added = [EntryPoint(name, name, registry.GROUP) for name in ("acme_commands", "acme_counts")]
    monkeypatch.setattr(registry, "entry_points", lambda group: added)
    load_commands.cache_clear()
    yield str(module)
    for command, name in (("noop", "acme_commands"), ("count", "acme_counts")):
        registry._COMMANDS.pop(command, None)
        sys.modules.pop(name, None)
    load_commands.cache_clear()


def run(*arguments: str) -> Result:
    """The command line, made anew."""
    app = typer.Typer()
    for command in load_commands().values():
        enter(app, command)
    return CliRunner().invoke(app, arguments)


@pytest.mark.usefixtures("third_party")
def test_a_command_that_rewrites_is_one_declaration(tmp_path: Path) -> None:
    model = as_model(MODEL)
    assert Pipeline([("noop", {"loudly": True})]).run(model).report.unchanged
    declared = command_named("noop").options
    assert rewriting(declared, "noop")(model, loudly=True).report.unchanged
    onnx.save(model, path := tmp_path / "m.onnx")
    said = run("noop", str(path), "--loudly", "--json", str(report := tmp_path / "r.json"))
    assert said.exit_code == 0, said.output
    assert "nothing to do" in said.output
    assert json.loads(report.read_text())["commands"][0]["options"]["loudly"] is True
    assert "Nothing yet." in run("noop", "--help").output
    steps = [one["properties"] for one in schemas.config()["$defs"]["step"]["anyOf"][1:]]
    (own,) = [one for one in steps if one["command"]["const"] == "noop"]
    assert own["loudly"] == {"type": "boolean", "description": "Nothing yet.", "default": False}


@pytest.mark.usefixtures("third_party")
def test_a_command_that_rewrites_nothing_is_one_declaration(tmp_path: Path) -> None:
    model = as_model(LOOP)
    declared = load_commands()["count"].options
    count = function_of(declared, "count", declared.run)
    assert count(model).loops == 1
    assert count(model, ops="Scan").loops == 0
    assert "ops: The operators that are counted. (default Scan,Loop)" in (count.__doc__ or "")
    with pytest.raises(TypeError, match=r"count\(\) got an unexpected keyword argument 'op'"):
        count(model, op="Scan")
    onnx.save(model, path := tmp_path / "m.onnx")
    report = tmp_path / "r.json"
    assert run("count", str(path)).output == "1 loops\n"
    said = run("count", str(path), "--ops", "Scan", "--json", str(report))
    assert (said.output, report.read_text()) == ("0 loops\n", '{"loops": 0}')
    assert run("count", str(path), "--json", str(path)).exit_code == 2
    assert "Count loops." in run("--help").output
    assert "The operators that are counted." in run("count", "--help").output
    name, schema = schemas.of_command(load_commands()["count"])
    assert name == "count-1.schema.json"
    assert (schema["title"], schema["required"]) == ("Loops, version 1", ["loops"])
    with pytest.raises(UnknownCommand):  # a pipeline has steps that rewrite
        command_named("count")


def test_commands_that_do_not_import_are_one_sentence(third_party: str) -> None:
    Path(third_party).write_text("import no_such_module")
    with pytest.raises(BrokenCommands, match=r"\(acme_commands\) do not load: No module"):
        load_commands()


def test_an_unknown_command_names_the_nearest() -> None:
    with pytest.raises(UnknownCommand, match="there is no command 'simplfy'; the nearest are simp"):
        command_named("simplfy")
    assert command_of(Simplify()) is command_named("simplify")
