"""The rule `flatten-scan`: a Scan that runs a Scan on each row becomes one over all elements."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto, helper

from passes.bodies.lifting import constants_of
from passes.bodies.time_length import Length, known_length
from passes.ir import scope as scoping
from passes.ir.names import Names
from passes.ir.operators import is_scan_9
from passes.ir.protos import copied, replace_all
from passes.ir.purposes import GUARD_SIZES
from passes.ir.selection import is_meant
from passes.loops.form import Collected, Kind, LoopForm, Scanned
from passes.rule import Edit, NothingToDo, Refused, Site, register
from passes.rules.flatten_scan.grid_axes import GridAxes
from passes.rules.flatten_scan.nest import Nest
from passes.types.value_types import Dim, dims_of
from passes.writing import guards, spelling
from passes.writing.author import Author


def flat_body(nest: Nest) -> GraphProto:
    """The inner body, made independent of the outer one.

    Constants of the outer body that it reads are copied, with their quantization annotations;
    outputs of Identities there are replaced by their inputs. Elements without a declared shape get
    the type of an element of the rows.
    """
    body = copied(nest.inner.body)
    scoping.rename_captures(body, {name: nest.origin(name) for name in nest.inner.captured})
    _take_constants(body, nest.outer.body)
    elements = {scanned.body_input: grid for scanned, grid in nest.scanned}
    for value in body.input:
        if value.name in elements and dims_of(value.type) is None:
            value.type.CopyFrom(elements[value.name].type_of())
    return body


def _take_constants(body: GraphProto, outer: GraphProto) -> None:
    """Copy into a body the constants of the outer one that it reads."""
    read = set(scoping.captures(body))
    declared = [
        annotation for annotation in outer.quantization_annotation if annotation.tensor_name in read
    ]
    read.update(scoping.parameters_of(declared))
    constants = {name: constant for name, constant in constants_of(outer).items() if name in read}
    nodes = [constant for constant in constants.values() if isinstance(constant, NodeProto)]
    replace_all(body.node, [*nodes, *body.node])
    body.initializer.extend(
        constant for constant in constants.values() if isinstance(constant, TensorProto)
    )
    body.quantization_annotation.extend(
        annotation for annotation in declared if annotation.tensor_name in constants
    )


def considers(node: NodeProto, opset: int, target: int) -> bool:
    """Return whether a node is a Scan of version 9 or later in whose body there is another one."""
    if not is_scan_9(node, opset):
        return False
    return any(is_scan_9(inner, opset) for inner in scoping.inner_nodes(node))


@register("flatten-scan", considers=considers, optional=True)
def flatten_scan(site: Site) -> Edit:
    """Merge a Scan whose body only runs a Scan on each row into one Scan over all elements.

    Before:

        s, ys = Scan <num_scan_inputs = 1, body = outer (float s_in, float[N] row) => (...) {
            s_out, y = Scan <num_scan_inputs = 1, body = inner (float t_in, float x) => (...) {
                ...
            }> (s_in, row)
        }> (s0, rows)

    After:

        elements = Reshape (rows, minus_one)
        s, all = Scan <num_scan_inputs = 1, body = inner (float t_in, float x) => (...) {
            ...
        }> (s0, elements)
        ys = Reshape (all, sizes_of_rows)

    Starting the inner Scan takes as long as two or three small operators. All states pass through
    both Scans, each row is scanned, and what the inner one collects the outer one does too; the
    body of the inner one may read what is around the outer one, and constants of its body. Rows
    and elements on later axes are transposed where they are small. Lengths that are not provably
    equal get a guard; `--assume valid-inputs` leaves it out. With no rows, or rows of
    no elements, the states stay, and what is collected has the sizes that it had.

    Of Scans nested deeper, the outer two are merged first. A Loop is raised to a Scan first.

    Refuses:
    - `other-work`: the body runs something else beside the inner Scan
    - `other-states`: the inner Scan does not carry on just the states of the outer one
    - `other-rows`: the inner Scan does not scan just the rows
    - `other-outputs`: the Scans do not collect the same, as where a state of each row is collected
    - `reads-row`: the body of the inner Scan reads the row, or a state with which it begins
    - `directions`: one of the Scans runs forward, the other backward
    - `unknown-rank`: the rank of something scanned or collected is not known
    - `opset-too-old`: the opset is below 14, and sizes are known only at run time
    - `not-worth-it`: there are few rows, or large ones that would have to be transposed or copied
    """
    around = _around(site)
    if around is not None and _flattens(around):
        raise NothingToDo  # together with that one
    return _flattened(site)


def _around(site: Site) -> Site | None:
    """The site of the Scan around this one; None where there is none."""
    place = site.scope.holder
    if place is None or not considers(place.node, site.opset, site.target):
        return None
    return replace(site, place=place, names=Names())


def _flattens(site: Site) -> bool:
    if site.options.only and not is_meant(site.node):
        return False
    try:
        _flattened(site)
    except (NothingToDo, Refused):
        return False
    return True


def _flattened(site: Site) -> Edit:
    nest = Nest(site)
    author = Author.at(site, "scan")
    grids = [grid for _, grid in nest.scanned]
    rows = known_length(site, author, [Scanned(grid.tensor, "", grid.across) for grid in grids])
    length = known_length(site, author, [Scanned(grid.tensor, "", grid.along) for grid in grids])
    with author.serving(GUARD_SIZES):
        agree = _agreement(author, rows, length)
        count = guards.must_count(author, rows.size, agree) if agree else rows.size
    sizes = (_known(grid.dims[grid.across] for grid in grids), count)
    of_row = (_known(grid.dims[grid.along] for grid in grids), length.size)
    value_info = _write(nest, GridAxes(site, author, sizes, of_row, guarded=bool(agree)))
    nodes = author.read(filter(None, site.node.output))
    _refuse_more_work(site, 0 if of_row[0] == 0 else sizes[0], len(nodes) - 1)
    read = scoping.all_reads(nodes)
    return Edit(
        tuple(nodes),
        tuple(constant for constant in author.constants if constant.name in read),
        value_info=tuple(value_info),
        note="one Scan over the elements of all rows",
        context=rows.context or length.context,
        extras=author.extras(nodes),
    )


def _refuse_more_work(site: Site, runs: Dim, added: int) -> None:
    """See that no more nodes are added than inner Scans run: they take about as long to start."""
    if isinstance(runs, int) and added > runs:
        raise site.refused(
            "not-worth-it",
            f"{added} nodes added around the Scan cost more than a Scan on each of {runs} rows",
        )


def _known(dims: Iterable[Dim]) -> Dim:
    """The known number among sizes that must be equal."""
    return next((dim for dim in dims if isinstance(dim, int)), None)


def _agreement(author: Author, rows: Length, length: Length) -> str:
    """The condition that all have as many rows, and rows of one length where there are some."""
    conditions = [rows.agree] if rows.agree else []
    if length.agree:
        none = author.op("Equal", spelling.squeeze(author, rows.size, 0), author.int(0))
        conditions.append(author.op("Or", none, length.agree))
    return spelling.both(author, conditions) if conditions else ""


def _write(nest: Nest, axes: GridAxes) -> list[ValueInfoProto]:
    """Write the Scan, what it scans, and what becomes of what it collects.

    Returns the types of what it scans, which inference does not find where sizes are unknown.
    """
    author = axes.author
    elements = [axes.merged(grid) for _, grid in nest.scanned]
    rows = {
        (collected.body_output, collected.reversed): author.fresh(f"{collected.body_output}/all")
        for collected, _ in nest.collected
    }
    form = LoopForm(
        kind=Kind.SCAN,
        body=flat_body(nest),
        carried=nest.carried,
        scanned=tuple(
            Scanned(name, scanned.body_input, reversed=scanned.reversed)
            for name, (scanned, _) in zip(elements, nest.scanned, strict=True)
        ),
        collected=tuple(
            Collected(name, tensor, reversed=turned) for (name, turned), tensor in rows.items()
        ),
        constant_inputs=nest.inner.constant_inputs,
        source=nest.outer.source,
    )
    author.adopt([form.to_node()])
    for collected, grid in nest.collected:
        if grid.tensor:
            axes.split(rows[collected.body_output, collected.reversed], grid)
    return [
        helper.make_value_info(name, grid.type_of(None))
        for name, (_, grid) in zip(elements, nest.scanned, strict=True)
    ]
