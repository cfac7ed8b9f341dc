"""The rule `reroll`: a subgraph that is repeated in a chain becomes a loop."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from onnx import NodeProto

from passes.ir import scope as scoping
from passes.ir.graph_index import GraphIndex
from passes.ir.model import Model
from passes.ir.places import is_loop, walk_model
from passes.ir.scope import Scope
from passes.ir.versions import SCAN_8
from passes.rule import Considers, Edit, NothingToDo, Refused, Site, register
from passes.rules.reroll.chain import FEWEST, Chain, chains, repeats
from passes.rules.reroll.first_copy import FirstCopy
from passes.rules.reroll.flow import Flow
from passes.rules.reroll.results import Results
from passes.rules.reroll.rolling import FirstDiffers, Rolling
from passes.types.type_tables import every_scope

_KEY = "reroll"


@dataclass(frozen=True)
class Found:
    """The site of a graph, and what is repeated there: chains, the first of which is tried first.
    `first`: the first copy that is to be restored before."""

    position: int
    chains: tuple[Chain, ...] = ()
    first: FirstCopy | None = None


def closer(model: Model, target: int) -> Considers | None:
    """Consider the last node of what is repeated, or of a main graph where nothing is."""
    found = [(scope, one) for scope in _scopes(model) if (one := _found(model, scope))]
    nodes = model.proto.graph.node
    if not found and nodes and not any(is_loop(place.node) for place in walk_model(model.proto)):
        main = next(scoping.scopes(model.proto))
        found = [(main, Found(len(nodes) - 1))]
        model.index(main.owner).derived[_KEY] = found[0][1]
    outputs = {name for scope, one in found for name in scope.owner.node[one.position].output[:1]}

    def considers(node: NodeProto, opset: int, target: int) -> bool:
        return opset > SCAN_8 and not outputs.isdisjoint(node.output[:1])

    return considers if outputs and target > SCAN_8 else None


@register("reroll", considers=lambda node, opset, target: False, optional=True, closer=closer)
def reroll(site: Site) -> Edit:
    """Turn a subgraph that is repeated in a chain into a Scan.

    Before:

        x0, x1, x2 = Split <axis = 0, num_outputs = 3> (xs)
        a0 = Squeeze (x0, axes)
        s0 = Add (s, a0)
        a1 = Squeeze (x1, axes)
        s1 = Add (s0, a1)
        a2 = Squeeze (x2, axes)
        s2 = Add (s1, a2)

    After:

        s2 = Scan <num_scan_inputs = 1, body = step (float[W] state, float[W] each) => (...) {
            next = Add (state, each)
        }> (s, xs)

    A copy reads what the one before it computed, the same values and constants as the others, and
    slices of the same tensors. Constants of one type that differ are stacked; weights, which are
    floats that are not all alike, only with `--stack-weights`. What reads a copy alone joins it;
    what all copies give to one Concat is collected. Nodes before and after stay as they are, and so
    does a first copy whose state has another shape. One of which an exporter computed a part, from
    a constant state, first gets its nodes back, if they compute the same constants. The order of
    the nodes in the file does not matter.

    Refuses:
    - `no-repetition`: no subgraph is repeated three times
    - `no-state`: subgraphs are repeated, but none reads what the copy before it computed
    - `weights-differ`: each copy has weights of its own, and `--stack-weights` was not given
    - `inputs-differ`: the copies read values that are not proven to be of one shape
    - `state-changes`: what a copy hands to the next is not proven to keep its shape
    - `unknown-shape`: the type or shape of a value that the loop needs is unknown
    - `random`: a copy draws random numbers
    - `no-gain`: the loop would have as many nodes as it replaces
    """
    found = _found(site.model, site.scope)
    if found is None or found.position != site.place.index:
        raise NothingToDo
    if found.first is not None:
        return found.first.edit(site)
    if not found.chains:
        raise _nothing(site)
    for chain in found.chains[:-1]:
        with suppress(Refused):
            return _rolled(site, Results(chain, site.graph))
    return _rolled(site, Results(found.chains[-1], site.graph))


def _rolled(site: Site, results: Results) -> Edit:
    """The Edit for a chain, perhaps without its first copy."""
    while True:
        try:
            return Rolling(site, results).edit()
        except FirstDiffers as differs:
            chain = results.chain
            if len(chain.copies) == FEWEST:
                raise differs.refused from differs
            results = Results(Chain(chain.flow, chain.copies[1:]), site.graph)


def _nothing(site: Site) -> Refused:
    if repeats(Flow(site.model, site.scope)):
        what = "copies of a subgraph were found, but none reads what the one before it computed"
        return site.refused("no-state", what)
    return site.refused("no-repetition", f"no subgraph is repeated {FEWEST} times")


def _scopes(model: Model) -> Iterator[Scope]:
    for scope in scoping.scopes(model.proto):
        yield from every_scope(scope)


def _found(model: Model, scope: Scope) -> Found | None:
    derived = model.index(scope.owner).derived
    if _KEY not in derived:
        derived[_KEY] = _find(model, scope, model.index(scope.owner))
    found: Found | None = derived[_KEY]
    return found


def _find(model: Model, scope: Scope, index: GraphIndex) -> Found | None:
    for chain in map(FirstCopy.as_states, chains(Flow(model, scope))):
        wider = chain.with_readers()
        longer = wider.with_last()
        closed = [one for one in dict.fromkeys((longer, wider, chain)) if one.is_closed()]
        if closed:
            first = FirstCopy.of(chain)
            if first is not None:
                return Found(first.position, first=first)
            return Found(max(Results(one, index).anchor for one in closed), tuple(closed))
    return None
