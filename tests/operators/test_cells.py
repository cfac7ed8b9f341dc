"""The table of recurrent operators holds what their documents say."""

from __future__ import annotations

import re

import pytest
from onnx import defs, parser

from passes.operators import cells
from passes.operators.cells import ACTIVATIONS, RECURRENT, CellInputs

INPUTS = ["X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P"]


def test_the_positions_are_those_of_the_inputs() -> None:
    longest = defs.get_schema("LSTM")
    assert [one.name for one in longest.inputs] == INPUTS
    assert (cells.X, cells.W, cells.R, cells.B) == (0, 1, 2, 3)
    assert (cells.LENGTHS, cells.INITIAL_H, cells.INITIAL_C, cells.P) == (4, 5, 6, 7)


@pytest.mark.parametrize("op", RECURRENT)
def test_gates_states_and_defaults_are_those_of_the_document(op: str) -> None:
    document, cell = defs.get_schema(op), RECURRENT[op]
    gates = "".join(re.findall(r"`W\[(\w+)\]`", document.doc)) or "i"  # RNN has Wi
    assert cell.gates == gates
    assert [*cell.peepholes] == [*"".join(re.findall(r"`P\[(\w+)\]`", document.doc))]
    assert [f"initial_{one}" for one in cell.states] == [
        one.name for one in document.inputs if one.name.startswith("initial_")
    ]
    assert [f"Y_{one}" for one in cell.states] == [one.name for one in document.outputs[1:]]
    (defaults,) = re.findall(r"\(Default: (.*)\)", document.doc)
    assert cell.activations == tuple(re.findall(r"=(\w+)", defaults))


@pytest.mark.parametrize("op", RECURRENT)
def test_the_activations_are_those_of_the_document(op: str) -> None:
    listed = re.findall(r"^\* (\w+)\(x\) +- (.*)$", defs.get_schema(op).doc, re.MULTILINE)
    assert {name for name, _ in listed} == {*ACTIVATIONS}
    for name, formula in listed:
        parameters = [one for one in ("alpha", "beta") if one in formula]
        assert [*ACTIVATIONS[name].parameters] == parameters


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_defaults_are_those_of_the_operator_of_the_same_name(name: str) -> None:
    activation = ACTIVATIONS[name]
    assert activation.is_operator == defs.has(name)
    if activation.is_operator:
        declared = defs.get_schema(name).attributes
        defaults = [round(declared[one].default_value.f, 6) for one in activation.parameters]
        assert [*activation.defaults] == defaults
        assert len(declared) == len(defaults)


def test_omitted_operands_are_empty() -> None:
    graph = parser.parse_graph("g (float[3,2,4] x) => () { y = GRU (x, w, r, , lengths) }")
    assert CellInputs.of(graph.node[0]) == ("x", "w", "r", "", "lengths", "", "", "")
