"""The rule `fold-constants`: nodes of bodies that read only known values are computed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from passes.analysis.bodies.liveness import dead_after_rewrite
from passes.analysis.integers.computed import asks_for_sizes, static_sizes
from passes.analysis.integers.decided import decided
from passes.analysis.integers.integers import Integers
from passes.analysis.trip_count.trip_count import TripCount
from passes.ir import scope as scoping
from passes.ir.attributes import has_references
from passes.ir.operators import op_of
from passes.ir.protos import copied
from passes.ir.scope import Key
from passes.ir.versions import CONSTANT_OF_ANY_TYPE
from passes.loops.form import LoopForm
from passes.operators.exactness import Array, is_exact, may_be_exact
from passes.rule import Edit, NothingToDo, Site, Slot, register
from passes.types.value_types import elem_type_of
from passes.writing.author import Author

#: The bytes that the outputs of a node may take, if they are larger than its inputs.
MOST_BYTES = 1 << 16
_FLOATS = (np.float16, np.float32, np.float64)


def considers(node: NodeProto, opset: int, target: int) -> bool:
    """Return whether a node is a Loop, or gives the same bits in every executor, on some
    constants."""
    return bool(node.input) and (may_be_exact(node) or op_of(node) == "Loop")


@register("fold-constants", considers=considers, optional=True)
def fold_constants(site: Site) -> Edit:
    """Compute nodes of bodies that read only constants, or sizes that are known.

    Before, in a body:

        <int64[2] sizes = {2, 3}>
        one = Constant <value_ints = [1]> ()
        shape = Concat <axis = 0> (one, sizes)
        y = Reshape (x, shape)

    After:

        shape = Constant <value = int64[3] {1, 2, 3}> ()
        y = Reshape (x, shape)

    The reference executor computes them. Only results that are the same, bit for bit, in every
    executor are written: of ops that move data, compare, or compute with integers, of casts that
    fit, and of + - * /, Sqrt, Reciprocal, Neg, Abs, Round, Floor and Ceil on single and double
    floats, which IEEE 754 defines. Exp, MatMul, sums of floats and all random ops stay. So do
    nodes outside of bodies, which runtimes fold themselves, and, below opset 9, whose Constant
    holds only floats, nodes with other results. A value that a body returns gets an Identity of
    its own.

    A Shape or Size, and a Gather or Slice of a Shape, also becomes a constant where all sizes
    that it returns are known, but not for what the body of a Loop computes of what it carries,
    which may change its shape between iterations, whatever is declared. Of the second input of a
    CastLike, only the type must be known.

    A Loop reads its trip count and its initial condition as constants, at any location, if they
    follow from constants and sizes that are known.

    Refuses:
    - `fails`: the node fails on its constants, and so must the new model when it runs the node
    - `too-large`: the result would take more than 64 KiB, and more than the constants do
    """
    if op_of(site.node) == "Loop":
        return _with_fixed_head(site)
    referring = has_references(site.node)
    if site.scope.outer is None or referring:
        raise NothingToDo
    inputs = _inputs(site)
    context: tuple[NodeProto, ...] = ()
    if any(value is None and name for name, value in zip(site.node.input, inputs, strict=True)):
        sizes, context = _sizes(site)
        outputs = [sizes]
    else:
        outputs = _computed(site, inputs)
    if site.opset < CONSTANT_OF_ANY_TYPE and any(output.dtype not in _FLOATS for output in outputs):
        raise NothingToDo
    named = zip((name for name in site.node.output if name), outputs, strict=True)
    _all_computed(site).setdefault(site.scope.key, {}).update(named)
    return _edit(site, outputs, (*_context(site), *context))


def _with_fixed_head(site: Site) -> Edit:
    """A Loop whose trip count and initial condition are constants, as far as they are known.

    Raises:
        NothingToDo: they are already, or only the run tells, or the trip count is a size, which
            rules follow.
    """
    count = TripCount(site, LoopForm.from_node(site.node, site.opset))
    author = Author.at(site, "loop")
    node, context = copied(site.node), tuple[NodeProto, ...]()
    for position, name in enumerate(site.node.input[:2]):
        follows = position == 0 and count.size.number is not None
        if not name or follows or site.constant(name) is not None:
            continue
        found = decided(site, name)
        if found is not None and found[0].size == 1:
            node.input[position] = author.value(found[0], name)
            context = found[1]
    if node.input == site.node.input:
        raise NothingToDo
    covered = dead_after_rewrite(site, Integers(site), (), [node])
    return Edit((node,), tuple(author.constants), note="computed", covered=covered, context=context)


def _inputs(site: Site) -> list[Array | None]:
    """The inputs of the site's node that are known; for a CastLike, the type is enough."""
    inputs = [_value(site, name) if name else None for name in site.node.input]
    if op_of(site.node) == "CastLike" and inputs[1] is None and not site.in_function:
        elem_type = elem_type_of(site.type_of(site.node.input[1]))
        if elem_type not in (TensorProto.UNDEFINED, TensorProto.STRING):
            inputs[1] = np.zeros((), helper.tensor_dtype_to_np_dtype(elem_type))
    return inputs


