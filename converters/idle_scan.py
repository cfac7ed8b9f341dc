"""A Scan-8 in which no iteration runs: an empty batch, no time, or all lengths 0."""

from __future__ import annotations

import numpy as np

from converters.batched_scan import BatchedScan
from converters.sequence_lens import same_sizes
from passes import spelling
from passes.author import Author
from passes.purposes import GUARD_SIZES, HANDLE_NOTHING
from passes.rule import Site
from passes.rules.element_sizes import size_of


def has_elements(author: Author, scan: BatchedScan) -> str:
    """Whether there is a batch and a time, a scalar bool."""
    first = scan.sequences[0]
    with author.serving(HANDLE_NOTHING):
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
    with idle.serving(GUARD_SIZES):
        agree = spelling.both(idle, conditions) if conditions else ""
        states = [spelling.must(idle, value, agree) for value in scan.initials if agree]
    states = states or [idle.op("Identity", value) for value in scan.initials]
    given = filter(None, site.node.input)  # what guards made of them has no known type
    read = [*scan.initials, *scan.sequences, *given, *scan.form.captured]
    collected = []
    for element in scan.elements:
        dims = [size_of(idle, site, read, dim) for dim in element.dims]
        shape = idle.op("Concat", *sizes, *dims, axis=0)
        if agree:
            with idle.serving(GUARD_SIZES):
                shape = spelling.must_count(idle, shape, agree)
        collected.append(spelling.zeros(idle, shape, element.elem_type))
    return [*states, *collected]
