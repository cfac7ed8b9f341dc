"""A Scan-8 in which no iteration runs: an empty batch, no time, or all lengths 0."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from converters.batched_scan import BatchedScan
from converters.sequence_lens import same_sizes
from passes import spelling
from passes.author import Author
from passes.rule import Site
from passes.value_types import Dim, dims_of


def has_elements(author: Author, scan: BatchedScan) -> str:
    """Whether there is a batch and a time, a scalar bool."""
    first = scan.sequences[0]
    batch = spelling.size_of_axis(author, first, 0)
    time = spelling.size_of_axis(author, first, 1)
    product = spelling.squeeze(author, author.op("Mul", batch, time), 0)
    return author.op("Greater", product, author.constant(np.array(0, np.int64), "int"))


def idle_outputs(idle: Author, site: Site, scan: BatchedScan, *, checked: bool) -> list[str]:
    """The final states and collected values: the initial states, and zeros.

    Where sizes were not `checked` yet they are here, since no loop compares them.
    """
    first = scan.sequences[0]
    sizes = [spelling.size_of_axis(idle, first, axis) for axis in (0, 1)]
    conditions = [] if checked else same_sizes(idle, scan)
    agree = spelling.both(idle, conditions) if conditions else ""
    states = [
        spelling.must(idle, value, agree) if agree else idle.op("Identity", value)
        for value in scan.initials
    ]
    collected = []
    for element in scan.elements:
        dims = [_size(idle, site, scan, dim) for dim in element.dims]
        shape = idle.op("Concat", *sizes, *dims, axis=0)
        shape = spelling.must_count(idle, shape, agree) if agree else shape
        collected.append(spelling.zeros(idle, shape, element.elem_type))
    return [*states, *collected]


def _size(idle: Author, site: Site, scan: BatchedScan, dim: Dim) -> str:
    """A dim of a collected value: static, or a symbol that some input has too; else 0."""
    if isinstance(dim, int):
        return idle.ints(dim)
    for value in (*scan.initials, *scan.sequences):
        dims: Sequence[Dim] = dims_of(site.type_of(value)) or ()
        if dim is not None and dim in dims:
            return spelling.size_of_axis(idle, value, dims.index(dim))
    return idle.ints(0)
