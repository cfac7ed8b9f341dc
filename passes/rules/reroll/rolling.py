"""Writes the loop that a chain of copies becomes, and the nodes around it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from onnx import NodeProto, TensorProto, TypeProto, ValueInfoProto

from passes.analysis.bodies.context import context_of
from passes.analysis.safety.randomness import first_random
from passes.ir import scope as scoping
from passes.ir.attributes import attribute, numbers
from passes.ir.live import live, orphaned
from passes.ir.operators import op_of
from passes.ir.protos import copied, replace_all
from passes.loops.form import Carried, Collected, Kind, LoopForm, Scanned
from passes.rule import Edit, Refused, Site
from passes.rules.reroll.chain import Inner, State
from passes.rules.reroll.copies import Port
from passes.rules.reroll.flow import names_read
from passes.rules.reroll.results import Joined, Results, moved
from passes.rules.reroll.slices import Kinds, Slicing
from passes.rules.reroll.step import Step, is_varying
from passes.types.value_types import dims_of, elem_type_of, is_static, tensor_type
from passes.writing import spelling
from passes.writing.author import Author
from passes.writing.scan_axes import write_scan
from passes.writing.tidy import own, without_copies


class FirstDiffers(Exception):
    """The first copy reads a state of another type than the others."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(str(refused))
        self.refused = refused


