"""Options declared once: what a field accepts, and what is made of its declaration."""

from __future__ import annotations

import pickle
from dataclasses import MISSING
from pathlib import Path
from typing import Any

import pytest

import passes
from passes.choices import Assumption
from passes.commands.declaring import WrongType, options_of
from passes.commands.registry import load_commands, rewriting_commands
from passes.commands.rewriting import Optimize, Unroll


def test_every_command_declares_what_it_takes() -> None:
    assert list(rewriting_commands()) == [
        *("upgrade", "convert", "lower", "raise", "unroll", "expand", "reroll", "hoist"),
        *("simplify", "optimize", "cast"),
    ]
    for command in load_commands().values():
        assert command.options.__doc__, command.name
        for option in options_of(command.options).values():
            assert option.help.text.endswith(".") or "cli" not in option.help.shown, option
            none = option.default in (None, MISSING)
            assert none or option.kind.accepts(option.default), option


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"max_nodes": "3"}, "max_nodes is '3', not a whole number"),
        ({"max_nodes": True}, "max_nodes is True, not a whole number"),
        ({"verify": 1}, "verify is 1, not true or false"),
        ({"verify_budget": "long"}, "verify_budget is 'long', not a number"),
        ({"inputs": 3}, "inputs is 3, not a path"),
        (
            {"dims": {"T": "3"}},
            "dims is {'T': '3'}, not a mapping from names to sizes, or to other names",
        ),
        ({"seed": None}, "seed is None, not a whole number"),
        ({"progress": "loud"}, "progress is 'loud', not a function of a string"),
    ],
)
def test_a_value_of_another_type(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(WrongType) as raised:
        Unroll(**options)
    assert str(raised.value) == sentence


def test_equal_options_are_equal_and_pickle() -> None:
    one = Optimize(only=["main/*"], inputs=Path("inputs.npz"), verify_budget=3)
    assert one == Optimize(only=("main/*",), inputs="inputs.npz", verify_budget=3.0)
    assert pickle.loads(pickle.dumps(one)) == one


def test_functions_show_their_options() -> None:
    assert "max_trips: Promise that no Loop runs more than N times" in (passes.unroll.__doc__ or "")
    with pytest.raises(TypeError, match=r"convert\(\) got an unexpected keyword argument 'lowest'"):
        passes.convert("m.onnx", lowest=True)  # type: ignore[call-arg]  # no such option


def test_the_schema_of_an_option() -> None:
    options = options_of(Unroll)
    assert options["peel"].schema() == {
        "enum": ["first", "last"],
        "description": "Write out only the first, or the last, iteration of each loop.",
    }
    assert options["assume"].schema()["items"] == {"enum": [*Assumption]}
    assert options["max_nodes"].schema()["minimum"] == 1
    assert options["dims"].schema()["additionalProperties"] == {
        "anyOf": [{"type": "integer", "minimum": 0}, {"type": "string"}]
    }
