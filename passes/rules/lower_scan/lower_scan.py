"""The rule `lower-scan`: a Scan becomes a Loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onnx import GraphProto, TensorProto

from passes.analysis.trip_count.trip_count import TripCount
from passes.bodies.moving import place_rows
from passes.bodies.time_length import length_of
from passes.ir import scope as scoping
from passes.ir.protos import copied
from passes.ir.versions import LOOP_MAY_CARRY_NOTHING, SLICE_HAS_INPUTS
from passes.loops.form import Carried, Collected, Condition, Kind, LoopForm
from passes.rule import SCANS, Edit, Site, register
from passes.rules.lower_scan.lowered_body import LoweredBody
from passes.types.value_types import dims_of, elem_type_of
from passes.writing import spelling
from passes.writing.author import Author


@register("lower-scan", considers=SCANS)
def lower_scan(site: Site) -> Edit:
    """Turn a Scan into a Loop over the iteration number.

    Before:

        y, z = Scan <num_scan_inputs = 1, scan_input_directions = [1], body> (h0, x)

    After:

        y, z = Loop (T, "") <body = step (int64 i, bool go, float[H] h) => (...) {
            at = Sub (last, i)
            x_t = Gather (x, at)
            ...
        }> (h0)

    The trip count is the scanned length, constant where it is static. Outputs that are collected
    on another axis or in reverse are rearranged after the loop. Scanned lengths that are not
    provably equal, and states whose shape is not provably stable, get a guard that makes the
    Loop fail where the Scan would have; `--assume valid-inputs` leaves it out.

    Refuses:
    - `unknown-rank`: an output is collected on another axis, but its rank is not known
    - `unknown-type`: the type of a value that the body reads is neither declared nor inferred
    - `strings`: before opset 10, strings are collected in reverse
    - `attribute-reference`: a function attribute decides how many tensors it scans, or how
    """
    form = LoopForm.from_node(site.node, site.opset)
    lowering = _Lowering(site, form, Author.at(site, "loop"))
    lowering.write()
    return lowering.author.edit(f"Loop, {lowering.trips} trips")


@dataclass(frozen=True)
class _Lowering:
    site: Site
    form: LoopForm
    author: Author

    @property
    def trips(self) -> str:
        """The trip count, for the report."""
        return str(TripCount(self.site, self.form))

    @property
    def valid_inputs(self) -> bool:
        """True if inputs on which the Scan fails may be ignored."""
        return self.site.assumes("valid-inputs")

    @property
    def needs_company(self) -> bool:
        """True if a dummy value is to be carried, which Loop-1 requires."""
        return not self.form.carried and self.author.opset < LOOP_MAY_CARRY_NOTHING

    def write(self) -> None:
        """Write the trip count, the Loop, and what rearranges its outputs."""
        count = length_of(self.site, self.author, self.form.scanned).size
        trips = spelling.squeeze(self.author, count, 0)
        last = ""
        if any(scanned.reversed for scanned in self.form.scanned):
            last = self.author.op("Sub", trips, self.author.int(1))
        body = LoweredBody(
            self.site, self.form, self.author, self._renamed_body(), self.needs_company
        ).graph(last)
        placed = [collected.axis != 0 or collected.reversed for collected in self.form.collected]
        raw = [
            self.author.fresh(f"{collected.body_output}/rows")
            if moved
            else self._output(collected.tensor)
            for collected, moved in zip(self.form.collected, placed, strict=True)
        ]
        self._loop(body, trips, raw)
        for collected, moved, name in zip(self.form.collected, placed, raw, strict=True):
            if moved and collected.tensor:
                self._place(collected, name)

    def _output(self, name: str) -> str:
        """An omitted output gets a name: onnxruntime crashes on a Loop that omits one."""
        return name or self.author.fresh("unused")

    def _renamed_body(self) -> GraphProto:
        """The body, with names that are free outside: scanned inputs become outputs of nodes, which
        must not shadow an outer value, and outer tensors are now captured."""
        body = copied(self.form.body)
        outer = {scanned.tensor for scanned in self.form.scanned}
        hidden = {name for name in scoping.defined(body) if self.site.is_visible(name)}
        scoping.uncover(body, (outer | hidden).__contains__, self.site.fresh)
        return body

    def _loop(self, body: GraphProto, trips: str, collected: Sequence[str]) -> None:
        inputs, outputs = scoping.input_names(body), scoping.output_names(body)
        fed = [(carried.initial, self._output(carried.final)) for carried in self.form.carried]
        if self.needs_company:
            fed = [(self.author.int(0), self._output(""))]
        count = len(fed)
        form = LoopForm(
            kind=Kind.LOOP,
            body=body,
            carried=tuple(
                Carried(initial, inside, result, final)
                for (initial, final), inside, result in zip(
                    fed, inputs[2:], outputs[1:], strict=False
                )
            ),
            collected=tuple(map(Collected, outputs[1 + count :], collected)),
            trip_count=trips,
            condition=Condition("", inputs[1], outputs[0]),
            iteration=inputs[0],
        )
        node = form.to_node()
        node.name = self.site.node.name
        node.doc_string = self.site.node.doc_string
        node.metadata_props.extend(self.site.node.metadata_props)
        self.author.adopt([node])

    def _place(self, collected: Collected, rows: str) -> None:
        """Reverse rows and move them to the axis on which the Scan collects, where needed."""
        if collected.reversed:
            self._refuse_strings(collected)
        rank = self._rank(collected) if collected.axis else 1
        place_rows(self.author, rows, collected, rank, turned=collected.reversed)

    def _refuse_strings(self, collected: Collected) -> None:
        """Check that rows can be reversed: onnxruntime's Gather copies only their first string."""
        kind = elem_type_of(self.site.body_type_of("body", collected.body_output))
        if kind == TensorProto.STRING and self.author.opset < SLICE_HAS_INPUTS:
            raise self.site.refused(
                "strings",
                f"{collected.tensor!r} is collected in reverse and holds strings, which opset "
                f"{self.author.opset} cannot reverse; opset {SLICE_HAS_INPUTS} can",
                collected.tensor,
            )

    def _rank(self, collected: Collected) -> int:
        element = dims_of(self.site.body_type_of("body", collected.body_output))
        if element is None:
            raise self.site.refused(
                "unknown-rank",
                f"{collected.tensor!r} is collected on axis {collected.axis}, but the rank of "
                f"{collected.body_output!r} is neither declared nor inferred",
                collected.body_output,
            )
        return len(element) + 1
