"""What a body computes that nobody reads, though a model on which it fails must go on failing."""

from __future__ import annotations

from passes import scope as scoping
from passes.loop_form import LoopForm
from passes.rule import Site
from passes.rules.selectable import constants_in_body
from passes.rules.shape_checks import Reading
from passes.rules.shapes_fit import fits
from passes.value_types import dims_of


def unread_doubts(site: Site, form: LoopForm) -> frozenset[str]:
    """Outputs of nodes that nobody needs, and that are not proven to fit the shapes they read."""
    reading = Reading(
        site.opset,
        lambda name: dims_of(site.body_type_of("body", name)),
        constants_in_body(site),
        trusted="valid-inputs" in site.options.get("assume", ()),
    )
    needed = set(scoping.output_names(form.body))
    found: set[str] = set()
    for node in reversed(form.body.node):
        if needed.isdisjoint(node.output):
            if scoping.is_onnx_domain(node.domain) and fits(node, reading):
                continue
            found.update(filter(None, node.output))
        needed.update(scoping.free_names(node))
    return frozenset(found)
