"""Strategy `vectorize`: one Scan over time whose body handles the whole batch at once."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto

from converters.scan_8.batched_scan import BatchedScan
from converters.scan_8.called_functions import called_functions
from converters.scan_8.ragged_batch import Ragged
from converters.scan_8.run_on import RunOn, may_run_on
from converters.scan_8.sequence_lens import Lengths
from passes.analysis.safety.shape_checks import Reading
from passes.analysis.safety.shapes_fit import fits, is_known_to_need
from passes.analysis.safety.speculation import speculatable
from passes.analysis.sizes.made_up_sizes import symbol_of_rows
from passes.analysis.trip_count import facts
from passes.ir import scope as scoping
from passes.ir.operators import is_onnx_domain, op_of
from passes.ir.versions import FREE_INITIALIZERS
from passes.loops.form import Carried, Collected, Kind, LoopForm, Scanned
from passes.loops.scan_axes import write_scan
from passes.rule import Refused, Site
from passes.types.value_types import dims_of
from passes.vectorize import Axis, Captured, NeedsRows, Rows, Vectorizer, prepare
from passes.writing import spelling
from passes.writing.author import Author

#: The table of vectorisation rules knows the ops in their spelling from here on.
OLDEST = 13


def vectorize(
    author: Author,
    site: Site,
    scan: BatchedScan,
    lengths: Lengths | None,
    outputs: Sequence[str],
    name: str,
    *,
    may_be_empty: bool,
    safe: bool,
) -> None:
    """Write the Scan; all inputs agree on the batch, which may be empty only in a runtime that
    does not mind, if at all. `safe`: every op of the body may run on any values.

    Raises:
        Refused: the target opset is below 13, or an op of the body has no rule for the batch.
        NeedsRows: the batch may be empty, and an op of the body has a rule for some rows only, or
            reads no row and may fail: without rows it never ran.
    """
    if site.target < OLDEST:
        raise Refused(
            "opset-too-old", f"`vectorize` needs opset {OLDEST}, the target is {site.target}"
        )
    rows = _rows(site, scan)
    axis = Axis(
        spelling.size_of_axis(author, scan.sequences[0], 0),
        scan.batch,
        nonempty=True,
        unguarded=may_be_empty,
        symbol=_symbol(site, rows),
    )
    inner = author.inside(f"{author.prefix}/batch")
    carrying = set(scoping.input_names(rows.graph))
    at = Vectorizer(rows, axis, inner, carrying, site.path)
    if lengths is None:
        _write(author, at, scan, outputs, name)
    else:
        ragged = Ragged(author, at, scan, lengths, safe)
        if safe and may_run_on(scan):
            RunOn(ragged).write(outputs, name)
        else:
            _write_ragged(ragged, outputs, name)
    if may_be_empty and any(_may_fail_alone(site, at, node) for node in rows.graph.node):
        raise NeedsRows


def _may_fail_alone(site: Site, at: Vectorizer, node: NodeProto) -> bool:
    """Whether a node that reads no row may fail; sizes of one symbol are equal."""
    if any(map(at.carries, scoping.free_names(node))):
        return False
    types, constants = at.rows.types, at.rows.constants
    reading = Reading(site.target, lambda name: dims_of(types.get(name)), constants.get, True)

    def may_fail(one: NodeProto) -> bool:
        if op_of(one) == "If" or (op_of(one) == "Loop" and one.input[0]):  # it ends
            return any(may_fail(inner) for _, body in scoping.subgraphs(one) for inner in body.node)
        if op_of(one) == "Gather" and fits(one, reading):  # at a place that is there
            return False
        alone = GraphProto(node=[one])
        return bool(speculatable(alone, constants, types)) or is_known_to_need(one, reading)

    return may_fail(node)


def runs_on(site: Site, scan: BatchedScan) -> bool:
    """Whether every op of the body may run on any values, so that rows may run on."""
    rows = _rows(site, scan)
    return not speculatable(rows.graph, rows.constants, rows.types)


def _rows(site: Site, scan: BatchedScan) -> Rows:
    """The body on its own, at the target opset."""
    # up to IR 3, inference does not look at initializers that are no inputs
    model = ModelProto(ir_version=max(site.model.proto.ir_version, FREE_INITIALIZERS))
    model.opset_import.extend(site.model.proto.opset_import)
    for entry in model.opset_import:
        if is_onnx_domain(entry.domain):
            entry.version = site.target
    _add_functions(model, called_functions(site, scan.body))
    captured = {
        name: Captured(site.type_of(name), site.constant(name))
        for name in scoping.captures(scan.body)
    }
    return prepare(scan.body, captured, model, site.names, site.is_visible)


def _add_functions(model: ModelProto, functions: Sequence[FunctionProto]) -> None:
    """Add what the body calls, which is inlined, and the domains that it takes ops from."""
    model.functions.extend(functions)
    known = {entry.domain for entry in model.opset_import}
    for function in functions:
        added = [
            entry
            for entry in function.opset_import
            if entry.domain not in known and not is_onnx_domain(entry.domain)
        ]
        model.opset_import.extend(added)
        known.update(entry.domain for entry in added)


def _symbol(site: Site, rows: Rows) -> str | None:
    """What the model calls the size of the batch of what is scanned first."""
    first, *_ = LoopForm.from_node(site.node, site.opset).scanned
    return symbol_of_rows(facts.scanned_size(site, first.tensor, 0), rows.types)


def _write(
    author: Author, at: Vectorizer, scan: BatchedScan, outputs: Sequence[str], name: str
) -> None:
    """All rows run to the end."""
    body = at.whole(at.rows.graph, scoping.output_names(at.rows.graph)).graph
    inputs, results = scoping.input_names(body), scoping.output_names(body)
    count = len(scan.states)
    form = LoopForm(
        kind=Kind.SCAN,
        body=body,
        carried=tuple(map(Carried, scan.initials, inputs, results, outputs)),
        scanned=tuple(
            Scanned(one.tensor, inside, 1, one.reversed)
            for one, inside in zip(scan.form.scanned, inputs[count:], strict=True)
        ),
        collected=tuple(
            Collected(result, output, 1)
            for result, output in zip(results[count:], outputs[count:], strict=True)
        ),
    )
    write_scan(author, form, name=name, rows=1)


def _write_ragged(ragged: Ragged, outputs: Sequence[str], name: str) -> None:
    """Rows end one by one: their states stay from then on, and their outputs are zero."""
    scan, author = ragged.scan, ragged.author
    fed = ragged.sequences()
    mask = ragged.scanned_mask()
    step = ragged.body()
    count = len(scan.states)
    results = [author.fresh(f"{output}/run") for output in outputs[count:]]
    inputs = scoping.input_names(step)
    names = scoping.output_names(step)
    form = LoopForm(
        kind=Kind.SCAN,
        body=step,
        carried=tuple(map(Carried, scan.initials, inputs, names, outputs)),
        scanned=(
            *(
                Scanned(tensor, inside, 1)
                for tensor, inside in zip(fed, inputs[count:-1], strict=True)
            ),
            Scanned(mask, inputs[-1]),
        ),
        collected=tuple(
            Collected(inside, result, 1)
            for inside, result in zip(names[count:], results, strict=True)
        ),
    )
    write_scan(author, form, name=name, rows=1, may_idle=ragged.may_idle)
    for result, output, element in zip(results, outputs[count:], scan.elements, strict=True):
        ragged.rows.write(result, element, output)
