"""A Scan-8 in which no iteration runs: an empty batch, no time, or all lengths 0."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from converters.scan_8.batched_scan import BatchedScan
from passes.analysis.sizes.element_sizes import size_of
from passes.rule import Site
from passes.writing import spelling
from passes.writing.author import Author
from passes.writing.purposes import HANDLE_NOTHING


def has_elements(author: Author, scan: BatchedScan, axes: Sequence[int]) -> str:
    """Whether there is a batch (axis 0), a time (axis 1) or both, a scalar bool."""
    with author.serving(HANDLE_NOTHING):
        sizes = [spelling.scalar_size(author, scan.sequences[0], axis) for axis in axes]
        return spelling.both(author, [author.op("Greater", one, author.int(0)) for one in sizes])


def idle_outputs(idle: Author, site: Site, scan: BatchedScan) -> list[str]:
    """The final states and collected values: the initial states, and zeros."""
    sizes = [spelling.size_of_axis(idle, scan.sequences[0], axis) for axis in (0, 1)]
    states = [idle.op("Identity", value) for value in scan.initials]
    collected = []
    for element in scan.elements:
        dims = [size_of(idle, site, scan.form, dim) for dim in element.dims]
        shape = idle.once(("shape", *dims), partial(idle.op, "Concat", *sizes, *dims, axis=0))
        collected.append(spelling.zeros(idle, shape, element.elem_type))
    return [*states, *collected]
