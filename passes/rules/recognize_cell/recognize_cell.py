"""The rule `recognize-cell`: a Scan whose body is the step of an LSTM or GRU becomes that."""

from __future__ import annotations

from onnx import NodeProto, TensorProto

from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.rule import Edit, Refused, Site, register
from passes.rules.recognize_cell.columns import Reader
from passes.rules.recognize_cell.forms import Cell, CellFinder
from passes.rules.recognize_cell.sizes import Sizes
from passes.rules.recognize_cell.writing import CellWriter
from passes.rules.time_axis.dropping import check_dropped
from passes.rules.time_axis.time_body import TimeBody
from passes.types.value_types import elem_type_of


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


_OLDEST = 9  # Scan-8 has a batch
_NEEDED = (("Sigmoid",), ("Tanh",), ("MatMul", "Gemm"))


def considers(node: NodeProto, opset: int, target: int) -> bool:
    """Whether a node is a Scan of version 9 or later that has the operators of a cell."""
    if op_of(node) != "Scan" or opset < _OLDEST:
        return False
    kinds = {op_of(one) for _, body in scoping.subgraphs(node) for one in body.node}
    return all(not kinds.isdisjoint(some) for some in _NEEDED)


@register("recognize-cell", considers=considers, optional=True)
def recognize_cell(site: Site) -> Edit:
    """Replace a Scan whose body is the step of an LSTM or a GRU by that operator.

    Before:

        h, c, hs = Scan <num_scan_inputs = 1, body = step
            (float[4,H] h_in, float[4,H] c_in, float[4,I] x_t) => (...) {
            a = MatMul (x_t, W)
            b = MatMul (h_in, R)
            ab = Add (a, b)
            gates = Add (ab, bias)
            i0, o0, f0, g0 = Split <axis = 1, num_outputs = 4> (gates)
            i = Sigmoid (i0)
            o = Sigmoid (o0)
            f = Sigmoid (f0)
            g = Tanh (g0)
            fc = Mul (f, c_in)
            ig = Mul (i, g)
            c_out = Add (fc, ig)
            t = Tanh (c_out)
            h_out = Mul (o, t)
            y = Identity (h_out)
        }> (h0, c0, x)

    After, where there are elements to scan (else the operator stands in an If):

        h1 = Unsqueeze (h0, axis)
        c1 = Unsqueeze (c0, axis)
        y, hT, cT = LSTM <hidden_size = H> (x, W1, R1, B, , h1, c1)
        hs = Squeeze (y, direction)
        ...

    The gates may be cut out of one product or have one each, MatMul or Gemm, also of the element
    and the state joined, and stand in any order; biases may be added anywhere. Of a GRU, both
    orders of reset and product are known, and `n + z * (h - n)` for `(1 - z) * n + z * h`. A scan
    of reversed elements becomes the reverse direction. Weights that are fixed are rearranged
    beforehand. Sums and activations may differ in rounding.

    Where the number of rows is not known, the If asks for it, too, and keeps the Scan in its
    other branch: for more than 32 rows of an LSTM, 16 of a GRU (8 where it is wider than 128),
    onnxruntime is no quicker with the operator. Its operators also take a NaN that is read for a
    number, where the loop hands it on; the report says so where the verification sees it.

    Refuses:
    - `opset-too-old`: the opset is below 13, which the types inside a body are not known for
    - `not-a-cell`: the body computes something else, or cannot be read with certainty
    - `element-type`: the cell computes in another type than float
    - `shape-unknown`: nothing tells how wide an element or a state is
    - `weights`: the body computes a weight, nothing tells its sizes, or it is quantized
    - `collected`: something else than the state h is collected of every iteration
    - `random`: an op of the body that nobody reads draws random numbers
    - `may-fail`: an op of the body that nobody reads could fail
    - `not-worth-it`: there are too many rows, or large weights that only the run tells
    - `may-be-empty`: there may be nothing to scan, and the target has no If
    """
    body = TimeBody.of(site)
    return CellWriter(body, recognized(body)).edit()
