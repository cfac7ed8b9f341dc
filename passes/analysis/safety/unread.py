"""What stays in a body though nobody reads it: a model on which it fails must go on failing."""

from __future__ import annotations

from collections.abc import Callable

from passes.analysis.bodies.nested_graphs import NestedGraph
from passes.analysis.safety.selectable import constants_in_body
from passes.analysis.safety.shape_checks import Reading
from passes.analysis.safety.shapes_fit import fits
from passes.loops.form import LoopForm
from passes.rule import Site
from passes.types.value_types import Dims


def doubts_of(
    site: Site, form: LoopForm, dims: Callable[[str], Dims | None] | None = None
) -> frozenset[str]:
    """Outputs of the nodes of a body that are not proven to fit the shapes that they read.

    Also of those that somebody reads: what reads them may turn out to be known, as a Shape does.
    `dims` tells the shapes in the body, where more is known of them than the model says.
    """
    proven = NestedGraph.of(site, form.body, "body").proven_dims
    trusted = dims is None or site.assumes("valid-inputs")
    reading = Reading(site.opset, dims or proven, constants_in_body(site), trusted)
    return frozenset(
        name for node in form.body.node if not fits(node, reading) for name in node.output if name
    )
