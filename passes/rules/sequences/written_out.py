"""SplitToSequence and SequenceMap of known lengths, written out as tensors and a sequence of them.

The SequenceConstruct after them is removed once its readers read the tensors.
"""

from __future__ import annotations

from dataclasses import dataclass

from passes.analysis.bodies.context import context_of
from passes.analysis.integers.integers import Integers
from passes.analysis.sizes.static_sizes import stands_in_loop
from passes.bodies.copy_budget import allow, refuse_random
from passes.bodies.iteration import write_iteration
from passes.bodies.shared_body import SharedBody
from passes.ir import scope as scoping
from passes.ir.attributes import attribute
from passes.ir.versions import AXES_ARE_INPUTS
from passes.loops.form import Kind, LoopForm
from passes.rule import Edit, Refused, Site
from passes.rules.sequences.elements import elements_of, with_numbers
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
    return Edit(
        tuple(author.nodes),
        tuple(author.constants),
        note=_count(len(parts), "part"),
        context=context_of(site),
    )


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


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def map_out(site: Site) -> Edit:
    """Write the body of a SequenceMap once for each element.

    Raises:
        Refused: `length-unknown` and the like, `lengths-differ`, `type-unknown`, `random` or
            `too-many-nodes`.
        NothingToDo: an input is rewritten first.
    """
    return _Mapping(site).edit()


@dataclass(frozen=True)
class _Mapping:
    site: Site

    def edit(self) -> Edit:
        """The nodes for all elements."""
        site, node = self.site, self.site.node
        held = {name: elements_of(site, name) for name in node.input if self._is_sequence(name)}
        count = len(held[node.input[0]].names)
        for name, elements in held.items():
            if len(elements.names) != count:
                raise site.refused(
                    "lengths-differ",
                    f"{name!r} has {_count(len(elements.names), 'element')}, "
                    f"{node.input[0]!r} {count}",
                    name,
                )
        (body,) = [graph for _, graph in scoping.subgraphs(node)]
        refuse_random(site, body.node if count > 1 else ())
        allow(site, LoopForm(Kind.LOOP, body), count)
        author = Author(site.target, site.names, node.name or "map")
        shared = SharedBody.of(body, author, site.is_visible)
        author.adopt(shared.nodes, shared.constants)
        names = scoping.input_names(shared.graph)
        written = []
        for index in range(count):
            fed = [held[name].names[index] if name in held else name for name in node.input]
            tag = f"it{index}"
            written.append(
                write_iteration(author, shared, dict(zip(names, fed, strict=False)), tag)
            )
            author.adopt(written[-1].nodes)
        for position, (name, inner) in enumerate(
            zip(node.output, scoping.output_names(body), strict=True)
        ):
            if name:
                results = [one.outputs[position] for one in written]
                elem_type = elem_type_of(site.body_type_of("body", inner))
                _construct(site, author, name, results, elem_type)
        behind = {step.output[0]: step for elements in held.values() for step in elements.nodes}
        annotations = (one for iteration in written for one in iteration.annotations)
        return Edit(
            tuple(author.nodes),
            tuple(author.constants),
            tuple(value for iteration in written for value in iteration.value_info),
            note=_count(count, "element"),
            context=with_numbers(site, behind.values()),
            annotations=(*shared.annotations, *annotations),
        )

    def _is_sequence(self, name: str) -> bool:
        """Return whether an input is a sequence, not a tensor, which every iteration gets."""
        known = self.site.type_of(name)
        kind = None if known is None else known.WhichOneof("value")
        if kind is None and name != self.site.node.input[0]:
            raise self.site.refused("type-unknown", f"{name!r} may be a sequence or a tensor", name)
        return kind != "tensor_type"
