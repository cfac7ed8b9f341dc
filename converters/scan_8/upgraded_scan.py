"""The Scan-9 that takes the place of a Scan-8, with the guards that it needs.

Weights that only its body reads move into it. onnxruntime packs the weights of a body only where
they are defined in the body or right around the loop. In the branch of an If, or in a loop over the
batch, the loop would be one level deeper, which costs up to half of the speed. And each value that
a body captures costs some time in every iteration, up to a sixth in a small cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from onnx import GraphProto, TensorProto

from passes.bodies.branches import Branch, Results, either
from passes.bodies.element_sizes import sizes_of
from passes.converters.scan_8.batched_scan import BatchedScan
from passes.converters.scan_8.nest import nest
from passes.converters.scan_8.rows import Row, rows_at, run_row
from passes.converters.scan_8.sequence_lens import (
    KnownLengths,
    Lengths,
    any_row_runs,
    borrowed_rows,
    same_sizes,
    time_of,
)
from passes.converters.scan_8.vectorize import runs_on, vectorize
from passes.ir import scope as scoping
from passes.ir.external_data import byte_size
from passes.ir.protos import copied, named
from passes.ir.purposes import GUARD_SIZES, HANDLE_NOTHING
from passes.ir.versions import FREE_INITIALIZERS
from passes.rule import Site
from passes.writing import guards, spelling
from passes.writing.author import Author


def has_elements(author: Author, scan: BatchedScan, axes: Sequence[int]) -> str:
    """Return whether there is a batch (axis 0), a time (axis 1) or both, a scalar bool."""
    with author.serving(HANDLE_NOTHING):
        sizes = [spelling.scalar_size(author, scan.sequences[0], axis) for axis in axes]
        return spelling.both(author, [author.op("Greater", size, author.int(0)) for size in sizes])


def idle_outputs(idle: Author, site: Site, scan: BatchedScan) -> list[str]:
    """The final states and collected values: the initial states, and zeros."""
    sizes = [spelling.size_of_axis(idle, scan.sequences[0], axis) for axis in (0, 1)]
    states = [idle.op("Identity", value) for value in scan.initials]
    collected = []
    for one, element in zip(scan.form.collected, scan.elements, strict=True):
        found = sizes_of(idle, site, scan.form, one, element.dims)
        dims = [size or idle.ints(0) for size in found]
        shape = idle.once(("shape", *dims), partial(idle.op, "Concat", *sizes, *dims, axis=0))
        collected.append(spelling.zeros(idle, shape, element.elem_type))
    return [*states, *collected]


@dataclass(frozen=True)
class UpgradedScan:
    """One site, one strategy.

    Where nothing is to be run, in a batch, a time or lengths of 0, the documents of both versions
    say the same, and no runtime has to be helped that failed on the original, too: see `_apart`.
    `needs_rows`: the body for the whole batch would be wrong for no rows.
    """

    author: Author
    site: Site
    scan: BatchedScan
    strategy: str
    outputs: Sequence[str]
    needs_rows: bool = False

    def write(self) -> None:
        """Write the loops, in an If where they do not run on nothing."""
        known = KnownLengths.of(self.site, self.scan)
        axes = self._apart(known)
        scan = self._guarded(times=bool(axes) or known is not None)
        lengths = None if known is None else self._lengths(scan, known)
        if axes:
            self._choose(scan, axes, lengths)
            return
        if lengths is not None and lengths.may_be_zero and self._borrows:
            lengths = self._borrowing(self.author, lengths)
        self._rows(self.author, self._owning(scan), lengths, self.outputs)

    @property
    def _whole(self) -> bool:
        """True if the whole batch runs at once."""
        return self.strategy in ("vectorize", "mask")

    @property
    def _only_row(self) -> bool:
        """True if the batch is one row, which runs by itself."""
        return self.strategy == "unroll" and self.scan.batch == 1

    @property
    def _masked(self) -> bool:
        """True if masks alone end the rows."""
        return self.strategy == "mask"

    def _assumed(self, assumption: str) -> bool:
        return self.site.assumes(assumption)

    def _apart(self, known: KnownLengths | None) -> list[int]:
        """The axes, batch (0) and time (1), of which no loop may run on a size of 0.

        A Scan over nothing is one for `--robust` to avoid: onnxruntime fails on it, as it does on a
        Scan-8 with an empty batch or a length of 0. Only over no time steps its Scan-8 does answer,
        with final states that are uninitialised memory: where these are not read, it is right.
        """
        sizes = self.scan.batch, self.scan.time
        open_axes = [axis for axis in (0, 1) if not sizes[axis]]
        if self._assumed("non-empty") or (known and not known.may_all_be_zero):
            return []
        if self.site.options.robust or (known and self._borrows and not self._sized):
            return open_axes if known is None else [0, 1]
        needed = {0} if self.needs_rows else set()
        if known is None and not self._answers_states:
            needed.add(1)
        return [axis for axis in open_axes if axis in needed]

    @property
    def _answers_states(self) -> bool:
        """True if a final state is read."""
        readers = self.site.graph.readers
        return any(one.final and readers.get(one.final) for one in self.scan.form.carried)

    @property
    def _sized(self) -> bool:
        """True if the sizes of collected values are known even if none is collected."""
        return all(element.is_static for element in self.scan.elements)

    @property
    def _borrows(self) -> bool:
        """True if a row of length 0 is to run on the inputs of another one."""
        if self._whole:
            return not self._runs_on
        return self.site.options.robust or not self._sized

    @cached_property
    def _runs_on(self) -> bool:
        """Return whether rows may run past their end, for the whole batch at once."""
        return runs_on(self.site, self.scan)

    def _guarded(self, *, times: bool) -> BatchedScan:
        """The Scan, failing where sizes disagree; the loops of `nest` compare batches themselves,
        and each loop the times of what it scans."""
        scan = self.scan
        if self._assumed("valid-inputs") or (self.strategy == "nest" and not times):
            return scan
        compared = scan
        if self._only_row:  # each input is read by a Squeeze, which fails itself, but the lengths
            lengths = [size for size in scan.batches if size == scan.form.lengths]
            compared = replace(scan, batches=(1, *lengths))
        conditions = same_sizes(self.author, compared, times=times)
        if not conditions:
            return scan
        author, first = self.author, scan.sequences[0]
        with author.serving(GUARD_SIZES):
            agree = spelling.both(author, conditions)
            if self._only_row:  # a Squeeze will read it
                known = guards.guarded(author, first, agree, scan.sequence_types[0])
            else:
                known = guards.must(author, first, agree)
        return scan.reading({first: known})

    def _lengths(self, scan: BatchedScan, known: KnownLengths) -> Lengths:
        """The lengths, failing where one lies outside of 0..time."""
        author, lengths = self.author, scan.form.lengths
        time = time_of(author, scan)
        ends = spelling.unsqueeze(author, lengths, 1) if self._whole else lengths
        if not self._assumed("valid-inputs") and not known.in_range(scan.time):
            ends = guards.guarded_ends(author, ends, lengths, time, masked=self._masked)
        empty = not self._assumed("non-empty")
        zero, zeros = known.may_be_zero and empty, known.may_all_be_zero and empty
        if self._masked and zero and not self._runs_on:
            raise self.site.refused(
                "not-speculatable",
                "the body may fail on what a row of length 0 would feed it (--assume non-empty: "
                "there is none)",
                lengths,
            )
        return Lengths(ends, time, zero, zeros, masked=self._masked)

    def _borrowing(self, author: Author, lengths: Lengths) -> Lengths:
        """The lengths, and whose inputs a row of length 0 runs on."""
        vector = self.scan.form.lengths
        rows = borrowed_rows(author, vector, lengths.ends, column=self._whole)
        return replace(lengths, rows=rows)

    def _owning(self, scan: BatchedScan) -> BatchedScan:
        """The Scan with its weights in its body, but where they stay, or would be copied."""
        if self.strategy == "unroll" and scan.batch != 1:
            return scan
        return with_own_weights(self.site, scan) or scan

    def _choose(self, scan: BatchedScan, axes: Sequence[int], lengths: Lengths | None) -> None:
        """Run the loops only if some iteration does."""
        if lengths is None:
            condition = has_elements(self.author, scan, axes)
        else:
            condition = any_row_runs(self.author, lengths.ends)

        def some(inner: Author) -> Results:
            results = [inner.fresh(output) for output in self.outputs]
            self._rows(inner, self._owning(scan), self._where_some_run(inner, lengths), results)
            return Results(results)

        def none(inner: Author) -> Results:
            return Results(idle_outputs(inner, self.site, scan))

        types = [state.type(scan.batch) for state in scan.states]
        types += [element.type(scan.batch, scan.time) for element in scan.elements]
        branches = Branch("some", some), Branch("none", none, extra=True)
        either(self.author, condition, *branches, self.outputs, types, purpose=HANDLE_NOTHING)

    def _where_some_run(self, author: Author, lengths: Lengths | None) -> Lengths | None:
        """The lengths, not all of which are 0."""
        if lengths is None:
            return None
        lengths = replace(lengths, may_all_be_zero=False)
        if self.scan.batch == 1:  # "some row runs" is "the row runs"
            return replace(lengths, may_be_zero=False)
        if lengths.may_be_zero and self._borrows:
            return self._borrowing(author, lengths)
        return lengths

    def _rows(
        self,
        author: Author,
        scan: BatchedScan,
        lengths: Lengths | None,
        outputs: Sequence[str],
    ) -> None:
        name = self.site.node.name or self.author.prefix
        if self._whole:
            empty = not (scan.batch or self.needs_rows)
            safe = lengths is None or self._runs_on
            vectorize(
                author, self.site, scan, lengths, outputs, name, may_be_empty=empty, safe=safe
            )
        elif self.strategy == "unroll":
            assert scan.batch is not None
            unroll(author, scan, lengths, scan.batch, outputs, name)
        else:
            nest(author, scan, lengths, outputs, name)


_SMALL = 4096  # bytes; packing less than this gains nothing


def with_own_weights(site: Site, scan: BatchedScan) -> BatchedScan | None:
    """The Scan with the weights that it captures in its body.

    None where a large one cannot move: another node reads it, too, a caller may override it, its
    data is external, or it is defined further out.
    """
    weights = {name: _weight(site, name) for name in scoping.captures(scan.body)}
    own = {name: one for name, one in weights.items() if one is not None and _is_own(site, name)}
    if any(one is not None and name not in own and _is_large(one) for name, one in weights.items()):
        return None
    names = {name: site.fresh(name) for name in own}
    body = copied(scan.body)
    scoping.rename_captures(body, names)
    body.initializer.extend(named(tensor, names[name]) for name, tensor in own.items())
    return replace(scan, body=body)


def _weight(site: Site, name: str) -> TensorProto | None:
    """Return the initializer of a captured name, in any graph around it."""
    found = (site.model.index(scope.owner).initializers.get(name) for scope in site.scope.chain())
    return next((tensor for tensor in found if tensor is not None), None)


def _is_large(tensor: TensorProto) -> bool:
    return byte_size(tensor) > _SMALL


def _is_own(site: Site, name: str) -> bool:
    """Return whether it may move: only this node reads it, and no caller can override it."""
    owner = site.scope.owner
    tensor = site.model.index(owner).initializers.get(name)
    if tensor is None or not isinstance(owner, GraphProto):
        return False
    annotated = any(annotation.tensor_name == name for annotation in owner.quantization_annotation)
    default = (
        site.model.proto.ir_version >= FREE_INITIALIZERS and name in site.model.index(owner).inputs
    )
    alone = list(site.graph.readers.get(name, ())) == [site.place.index]
    inline = tensor.data_location != TensorProto.EXTERNAL
    return alone and inline and not default and not annotated


def unroll(
    author: Author,
    scan: BatchedScan,
    lengths: Lengths | None,
    batch: int,
    outputs: Sequence[str],
    name: str,
) -> None:
    """Write the rows one after the other; the weights of the body are shared, not copied."""
    body = _shared(author, scan.body) if batch > 1 else scan.body
    rows = []
    for index in range(batch):
        row = _row(author, scan, lengths, index, batch)
        copy = _copy(author, body, index) if batch > 1 else body
        finals, collected = run_row(author, scan, copy, row, f"{name}/row{index}")
        rows.append([*finals, *collected])
    for position, output in enumerate(outputs):
        _join(author, [row[position] for row in rows], output)


def _join(author: Author, rows: Sequence[str], output: str) -> None:
    if len(rows) == 1:
        spelling.unsqueeze(author, rows[0], 0, outputs=[output])
        return
    raised = [spelling.unsqueeze(author, row, 0) for row in rows]
    author.op("Concat", *raised, outputs=[output], axis=0)


def _row(author: Author, scan: BatchedScan, lengths: Lengths | None, index: int, batch: int) -> Row:
    own_initials, own_sequences = _own(author, scan, index, batch)
    if lengths is None:
        return Row(own_initials, own_sequences)
    count = lengths.ends if batch == 1 else author.op("Gather", lengths.ends, author.ints(index))
    if not lengths.rows:
        return Row(own_initials, own_sequences, count, lengths.time)
    source = author.op("Gather", lengths.rows, author.int(index), axis=0)
    initials, sequences = rows_at(author, scan, source)
    return Row(initials, sequences, count, lengths.time, own_initials)


def _own(author: Author, scan: BatchedScan, index: int, batch: int) -> tuple[list[str], list[str]]:
    if batch > 1:
        return rows_at(author, scan, author.int(index))
    states = [_only_row(author, value) for value in scan.initials]
    return states, [_only_row(author, value) for value in scan.sequences]


def _only_row(author: Author, value: str) -> str:
    return author.once(("only row", value), lambda: spelling.squeeze(author, value, 0))


def _shared(author: Author, body: GraphProto) -> GraphProto:
    """The body with its initializers moved to where all rows read them."""
    shared = copied(body)
    mapping = {tensor.name: author.fresh(tensor.name) for tensor in body.initializer}
    constants = list(shared.initializer)
    del shared.initializer[:]
    scoping.rename_captures(shared, mapping)
    for tensor in constants:
        tensor.name = mapping[tensor.name]
    author.adopt([], constants)
    return shared


def _copy(author: Author, body: GraphProto, index: int) -> GraphProto:
    copy = copied(body)
    scoping.rename_all(copy, lambda name: author.names.fresh(f"{name}/row{index}"))
    return copy
