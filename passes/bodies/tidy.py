"""Light cleaning of what was written: only that, and only what cannot be wrong."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, TypeProto, ValueInfoProto

from passes.analysis.safety.shapes_fit import Known, fits
from passes.ir import scope as scoping
from passes.ir.constants import sparse_constant
from passes.ir.draft import ITERATION_KEY, Draft, drafts_of, nodes_of
from passes.ir.live import live
from passes.ir.operators import op_of
from passes.ir.protos import copied
from passes.ir.versions import IDENTITY_OF_SEQUENCES
from passes.operators.exactness import Array
from passes.operators.folding import MOST_ELEMENTS, folded
from passes.operators.table import traits_of
from passes.operators.traits import Fails
from passes.types.value_types import dims_of, is_static
from passes.writing.author import Author, small


@dataclass
class Tidy:
    """Folds constant indices, shapes and conditions, and drops unread nodes.

    `keep` are the names that have other readers, `outer` returns constants from outside, and
    `type_of` the types that hold in every iteration. `keeps_size_checks`: what might fail for the
    sizes that it reads stays, even if it is unread; of the nodes of iterations, those that compute
    `doubts` stay in any case, unless their value is known.
    """

    author: Author
    keep: Collection[str]
    outer: Callable[[str], Array | None]
    type_of: Callable[[str], TypeProto | None]
    finals: bool = True
    keeps_size_checks: bool = False
    doubts: AbstractSet[str] = frozenset()
    _same: dict[str, str] = field(default_factory=dict)
    _values: dict[str, Array | None] = field(default_factory=dict)
    _made: set[str] = field(default_factory=set)
    _taken: set[str] = field(default_factory=set)  # values computed in inlined branches

    def clean(self) -> tuple[list[NodeProto], list[TensorProto]]:
        """The nodes that the author wrote, cleaned, and the constants that they read."""
        drafts = self._folded(self.author.drafts)
        if self.finals:
            drafts = finals_renamed(drafts, self.keep)
        alive, read = live(drafts, self.keep, Draft.reads, self._stays)
        return nodes_of(alive), [tensor for tensor in self.author.constants if tensor.name in read]

    def _folded(self, drafts: list[Draft]) -> list[Draft]:
        self._values = {constant.name: small(constant) for constant in self.author.constants}
        kept: list[Draft] = []
        pending = drafts[::-1]
        while pending:
            draft = pending.pop()
            draft.rename(self._same)
            self._made.update(draft.output)
            branch = self._branch(draft) if draft.pattern.nests else None
            if branch is not None:
                pending.extend(reversed(self._inlined(draft, branch)))
            elif not self._gone(draft):
                kept.append(draft)
        return kept

    def _gone(self, draft: Draft) -> bool:
        """Return whether a node is no longer needed: it copies a value, or its value is known."""
        output = draft.output
        if len(output) != 1 or output[0] in self.keep:
            return False
        kind = draft.pattern.op
        if kind == "Identity":
            self._same[output[0]] = draft.input[0]
            return True
        value = self._shape(draft) if kind == "Shape" else folded(draft, self._value)
        if value is None:
            return False
        name = self.author.value(value)
        self._values[name] = value
        self._same[output[0]] = name
        return True

    def _value(self, name: str) -> Array | None:
        if name not in self._values:
            self._values[name] = None if name in self._made else self.outer(name)
        value = self._values[name]
        return value if value is not None and value.size <= MOST_ELEMENTS else None

    def _shape(self, draft: Draft) -> Array | None:
        if draft.attribute:
            return None
        dims = dims_of(self.type_of(draft.input[0]))
        if not is_static(dims):
            return None
        return np.array(dims, np.int64)

    def _branch(self, draft: Draft) -> GraphProto | None:
        """The branch that an If takes, where it is known."""
        if draft.pattern.op != "If":
            return None
        value = self._value(draft.input[0])
        if value is None or value.size != 1:
            return None
        taken = "then_branch" if value.item() else "else_branch"
        return next(graph for name, graph in scoping.subgraphs(draft.node()) if name == taken)

    def _inlined(self, draft: Draft, branch: GraphProto) -> list[Draft]:
        """The nodes of a branch, under new names; its constants are added."""
        tag = _tag(draft) or ""
        end = f"/{tag}" if tag else ""
        scoping.rename_all(branch, lambda name: self.author.names.fresh(f"{name}{end}"))
        self.author.adopt([], branch.initializer)
        self._values.update((tensor.name, small(tensor)) for tensor in branch.initializer)
        nodes = [
            sparse_constant(sparse, sparse.values.name) for sparse in branch.sparse_initializer
        ]
        for inner in branch.node:
            copy = copied(inner)
            copy.metadata_props.add(key=ITERATION_KEY, value=tag)
            nodes.append(copy)
            self._taken.update(copy.output)
        for returned, name in zip(scoping.output_names(branch), draft.output, strict=True):
            if name:
                nodes.append(NodeProto(op_type="Identity", input=[returned], output=[name]))
        return drafts_of(nodes)

    def _stays(self, draft: Draft) -> bool:
        """Return whether an unread node stays: it could fail or draw random numbers."""
        traits = traits_of(draft)
        harmless = traits.fails in (Fails.NEVER, Fails.STRINGS) and not traits.fixed
        if not (harmless or _tag(draft) is None) or not self.doubts.isdisjoint(draft.output):
            return True
        kept = self.keeps_size_checks or not self._taken.isdisjoint(draft.output)
        return kept and not fits(draft.node(), Known.nothing())


def _tag(draft: Draft) -> str | None:
    """The iteration that a node was written for; None where it was written for none."""
    node = draft.pattern.rest
    known = (entry.value for entry in node.metadata_props if entry.key == ITERATION_KEY)
    return draft.tag or next(known, None)


def finals_renamed(drafts: list[Draft], keep: Collection[str]) -> list[Draft]:
    """The nodes without the Identities that write a name of `keep` which their source may take."""
    passed = [
        identity
        for identity in drafts
        if identity.pattern.op == "Identity" and identity.output[0] in keep
    ]
    producers = _producers(drafts, {identity.input[0] for identity in passed} - set(keep))
    renamed: dict[str, str] = {}
    gone = set()
    for identity in passed:
        source = identity.input[0]
        if source in producers and source not in renamed:
            renamed[source] = identity.output[0]
            gone.add(id(identity))
    if not renamed:
        return drafts
    first = min(producers[name] for name in renamed)  # nothing before it reads them
    for draft in drafts[first:]:
        draft.rename(renamed)
        draft.output = [renamed.get(name, name) for name in draft.output]
    return [draft for draft in drafts if id(draft) not in gone]


def _producers(drafts: Sequence[Draft], names: set[str]) -> dict[str, int]:
    """Return the positions of the producers of these values; most are near the end."""
    found: dict[str, int] = {}
    for position in range(len(drafts) - 1, -1, -1):
        if len(found) == len(names):
            break
        found.update((name, position) for name in drafts[position].output if name in names)
    return found


def own(author: Author, name: str, value: ValueInfoProto) -> str:
    """A body's output, from a node of its own; before sequences, Identity takes only tensors."""
    if value.type.HasField("sequence_type") and author.opset < IDENTITY_OF_SEQUENCES:
        return name
    return author.op("Identity", name, outputs=[author.fresh("out")])


def without_copies(
    nodes: Sequence[NodeProto], outputs: Sequence[str]
) -> tuple[list[NodeProto], list[str]]:
    """The nodes and outputs of a body without the Identities that `own` wrote needlessly: for a
    value that a node of the body computes, and that is no other output.

    A Constant does not count: onnxruntime makes an initializer of it.
    """
    producers = {name for node in nodes if op_of(node) != "Constant" for name in node.output}
    copies = {node.output[0]: node.input[0] for node in nodes if op_of(node) == "Identity"}
    listed = set(outputs)
    gone: set[str] = set()
    results = []
    for name in outputs:
        source = copies.get(name, "")
        if source in producers and source not in listed:
            gone.add(name)
            listed.add(source)
            name = source
        results.append(name)
    return [node for node in nodes if gone.isdisjoint(node.output)], results
