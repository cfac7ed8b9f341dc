"""Lets rows run past their end: no mask in the loop, the last valid state is selected afterwards.

Only where every op of the body may run on any values. All states are collected, and the state of
each row is looked up at its length; that costs memory, and saves a select in every iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from onnx import GraphProto, helper

from passes.converters.scan_8.batched_scan import BatchedScan, RowType
from passes.converters.scan_8.ragged_batch import Final, Ragged
from passes.ir import scope as scoping
from passes.ir.graph_index import GraphIndex
from passes.ir.protos import copied, named
from passes.loops.form import Carried, Collected, Kind, LoopForm, Scanned
from passes.writing.scan_axes import write_scan

#: The most elements of a state, per row and iteration, that are worth collecting.
_MOST_ELEMENTS = 1 << 16


def may_run_on(scan: BatchedScan) -> bool:
    """Return whether the states are small enough to collect all of them."""
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
        collected = ragged.scan.elements
        fed = ragged.sequences()
        graph, histories = self._with_histories(ragged.ctx.rows.graph)
        body = ragged.ctx.whole(graph, scoping.output_names(graph)).graph
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
                Collected(result, kept, 1)
                for result, kept in zip(results[count:], raw, strict=True)
            ),
        )
        write_scan(author, form, name=name, rows=1, may_be_empty=ragged.may_be_empty)
        finals: dict[int, Final] = {}
        for index, history in enumerate(histories):
            final = Final(ragged.scan.initials[index], outputs[index])
            if finals.setdefault(history, final) is not final:  # two states that are the same
                ragged.rows.write(raw[history], ragged.scan.states[index], final=final)
        of_states = [
            ragged.scan.states[histories.index(position)]
            for position in range(len(collected), len(raw))
        ]
        for position, element in enumerate([*collected, *of_states]):
            output = outputs[count + position] if position < len(collected) else ""
            ragged.rows.write(raw[position], element, output, finals.get(position))

    def _with_histories(self, body: GraphProto) -> tuple[GraphProto, list[int]]:
        """The body, with every state collected, too, and where among the collected values.

        A collected value that is the state already serves as its history.
        """
        graph = copied(body)
        count = len(self.ragged.scan.states)
        source = GraphIndex(body).source
        collected = [source(value.name) for value in body.output[count:]]
        places = []
        for value in body.output[:count]:
            if source(value.name) not in collected:
                collected.append(source(value.name))
                own = self.ragged.ctx.author.fresh(f"{value.name}/history")
                graph.output.append(named(value, own))
                graph.node.append(helper.make_node("Identity", [value.name], [own]))
            places.append(collected.index(source(value.name)))
        return graph, places
