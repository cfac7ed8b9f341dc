"""Unused nodes of a loop that is removed."""

from __future__ import annotations

from collections.abc import Iterable

from onnx import NodeProto

from passes.analysis.safety.may_fail import may_go
from passes.analysis.safety.randomness import first_random
from passes.bodies.time_body import TimeBody
from passes.choices import Assumption
from passes.ir.operators import op_of
from passes.rule import Refused, Site


def check_dropped(body: TimeBody, positions: Iterable[int]) -> None:
    """Check that the unused nodes at these positions may go with the loop.

    Raises:
        Refused: `random` or `may-fail` where one may not.
    """
    assumed = body.site.assumes("valid-inputs")
    known = body.rows.known(body.site.target, trusted=False)
    for position in positions:
        node = body.nodes[position]
        if first_random(body.site.model, [node]) is not None:
            raise random_node(body.site, node)
        if not assumed and not may_go(node, known):
            what = f"nothing reads {list(node.output)}, but {op_of(node)} could fail"
            promise = (Assumption.valid_inputs,)
            raise body.site.refused("may-fail", what, *node.output, assume=promise)


def random_node(site: Site, node: NodeProto) -> Refused:
    """The refusal of a node that draws random numbers."""
    sentence = f"{op_of(node)} {list(node.output)} draws random numbers in every iteration"
    return site.refused("random", sentence, *node.output)
