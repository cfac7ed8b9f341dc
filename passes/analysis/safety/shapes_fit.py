"""Proves that an op fits its shapes, so that it cannot fail where the original did not run it.

A body that never runs, or a branch that is not taken, may hold ops that do not fit what they
would read. What is not proven to fit here may fail. Two sizes with one symbol are proven to be
equal for inputs of the model, and elsewhere where the user lets inputs be assumed to be valid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from onnx import NodeProto, TypeProto

from passes.analysis.sizes.sizes_through import RESHAPING, reshaped, sizes_of
from passes.analysis.sizes.whole_axes import cuts_of
from passes.ir import scope as scoping
from passes.ir.attributes import attribute, has_references, numbers
from passes.ir.constants import Constants
from passes.ir.model import Model
from passes.ir.operators import op_of
from passes.ir.scope import Scope
from passes.ir.versions import OLDEST_OPSET, SOFTMAX_OF_ONE_AXIS
from passes.operators.contract import Need, Number, Operands, Size, computed
from passes.operators.contracts import contract_of
from passes.operators.exactness import Array
from passes.operators.table import traits_of
from passes.operators.traits import Shape, Work
from passes.types.value_types import Dim, Dims, dims_of


@dataclass(frozen=True)
class Known:
    """Facts about the values that nodes read: dims, constants, types; `trusted`: whether
    sizes of one symbol are equal, as in proven dims."""

    opset: int
    dims_of: Callable[[str], Dims | None]
    constant: Callable[[str], Array | None]
    trusted: bool = True
    type_of: Callable[[str], TypeProto | None] = lambda name: None

    @classmethod
    def of_types(
        cls,
        opset: int,
        types: Mapping[str, TypeProto],
        constants: Callable[[str], Array | None],
        *,
        trusted: bool = True,
    ) -> Known:
        """The facts that types give, for names that are unique at every depth."""
        return cls(opset, lambda name: dims_of(types.get(name)), constants, trusted, types.get)

    @classmethod
    def of_graph(cls, model: Model, scope: Scope, *, trusted: bool = True) -> Known:
        """The facts that the types and constants of a model give of the values in a graph."""
        type_of = partial(model.types.of, scope)
        constant = Constants(model, scope).value
        opset = model.opset_at(scope)
        return cls(opset, lambda name: dims_of(type_of(name)), constant, trusted, type_of)

    @classmethod
    def nothing(cls) -> Known:
        """No facts, not even the opset."""
        return cls(0, lambda name: None, lambda name: None)

    def dims(self, node: NodeProto) -> list[Dims] | None:
        """The dims of all inputs that are not omitted; None where a rank is unknown."""
        found = [self.dims_of(name) for name in node.input if name]
        return None if None in found else [dims for dims in found if dims is not None]

    def meets(self, node: NodeProto, need: Need) -> bool:
        """Return whether it is proven that the operands of a node meet a need."""
        size, target, *others = (
            self._dim(node, one) for one in (need.size, need.target, *need.unless_one)
        )
        if need.what == "equal":
            known = isinstance(size, int) or (self.trusted and size is not None)
            return 1 in others or (known and size == target)
        if not isinstance(size, int) or not isinstance(target, int):
            return False
        return size >= target if need.what == "least" else size % target == 0

    def _dim(self, node: NodeProto, number: Number) -> Dim:
        def size(one: Size) -> Dim:
            dims = self.dims_of(node.input[one.operand])
            return None if dims is None else dims[one.axis]

        if isinstance(number, Size):
            return size(number)
        return computed(number, lambda one: dim if isinstance(dim := size(one), int) else None)

    def ints(self, node: NodeProto, position: int, name: str) -> list[int] | None:
        """Integers from an attribute or a constant input; None where there is neither."""
        return numbers(node, position, name, self.constant)


def _axis(node: NodeProto, dims: Sequence[Dims], known: Known) -> bool:
    default = -1 if known.opset >= SOFTMAX_OF_ONE_AXIS and op_of(node) != "Flatten" else 1
    rank = len(dims[0])
    return -rank <= attribute(node, "axis", default) < rank


def _clip(node: NodeProto, dims: Sequence[Dims], known: Known) -> bool:
    return all(dim == () for dim in dims[1:])


def _view(node: NodeProto, dims: Sequence[Dims], known: Known) -> bool:
    given = known.ints(node, 1, "axes")
    if op_of(node) == "Squeeze" and not given:  # every axis of size 1
        return given is not None or (len(node.input) < 2 and None not in dims[0])
    return reshaped(node, sizes_of(dims[0]), known.constant) is not None


def _pooled(node: NodeProto, dims: Sequence[Dims], known: Known) -> bool:
    return len(dims[0]) > 2


def _summed(node: NodeProto, dims: Sequence[Dims], known: Known) -> bool:
    axis, rank = known.ints(node, 1, "axis"), len(dims[0])
    return axis is not None and len(axis) == 1 and -rank <= axis[0] < rank


def _tile(node: NodeProto, dims: Sequence[Dims], known: Known) -> bool:
    repeats = known.ints(node, 1, "repeats")
    return repeats is not None and len(repeats) == len(dims[0]) and min(repeats, default=0) >= 0


def _slice(node: NodeProto, dims: Sequence[Dims], known: Known) -> bool:
    cuts, rank = cuts_of(node, known.ints), len(dims[0])
    if cuts is None or any(known.constant(name) is None for name in node.input[1:] if name):
        return False
    axes = {cut.axis % rank for cut in cuts if -rank <= cut.axis < rank and cut.step}
    return len(axes) == len(cuts)


FitCheck = Callable[[NodeProto, Sequence[Dims], Known], bool]
#: What ops require of shapes beyond what their traits imply.
_CHECKS: Mapping[str, FitCheck] = {
    "Clip": _clip,
    "CumSum": _summed,
    "Flatten": _axis,
    "GlobalAveragePool": _pooled,
    "GlobalLpPool": _pooled,
    "GlobalMaxPool": _pooled,
    "Hardmax": _axis,
    "LogSoftmax": _axis,
    **dict.fromkeys(RESHAPING, _view),
    "Slice": _slice,
    "Softmax": _axis,
    "Tile": _tile,
}


def fits(node: NodeProto, known: Known) -> bool:
    """Return whether a node of the standard domain is proven to fit the shapes that it reads."""
    if has_references(node):
        return op_of(node) == "Constant"
    traits, check = traits_of(node), _CHECKS.get(op_of(node))
    free = not node.input or traits.work is Work.FREE
    if check is None and (traits.shape is Shape.ELEMENTWISE or free):
        return True
    if traits.shape is Shape.BROADCAST and len(set(node.input)) == 1:
        return True
    dims = known.dims(node)
    if dims is None or known.opset < max(OLDEST_OPSET, traits.since):
        return False
    contract = contract_of(Operands(node, known.dims_of, known.constant, opset=known.opset))
    if contract is not None and contract.complete:
        return all(known.meets(node, need) for need in contract.needs)
    return check is not None and check(node, dims, known)


def leaves(node: NodeProto) -> Iterator[NodeProto]:
    """A node, or the nodes in its bodies that have no bodies themselves."""
    pending = [node]
    while pending:
        current = pending.pop()
        if scoping.holds_graphs(current):
            pending.extend(scoping.inner_nodes(current))
        else:
            yield current
