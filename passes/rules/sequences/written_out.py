"""SplitToSequence into a known number of parts, written as a Split and a sequence of its outputs.

The SequenceConstruct after them is removed once its readers read the tensors.
"""

from __future__ import annotations

from dataclasses import replace

from passes.analysis.bodies.context import context_of
from passes.analysis.integers.computed import stands_in_loop
from passes.analysis.integers.integers import Integers
from passes.ir.attributes import attribute
from passes.ir.versions import AXES_ARE_INPUTS
from passes.rule import Edit, Refused, Site
from passes.types.value_types import elem_type_of
from passes.writing import spelling
from passes.writing.author import Author


def split_up(site: Site) -> Edit:
    """Write a SplitToSequence as a Split.

    Raises:
        Refused: `length-unknown`, `keepdims-unclear`, `type-unknown` or `too-many-nodes`.
    """
    node, author = site.node, Author.at(site, "split")
    given = len(node.input) > 1 and bool(node.input[1])
    keeps = attribute(node, "keepdims", 1) != 0
    sizes = _sizes(site, given)
    if len(sizes) > site.options.max_nodes:
        raise site.refused(
            "too-many-nodes",
            f"{len(sizes)} parts are more than the {site.options.max_nodes} nodes that are allowed",
        )
    axis = attribute(node, "axis", 0) or 0
    parts = [author.fresh(f"part{index}") for index in range(len(sizes))]
    if len(parts) == 1 and not given:
        parts = [node.input[0]]
    elif site.target < AXES_ARE_INPUTS and parts:
        author.op("Split", node.input[0], outputs=parts, axis=axis, split=sizes)
    elif parts:
        author.op("Split", node.input[0], author.ints(*sizes), outputs=parts, axis=axis)
    if not keeps and not given:
        parts = [spelling.squeeze(author, part, axis) for part in parts]
    _construct(site, author, node.output[0], parts, elem_type_of(site.type_of(node.input[0])))
    edit = author.edit(f"{len(parts)} part{'s' * (len(parts) != 1)}")
    return replace(edit, context=context_of(site))


def _sizes(site: Site, given: bool) -> list[int]:
    """The sizes of the parts."""
    node, integers = site.node, Integers(site)
    chunk = None
    if given:
        found = integers.outside(node.input[1])
        numbers = [] if found is None else [item.number for item in found.items]
        known = [number for number in numbers if number is not None]
        if found is None or len(known) < len(numbers):
            raise _unknown(site, node.input[1], "the sizes of the parts are known only at run time")
        if found.rank:
            return known
        chunk = known[0]
        if not attribute(node, "keepdims", 1):
            raise site.refused(
                "keepdims-unclear",
                f"{node.input[1]!r} is a single size, beside which the operator document ignores "
                "`keepdims`, but onnxruntime does not",
                node.input[1],
            )
    home = site.model.home(site.scope, node.input[0])
    size = integers.size(node.input[0], attribute(node, "axis", 0) or 0)
    if home is None or stands_in_loop(home) or size is None or size.number is None:
        raise _unknown(site, node.input[0], "the size of the axis is known only at run time")
    if chunk is None:
        return [1] * size.number
    if chunk < 1:
        raise _unknown(site, node.input[1], f"parts of {chunk} fail, and so must the new model")
    whole, rest = divmod(size.number, chunk)
    return [chunk] * whole + [rest] * bool(rest)


def _unknown(site: Site, name: str, why: str) -> Refused:
    what = f"into how many parts {site.node.input[0]!r} is split is unknown: {why}"
    return site.refused("length-unknown", what, name)


def _construct(site: Site, author: Author, name: str, parts: list[str], elem_type: int) -> None:
    """Write a sequence of these tensors."""
    if parts:
        author.op("SequenceConstruct", *parts, outputs=[name])
    elif elem_type:
        author.op("SequenceEmpty", outputs=[name], dtype=elem_type)
    else:
        raise site.refused(
            "type-unknown", f"{name!r} is empty, of an element type that is unknown", name
        )
