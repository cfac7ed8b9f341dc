"""Restores the first copy of a subgraph, of which an exporter computed a part beforehand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from graphlib import TopologicalSorter

import numpy as np
from onnx import NodeProto, helper

from passes.analysis.safety.randomness import first_random
from passes.ir import scope as scoping
from passes.ir.attributes import has_references
from passes.ir.external_data import byte_size
from passes.ir.protos import replace_all
from passes.operators.exactness import Array
from passes.rule import Edit, Site
from passes.rules.reroll.chain import Chain, Inner, Outer, State, Wire, handing_on
from passes.rules.reroll.copies import Earlier, earlier_copy
from passes.rules.reroll.flow import LEAF, Value, names_read, reading
from passes.rules.reroll.results import moved
from passes.types.value_types import FLOATS, dims_of, elem_type_of, is_static
from passes.writing.author import Author

_MOST_BYTES = 1 << 20  # of a constant that is computed again
_DEEPEST = 100  # nodes one after the other that are computed
_RTOL, _ATOL = 1e-5, 1e-6  # how far they may be from what the exporter computed
#: A value, or a constant that is to be written. The rank of a value that is to be computed at a
#: place is `LEAF - 1 - place`.
_Source = Value | Array


@dataclass(frozen=True)
class FirstCopy:
    """The copy before those of a chain, which has constants instead of nodes that read constant
    states, or one node instead of two that compute the same.

    `ranks`: the nodes that it has, by place; `missing`: the other places.
    """

    chain: Chain
    earlier: Earlier
    ranks: Mapping[int, int]
    _computed: dict[int, list[Array] | None] = field(default_factory=dict)

    @classmethod
    def of(cls, chain: Chain) -> FirstCopy | None:
        """The first copy of a chain; None if there is none, if it is whole, or if its constants are
        not what the nodes of the others compute from constant states, or from states of zeros."""
        earlier = earlier_copy(chain.flow, *chain.copies[:2])
        if earlier is None or not earlier.ranks:
            return None
        places = {rank: place for place, rank in sorted(earlier.ranks.items(), reverse=True)}
        found = cls(chain, earlier, {place: rank for rank, place in places.items()})
        used = {rank for copy in chain.copies for rank in copy}
        return found if used.isdisjoint(places) and found._is_sound() else None

    @classmethod
    def as_states(cls, chain: Chain) -> Chain:
        """The chain whose copies hand on what the copy before it has instead of what nodes compute:
        states, such as the output of a decoder; as it is if nothing is gained."""
        earlier = earlier_copy(chain.flow, *chain.copies[:2])
        if earlier is None or not earlier.ranks:
            return chain
        found = cls(chain, earlier, earlier.ranks)
        other = [
            place
            for (place, out), value in earlier.others.items()
            if not found._computes((LEAF - 1 - place, out), value)
        ]
        longer = handing_on(chain, other) if other else chain
        if longer == chain or not longer.is_closed():
            return chain
        more = len(longer.copies) > len(chain.copies)
        return longer if more or cls.of(longer) is not None else chain

    @cached_property
    def missing(self) -> list[int]:
        return [place for place in range(len(self._wires)) if place not in self.ranks]

    @cached_property
    def position(self) -> int:
        """The position of the last node that is to read what is written."""
        return max(map(self.chain.flow.positions.__getitem__, self._rewired))

    def edit(self, site: Site) -> Edit:
        """Write the missing nodes, to be read by those of this copy and the one after it."""
        flow, author = self.chain.flow, Author(site.target, site.names, "first")
        outputs = {
            place: [name and author.fresh(name) for name in self._like(place).output]
            for place in self.missing
        }

        def named(source: _Source) -> str:
            if isinstance(source, np.ndarray):
                return author.value(source, "state")
            rank, out = source
            if rank < LEAF:
                return outputs[LEAF - 1 - rank][out]
            tensor, name = flow.tensor(source), flow.name(source)
            held = tensor is not None and name in site.graph.producers
            return author.value(flow.model.read(tensor)) if held and tensor else name

        nodes = list[NodeProto]()
        for place, names in outputs.items():
            node = reading(self._like(place), [named(one) for one in self._sources(place)])
            replace_all(node.output, names)
            replace_all(node.metadata_props, [])
            node.name = ""
            nodes.append(node)
        rewired = {}
        for rank, sources in self._rewired.items():
            old = zip(names_read(flow.node(rank)), flow.reads[rank], sources, strict=True)
            read = [name if was == now else named(now) for name, was, now in old]
            rewired[flow.positions[rank]] = reading(flow.node(rank), read)
        others = moved(site.scope.owner.node, rewired.keys(), self.position)
        nodes += [rewired.get(one, flow.nodes[one]) for one in sorted((*others, *rewired))]
        note = f"the copy before {len(self.chain.copies)} others has all of its nodes"
        return replace(
            author.edit(note, _in_order(nodes)),
            exact=False,
            covered=tuple(sorted({*others, *rewired} - {site.place.index})),
            context=tuple(flow.nodes[one] for one in sorted(self._known - {*others, *rewired})),
        )

    @cached_property
    def _known(self) -> set[int]:
        """The positions of the nodes that compute what others are to compute again."""
        ranks = {self.earlier.ranks[place] for place in self.missing if place in self.earlier.ranks}
        ranks.update(rank for rank in self._computed if rank > LEAF)
        return set(map(self.chain.flow.positions.__getitem__, ranks))

    @cached_property
    def _wires(self) -> list[list[Wire]]:
        return self.chain.wires() or []

    def _like(self, place: int) -> NodeProto:
        return self.chain.flow.node(self.chain.copies[1][place])

    @cached_property
    def _rewired(self) -> dict[int, list[_Source]]:
        """What nodes that exist are to read, by rank, of those that read something else."""
        flow = self.chain.flow
        read = {rank: self._sources(place) for place, rank in self.ranks.items()}
        for place, rank in enumerate(self.chain.copies[0]):
            read[rank] = list(self._read(place, flow.reads[rank], State))
        return {rank: now for rank, now in read.items() if now != list(flow.reads[rank])}

    def _sources(self, place: int) -> list[_Source]:
        """What the node at a place of this copy is to read; fewer, if that is unknown."""
        rank = self.earlier.ranks.get(place)
        reads = None if rank is None else self.chain.flow.reads[rank]
        return list(self._read(place, reads, Inner))

    def _read(
        self, place: int, reads: Sequence[Value] | None, inside: type[Wire]
    ) -> Iterator[_Source]:
        """What to read at a place: of this copy, where wires are `inside`, else what is read now,
        or a state from before this copy, or what all copies read."""
        for number, wire in enumerate(self._wires[place]):
            if isinstance(wire, inside) and not isinstance(wire, Outer):
                yield self.ranks.get(wire.place, LEAF - 1 - wire.place), wire.out
            elif reads is not None:
                yield reads[number]
            elif isinstance(wire, State):
                yield from self._initial(wire)
            elif isinstance(wire, Outer) and len(set(wire.values)) == 1:
                yield wire.values[0]

    def _initial(self, state: State) -> Iterator[_Source]:
        """The state before this copy: what one of its nodes reads, else zeros."""
        flow, port = self.chain.flow, (state.place, state.out)
        if port in self.earlier.initials:
            yield self.earlier.initials[port]
            return
        type_ = flow.model.types.of(flow.scope, flow.name((self.chain.copies[0][port[0]], port[1])))
        dims, elem_type = dims_of(type_), elem_type_of(type_)
        if is_static(dims) and elem_type in FLOATS:
            yield np.zeros(dims, helper.tensor_dtype_to_np_dtype(elem_type))

    def _is_sound(self) -> bool:
        """Return whether nodes are missing, and may be written, and compute the constants."""
        flow = self.chain.flow
        if not self.missing or not self._rewired:
            return False
        for place in self.missing:
            sources = self._sources(place)
            ranks = [source[0] for source in sources if not isinstance(source, np.ndarray)]
            late = any(rank > LEAF and flow.positions[rank] > self.position for rank in ranks)
            if late or len(sources) < len(self._wires[place]):
                return False
        if first_random(flow.model, [self._like(place) for place in self.missing]) is not None:
            return False
        return all(
            self._computes((LEAF - 1 - place, out), constant)
            for (place, out), constant in self.earlier.others.items()
        )

    def _computes(self, value: Value, constant: Value) -> bool:
        found, expected = self._array(value), self._array(constant)
        if found is None or expected is None or found.dtype != expected.dtype:
            return False
        if found.shape != expected.shape:
            return False
        if found.dtype.kind in "iub":
            return bool((found == expected).all())
        return found.dtype.kind == "f" and np.allclose(found, expected, _RTOL, _ATOL)

    def _array(self, source: _Source, depth: int = 0) -> Array | None:
        """The value of a constant, or of what depends on constants alone."""
        if isinstance(source, np.ndarray):
            return source
        rank, out = source
        flow = self.chain.flow
        if rank == LEAF:
            tensor = flow.tensor(source)
            held = tensor is not None and byte_size(tensor) <= _MOST_BYTES
            return flow.model.read(tensor) if held and tensor else None
        if rank not in self._computed:
            self._computed[rank] = None if depth > _DEEPEST else self._run(rank, depth + 1)
        arrays = self._computed[rank]
        return None if arrays is None else arrays[out]

    def _run(self, rank: int, depth: int) -> list[Array] | None:
        """The outputs of a node."""
        from passes.analysis.integers import evaluation  # loads the reference executor

        flow, place = self.chain.flow, LEAF - 1 - rank
        node = flow.node(rank) if rank > LEAF else self._like(place)
        if scoping.holds_graphs(node) or has_references(node) or "" in node.output:
            return None
        inputs = dict[str, Array]()
        read = flow.reads[rank] if rank > LEAF else self._sources(place)
        if len(read) < len(node.input):
            return None
        for name, source in zip(node.input, read, strict=True):
            array = self._array(source, depth) if name else None
            if array is not None:
                inputs[name] = array
            elif name:
                return None
        opset = flow.model.opset_at(flow.scope, node.domain)
        try:
            return evaluation.evaluated(node, inputs, opset, _MOST_BYTES)
        except (evaluation.ModelFailed, evaluation.TooLarge):
            return None


def _in_order(nodes: Sequence[NodeProto]) -> Iterator[NodeProto]:
    """The nodes, each after those that it reads."""
    made = {name: number for number, node in enumerate(nodes) for name in node.output}
    reads = {
        number: [made[name] for name in scoping.free_names(node) if name in made]
        for number, node in enumerate(nodes)
    }
    return (nodes[number] for number in TopologicalSorter(reads).static_order())
