"""Nodes of a loop that nobody reads, where the loop goes."""

from __future__ import annotations

from collections.abc import Iterable

from onnx import NodeProto

from passes.analysis.safety.randomness import first_random
from passes.ir.operators import op_of
from passes.rule import Refused
from passes.rules.time_axis.time_body import TimeBody
from passes.rules.time_axis.without_iterations import may_fail, may_not_fit


def check_dropped(body: TimeBody, positions: Iterable[int]) -> None:
    """See that the nodes at these positions, which nobody reads, may go with the loop.

    Raises:
        Refused: `random` or `may-fail` where one may not.
    """
    path = body.site.path
    assumed = body.site.assumes("valid-inputs")
    for at in positions:
        node = body.nodes[at]
        if first_random(body.site.model, [node]) is not None:
            raise random_node(node, path)
        if not assumed and (may_fail(body, node) or may_not_fit(body, node)):
            raise Refused(
                "may-fail",
                f"nobody reads {list(node.output)}, but {op_of(node)} could fail",
                [path, *node.output],
            )


def random_node(node: NodeProto, path: str) -> Refused:
    """The refusal of a node that draws."""
    sentence = f"{op_of(node)} {list(node.output)} draws anew in every iteration"
    return Refused("random", sentence, [path, *node.output])
