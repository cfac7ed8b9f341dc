"""Decides whether a node is safe to speculate (to run where the original does not) or to remove.

Each question has a function:

- `fails_on_other_values`: a node that does run, on other values of the same types and shapes: rows
  that take another path than those that run it, iterations after the end of a loop.
- `may_run_unreached`: a node that may not run at all: before a loop without iterations, out of
  a branch, without the condition that guards it.
- `may_run_on_nothing`: a node that runs over all iterations at once, of which there may be none.
- `may_go`: a node that is unused: a model on which it fails must still fail.

`randomness` says what is random, or of another domain; `shapes_fit` checks shapes.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, numpy_helper

from passes.analysis.safety.shapes_fit import Known, fits, leaves
from passes.ir import scope as scoping
from passes.ir.attributes import has_references
from passes.ir.constants import constant_tensor
from passes.ir.operators import CONTROL_FLOW, is_onnx_domain, op_of
from passes.loops.form import LoopForm
from passes.operators.exactness import Array
from passes.operators.table import traits_of
from passes.operators.traits import Fails
from passes.types.value_types import FLOATS, Dims, dims_of, elem_type_of, has_elements, is_static


def failing_on_other_values(body: GraphProto, known: Known) -> list[NodeProto]:
    """The nodes of a body that fail on other values; empty where the whole body may run on them.

    Names must be unique at every depth.
    """
    inside = _inside(body, known)
    return [node for node in body.node if fails_on_other_values(node, inside)]


def fails_on_other_values(node: NodeProto, known: Known) -> bool:
    """Return whether a node that runs on some values could fail on others of the same types and
    shapes, or return an output of another shape.

    Inputs that are axes and sizes must be constants, floats may be divided, strings not be parsed,
    and where onnxruntime fails or crashes on empty inputs, they must have elements. Nodes with
    bodies must terminate, with outputs of one shape.
    """
    if not is_onnx_domain(node.domain):
        return True
    if op_of(node) in CONTROL_FLOW:
        bodies = [graph for _, graph in scoping.subgraphs(node)]
        steady = _ends_in_one_shape(node, known)
        return not steady or any(failing_on_other_values(body, known) for body in bodies)
    traits = traits_of(node)
    fixed = (
        node.input[position]
        for position in traits.fixed
        if position < len(node.input) and node.input[position]
    )
    if any(known.constant(name) is None for name in fixed):
        return True
    read = known.type_of(node.input[0]) if node.input else None
    if traits.fails is Fails.STRINGS:
        return elem_type_of(read) in (0, TensorProto.STRING)
    if traits.fails is Fails.INTEGERS:
        return elem_type_of(read) not in FLOATS and not _divides_by_number(node, known)
    if traits.fails is Fails.INDICES:
        return not fits(node, known)
    if traits.fails in (Fails.EMPTY, Fails.NO_ROWS):
        return not has_elements(read)
    return traits.fails is not Fails.NEVER


def may_run_unreached(node: NodeProto, known: Known) -> bool:
    """Return whether a node may run on whatever it would read, even where the original does not run
    it.

    It must fail on no value and be proven to fit the shapes.
    """
    if op_of(node) == "If" or (op_of(node) == "Loop" and _ends_with_alike_rows(node, known)):
        heads = filter(None, node.input[: 1 if op_of(node) == "If" else 2])
        if not all(_is_single(known.dims_of(name)) for name in heads):
            return False
        bodies = [(body, _inside(body, known)) for _, body in scoping.subgraphs(node)]
        return all(
            may_run_unreached(inner, inside) for body, inside in bodies for inner in body.node
        )
    if fails_on_other_values(node, known):
        return False
    return all(fits(leaf, known) for leaf in leaves(node))


def may_run_on_nothing(node: NodeProto, known: Known, carrying: Collection[str]) -> bool:
    """Return whether a node may run over all iterations at once where there is none.

    It then sees no element of the values `carrying` time, and all of the others. Whether the
    shapes of one row fit is not checked.
    """
    if any(traits_of(leaf).fails is Fails.NO_ROWS for leaf in leaves(node)):
        return False  # each iteration becomes a row of the batch
    if not fails_on_other_values(node, known):
        return True
    fails = traits_of(node).fails
    return fails is Fails.INTEGERS or (fails is Fails.INDICES and node.input[1] in carrying)


def may_go(node: NodeProto, known: Known) -> bool:
    """Return whether a pure, unused node may go because it cannot fail: also one that counts up to
    a number known only at run time."""
    return _counts(node, known) or may_run_unreached(node, known)


def _is_single(dims: Dims | None) -> bool:
    return dims is not None and all(dim == 1 for dim in dims)


def _counts(node: NodeProto, known: Known) -> bool:
    """Return whether a node is a Range of integers with a constant step."""
    if op_of(node) != "Range":
        return False
    step = known.constant(node.input[2])
    whole = step is not None and step.dtype.kind == "i" and bool(np.all(step != 0))
    return whole and all(known.dims_of(name) == () for name in node.input)


def _divides_by_number(node: NodeProto, known: Known) -> bool:
    """Return whether a node divides by constants, none of them 0, or -1, by which the least integer
    overflows."""
    by = known.constant(node.input[1]) if op_of(node) in ("Div", "Mod") else None
    return by is not None and not bool(np.any((by == 0) | (by == -1)))


def _inside(body: GraphProto, known: Known) -> Known:
    """The facts in a body: those outside, and its own constants."""
    tensors = filter(None, map(constant_tensor, body.node))
    own = {tensor.name: tensor for tensor in (*body.initializer, *tensors)}

    def constant(name: str) -> Array | None:
        outer = known.constant(name)
        if outer is not None or name not in own or own[name].data_location == TensorProto.EXTERNAL:
            return outer
        return numpy_helper.to_array(own[name])

    return replace(known, constant=constant) if own else known


def _ends_in_one_shape(node: NodeProto, known: Known) -> bool:
    """Return whether a node with bodies terminates, with outputs of the same shapes, whatever it
    reads."""
    if op_of(node) == "If":
        shapes = [
            [dims_of(known.type_of(value.name)) for value in graph.output]
            for _, graph in scoping.subgraphs(node)
        ]
        fixed = all(dims is not None and None not in dims for dims in shapes[0])
        return fixed and all(shape == shapes[0] for shape in shapes)
    if op_of(node) == "Loop":
        trips, condition = node.input[:2]
        return (
            bool(trips) and known.constant(trips) is not None and not condition and _goes_on(node)
        )
    return _scans_something(node, known)


def _ends_with_alike_rows(loop: NodeProto, known: Known) -> bool:
    """Return whether a Loop has a trip count, and the rows that it collects have one shape."""
    collected = LoopForm.from_node(loop, opset=1).collected  # Loops of all versions are read alike
    shapes = (known.dims_of(output.body_output) for output in collected)
    return bool(loop.input[0]) and all(map(is_static, shapes))


def _goes_on(loop: NodeProto) -> bool:
    """Return whether nothing that the body of a Loop computes ends it."""
    form = LoopForm.from_node(loop, opset=1)  # Loops of all versions are read in the same way
    nodes = (constant_tensor(node) for node in form.body.node)
    fixed = {tensor.name: tensor for tensor in (*form.body.initializer, *filter(None, nodes))}
    return form.goes_on(lambda name: numpy_helper.to_array(fixed[name]) if name in fixed else None)


def _scans_something(node: NodeProto, known: Known) -> bool:
    """Return whether scanned inputs have elements, and one length: onnxruntime fails on empty
    ones."""
    if has_references(node):
        return False  # the caller of a function chooses what is scanned
    declared = {attribute.name: attribute for attribute in node.attribute}
    count = declared["num_scan_inputs"].i
    axes = declared["scan_input_axes"].ints if "scan_input_axes" in declared else [0] * count
    scanned = [known.type_of(name) for name in node.input[len(node.input) - count :]]
    if not all(map(has_elements, scanned)):
        return False
    shapes = [dims_of(type_) or () for type_ in scanned]
    return len({dims[axis] for dims, axis in zip(shapes, axes, strict=True)}) <= 1