class Rolling:
    """Writes one Edit."""

    def __init__(self, site: Site, results: Results) -> None:
        self.site, self.results = site, results
        self.chain = results.chain
        self.flow = self.chain.flow
        self.kinds = Kinds(site, self.flow.alike)
        self.before, self.after = (Author(site.target, site.names, "reroll") for _ in range(2))
        inner = self.before.inside("")
        wires = self.chain.wires() or []
        slicing = Slicing(self.flow, self.kinds, self.before)
        self.step = Step(self.chain, wires, slicing, inner)
        self.collected: list[Collected] = []
        self.types: list[TypeProto] = []
        #: Concats of which the loop collects all, and, by position, what others read in part.
        self.replaced: set[int] = set()
        self.joins: dict[int, list[tuple[Joined, str]]] = {}

    def edit(self) -> Edit:
        """Write it.

        Raises:
            FirstDiffers: the first copy is to stay as it is.
            Refused: see the rule.
        """
        owner, here = self.site.scope.owner, self.site.place.index
        after = moved(owner.node, self.results.gone, here)
        self._check_random(after)
        self.step.write()
        joined = [one for one in self.results.joined if self._collect_joined(one)]
        singles = self.results.singles(joined)
        carried = [self._carried(state, singles) for state in list(self.step.states)]
        for port, copies in singles.items():
            self._read_singly(port, copies)
        write_scan(self.before, self._loop(carried))
        self.before.adopt(self.after.nodes, self.after.constants)
        others = [self._rewritten(one) for one in after if one not in self.replaced]
        nodes = (*self.before.nodes, *others)
        looked = self._looked_through()
        still = {name for node in nodes for name in scoping.free_names(node)}
        gone = orphaned(
            self.site.graph,
            looked,
            self.results.gone.union(after),
            lambda node: node.output[0] in looked and still.isdisjoint(node.output),
        )
        self._check_gain(len(gone), nodes)
        note = f"{len(self.chain.copies)} copies of {len(self.chain.copies[0])} nodes"
        return replace(
            self.before.edit(note, nodes),
            covered=tuple(sorted(gone - {self.site.place.index})),
            context=self._context(looked),
        )

    def _looked_through(self) -> dict[str, NodeProto]:
        """The Splits and Identities before the copies that the loop does without."""
        found, producers = dict(self.step.slicing.splits), self.site.graph.producers
        for name in (name for node in self._nodes() for name in names_read(node)):
            while name in self.flow.copies and name not in found and name in producers:
                found[name] = producers[name]
                name = producers[name].input[0]
        return found

    def _nodes(self) -> Iterator[NodeProto]:
        return (self.flow.node(rank) for copy in self.chain.copies for rank in copy)

    def _context(self, looked: Mapping[str, NodeProto]) -> tuple[NodeProto, ...]:
        """The nodes before the copies that make what the loop reads instead, or determine sizes."""
        names = [self.flow.name(state.initial) for state in self.step.states]
        sizes = context_of(self.site, names) if self.kinds.symbolic else ()
        known = {node.output[0] for node in sizes}
        positions = self.site.graph.positions
        others = [node for name, node in looked.items() if name not in known]
        return (*sizes, *sorted(others, key=lambda node: positions[node.output[0]]))

    def _check_random(self, moved: Sequence[int]) -> None:
        nodes = [self.step.node(place) for place in range(len(self.chain.copies[0]))]
        nodes += [self.site.scope.owner.node[position] for position in moved]
        drawing = first_random(self.site.model, nodes)
        if drawing is not None:
            what = f"{op_of(drawing)} draws random numbers"
            raise self.site.refused("random", what, *drawing.output)

    def _check_gain(self, gone: int, nodes: Sequence[NodeProto]) -> None:
        written = len(nodes) + sum(len(scoping.inner_nodes(node)) for node in nodes)
        if written >= gone:
            what = f"{gone} nodes would become {written}"
            raise self.site.refused("no-gain", what)

    def _names(self, port: Port) -> list[str]:
        """The names of the values at a port, one for each copy."""
        place, out = port
        return [self.flow.node(copy[place]).output[out] for copy in self.chain.copies]

    def _carried(self, state: State, singles: dict[Port, list[int]]) -> Carried:
        names = self._names((state.place, state.out))
        if (other := self.kinds.other([self.flow.name(state.initial), *names])) is not None:
            what = f"{names[0]!r} hands on a state whose shape is not proven to be the same"
            refused = self.site.refused("state-changes", f"{what} in each copy", *names[:2])
            raise FirstDiffers(refused) if other == 1 else refused
        last, port = len(names) - 1, (state.place, state.out)
        final = ""
        if last in singles.get(port, ()):
            singles[port].remove(last)
            final = names[-1]
        return self.step.carried(state, final)

    def _read_singly(self, port: Port, copies: Sequence[int]) -> None:
        """Give the values that some copies have at a port their names."""
        if not copies:
            return
        names = self._names(port)
        self._check_kept(names)
        rows = self.before.fresh("rows")
        value = self.step.whole(self.step.values[port])
        self._collect(Collected(value, rows), self.kinds.declared(names[0]))
        elem_type = elem_type_of(self.site.type_of(names[0]))
        for copy in copies:
            row = spelling.row(self.after, rows, self.after.int(copy), elem_type)
            self.after.name_as(row, names[copy])

    def _check_kept(self, names: Sequence[str]) -> None:
        if self.kinds.other(names) is not None:
            what = f"{names[0]!r} and its like in other copies are not proven to be of one shape"
            raise self.site.refused("state-changes", what, *names[:2])

    def _collect_joined(self, joined: Joined) -> bool:
        """Collect what a Concat joins, along its axis; returns whether that is possible."""
        concat = self.site.scope.owner.node[joined.concat]
        names, count = self._names(joined.port), len(self.chain.copies)
        dims, axis = dims_of(self.site.type_of(names[0])), attribute(concat, "axis", 0)
        if dims is None or not -len(dims) <= axis < len(dims):
            return False
        axis %= len(dims)
        inner, type_ = self._without_axis(joined.port, axis, len(dims))
        sizes = dims if is_static(dims) and 0 not in dims else None
        if not inner and (sizes is None or self.kinds.other(names)):
            return False
        whole = len(concat.input) == count
        given = concat.output[0] if whole else self.before.fresh("joined")
        tensor = given if inner else self.before.fresh("rows")
        value = inner or self.step.whole(self.step.values[joined.port])
        self._collect(Collected(value, tensor, axis, joined.backwards), type_)
        if sizes is not None and not inner:
            shape = [size * (count if at == axis else 1) for at, size in enumerate(sizes)]
            self.after.op("Reshape", tensor, self.after.ints(*shape), outputs=[given])
        if whole:
            self.replaced.add(joined.concat)
        else:
            self.joins.setdefault(joined.concat, []).append((joined, given))
        return True

    def _without_axis(self, port: Port, axis: int, rank: int) -> tuple[str, TypeProto]:
        """The value of the copies at a port without an axis of size 1, or "", with its type."""
        place, _ = port
        node, row, (name, *_) = self.step.node(place), self.step.wires[place], self._names(port)
        if (
            op_of(node) == "Unsqueeze"
            and isinstance(row[0], Inner)
            and not any(map(is_varying, row))
        ):
            axes = numbers(node, 1, "axes", self.site.constant)
            if axes in ([axis], [axis - rank]):
                value = self.step.whole(self.step.values[row[0].place, row[0].out])
                return value, self.kinds.declared(name, axis)
        types = map(self.site.type_of, self._names(port))
        if not all(dims is not None and dims[axis:][:1] == (1,) for dims in map(dims_of, types)):
            return "", self.kinds.declared(name)
        value = self.step.whole(self.step.values[port])
        return spelling.squeeze(self.step.author, value, axis), self.kinds.declared(name, axis)

    def _collect(self, collected: Collected, type_: TypeProto) -> None:
        self.collected.append(collected)
        self.types.append(type_)

    def _rewritten(self, position: int) -> NodeProto:
        """A node that runs after the loop."""
        node = copied(self.site.scope.owner.node[position])
        inputs = list(node.input)
        for joined, rows in reversed(self.joins.get(position, ())):
            inputs[joined.start : joined.start + len(self.chain.copies)] = [rows]
        replace_all(node.input, inputs)
        return node

    def _loop(self, carried: list[Carried]) -> LoopForm:
        """The Scan."""
        step, author = self.step, self.step.author
        if not step.scanned:
            name, numbers_ = author.fresh("number"), np.arange(len(self.chain.copies))
            step.scanned.append(Scanned(self.before.value(numbers_, "numbers"), name))
            step.types[name] = tensor_type(TensorProto.INT64, ())
        inputs = [*(one.body_input for one in carried), *(one.body_input for one in step.scanned)]
        results = [one.body_output for one in carried]
        results += [one.body_output for one in self.collected]
        types = [*(step.types[one.body_input] for one in carried), *self.types]
        results = [own(author, name, ValueInfoProto(name=name)) for name in results]
        body = author.graph(
            "step",
            [ValueInfoProto(name=name, type=step.types[name]) for name in inputs],
            [ValueInfoProto(name=name, type=one) for name, one in zip(results, types, strict=True)],
        )
        nodes, results = without_copies(body.node, results)
        replace_all(body.node, live(nodes, results, scoping.free_names)[0])
        for value, name in zip(body.output, results, strict=True):
            value.name = name
        outs = len(carried)
        form = LoopForm(
            kind=Kind.SCAN,
            body=body,
            carried=tuple(
                replace(one, body_output=name) for one, name in zip(carried, results, strict=False)
            ),
            scanned=tuple(step.scanned),
            collected=tuple(
                replace(one, body_output=name)
                for one, name in zip(self.collected, results[outs:], strict=True)
            ),
        )
        return form.with_all_outputs(self.before.fresh)
