"""Loops that stand in the branch of an If which is taken only where they run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from passes.analysis.integers.affine import Affine
from passes.analysis.integers.integers import Integers
from passes.ir.operators import op_of
from passes.ir.scope import Place
from passes.loops.form import Kind, LoopForm
from passes.rule import Site


def is_guarded_by_if(site: Site, form: LoopForm) -> bool:
    """Whether a Scan runs at least once where it stands, since an If around it sees to that.

    The condition must compare the size of the very axis that is scanned with a number of 0 or
    more, as `raise-loop` writes it. What rests on this holds in the branch only: an Edit says so
    by `entered`.
    """
    if form.kind is not Kind.SCAN:
        return False
    integers = Integers(site)
    sizes = [integers.size(one.tensor, one.axis) for one in form.scanned]
    return any(
        size is not None and size.at_least(least) for least in _least_sizes(site) for size in sizes
    )


def least_size(site: Site, tensor: str, axis: int) -> int:
    """The least size of an axis of an outer tensor that Ifs around the site let through."""
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
    """Numbers above 0 in every run that gets to the site."""
    return (count for count, bound in _exceeding(site) if bound.at_least(0))


def _exceeding(site: Site) -> Iterator[tuple[Affine, Affine]]:
    """Numbers, and what they exceed in every run that gets to the site."""
    for at in site.scope.chain():
        if at.outer is None:
            return
        index, attribute = at.key[-2:]
        assert isinstance(index, int)
        node = at.outer.owner.node[index]
        if op_of(node) == "If" and attribute == "then_branch":
            found = exceeding(replace(site, place=Place(node, index, at.outer)))
            if found is not None:
                yield found


def exceeding(site: Site) -> tuple[Affine, Affine] | None:
    """A number, and what it exceeds where the If at a site takes its first branch, only there."""
    test = site.model.producer(site.scope.owner, site.node.input[0])
    if test is None or op_of(test) != "Greater":
        return None
    integers = Integers(site)
    count, bound = (integers.outside(name) for name in test.input)
    if count is None or bound is None or count.single is None or bound.single is None:
        return None
    return count.single, bound.single
