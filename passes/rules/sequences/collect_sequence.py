"""The rule `collect-sequence`: a sequence to which a loop appends becomes a collected output."""

from __future__ import annotations

from dataclasses import replace

from onnx import NodeProto, TensorProto, TypeProto, helper

from passes.analysis.bodies.body_types import BodyTypes, body_types
from passes.analysis.bodies.context import context_of
from passes.analysis.integers.integer_ops import is_settled
from passes.analysis.sizes.made_up_sizes import without_made_up
from passes.bodies.carried_values import only_written
from passes.ir import scope as scoping
from passes.ir.attributes import attribute
from passes.ir.graph_index import OUTPUT
from passes.ir.live import keep_nodes
from passes.ir.operators import op_of
from passes.ir.protos import copied
from passes.ir.versions import LOOP_MAY_CARRY_NOTHING
from passes.loops.form import Carried, Collected, LoopForm
from passes.rule import Edit, NothingToDo, Site, nodes_of, register
from passes.rules.sequences.elements import origin_of
from passes.types.value_types import dims_of, elem_type_of, tensor_type

#: The types that SplitToSequence of onnxruntime takes, but for strings, which a Loop moves away.
_SPLIT = (
    *(TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE),
    *(TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL),
)


@register(
    "collect-sequence", considers=nodes_of("Loop", since=LOOP_MAY_CARRY_NOTHING), optional=True
)
def collect_sequence(site: Site) -> Edit:
    """Collect what each iteration of a Loop appends to a sequence that starts empty.

    Before:

        none = SequenceEmpty ()
        s = Loop (m, c, none) <body = step (i, go, held) => (go_on, longer) {
            longer = SequenceInsert (held, e)
        }>

    After:

        rows = Loop (m, c) <body = step (i, go) => (go_on, e) { ... }>
        s = SplitToSequence <axis = 0, keepdims = 0> (rows)

    Then `drop-sequences` lets the readers of the sequence read the rows. The number of iterations
    may be known only at run time, and be 0.

    Refuses:
    - `sequence-initial`: it is not proven that the sequence starts empty
    - `not-appended`: the loop does anything else with the sequence than to append one element
    - `element-shape`: it is not proven that all elements have one shape
    - `no-kernel`: onnxruntime cannot split rows of this type, or the type is unknown
    """
    form = LoopForm.from_node(site.node, site.opset)
    sequences = [carried for carried in form.carried if _is_sequence(site, carried)]
    if not sequences:
        raise NothingToDo
    appending = {carried.body_input: _appending(site, form, carried) for carried in sequences}
    behind = [node for carried in sequences for node in _empty(site, carried)]
    types = body_types(site, form, ())
    body, collected, splits = copied(form.body), list[Collected](), list[NodeProto]()
    gone = frozenset[int]().union(*appending.values())
    nodes = [node for position, node in enumerate(body.node) if position not in gone]
    free = {name for node in nodes if op_of(node) != "Constant" for name in node.output}
    free.difference_update(scoping.output_names(body))
    for carried in sequences:
        if not carried.final:
            continue
        element = form.body.node[min(appending[carried.body_input])].input[1]
        rows, row = site.fresh(f"{carried.final}/rows"), element
        if element not in free:
            row = site.fresh(f"{element}/row")
            nodes.append(helper.make_node("Identity", [element], [row]))
        free.discard(element)
        body.output.append(helper.make_value_info(row, _row_type(site, types, carried, element)))
        collected.append(Collected(row, rows))
        split = helper.make_node("SplitToSequence", [rows], [carried.final], axis=0, keepdims=0)
        splits.append(split)
    keep_nodes(body, nodes)
    kept = tuple(carried for carried in form.carried if carried not in sequences)
    after = replace(form, body=body, carried=kept, collected=(*form.collected, *collected))
    return Edit(
        (after.to_node(), *splits),
        note=f"{len(sequences)} sequence{'s' * (len(sequences) != 1)}",
        context=tuple({node.output[0]: node for node in (*behind, *context_of(site))}.values()),
    )


def _is_sequence(site: Site, carried: Carried) -> bool:
    known = [site.type_of(carried.initial), site.body_type_of("body", carried.body_input)]
    return any(one is not None and one.HasField("sequence_type") for one in known)


def _appending(site: Site, form: LoopForm, carried: Carried) -> frozenset[int]:
    """Return the positions of the node that appends an element, the first, and of those that only
    pass its output on."""
    found = only_written(form, carried)
    node = form.body.node[min(found)] if found else None
    if (
        node is None
        or op_of(node) != "SequenceInsert"
        or not is_settled(node)
        or node.input[0] != carried.body_input
        or any(node.input[2:])
    ):
        name = carried.body_input
        what = f"the body does more with the sequence {name!r} than to append one element"
        raise site.refused("not-appended", what, name)
    return found


def _empty(site: Site, carried: Carried) -> list[NodeProto]:
    """The nodes that make the empty sequence."""
    nodes = origin_of(site, carried.initial)
    if not nodes or op_of(nodes[0]) != "SequenceEmpty":
        what = f"it is not proven that the sequence {carried.initial!r} starts empty"
        raise site.refused("sequence-initial", what, carried.initial)
    return nodes


def _row_type(site: Site, types: BodyTypes, carried: Carried, element: str) -> TypeProto:
    """The type of an element, which is the same in every iteration."""
    known = types.types.get(element)
    dims = dims_of(known)
    steady = dims is not None and all(
        isinstance(dim, int) or dim in types.invariant for dim in dims
    )
    if not steady and not _only_stacked(site, carried.final):
        what = f"{element!r}, which is appended to {carried.body_input!r}, may change its shape"
        raise site.refused("element-shape", what, element)
    elem_type = elem_type_of(known)
    if known is None or elem_type not in _SPLIT:
        kind = TensorProto.DataType.Name(elem_type)
        what = f"onnxruntime cannot split rows of type {kind}: {element!r}"
        raise site.refused("no-kernel", what, element)
    sure = dims_of(types.certainly(element, known))
    return tensor_type(elem_type, None if sure is None else without_made_up(sure))


def _only_stacked(site: Site, name: str) -> bool:
    """Return whether a sequence is only read where the model fails unless all elements have one
    shape."""
    nodes = site.scope.owner.node
    readers = [
        None if position == OUTPUT else nodes[position]
        for position in site.graph.readers.get(name, ())
    ]
    return bool(readers) and all(
        node is not None
        and op_of(node) == "ConcatFromSequence"
        and is_settled(node)
        and attribute(node, "new_axis", 0) == 1
        for node in readers
    )
