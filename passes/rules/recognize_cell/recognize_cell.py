"""The rule `recognize-cell`: a Scan over the steps of an LSTM, GRU or RNN becomes that operator."""

from __future__ import annotations

from onnx import NodeProto, TensorProto

from passes.bodies.may_leave import check_dropped
from passes.bodies.time_body import TimeBody
from passes.ir import scope as scoping
from passes.ir.operators import is_scan_9, op_of
from passes.operators.cells import RECURRENT
from passes.rule import Edit, Refused, Site, register
from passes.rules.recognize_cell.cell_finder import CellFinder, operator_cell
from passes.rules.recognize_cell.columns import Reader
from passes.rules.recognize_cell.forms import FUNCTIONS, Cell
from passes.rules.recognize_cell.gates import PRODUCTS
from passes.rules.recognize_cell.products_inside import ProductsInside
from passes.rules.recognize_cell.ragged import Ends, without_ends
from passes.rules.recognize_cell.recurrent_operator import CellWriter, check_left
from passes.rules.recognize_cell.sizes import CellSizes
from passes.types.value_types import elem_type_of


def recognized(whole: TimeBody, body: TimeBody, ends: Ends | None) -> Cell:
    """The cell whose steps a Scan runs; `body` is the whole one as if no row ended.

    Raises:
        Refused: see the rule.
    """
    form, path = body.form, body.site.path
    check_left(body)
    read = Reader(body)
    if len(form.scanned) != 1 or not form.carried:
        raise read.refusal(
            f"it scans {len(form.scanned)} tensors and carries {len(form.carried)} values"
        )
    (scanned,) = form.scanned
    _check_types(body)
    sizes = CellSizes(body)
    element = sizes.width(scanned.body_input)
    widths = {
        carried.body_input: sizes.width(carried.body_input, carried) for carried in form.carried
    }
    hidden, *others = {*widths.values()}
    own = operator_cell(read, scanned.body_input, form.carried)
    cell = own or CellFinder(read, scanned.body_input, hidden).found(form.carried)
    if others or cell.inputs != element:
        raise read.refusal(
            f"an element of width {element} and states of {sorted(widths.values())} do not fit "
            f"the weights, which take {cell.inputs} and {cell.hidden}"
        )
    h = cell.states[0]
    made = own.node.output[:2] if own else [h.body_output]
    outputs = {read.origin(name) for name in made if name}
    repeated = ends.repeated if ends else None
    if repeated and read.origin(repeated.body_output) != read.origin(h.body_output):
        raise read.refusal(f"{repeated.body_input!r} repeats another value than {h.body_output!r}")
    for row in whole.form.collected:
        rank = len(read.dims(row.body_output) or ())
        if row.tensor and rank != sizes.rank - 1:
            what = f"a row of {row.tensor!r} has {rank} axes"
            raise Refused("collected", what, [path, row.tensor])
    for collected in form.collected:
        if collected.tensor and read.origin(collected.body_output) not in outputs:
            other = f"{collected.body_output!r} is collected"
            what = f"{other}, but the operator returns {h.body_output!r}"
            raise Refused("collected", what, [path, collected.tensor])
    check_dropped(whole, sorted(whole.unread))
    return cell


def _check_types(body: TimeBody) -> None:
    """Only in float does onnxruntime compute the operators in the same precision as the loop."""
    for name in body.form.body_inputs:
        elem_type = elem_type_of(body.rows.types.get(name))
        if elem_type != TensorProto.FLOAT:
            kind = TensorProto.DataType.Name(elem_type)
            raise body.site.refused(
                "element-type", f"{name!r} is of type {kind}, the operators run in float", name
            )


_NEEDED = (tuple(FUNCTIONS), PRODUCTS)


def considers(node: NodeProto, opset: int, target: int) -> bool:
    """Return whether a node is a Scan of version 9 or later that has the operators of a cell."""
    if not is_scan_9(node, opset):
        return False
    kinds = set(map(op_of, scoping.inner_nodes(node)))
    return all(not kinds.isdisjoint(some) for some in _NEEDED) or not kinds.isdisjoint(RECURRENT)


@register("recognize-cell", considers=considers, optional=True)
def recognize_cell(site: Site) -> Edit:
    """Replace a Scan whose body is the step of an LSTM, a GRU or an RNN by that operator.

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

    After, if there are elements to scan (else the operator is put into an If):

        h1 = Unsqueeze (h0, axis)
        c1 = Unsqueeze (c0, axis)
        y, hT, cT = LSTM <hidden_size = H> (x, W1, R1, B, , h1, c1)
        hs = Squeeze (y, direction)
        ...

    The gates may be cut out of one product or have one each, MatMul, Gemm or Einsum, also of the
    element and the state concatenated or transposed, and come in any order; biases may be added
    anywhere. What is scanned may be products of one tensor that are computed before the loop, or
    parts of one. A state may be a vector, without an axis of a batch. Of a GRU, both orders of
    reset and product are recognized, and `(1 - z) * n + z * h` in other spellings, such as
    `n + z * (h - n)`, also with `1 - z` for `z`; of an LSTM, peepholes, and an i that is `1 - f` or
    an f that is `1 - i`. The activations may be Elu, HardSigmoid, LeakyRelu, Relu, Sigmoid,
    Softsign, Tanh or ThresholdedRelu, all of a sum that is clipped to one bound. A scan in reverse
    becomes the reverse direction. Constant weights are rearranged beforehand. Sums and activations
    may differ in rounding. A body that is an LSTM, GRU or RNN of one step becomes that operator,
    with its weights.

    Rows may end: where states are chosen, by Where or as a sum of products with a bool, while the
    iteration number is below a length, or where a scanned mask tells. They become sequence_lens; at
    run time, the If checks that a mask is true, then false, and the loop runs where it is not,
    unless the mask compares the number of a step with a length.

    Where the number of rows is unknown, the If checks it, too, and keeps the Scan in its
    other branch: for more than 32 rows of an LSTM, 16 of a GRU (8 where it is wider than 128), 2 of
    an RNN (1 where it is wider than 32, none where it is wider than 64), onnxruntime is not faster
    with the operator. Its operators also treat a NaN that they read as a
    number, where the loop propagates it; the report notes it if the verification sees it.

    Refuses:
    - `opset-too-old`: the opset is below 13, where the types inside a body are unknown
    - `not-a-cell`: the body computes something else, or cannot be read with certainty
    - `element-type`: the cell computes in another type than float
    - `shape-unknown`: the width of an element or a state is unknown
    - `weights`: the body computes a weight, its sizes are unknown, or it is quantized
    - `collected`: something other than the state h is collected
    - `random`: an unused op of the body draws random numbers
    - `may-fail`: an unused op of the body could fail
    - `not-worth-it`: too many rows, large weights known only at run time, or a target without it
    - `may-be-empty`: there may be nothing to scan, and the target has no If
    """
    body = TimeBody.of(site)
    try:
        return _edit(body)
    except Refused as refused:
        inside = ProductsInside.of(body) if refused.code == "not-a-cell" else None
        if inside is None:
            raise
    return inside.edit(_edit(inside.body))


def _edit(body: TimeBody) -> Edit:
    plain, ends = without_ends(body)
    return CellWriter(body, plain, recognized(body, plain, ends), ends).edit()
