"""Decides whether a recurrent operator is faster than the loop over its steps, on onnxruntime.

Measured on one thread (`python -m benchmarks optimize` has the cells that are 256 wide), steps of
width 16 to 512, 1 to 256 rows: with few rows the operator takes down to a sixth of the time of the
loop, because it saves starting a dozen nodes in every step; with many, the products dominate, and
the loop is as fast.
"""

from __future__ import annotations

import math

from passes.bodies.time_body import TimeBody
from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.operators.cells import RECURRENT
from passes.rule import Refused, Site
from passes.rules.recognize_cell.reading.forms import Cell
from passes.rules.recognize_cell.reading.operator_steps import OperatorCell

#: Up to how many rows the operators are faster; fewer for a wide GRU. An RNN is, by the width that
#: it may have.
_ROWS_OF_LSTM, _ROWS_OF_GRU, _ROWS_OF_WIDE_GRU = 32, 16, 8
_ROWS_OF_RNN = {32: 2, 64: 1}
_WIDE = 128
#: Weights of more elements are not rearranged in every run, unless it takes many steps.
_FEW_ELEMENTS = 1 << 15
_MANY_STEPS = 128


def most_rows(body: TimeBody, cell: Cell, rows: int | None) -> int | None:
    """Up to how many rows the operator is faster; `rows` is their actual number, where known.

    None where they are so few, or where the operator is requested in any case.

    Raises:
        Refused: `not-worth-it` where it is faster for no possible number of rows, or the target
            lacks it.
    """
    site = body.site
    if cell.operator in site.options.lacks:
        raise _unworthy(site, f"the target lacks the {cell.operator}")
    if site.options.no_branches or isinstance(cell, OperatorCell):
        return None
    most = _ROWS_OF_LSTM
    if cell.operator == "RNN":
        most = max(count if cell.hidden <= width else 0 for width, count in _ROWS_OF_RNN.items())
    if cell.operator == "GRU":
        most = _ROWS_OF_GRU if cell.hidden <= _WIDE else _ROWS_OF_WIDE_GRU
    if (least := 1 if rows is None else rows) > most:
        what = (
            f"with {least} rows of width {cell.hidden} the loop is as fast as the {cell.operator}"
        )
        raise _unworthy(site, what)
    parts = [part for gate in cell.gates for part in (gate.w, gate.r)]
    many = sum(math.prod(matrix.shape) for matrix in parts) > _FEW_ELEMENTS
    if many and (body.trips or 0) < _MANY_STEPS and not _are_fixed(body, cell):
        raise _unworthy(site, "rearranging weights known only at run time takes too long")
    return None if rows is not None else most


def _unworthy(site: Site, why: str) -> Refused:
    return site.refused("not-worth-it", why)


def _are_fixed(body: TimeBody, cell: Cell) -> bool:
    """Return whether the weights are known when the model is loaded."""
    return all(body.is_constant(part.name) for gate in cell.gates for part in (gate.w, gate.r))


def check_left(body: TimeBody) -> None:
    """Check that this is not the loop that an If keeps for when its operator does not pay.

    Raises:
        Refused: `not-worth-it` where it is.
    """
    site, holder = body.site, body.site.scope.holder
    if holder is None or site.scope.key[-1] != "else_branch" or site.options.no_branches:
        return
    branches = dict(scoping.subgraphs(holder.node))
    nodes = branches["then_branch"].node
    read = {name for node in nodes for name in node.input}
    initials = {state.initial for state in body.form.carried}
    if initials <= read and any(op_of(node) in RECURRENT for node in nodes):
        raise _unworthy(site, "the If around the loop runs the operator where that is faster")
