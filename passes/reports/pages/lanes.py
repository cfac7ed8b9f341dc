"""A lane for each loop of a model: its body before, and what became of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from onnx import NodeProto

from passes.analysis.trip_count.trip_count import TripCount
from passes.errors import BadModel, count
from passes.ir import scope as scoping
from passes.ir.model import Model
from passes.ir.operators import op_of
from passes.ir.places import Owner, Place, is_loop
from passes.loops.alike import pattern_of
from passes.loops.form import Kind, LoopForm
from passes.loops.structure import Structures
from passes.operators.cells import RECURRENT
from passes.reports.pages.drawing import Drawing, Origins, Sketch, paired, shortened
from passes.reports.report import Record, summed
from passes.reports.words import grouped
from passes.rule import Site

#: Nodes that one side of a lane draws, and all lanes of a page together.
_MOST_NODES, _MOST_OF_ALL, _FEWEST = 150, 40_000, 12


@dataclass(frozen=True)
class Step:
    """A rule's work on a loop: how often it applied, and the verdicts."""

    rule: str
    note: str
    count: int
    verdict: str


@dataclass(frozen=True)
class Lane:
    """Loops that are alike, with their `paths`: the `title` of one before, `facts` about it, what
    it became in a sentence, the steps to it, what extra nodes are for, refusals, one of each kind,
    and both drawings; `after` is None where there is no outcome, or it stays as it is. `moved`
    nodes left the loop."""

    paths: Sequence[str]
    title: str
    facts: Sequence[str]
    became: str
    steps: Sequence[Step]
    extras: Sequence[str]
    refusals: Sequence[Record]
    before: Drawing
    after: Drawing | None
    moved: int

    @property
    def changed(self) -> bool:
        """True if anything was done to it, or refused."""
        return bool(self.steps or self.refusals)

    @property
    def name(self) -> str:
        """The path, or a pattern that those of several match."""
        return pattern_of(self.paths)


