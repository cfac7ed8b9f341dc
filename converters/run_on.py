"""Rows that run on behind their end: no mask in the loop, the last valid state taken afterwards.

Only where every op of the body may run on any values. All states are collected, and the state of
each row is looked up at its length; that costs memory, and saves a select in every iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from onnx import GraphProto, helper

from converters.batched_scan import BatchedScan, RowType
from converters.ragged_batch import Ragged
from passes import scope as scoping
from passes.loop_form import Carried, Collected, Kind, LoopForm, Scanned
from passes.operators import op_of
from passes.purposes import HANDLE_LENGTH_0
from passes.scan_axes import write_scan
from passes.vectorize.selection import choose, row_mask

#: The most elements of a state, per row and iteration, that are worth collecting.
_MOST_ELEMENTS = 1 << 16


def may_run_on(scan: BatchedScan) -> bool:
    """Whether the states are small enough to collect all of them."""
    return all(_elements(state) <= _MOST_ELEMENTS for state in scan.states)


def _elements(state: RowType) -> int:
    return prod(dim for dim in state.dims if isinstance(dim, int))


@dataclass(frozen=True)
class RunOn:
    """The Scan over the whole batch, and what takes its outputs apart."""

    ragged: Ragged

    def write(self, outputs: Sequence[str], name: str) -> None:
        """Write the Scan, then final states and collected values under the names in `outputs`."""
        ragged = self.ragged
        author, count = ragged.author, len(ragged.scan.states)
        fed = ragged.sequences()
        graph, histories = self._with_histories(ragged.at.rows.graph)
        body = ragged.at.whole(graph, scoping.output_names(graph)).graph
        inputs, results = scoping.input_names(body), scoping.output_names(body)
        raw = [author.fresh(f"{result}/run") for result in results[count:]]
        form = LoopForm(
            kind=Kind.SCAN,
            body=body,
            carried=tuple(
                Carried(initial, inside, result, author.fresh(f"{result}/beyond"))
                for initial, inside, result in zip(
                    ragged.scan.initials, inputs[:count], results[:count], strict=True
                )
            ),
            scanned=tuple(
                Scanned(tensor, inside, 1)
                for tensor, inside in zip(fed, inputs[count:], strict=True)
            ),
            collected=tuple(
                Collected(result, kept) for result, kept in zip(results[count:], raw, strict=True)
            ),
        )
        write_scan(author, form, name=name, rows=1)
        for index, state in enumerate(ragged.scan.states):
            self._last(raw[histories[index]], index, state, outputs[index])
        elements = ragged.scan.elements
        for result, output, element in zip(
            raw[: len(elements)], outputs[count:], elements, strict=True
        ):
            ragged.rows.padded(result, element.elem_type, output)

    def _with_histories(self, body: GraphProto) -> tuple[GraphProto, list[int]]:
        """The body, with every state collected, too, and where among the collected values.

        A collected value that is the state already serves as its history.
        """
        graph = GraphProto()
        graph.CopyFrom(body)
        count = len(self.ragged.scan.states)
        producers = {name: node for node in body.node for name in node.output}

        def source(name: str) -> str:
            while name in producers and op_of(producers[name]) == "Identity":
                name = producers[name].input[0]
            return name

        collected = [source(value.name) for value in body.output[count:]]
        places = []
        for value in body.output[:count]:
            if source(value.name) not in collected:
                collected.append(source(value.name))
                own = graph.output.add()
                own.CopyFrom(value)
                own.name = self.ragged.at.author.fresh(f"{value.name}/history")
                graph.node.append(helper.make_node("Identity", [value.name], [own.name]))
            places.append(collected.index(source(value.name)))
        return graph, places

    def _last(self, history: str, index: int, state: RowType, output: str) -> None:
        """The state after the last valid iteration of each row; the initial one at length 0."""
        ragged, author = self.ragged, self.ragged.author
        final = ragged.rows.last(history)
        if ragged.lengths.may_be_zero:
            with author.serving(HANDLE_LENGTH_0):
                zero = author.constant(np.zeros(1, np.int64), "ints")
                ran = author.op("Greater", ragged.lengths.vector, zero)
                mask = row_mask(author, ran, len(state.dims))
                initial = ragged.scan.initials[index]
                final = choose(author, mask, final, initial, state.elem_type)
        author.op("Identity", final, outputs=[output])
