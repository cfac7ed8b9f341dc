"""The rule `fuse-scans`: Scans beside each other become one Scan."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial

from onnx import GraphProto, NodeProto

from loop_rules.siblings import Siblings
from passes.analysis.bodies.context import context_of
from passes.analysis.trip_count.trip_count import declared_size
from passes.ir import scope as scoping
from passes.ir.names import Names
from passes.ir.operators import op_of
from passes.ir.protos import copied
from passes.ir.versions import SCAN_HAS_AXES
from passes.loops.form import LoopForm
from passes.rule import Edit, Site, nodes_of, register
from passes.types.value_types import is_static


@register("fuse-scans", considers=nodes_of("Scan", "If", since=SCAN_HAS_AXES), optional=True)
def fuse_scans(site: Site) -> Edit:
    """Run Scans of equal trip counts as one Scan if none depends on another.

    Before:

        s, ys = Scan <num_scan_inputs = 1, body = one (float[W] s_in, float[W] x) => (...) {
            ...
        }> (s0, xs)
        t, zs = Scan <num_scan_inputs = 1, body = other (float[W] t_in, float[W] u) => (...) {
            ...
        }> (t0, us)

    After:

        s, t, ys, zs = Scan <num_scan_inputs = 2, body = one (
            float[W] s_in, float[W] t_in, float[W] x, float[W] u
        ) => (...) {
            ...
            ...
        }> (s0, t0, xs, us)

    Each iteration takes a fixed time to start, which is saved. Two heads are such Scans, or two
    directions: each tensor keeps its own. If results of the first are read before the last,
    their readers move after it. Ifs of one condition that hold a Scan each become one If, so
    that these come together. A Loop is raised to a Scan first.

    Refuses:
    - `trip-counts`: it is not proven that a Scan beside it runs as many iterations
    - `fixed-order`: a node that would have to move draws random numbers, or holds Scans
    - `not-worth-it`: the work of an iteration takes much longer than its start
    """
    found = Siblings.of(site)
    owner = site.scope.owner
    copies = _apart(site, [member.site.node for member in found.members])
    moved = [copied(owner.node[position]) for position in found.behind]
    if op_of(site.node) == "If":
        one, what = _one_if(copies), "Ifs"
        positions = {position for member in found.members for position in member.context}
        context = tuple(owner.node[position] for position in sorted(positions))
    else:
        forms = [LoopForm.from_node(copy, site.opset) for copy in copies]
        one, what = _fused(forms).to_node(), "Scans"
        context = _context(site, forms)
    return Edit(
        (one, *moved),
        note=f"{len(copies)} {what} in one",
        covered=tuple(sorted(found.positions - {site.place.index})),
        context=context,
    )


def _context(site: Site, forms: Sequence[LoopForm]) -> tuple[NodeProto, ...]:
    """The nodes from which it follows that the trip counts are equal."""
    scanned = [scanned for form in forms for scanned in form.scanned]
    sizes = (declared_size(site, read.tensor, read.axis) for read in scanned)
    if is_static(sizes):
        return ()
    return context_of(site, (read.tensor for read in scanned))


def _apart(site: Site, nodes: Sequence[NodeProto]) -> list[NodeProto]:
    """Copies, in whose bodies no name or node is that of another, or of a value around them."""
    taken: defaultdict[str, set[str]] = defaultdict(set)
    names: defaultdict[str, Names] = defaultdict(Names)
    copies = []
    for node in nodes:
        copy = copied(node)
        copies.append(copy)
        for part, body in scoping.subgraphs(copy):
            scoping.rename_all(body, partial(_own, site, taken[part]))
            taken[part].update(scoping.all_names([body]))
            for inner in body.node:
                inner.name = inner.name and names[part].fresh(inner.name)
    return copies


def _own(site: Site, taken: Collection[str], name: str) -> str:
    return site.fresh(name) if name in taken or site.is_visible(name) else name


def _one_if(nodes: Sequence[NodeProto]) -> NodeProto:
    """One If with the branches of all of these."""
    first, *others = nodes
    for other in others:
        first.output.extend(other.output)
    for part, branch in scoping.subgraphs(first):
        same = [dict(scoping.subgraphs(other))[part] for other in others]
        branch.CopyFrom(_one_body([branch, *same]))
    return first


def _fused(forms: Sequence[LoopForm]) -> LoopForm:
    """One loop that does what these do."""
    first = forms[0]
    return replace(
        first,
        body=_one_body([form.body for form in forms]),
        carried=tuple(carried for form in forms for carried in form.carried),
        scanned=tuple(scanned for form in forms for scanned in form.scanned),
        collected=tuple(collected for form in forms for collected in form.collected),
        constant_inputs=tuple(name for form in forms for name in form.constant_inputs),
    )


def _one_body(bodies: Iterable[GraphProto]) -> GraphProto:
    """A body with the nodes of all of these, and what these read and return."""
    first, *others = bodies
    body = copied(first)
    for other in others:
        for field in _FIELDS:
            getattr(body, field).extend(getattr(other, field))
    return body


_FIELDS = (
    *("node", "input", "output", "value_info", "initializer", "sparse_initializer"),
    "quantization_annotation",
)
