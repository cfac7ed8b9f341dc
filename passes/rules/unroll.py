"""The rule `unroll`: a loop of a static trip count becomes straight-line code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from onnx import NodeProto, TensorProto, ValueInfoProto, helper

from passes import facts, spelling
from passes import scope as scoping
from passes.author import Author
from passes.loop_form import Collected, Kind, LoopForm, Scanned
from passes.rule import Edit, Refused, Site, register
from passes.rules.iteration import SharedBody, write_iteration
from passes.value_types import dims_of, elem_type_of

MOST_NODES = 100_000


def considers(node: NodeProto, opset: int, target: int) -> bool:
    """Whether a node is a Loop, or a Scan of version 9 or later."""
    if not scoping.is_onnx_domain(node.domain):
        return False
    return node.op_type == "Loop" or (node.op_type == "Scan" and opset >= 9)


@register("unroll", considers=considers, optional=True)
def unroll(site: Site) -> Edit:
    """Write out every iteration of a loop whose trip count is static.

    Before:

        y, z = Scan <num_scan_inputs = 1, body = step (...) { t = Add (s, x_t) }> (h, x)

    After (a length of 2):

        "x_t/it0" = Gather (x, 0)
        "t/it0" = Add (h, "x_t/it0")
        "x_t/it1" = Gather (x, 1)
        y = Add ("t/it0", "x_t/it1")
        z = Concat (...)

    Weights of the body are shared by all iterations; nodes say in their metadata which iteration
    they were written for. Innermost loops go first.

    Refuses:
    - `trip-count-not-static`: how often the loop runs is only known when the model runs
    - `condition`: the loop may end earlier than its trip count says
    - `too-many-nodes`: the iterations would take more nodes than `--max-nodes` allows
    - `unknown-shape`: no iteration runs, and the shape of a collected element is not known
    """
    form = LoopForm.from_node(site.node, site.opset)
    trips = _trips(site, form)
    author = Author(site.target, site.names, site.node.name or site.node.op_type.lower())
    unrolling = _Unrolling(site, form, author, trips)
    unrolling.write()
    return Edit(
        tuple(author.nodes),
        tuple(author.constants),
        tuple(unrolling.value_info),
        note=f"{trips} iterations",
    )


def _trips(site: Site, form: LoopForm) -> int:
    """The trip count, small enough.

    Raises:
        Refused: it is not static, a condition may end the loop earlier, or it is too large.
    """
    known = facts.trip_count(site, form)
    if form.kind is Kind.LOOP and known.at_most:
        raise Refused(
            "condition",
            "the body computes a condition that may end the loop before its trip count",
            [site.path],
        )
    if not isinstance(known.size, int):
        raise Refused(
            "trip-count-not-static",
            f"the loop runs {known} times, which is only known when the model runs",
            [site.path, form.trip_count or form.scanned[0].tensor],
        )
    nodes = known.size * max(1, _size(form.body.node))
    most = int(site.options.get("max_nodes", MOST_NODES))
    if nodes > most:
        fits = max(1, most // max(1, _size(form.body.node)))
        raise Refused(
            "too-many-nodes",
            f"{known.size} iterations of {_size(form.body.node)} nodes are {nodes}, at most "
            f"{most} are allowed; {fits} iterations would fit",
            [site.path],
        )
    return known.size


def _size(nodes: Sequence[NodeProto]) -> int:
    """How many nodes there are, at every depth."""
    return sum(1 + sum(_size(graph.node) for _, graph in scoping.subgraphs(node)) for node in nodes)


@dataclass
class _Unrolling:
    site: Site
    form: LoopForm
    author: Author
    trips: int

    def __post_init__(self) -> None:
        self.value_info: list[ValueInfoProto] = []
        self.collected: list[list[str]] = [[] for _ in self.form.collected]

    def write(self) -> None:
        """Write the iterations, then what was collected."""
        body = SharedBody.of(self.form.body, self.author)
        self.author.adopt([], body.constants)
        states = [one.initial for one in self.form.carried]
        form = replace(self.form, body=body.graph)
        inputs = form.body_inputs[: len(form.body_inputs) - len(form.constant_inputs)]
        offset = 1 if form.condition else 0
        for index in range(self.trips):
            values = [*self._head(index), *states, *self._elements(index)]
            written = write_iteration(
                self.author, body.graph, dict(zip(inputs, values, strict=True)), f"it{index}"
            )
            self.author.adopt(written.nodes)
            self.value_info += written.value_info
            results = written.outputs[offset:]
            states = results[: len(states)]
            for kept, name in zip(self.collected, results[len(states) :], strict=True):
                kept.append(name)
        for carried, state in zip(form.carried, states, strict=True):
            if carried.final:
                self.author.op("Identity", state, outputs=[carried.final])
        for one, rows in zip(form.collected, self.collected, strict=True):
            if one.tensor:
                self._collect(one, rows)

    def _head(self, index: int) -> list[str]:
        """The iteration number and the condition of a Loop."""
        if self.form.condition is None:
            return []
        return [self.author.int(index), self.author.constant(np.array(True), "true")]

    def _elements(self, index: int) -> list[str]:
        return [
            self._element(one, self.trips - 1 - index if one.reversed else index)
            for one in self.form.scanned
        ]

    def _element(self, one: Scanned, at: int) -> str:
        author = self.author
        if elem_type_of(self.site.type_of(one.tensor)) != TensorProto.STRING:
            return author.op("Gather", one.tensor, author.int(at), axis=one.axis)
        # onnxruntime's Gather copies only the first string of a row.
        axis = author.ints(one.axis)
        row = author.op("Slice", one.tensor, author.ints(at), author.ints(at + 1), axis)
        return spelling.squeeze(author, row, one.axis)

    def _collect(self, one: Collected, rows: Sequence[str]) -> None:
        author = self.author
        if not rows:
            author.op("Identity", self._nothing(one), outputs=[one.tensor])
            return
        ordered = list(reversed(rows)) if one.reversed else list(rows)
        lifted = [spelling.unsqueeze(author, row, one.axis) for row in ordered]
        author.op("Concat", *lifted, outputs=[one.tensor], axis=one.axis)

    def _nothing(self, one: Collected) -> str:
        """A collected output of no iterations, typed and shaped."""
        known = self.site.body_type_of("body", one.body_output)
        dims = dims_of(known)
        if dims is None or not all(isinstance(dim, int) for dim in dims):
            raise Refused(
                "unknown-shape",
                f"no iteration runs, and the shape of {one.body_output!r} is not known",
                [self.site.path, one.body_output],
            )
        shape = [int(dim) for dim in dims if isinstance(dim, int)]
        shape.insert(one.axis % (len(shape) + 1), 0)
        if elem_type_of(known) == TensorProto.STRING:
            return self.author.strings([], tuple(shape))
        dtype = helper.tensor_dtype_to_np_dtype(elem_type_of(known))
        return self.author.constant(np.zeros(shape, dtype), "empty")
