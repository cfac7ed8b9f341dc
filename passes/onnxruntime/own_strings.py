"""Strings in a Loop that collects strings: onnxruntime moves these out of what the body returns,
and so out of an outer value or a constant that an Identity copies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from onnx import NodeProto, TensorProto, helper

from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.ir.versions import HAS_WHERE
from passes.operators.table import traits_of
from passes.rule import Edit, Site
from passes.types.value_types import elem_type_of
from passes.writing.author import Author


def with_own_strings(site: Site, edit: Edit) -> Edit:
    """Return an Edit that copies strings which it would only pass on, in such a Loop."""
    if site.scope.outer is None:
        return edit
    handed = [node for node in edit.nodes if _hands_on_text(site, node)]
    if not handed or site.target < HAS_WHERE or not _is_emptied(site):
        return edit
    producers = {name: node for node in edit.nodes for name in node.output}
    texts = {
        node.output[0]: node.input[0]
        for node in handed
        if _shares(producers.get(node.input[0]) or _producer(site, node.input[0]))
    }
    author = Author.at(site)
    true = author.value(np.array(True), "true") if texts else ""
    copies = {
        name: helper.make_node("Where", [true, text, text], [name]) for name, text in texts.items()
    }
    nodes = tuple(copies.get(node.output[0], node) if node.output else node for node in edit.nodes)
    return replace(edit, nodes=nodes, initializers=(*edit.initializers, *author.constants))


def may_collect_strings(node: NodeProto) -> bool:
    """Return whether a node is a Loop that may collect strings: by what its body declares."""
    if op_of(node) != "Loop":
        return False
    (body,) = (graph for part, graph in scoping.subgraphs(node) if part == "body")
    rows = body.output[len(node.input) - 1 :]
    return any(elem_type_of(row.type) in (0, TensorProto.STRING) for row in rows)


def _hands_on_text(site: Site, node: NodeProto) -> bool:
    """Return whether a node of an Edit only renames strings that the site's node returned."""
    if op_of(node) != "Identity":
        return False
    known = site.type_of(node.output[0]) if node.output[0] in site.node.output else None
    return elem_type_of(known) == TensorProto.STRING


def _producer(site: Site, name: str) -> NodeProto | None:
    return site.model.producer(site.scope.owner, name)


def _shares(producer: NodeProto | None) -> bool:
    """Return whether a value may be, or share the memory of, one that is computed elsewhere."""
    return producer is None or traits_of(producer).hands_on


def _is_emptied(site: Site) -> bool:
    """Return whether a Loop around the site collects strings."""
    return any(may_collect_strings(place.node) for place in site.scope.holders())
