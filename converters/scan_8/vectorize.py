"""Strategy `vectorize`: one Scan over time whose body handles the whole batch at once.

The functions of a model are converted for themselves, in the same round; a rule that takes a body
apart needs them at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, helper

from passes.analysis.safety.may_fail import failing_on_other_values, may_run_unreached
from passes.analysis.sizes.made_up_sizes import symbol_of_rows
from passes.analysis.trip_count.trip_count import declared_size
from passes.bodies.time_body import OLDEST, rows_of
from passes.converters.opset import considers, rewrite
from passes.converters.scan_8.batched_scan import BatchedScan
from passes.converters.scan_8.ragged_batch import Ragged
from passes.converters.scan_8.run_on import RunOn, may_run_on
from passes.converters.scan_8.sequence_lens import Lengths
from passes.ir import scope as scoping
from passes.ir.operators import called_key, function_key, is_onnx_domain
from passes.ir.protos import copied, replace_all
from passes.ir.scope import Owner, Place, Scope
from passes.loops.form import Carried, Collected, Kind, LoopForm, Scanned
from passes.operators.table import traits_of
from passes.operators.traits import Values
from passes.rule import Edit, Site
from passes.vectorize import Axis, NeedsRows, Rows, Vectorizer
from passes.writing import spelling
from passes.writing.author import Author
from passes.writing.scan_axes import write_scan


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
    site.need_opset(OLDEST, "is too old for `vectorize`")
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
    ctx = Vectorizer(rows, axis, inner, carrying, site.path)
    if lengths is None:
        _write(author, ctx, scan, outputs, name)
    else:
        ragged = Ragged(author, ctx, scan, lengths, safe)
        if safe and may_run_on(scan) and not lengths.masked:
            RunOn(ragged).write(outputs, name)
        else:
            _write_ragged(ragged, outputs, name)
    known = rows.known(site.target)
    if may_be_empty and not all(
        may_run_unreached(node, known) for node in _rowless(ctx, rows.graph.node, ())
    ):
        raise NeedsRows


def _rowless(
    ctx: Vectorizer, nodes: Iterable[NodeProto], rows: Collection[str]
) -> Iterator[NodeProto]:
    """The nodes that read nothing of a row, in bodies too; `rows` are values around that do."""
    carried = set(rows)
    for node in nodes:
        if not any(name in carried or ctx.carries(name) for name in scoping.free_names(node)):
            yield node
            continue
        if traits_of(node).values is not Values.SIZES:
            carried.update(node.output)
        for _, graph in scoping.subgraphs(node):
            yield from _rowless(ctx, graph.node, carried.union(scoping.input_names(graph)))


def runs_on(site: Site, scan: BatchedScan) -> bool:
    """Return whether every op of the body may run on any values, so that rows may run on."""
    rows = _rows(site, scan)
    return not failing_on_other_values(rows.graph, rows.known(site.target))


def _rows(site: Site, scan: BatchedScan) -> Rows:
    """The body on its own, at the target opset."""
    return rows_of(site, scan.body, called_functions(site, scan.body))


def _symbol(site: Site, rows: Rows) -> str | None:
    """Return the model's symbol for the batch size of the first scanned input; else a symbol of its
    own, so that the size of the body's outputs follows from its inputs if it never runs."""
    first, *_ = LoopForm.from_node(site.node, site.opset).scanned
    symbol = symbol_of_rows(declared_size(site, first.tensor, 0), rows.types)
    own = f"{site.node.name or 'scan'}_batch".replace("/", "_")
    return symbol or symbol_of_rows(site.fresh(own), rows.types)


def _write(
    author: Author, ctx: Vectorizer, scan: BatchedScan, outputs: Sequence[str], name: str
) -> None:
    """All rows run to the end."""
    body = ctx.whole(ctx.rows.graph, scoping.output_names(ctx.rows.graph)).graph
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
    write_scan(author, form, name=name, rows=1, may_be_empty=ragged.may_be_empty)
    for result, output, element in zip(results, outputs[count:], scan.elements, strict=True):
        ragged.write(result, element, output)


Name = tuple[str, str, str]


def called_functions(site: Site, body: GraphProto) -> list[FunctionProto]:
    """Return the functions that `body` calls, directly or not, each at the target opset of the
    site.

    Raises:
        Refused: a node of a function cannot be converted; with the codes of the rule `opset`.
    """
    defined = {_name(scope.owner): scope for scope in _functions(site.model.proto)}
    found: dict[Name, FunctionProto] = {}
    pending = list(_calls(body))
    while pending:
        name = pending.pop()
        if name not in defined or name in found:
            continue
        found[name] = _converted(site, defined[name])
        pending += _calls(found[name])
    return list(found.values())


def _functions(model: ModelProto) -> Iterator[Scope]:
    return (scope for scope in scoping.scopes(model) if isinstance(scope.owner, FunctionProto))


def _name(owner: Owner) -> Name:
    assert isinstance(owner, FunctionProto)
    return function_key(owner)


def _calls(owner: Owner) -> Iterator[Name]:
    for graph in scoping.graphs_below(owner):
        for node in graph.node:
            yield called_key(node)


def _converted(site: Site, scope: Scope) -> FunctionProto:
    assert isinstance(scope.owner, FunctionProto)
    function = copied(scope.owner)
    _convert(replace(site, opset=site.model.opset(scope.owner)), scope, function)
    for entry in function.opset_import:
        if is_onnx_domain(entry.domain):
            entry.version = site.target
    return function


def _convert(site: Site, scope: Scope, owner: Owner) -> None:
    """Convert `owner`, the copy of what `scope` shows as it was read, bodies first."""
    nodes: list[NodeProto] = []
    constants: dict[str, TensorProto] = {}
    for index, node in enumerate(owner.node):
        for inner, (_, graph) in zip(scope.inner(index), scoping.subgraphs(node), strict=True):
            _convert(site, inner, graph)
        if not considers(node, site.opset, site.target):
            nodes.append(node)
            continue
        edit: Edit = rewrite(replace(site, place=Place(node, index, scope)))
        nodes += edit.nodes
        constants.update((tensor.name, tensor) for tensor in edit.initializers)
    if isinstance(owner, GraphProto):
        owner.initializer.extend(constants.values())
    else:
        made = constants.items()
        nodes = [helper.make_node("Constant", [], [name], value=one) for name, one in made] + nodes
    replace_all(owner.node, nodes)
