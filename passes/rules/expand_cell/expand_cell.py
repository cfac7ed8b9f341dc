"""The rule `expand-cell`: an RNN, GRU or LSTM becomes plain operators in a loop over its steps."""

from __future__ import annotations

from passes.ir.attributes import attribute
from passes.ir.constants import Constants
from passes.ir.operators import op_of
from passes.operators.cells import RECURRENT
from passes.rule import Claim, Edit, NothingToDo, Site, nodes_of, register
from passes.rules.expand_cell.cell_form import OTHERS, CellForm
from passes.rules.expand_cell.expansion import Expansion
from passes.types.value_types import dims_of
from passes.writing.author import Author

#: From how many rows on a Scan of an RNN is quicker than the operator, by its width.
_QUICKER = {128: 1, 64: 2, 32: 4}
#: The overhead of the Scan is that of so many steps.
_FEW_STEPS = 16


@register("expand-cell", considers=nodes_of(*RECURRENT, *OTHERS), optional=True)
def expand_cell(site: Site) -> Edit:
    """Write an RNN, GRU or LSTM in plain operators.

    Before:

        y, h = GRU <hidden_size = 4, linear_before_reset = 1> (x, w, r, b, , h0)

    After, where there are steps, else `y` is empty and `h` is `h0`:

        wx = MatMul (x, w1)
        xs = Add (wx, bias)
        hT, ys = Scan <num_scan_inputs = 1, body = step
            (float[B,4] h_in, float[B,12] x_t) => (float[B,4] h_out, float[B,4] y_t) {
            hr = MatMul (h_in, r1)
            q = Add (hr, rb)
            xz, xr, xn = Split <axis = 1, num_outputs = 3> (x_t)
            rz, rr, rn = Split <axis = 1, num_outputs = 3> (q)
            z = Sigmoid (Add (xz, rz))
            reset = Sigmoid (Add (xr, rr))
            n = Tanh (Add (xn, Mul (reset, rn)))
            h_out = Add (Mul (Sub (one, z), n), Mul (z, h_in))
            y_t = Identity (h_out)
        }> (h1, xs)
        y = Unsqueeze (ys, axis)
        h = Unsqueeze (hT, axis)

    The loop is a Scan, or a Loop, or its steps are written out, as `--as` asks for; for a target
    without control flow they are written out. Both directions have a loop of their own.
    sequence_lens becomes masks: beyond the length of a row, the output is 0 and its states stay.
    Sums and activations may differ in rounding. As the documents demand, NaN stays NaN, and the
    last state of a row of length 0 is its initial state, where onnxruntime's operators return
    numbers.

    `optimize` expands what the target lacks, and for onnxruntime an RNN that is quicker as a Scan.

    Refuses:
    - `activation`: an activation is unknown, or there are too few
    - `attribute-reference`: a function attribute decides what it computes
    - `clip`: the clip threshold is not above 0, on which runtimes differ
    - `contrib`: it is an operator of onnxruntime that does more
    - `default-differs`: runtimes differ on a parameter of an activation that is left out
    - `direction`: the direction is unknown, or does not fit the weights
    - `element-type`: it computes in a type other than a float, or an unknown one
    - `opset-too-old`: the opset is below 9, or one of the operators is newer
    - `steps-unknown`: the steps are to be written out, but their number is unknown
    - `too-many-nodes`: the steps written out are more nodes than `--max-nodes` allows
    """
    if not _is_wanted(site):
        raise NothingToDo
    form = CellForm.of(site)
    author = Author(site.target, site.names, site.node.name or form.operator.lower())
    expansion = Expansion(site, form, author)
    note = expansion.write()
    nodes = tuple(author.read(filter(None, expansion.outputs)))
    terms = sum(size for size in (form.inputs, form.hidden) if isinstance(size, int))
    return Edit(
        nodes,
        tuple(author.constants),
        note=note,
        exact=False,
        extras=author.extras(nodes),
        claim=Claim(reduction=max(1, terms)),
    )


def _is_wanted(site: Site) -> bool:
    """Return whether the operator is to be expanded: always, unless the target has it; even then
    where the loop is quicker."""
    options = site.options
    if options.lacking_cells and op_of(site.node) not in options.lacks:
        return options.quicker_cells and _is_quicker(site)
    return True


def _is_quicker(site: Site) -> bool:
    """Return whether the loop is quicker in onnxruntime, as measured in docs/expand.md, for weights
    that are known: others may be anything, with which an RNN is chaotic and cannot be verified."""
    node = site.node
    known = Constants(site.model, site.scope)
    if any(known.tensor(weight) is None for weight in node.input[1:3]):
        return False
    x, r = (dims_of(site.type_of(name)) or (None,) * 3 for name in (node.input[0], node.input[2]))
    if op_of(node) != "RNN" or attribute(node, "layout", 0):
        return False
    steps, rows, hidden = x[0], x[1], r[2]
    if not isinstance(hidden, int) or (isinstance(steps, int) and steps < _FEW_STEPS):
        return False
    least = [count for width, count in _QUICKER.items() if hidden >= width]
    return bool(least) and least[0] <= (rows if isinstance(rows, int) else 1)