def _sizes(site: Site) -> tuple[Array, tuple[NodeProto, ...]]:
    """The sizes that the site's node returns, and the nodes from which they follow.

    Raises:
        NothingToDo: it returns something else, or something known only at run time.
    """
    found = static_sizes(site) if asks_for_sizes(site.node) else None
    if found is None:
        raise NothingToDo
    return found


def _computed(site: Site, inputs: Sequence[Array | None]) -> list[Array]:
    """The outputs of the site's node.

    Raises:
        NothingToDo: they are unknown, or differ between executors.
        Refused: they are too large, or the node fails.
    """
    from passes.analysis.integers import evaluation  # loads the reference executor

    node = site.node
    named = {
        name: value for name, value in zip(node.input, inputs, strict=True) if value is not None
    }
    most = max(MOST_BYTES, sum(value.nbytes for value in named.values()))
    try:
        outputs = evaluation.evaluated(node, named, site.opset, most)
    except evaluation.ModelFailed as error:
        raise site.refused("fails", f"it fails on its constants: {error}") from error
    except evaluation.TooLarge as error:
        raise site.refused(
            "too-large", f"its value would take {error.size} bytes, at most {most} are allowed"
        ) from error
    if outputs is None or not is_exact(node, inputs, outputs):
        raise NothingToDo
    return outputs


def _edit(site: Site, outputs: Sequence[Array], context: tuple[NodeProto, ...]) -> Edit:
    graph = site.scope.owner
    returned = scoping.output_names(graph)
    names = [name for name in site.node.output if name]
    if op_of(site.node) == "Identity" and names[0] in returned:
        raise NothingToDo
    nodes = []
    for name, value in zip(names, outputs, strict=True):
        written = site.fresh(name) if name in returned else name
        nodes.append(helper.make_node("Constant", [], [written], value=_tensor(value)))
        if written != name:
            nodes.append(helper.make_node("Identity", [written], [name]))
    return Edit(tuple(nodes), note="computed", context=context)


def _context(site: Site) -> tuple[NodeProto, ...]:
    """The inputs that were computed, each by an Edit of its own, which is verified there."""
    found = []
    for name in dict.fromkeys(filter(None, site.node.input)):
        value = _value(site, name)
        if value is not None and site.constant(name) is None:
            found.append(helper.make_node("Constant", [], [name], value=_tensor(value)))
    return tuple(found)


def _tensor(value: Array) -> TensorProto:
    tensor: TensorProto = numpy_helper.from_array(value)
    tensor.ClearField("name")
    return tensor


_COMPUTED: Slot[dict[Key, dict[str, Array]]] = Slot()


def _all_computed(site: Site) -> dict[Key, dict[str, Array]]:
    """The values computed in this round, by scope and name."""
    return site.memory.once(_COMPUTED, dict)


def _value(site: Site, name: str) -> Array | None:
    """The value of a name at the site, if it is constant or was computed."""
    computed = _all_computed(site)
    for scope in site.scope.chain():
        if name in computed.get(scope.key, {}):
            return computed[scope.key][name]
        if site.model.defines(scope.owner, name):
            break
    return site.constant(name)
