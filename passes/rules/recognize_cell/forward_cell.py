"""The rule `forward-cell`: a recurrent operator that runs backwards reads its rows in reverse."""

from __future__ import annotations

from onnx import NodeProto

from passes.ir.attributes import attribute, text
from passes.ir.operators import op_of
from passes.ir.protos import copied, replace_all
from passes.operators.cells import RECURRENT, CellInputs
from passes.rule import Edit, Site, register
from passes.writing import spelling
from passes.writing.author import Author


def considers(node: NodeProto, opset: int, target: int) -> bool:
    """Return whether a node is a recurrent operator that runs backwards only."""
    return op_of(node) in RECURRENT and text(node, "direction", "") == "reverse"


@register("forward-cell", considers=considers, optional=True)
def forward_cell(site: Site) -> Edit:
    """Run an RNN, GRU or LSTM forwards, over the rows in reverse.

    Before:

        y, h = GRU <direction = "reverse", hidden_size = 3> (x, w, r)

    After:

        back = Slice (x, [-1], [-2147483648], [0], [-1])
        rows, h = GRU <hidden_size = 3> (back, w, r)
        y = Slice (rows, [-1], [-2147483648], [0], [-1])

    tract runs a reverse LSTM forwards, without a word.

    Refuses:
    - `lengths`: sequence_lens gives the end of each row, and a row would begin with its padding
    """
    node = copied(site.node)
    if lengths := CellInputs.of(node).lengths:
        raise site.refused("lengths", "sequence_lens is given", lengths)
    author = Author(site.target, site.names, node.name or op_of(node).lower())
    axis = 1 if attribute(node, "layout", 0) else 0
    node.input[0] = spelling.reversed_rows(author, node.input[0], axis=axis)
    replace_all(node.attribute, [one for one in node.attribute if one.name != "direction"])
    rows = node.output[0]
    if rows:
        node.output[0] = author.fresh("rows")
    author.adopt([node])
    if rows:
        spelling.reversed_rows(author, node.output[0], [rows], axis=axis)
    return author.edit("reads its rows in reverse")
