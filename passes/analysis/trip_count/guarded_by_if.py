"""Loops in the branch of an If that is taken only where they run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from passes.analysis.integers.affine import Affine, single_of
from passes.analysis.integers.integers import Integers
from passes.ir.operators import op_of
from passes.ir.scope import Place
from passes.loops.form import Kind, LoopForm
from passes.rule import Site


def is_guarded_by_if(site: Site, form: LoopForm) -> bool:
    """Return whether a Scan runs at least once because an If around it ensures that.

    The condition must compare the size of the scanned axis itself with a number of 0 or
    more, as `raise-loop` writes it. What rests on this holds in the branch only: an Edit says so
    by `entered`.
    """
    if form.kind is not Kind.SCAN:
        return False
    integers = Integers(site)
    sizes = [integers.size(scanned.tensor, scanned.axis) for scanned in form.scanned]
    return any(
        size is not None and size.at_least(least) for least in _least_sizes(site) for size in sizes
    )


def least_size(site: Site, tensor: str, axis: int) -> int:
    """The least size of an axis of an outer tensor that Ifs around the site allow."""
    size = Integers(site).size(tensor, axis)
    if size is None:
        return 0
    return max(
        (
            bound.number + 1
            for count, bound in _exceeding(site)
            if bound.number is not None and (size - count).number == 0
        ),
        default=0,
    )


def _least_sizes(site: Site) -> Iterator[Affine]:
    """Numbers that are above 0 whenever the site runs."""
    return (count for count, bound in _exceeding(site) if bound.at_least(0))


def _exceeding(site: Site) -> Iterator[tuple[Affine, Affine]]:
    """Numbers, and what they exceed whenever the site runs."""
    for scope in site.scope.chain():
        if scope.outer is None:
            return
        index, attribute = scope.key[-2:]
        assert isinstance(index, int)
        node = scope.outer.owner.node[index]
        if op_of(node) == "If" and attribute == "then_branch":
            found = exceeding(replace(site, place=Place(node, index, scope.outer)))
            if found is not None:
                yield found


def exceeding(site: Site) -> tuple[Affine, Affine] | None:
    """A number, and what it exceeds exactly where the If at a site takes its first branch."""
    name = site.node.input[0]
    home = site.model.home(site.scope, name)  # an outer graph where `hoist-invariants` moved it
    test = None if home is None else site.model.producer(home.owner, name)
    if home is None or test is None or op_of(test) != "Greater":
        return None
    place = Place(test, site.model.index(home.owner).positions[name], home)
    integers = Integers(replace(site, place=place))
    count, bound = (single_of(integers.outside(name)) for name in test.input)
    return None if count is None or bound is None else (count, bound)
