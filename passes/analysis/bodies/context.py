"""The nodes before a loop on which proofs rest: sizes, conditions, empty sequences."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from onnx import NodeProto, TensorProto, helper

from passes.analysis.integers.integer_ops import FOLLOWED, is_settled
from passes.analysis.integers.integers import Integers
from passes.analysis.sizes.sizes_across import Fed, fed_by
from passes.analysis.sizes.sizes_through import has_size
from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.ir.site import Site
from passes.operators.comparisons import COMPARISONS, LOGIC
from passes.operators.table import where
from passes.types.value_types import dims_of

_SEQUENCES = where(lambda row: row.makes)
#: What computes numbers, conditions and sequences of others.
_FOLLOWED = {*FOLLOWED, *COMPARISONS, *LOGIC, *_SEQUENCES, "Constant", "Split", "Where"}
_ZERO = helper.make_tensor("", TensorProto.INT64, [], [0])
_MOST = 256
_DEEPEST = 128  # no integer is followed further
_MOST_LOOPS = 8


def context_of(
    site: Site,
    names: Iterable[str] | None = None,
    is_known: Callable[[str], bool] = lambda name: False,
) -> tuple[NodeProto, ...]:
    """The nodes that determine the numbers, conditions and sequences that a loop reads, or only
    those `names`, and the values of which `is_known` holds."""
    walk = _Walk(site, is_known)
    for name in scoping.free_names(site.node) if names is None else names:
        walk.visit(name, 0)
    return tuple(walk.found.values())


def held_to_declared(context: Sequence[NodeProto], inputs: Collection[str]) -> set[str]:
    """The values around bodies with these `inputs` that a context forces to sizes that only the
    bodies declare: a region that begins with such a value draws it so, one that computes it
    does not."""
    producers = {node.output[0]: node for node in context}
    checks = [
        producers[name]
        for name in inputs
        if name in producers and op_of(producers[name]) == "Reshape"
    ]
    return {producers[check.input[0]].input[0] for check in checks}


class _Walk:
    def __init__(self, site: Site, is_known: Callable[[str], bool]) -> None:
        self.integers = Integers(site)
        self.is_known = is_known
        self.found: dict[str, NodeProto] = {}
        self._seen: set[str] = set()
        self._loops = 0

    def visit(self, name: str, depth: int) -> None:
        """Add the node that computes a value, after the nodes that it depends on."""
        node = self.integers.producer(name)
        if name in self._seen or depth > _DEEPEST or len(self.found) > _MOST:
            return
        if node is None:
            self._enter(name, depth)
            return
        self._seen.update(node.output)
        if self._is_relevant(node) and self.integers.same_meaning(node, name):
            self._take(node, depth)

    def _take(self, node: NodeProto, depth: int) -> None:
        for operand in self._reads(node):
            self.visit(operand, depth + 1)
        self.found[next(filter(None, node.output))] = node

    def _reads(self, node: NodeProto) -> Iterable[str]:
        """The inputs of a node; of many Loops only what determines their trip counts."""
        self._loops += op_of(node) == "Loop"
        many = op_of(node) == "Loop" and self._loops > _MOST_LOOPS
        return filter(None, node.input) if many else scoping.free_names(node)

    def _enter(self, name: str, depth: int) -> None:
        """Add what feeds an input of an enclosing body: that value, or a slice of it."""
        self._seen.add(name)
        site = self.integers.site
        home = site.model.home(site.scope, name)
        fed = None if home is None else fed_by(site, home, name)
        if fed is None or not self.integers.is_made_of_others(name):
            return
        if not self.integers.means(fed.tensor, fed.scope):
            return
        declared = self._declared(name, fed)
        slice_ = site.fresh(f"{name}/fed") if declared else name
        if fed.along is None:
            self._take(helper.make_node("Identity", [fed.tensor], [slice_]), depth)
        else:
            first = self._constant(f"{name}/first", _ZERO, depth)
            node = helper.make_node("Gather", [fed.tensor, first], [slice_], axis=fed.along)
            self._take(node, depth)
        if declared:
            sizes = helper.make_tensor("", TensorProto.INT64, [len(declared)], declared)
            shape = self._constant(f"{name}/shape", sizes, depth)
            self._take(helper.make_node("Reshape", [slice_, shape], [name]), depth)

    def _constant(self, hint: str, value: TensorProto, depth: int) -> str:
        name = self.integers.site.fresh(hint)
        self._take(helper.make_node("Constant", [], [name], value=value), depth)
        return name

    def _declared(self, name: str, fed: Fed) -> list[int]:
        """The sizes of an input of a body that only the body declares, else 0: a Reshape
        to these fails on other sizes. Empty where there are none."""
        site = self.integers.site
        own, dims = dims_of(site.type_of(name)), dims_of(site.model.types.of(fed.scope, fed.tensor))
        if own is None or dims is None:
            return []
        axis = None if fed.along is None else fed.along % len(dims)
        rest = [dim for position, dim in enumerate(dims) if position != axis]
        pairs = list(zip(own, rest, strict=False))
        sizes = [size if isinstance(size, int) and size != dim else 0 for size, dim in pairs]
        return sizes if any(sizes) and len(own) == len(rest) else []

    def _is_relevant(self, node: NodeProto) -> bool:
        if not is_settled(node):
            return False
        if scoping.holds_graphs(node):
            return any(self.integers.is_made_of_others(name) for name in filter(None, node.output))
        followed = op_of(node) in _FOLLOWED or has_size(node)
        return followed or any(map(self.is_known, filter(None, node.output)))
