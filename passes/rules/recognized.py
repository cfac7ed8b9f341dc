"""Whether a Scan is the run of an LSTM or GRU over time, in all that these take for granted."""

from __future__ import annotations

from onnx import TensorProto

from passes.rule import Refused
from passes.rules.cell_columns import Reader
from passes.rules.cell_forms import Cell, CellFinder
from passes.rules.cell_sizes import Sizes
from passes.rules.dropping import check_dropped
from passes.rules.time_body import TimeBody
from passes.value_types import elem_type_of


def recognized(body: TimeBody) -> Cell:
    """The cell of which a Scan runs the steps.

    Raises:
        Refused: see the rule.
    """
    form, path = body.form, body.site.path
    read = Reader(body)
    if len(form.scanned) != 1 or not form.carried:
        raise read.refusal(
            f"it scans {len(form.scanned)} tensors and carries {len(form.carried)} values"
        )
    (scanned,) = form.scanned
    _check_types(body)
    sizes = Sizes(body)
    element = sizes.width(scanned.body_input)
    widths = {one.body_input: sizes.width(one.body_input, one) for one in form.carried}
    hidden, *others = {*widths.values()}
    cell = CellFinder(read, scanned.body_input, hidden).cell(form.carried)
    if others or cell.inputs != element:
        raise read.refusal(
            f"an element of width {element} and states of {sorted(widths.values())} do not fit "
            f"the weights, which take {cell.inputs} and {cell.hidden}"
        )
    h = cell.states[0]
    for one in form.collected:
        if one.tensor and body.origin(one.body_output) != body.origin(h.body_output):
            raise Refused(
                "collected",
                f"{one.body_output!r} is collected, where an operator gives {h.body_output!r}",
                [path, one.tensor],
            )
    check_dropped(body, sorted(body.unread))
    return cell


def _check_types(body: TimeBody) -> None:
    """Float is the one type for which onnxruntime has the operators in that very precision."""
    for name in body.form.body_inputs:
        elem_type = elem_type_of(body.rows.types.get(name))
        if elem_type != TensorProto.FLOAT:
            kind = TensorProto.DataType.Name(elem_type)
            raise Refused(
                "element-type",
                f"{name!r} is of type {kind}, the operators run in float",
                [body.site.path, name],
            )
