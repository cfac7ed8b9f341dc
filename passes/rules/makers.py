"""Nodes in front of a site that made what it does not read any more."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import FunctionProto, NodeProto

from passes import scope as scoping
from passes.rule import Site
from passes.rules.levels import Level
from passes.rules.readers import makers_around, readers_around
from passes.speculation import is_pure


def makers_of_nothing(site: Site, nodes: Sequence[NodeProto]) -> tuple[int, ...]:
    """The positions of the nodes in front of the site that fed nothing but what went with it.

    Only those that cannot fail, unless inputs are taken for valid; none of a function.
    """
    owner, readers, makers = site.scope.owner, readers_around(site), makers_around(site)
    if isinstance(owner, FunctionProto):
        return ()
    level = Level(site, owner, site.scope)
    valid = "valid-inputs" in site.options.get("assume", ())
    still = {name for node in nodes for name in scoping.free_names(node)}
    gone = {site.place.index}
    pending = [name for name in scoping.free_names(site.node) if name not in still]
    while pending:
        at = makers.get(pending.pop())
        if at is None or at in gone:
            continue
        node = owner.node[at]
        if any(one in still or not gone.issuperset(readers.get(one, ())) for one in node.output):
            continue
        if is_pure(node) and (valid or level.cannot_fail(node)):
            gone.add(at)
            pending += scoping.free_names(node)
    return tuple(sorted(gone - {site.place.index}))