def lanes_of(before: Model, after: Model | None, records: Sequence[Record]) -> list[Lane]:
    """The lanes of a model, in the order of its loops; those of one likeness that became one thing
    are one. `after` is None where there is no outcome, and `before` itself where it is unchanged.
    """
    outcome = None if after is None else _Outcome(after)
    found = [
        _Loop(place, outcome.nodes_of(place) if outcome is not None else ())
        for place in scoping.walk_model(before.proto)
        if is_loop(place.node)
    ]
    _assign(records, found)
    structures, constants = Structures(before), _Constants()
    groups = grouped(found, lambda loop: (structures.of(loop.place), loop.fate))
    limit = max(_FEWEST, min(_MOST_NODES, _MOST_OF_ALL // max(1, 2 * len(groups))))
    return [_lane(before, outcome, group, limit, constants) for group in groups]


@dataclass
class _Loop:
    """A loop, the nodes that compute its outputs now, and the records of what was done to it."""

    place: Place
    nodes: Sequence[NodeProto]
    records: list[Record] = field(default_factory=list)

    @property
    def fate(self) -> Hashable:
        """The same for loops that became the same in the same way."""
        done = sorted((one.rule, one.note, one.code) for one in self.records)
        return tuple(map(op_of, self.nodes)), tuple(done)


def _assign(records: Iterable[Record], loops: Sequence[_Loop]) -> None:
    """Give each record to the loop that it is about: the only one, or the one with the value that
    it names, before or now, or, where several have one of that name, with its path."""
    by_value: dict[str, _Loop | None] = {}
    for loop in loops:
        for name in {name for node in (loop.place.node, *loop.nodes) for name in node.output}:
            by_value[name] = None if name in by_value else loop
    by_path = {loop.place.path: loop for loop in loops}
    for record in records:
        if record.value and len(loops) == 1:
            loops[0].records.append(record)
        elif record.value in by_value:
            about = by_value[record.value] or by_path.get(record.loop)
            if about is not None:
                about.records.append(record)


@dataclass
class _Outcome:
    """The outcome, and where it defines what the original defines."""

    after: Model
    _names: dict[int, set[str]] = field(default_factory=dict)

    @cached_property
    def where(self) -> Mapping[str, scoping.Scope]:
        """The outermost scope that defines a name."""
        found: dict[str, scoping.Scope] = {}
        for place in scoping.walk_model(self.after.proto):
            for name in filter(None, place.node.output):
                if name not in found or len(place.scope.key) < len(found[name].key):
                    found[name] = place.scope
        return found

    def nodes_of(self, place: Place) -> list[NodeProto]:
        """Return the nodes that compute the outputs of a loop in the outcome, in order, from values
        that the original has before the loop; none if no output is left."""
        homes = [self.where[name] for name in place.node.output if name in self.where]
        if not homes:
            return []
        owner = homes[0].owner
        index = self.after.index(owner)
        waiting = [name for name in place.node.output if name in index.positions]
        stops = self._defined(place.scope.owner) - set(place.node.output)
        found: set[int] = set()
        while waiting:
            position = index.positions.get(waiting.pop())
            if position is None or position in found:
                continue
            found.add(position)
            waiting += [
                name for name in scoping.free_names(owner.node[position]) if name not in stops
            ]
        return [owner.node[position] for position in sorted(found)]

    def _defined(self, owner: Owner) -> set[str]:
        if id(owner) not in self._names:
            self._names[id(owner)] = scoping.defined(owner)
        return self._names[id(owner)]


def _lane(
    before: Model,
    outcome: _Outcome | None,
    group: Sequence[_Loop],
    limit: int,
    constants: _Constants,
) -> Lane:
    place, nodes = group[0].place, group[0].nodes
    paths = [loop.place.path for loop in group]
    opset = before.opset_at(place.scope)
    title, facts = _described(before, place, opset)
    origins = Origins()
    left = Sketch(origins, limit, constants.seen_from(place.scope))
    left.add([place.node], opset, dict.fromkeys(filter(None, place.node.output), title))
    left.results(filter(None, place.node.output))
    own = [record for loop in group for record in loop.records]
    refusals = list({(one.rule, one.code): one for one in own if one.outcome == "refused"}.values())
    if outcome is None or list(nodes) == [place.node]:
        drawn, became = left.finished({}, ()), "stays as it is"
        if outcome is None:
            became = ""
        elif other := _other_constants(before, outcome.after, place):
            became = f"stays, with other constants: {', '.join(map(shortened, other))}"
        return Lane(paths, title, facts, became, _steps(own), (), refusals, drawn, None, 0)
    after = outcome.after
    home = next((outcome.where[n] for n in place.node.output if n in outcome.where), place.scope)
    right = Sketch(origins, limit, constants.seen_from(home))
    new_opset = after.opset_at(home)
    titles = {
        name: _title(node, new_opset)
        for node in _with_branches(nodes)
        if is_loop(node)
        for name in node.output
    }
    right.add(nodes, new_opset, titles)
    right.results(filter(None, place.node.output))
    twins, moved = paired(left, right)
    became = _became(nodes, len(moved))
    return Lane(
        paths,
        title,
        facts,
        became,
        _steps(own),
        [f"{extra}" for extra in summed(group[0].records)],
        refusals,
        left.finished(twins, moved),
        right.finished(twins, moved),
        len(moved),
    )


def _other_constants(before: Model, after: Model, place: Place) -> list[str]:
    """The constants of the main graph that a node reads, and that are others in the outcome."""
    sides = [model.index(model.proto.graph).initializers for model in (before, after)]
    names = scoping.free_names(place.node) if before is not after else ()
    return [name for name in names if sides[0].get(name) != sides[1].get(name)]


@dataclass(frozen=True)
class _Constants:
    """The names of the constants of graphs, each of which is read once."""

    known: dict[int, set[str]] = field(default_factory=dict)

    def seen_from(self, scope: scoping.Scope) -> list[set[str]]:
        """Those that a scope sees, of each graph around."""
        return [self._of(one.owner) for one in scope.chain()]

    def _of(self, owner: Owner) -> set[str]:
        if id(owner) not in self.known:
            made = (node.output for node in owner.node if op_of(node) == "Constant")
            names = {name for outputs in made for name in outputs}
            self.known[id(owner)] = names | scoping.initializer_names(owner)
        return self.known[id(owner)]


def _described(model: Model, place: Place, opset: int) -> tuple[str, list[str]]:
    """The title of a loop, and facts about it."""
    try:
        form = LoopForm.from_node(place.node, opset)
        trips = str(TripCount(Site.at(model, place), form))
    except BadModel:
        return _title(place.node, opset), []
    parts = {
        "state": form.carried,
        "scanned input": form.scanned,
        "collected output": form.collected,
        "node": form.body.node,
    }
    facts = [count(len(own), what) for what, own in parts.items() if own]
    return _title(place.node, opset), [f"trip count {trips}", *facts]


def _title(node: NodeProto, opset: int) -> str:
    """The operator of a loop, with its opset."""
    try:
        form = LoopForm.from_node(node, opset)
    except BadModel:
        return op_of(node)
    if form.kind is Kind.SCAN_8:
        return "Scan-8 with sequence_lens" if form.lengths else "Scan-8"
    return f"{form.operator}, opset {opset}"


def _with_branches(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """Nodes, and those in the branches of Ifs among them."""
    for node in nodes:
        yield node
        if op_of(node) == "If":
            for _, graph in scoping.subgraphs(node):
                yield from _with_branches(graph.node)


def _became(nodes: Sequence[NodeProto], moved: int) -> str:
    """Return a sentence on the outcome of a loop."""
    if not nodes:
        return "is removed, or its outputs have other names"
    ops = Counter(op_of(one) for one in _with_branches(nodes))
    parts = [count(ops[op], op) for op in ("Scan", "Loop") if ops[op]]
    others = ops.total() - ops["Scan"] - ops["Loop"]
    cells = [op for op in (*RECURRENT, "Attention") if ops[op]]
    parts += [count(others, "node") + " outside" * bool(parts)] * (others > 0)
    with_cells = f", {', '.join(cells)} among them" if cells else ""
    left = f"; {count(moved, 'node')} moved out of the loop" if moved else ""
    return f"becomes {' and '.join(parts)}{with_cells}{left}"


def _steps(records: Sequence[Record]) -> list[Step]:
    """Return the steps taken on a loop, equal ones counted."""
    done = Counter(
        (one.rule, one.note, one.checked.verdict if one.checked else "")
        for one in records
        if one.outcome == "rewritten"
    )
    return [Step(rule, note, times, verdict) for (rule, note, verdict), times in done.items()]
