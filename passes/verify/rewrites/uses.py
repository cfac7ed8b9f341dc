"""Groups rewrites that are the same use of a rule, so that one verification covers all of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from onnx import NodeProto, TensorProto

from passes.engine.rounds import Rewritten, Round
from passes.ir import scope as scoping
from passes.ir.constants import Constants
from passes.ir.external_data import byte_size
from passes.ir.operators import called_key
from passes.types.value_types import dims_of, elem_type_of

#: Constants up to this size count by value: axes, shapes, scales, bounds.
_SMALL = 512
#: One use of a rule is verified with the float constants of this many of its sites.
MOST_SITES = 4
_FLOATS = frozenset(
    kind for name, kind in TensorProto.DataType.items() if "FLOAT" in name or name == "DOUBLE"
)


@dataclass(frozen=True)
class Use:
    """A use of a rule: everything but names, float constants, and the bytes of large constants.

    Two sites of one use have the same node, the same Edit, and inputs and outputs of the same
    types. `floats` are the small float constants, by which sites of one use may still differ.
    """

    key: tuple[Any, ...]
    floats: tuple[bytes, ...] = ()


def use_of(round_: Round, rewritten: Rewritten) -> Use | None:
    """The use that a rewrite is; None where only the cut region shows it.

    That is where a body or more than the site's node is involved, or the type of an input is
    not known.
    """
    edit = rewritten.edit
    nodes = (rewritten.place.node, *edit.nodes)
    if edit.covered or edit.context or any(True for node in nodes for _ in scoping.subgraphs(node)):
        return None
    return _Reading(round_, rewritten).use()


@dataclass
class Uses:
    """The rewrites of a round that are executed, and for each rewrite which of them shows it; None
    for one that is proven."""

    shown: list[Rewritten] = field(default_factory=list)
    positions: list[int | None] = field(default_factory=list)

    @staticmethod
    def of(round_: Round) -> Uses:
        """Group rewrites: those that are one use of a rule share a few sites; each other one is
        alone."""
        uses = Uses()
        known: dict[tuple[object, ...], dict[Use, int]] = {}
        for rewritten in round_.rewritten:
            if rewritten.edit.claim.proof:
                uses.positions.append(None)
                continue
            use = use_of(round_, rewritten)
            if use is None:
                uses._show(rewritten)
                continue
            sites = known.setdefault(use.key, {})
            if use in sites:
                uses.positions.append(sites[use])
            elif len(sites) < MOST_SITES:
                sites[use] = uses._show(rewritten)
            else:
                uses.positions.append(next(iter(sites.values())))
        return uses

    def _show(self, rewritten: Rewritten) -> int:
        self.positions.append(len(self.shown))
        self.shown.append(rewritten)
        return len(self.shown) - 1


class _Reading:
    """Reads a rewrite; names of values and dims become numbers, in the order they occur."""

    def __init__(self, round_: Round, rewritten: Rewritten) -> None:
        self._round = round_
        self._rewritten = rewritten
        self._scope = rewritten.place.scope
        self._constants = Constants(round_.model, self._scope)
        self._numbers: dict[str, int] = {"": -1}
        self._floats: list[bytes] = []

    def use(self) -> Use | None:
        node, edit = self._rewritten.place.node, self._rewritten.edit
        sides = [self._node(node)]
        values = [self._value(name) for name in node.input if name]
        if None in values:
            return None
        values += [self._type(name) for name in node.output]
        made = [(self._number(tensor.name), self._constant(tensor)) for tensor in edit.initializers]
        sides += [self._node(one) for one in edit.nodes]
        opset = self._round.model.opset_at(self._scope)
        key = (self._rewritten.rule.name, opset, edit.exact, *values, *made, *sides)
        return Use(key, tuple(self._floats))

    def _number(self, name: str) -> int:
        return self._numbers.setdefault(name, len(self._numbers))

    def _node(self, node: NodeProto) -> tuple[Any, ...]:
        attributes = sorted(one.SerializeToString(deterministic=True) for one in node.attribute)
        inputs, outputs = (tuple(map(self._number, part)) for part in (node.input, node.output))
        return (called_key(node), inputs, outputs, *attributes)

    def _value(self, name: str) -> Any:
        """Return the facts about an input; None if even its type is unknown."""
        tensor = self._constants.tensor(name)
        if tensor is not None:
            return self._constant(tensor)
        known = self._round.model.types.of(self._scope, name)
        return self._type(name) if elem_type_of(known) else None

    def _type(self, name: str) -> Any:
        known = self._round.model.types.of(self._scope, name)
        dims = dims_of(known)
        if known is None or dims is None:
            return b"" if known is None else known.SerializeToString(deterministic=True)
        spelled = [self._number(f"dim {dim}") if isinstance(dim, str) else (dim,) for dim in dims]
        return (elem_type_of(known), *spelled)

    def _constant(self, tensor: TensorProto) -> tuple[Any, ...]:
        content = b""
        external = tensor.data_location == TensorProto.EXTERNAL
        if not external and byte_size(tensor) <= _SMALL:
            content = self._round.model.read(tensor).tobytes()
        if tensor.data_type in _FLOATS:
            self._floats.append(content)
            content = b""
        return (tensor.data_type, tuple(tensor.dims), content)
