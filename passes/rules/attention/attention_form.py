"""A LinearAttention node, taken apart."""

from __future__ import annotations

import math
from dataclasses import dataclass

from onnx import NodeProto, TensorProto, helper

from passes.ir.attributes import attribute, text
from passes.ir.operators import op_of
from passes.ir.places import CONTRIB
from passes.rule import Site
from passes.types.value_types import Dim, dims_of, elem_type_of

ATTENTION = ("LinearAttention", f"{CONTRIB}::LinearAttention")
CONVOLUTION = ("CausalConvWithState", f"{CONTRIB}::CausalConvWithState")


def given(node: NodeProto, position: int) -> str:
    """An input, "" where it is left out."""
    return node.input[position] if position < len(node.input) else ""


@dataclass(frozen=True)
class AttentionForm:
    """Heads read `states` [batch, states, rows, columns], in which heads of the `keys` write.

    `past`, `decay` and `beta` are "" where they are left out, or the rule has none.
    """

    queries: int
    keys: int
    states: int
    rows: int
    columns: int
    batch: Dim
    steps: Dim
    scale: float
    past: str
    decay: str
    beta: str

    @classmethod
    def of(cls, site: Site) -> AttentionForm:
        """The form of the site's node.

        Raises:
            Refused: `not-float`, `unknown-size`, `windows`.
        """
        node = site.node
        if attribute(node, "state_window", 0):
            raise site.refused("windows", "it returns a window of states")
        check_floats(site)
        sizes = [dims_of(site.type_of(name)) or () for name in node.input[:3]]
        widths = [dims[2] for dims in sizes if len(dims) == 3 and isinstance(dims[2], int)]
        queries, states = (attribute(node, f"{one}_num_heads", 0) for one in ("q", "kv"))
        if len(widths) < 3 or not queries or not states or not all(widths):
            sentence = "the size of its query, key or value is unknown"
            raise site.refused("unknown-size", sentence)
        rows, rule = widths[0] // queries, text(node, "update_rule", "gated_delta")
        found = cls(
            queries,
            widths[1] // rows,
            states,
            rows,
            widths[2] // states,
            *_outer(sizes),
            _scale(node) or 1 / math.sqrt(rows),
            given(node, 3),
            given(node, 4) if "gated" in rule else "",
            given(node, 5) if "delta" in rule else "",
        )
        fits = widths == [queries * rows, found.keys * rows, states * found.columns]
        fits &= max(queries, states) % min(queries, states) == 0 == states % (found.keys or 1)
        needed = [(found.decay, {states, states * rows})] if "gated" in rule else []
        needed += [(found.beta, {1, states})] if "delta" in rule else []
        fits &= all((dims_of(site.type_of(name)) or (0,))[-1] in sizes for name, sizes in needed)
        if not fits or not found.keys:
            raise site.refused("unknown-size", "its heads do not fit its inputs")
        return found

    @property
    def outputs(self) -> int:
        """The number of heads of the output."""
        return max(self.queries, self.states)


def _outer(sizes: list[tuple[Dim, ...]]) -> tuple[Dim, Dim]:
    """The batch and the number of steps, from whichever input tells."""
    outer = [[dims[axis] for dims in sizes] for axis in (0, 1)]
    batch, steps = (next((dim for dim in dims if isinstance(dim, int)), dims[0]) for dims in outer)
    return batch, steps


def _scale(node: NodeProto) -> float:
    found = [float(one.f) for one in node.attribute if one.name == "scale"]
    return found[0] if found else 0.0


def check_floats(site: Site) -> None:
    """Raises: Refused: `not-float`."""
    kinds = {elem_type_of(site.type_of(name)) for name in site.node.input if name}
    if kinds != {TensorProto.FLOAT}:
        names = ", ".join(helper.tensor_dtype_to_string(kind) for kind in sorted(kinds - {0, 1}))
        sentence = f"{op_of(site.node)} is of {names or 'an unknown type'}; only float is known"
        raise site.refused("not-float", sentence)
