"""A lane for each loop of a model: its body before, and what became of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from onnx import NodeProto

from passes.analysis.trip_count.trip_count import TripCount
from passes.errors import count
from passes.ir import scope as scoping
from passes.ir.model import Model
from passes.ir.operators import op_of
from passes.ir.places import Place, is_loop
from passes.loops.alike import pattern_of
from passes.loops.form import Kind
from passes.loops.structure import Structures
from passes.operators.cells import RECURRENT
from passes.reports.pages.drawing import Drawing, Origins, Sketch, form_of, paired, shortened
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
    steps: Sequence[Step]
    refusals: Sequence[Record]
    before: Drawing
    after: Drawing | None = None
    became: str = ""
    extras: Sequence[str] = ()
    moved: int = 0

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
    outcome = None if after is None else _Outcome(before, after)
    found = [
        _Loop(place, outcome.nodes_of(place) if outcome is not None else ())
        for place in scoping.walk_model(before.proto)
        if is_loop(place.node)
    ]
    _assign(records, found)
    structures = Structures(before)
    groups = grouped(found, lambda loop: (structures.of(loop.place), loop.fate))
    limit = max(_FEWEST, min(_MOST_NODES, _MOST_OF_ALL // max(1, 2 * len(groups))))
    return [_lane(before, outcome, group, limit) for group in groups]


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

    before: Model
    after: Model

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
        outputs, original = set(place.node.output), self.before.index(place.scope.owner)
        found: set[int] = set()
        while waiting:
            position = index.positions.get(waiting.pop())
            if position is None or position in found:
                continue
            found.add(position)
            waiting += [
                name
                for name in scoping.free_names(owner.node[position])
                if name in outputs or not original.defines(name)
            ]
        return [owner.node[position] for position in sorted(found)]


def _lane(
    before: Model,
    outcome: _Outcome | None,
    group: Sequence[_Loop],
    limit: int,
) -> Lane:
    place, nodes = group[0].place, group[0].nodes
    paths = [loop.place.path for loop in group]
    opset = before.opset_at(place.scope)
    title, outputs = _title(place.node, opset), [*filter(None, place.node.output)]
    facts, origins = _facts(before, place, opset), Origins()
    left = sketched(before, place.scope, [place.node], outputs, origins, limit)
    own = [record for loop in group for record in loop.records]
    refusals = list({(one.rule, one.code): one for one in own if one.outcome == "refused"}.values())
    lane = Lane(paths, title, facts, _steps(own), refusals, left.finished({}, ()))
    if outcome is None:
        return lane
    if list(nodes) == [place.node]:
        other = ", ".join(map(shortened, _other_constants(before, outcome.after, place)))
        became = f"stays, with other constants: {other}" if other else "stays as it is"
        return replace(lane, became=became)
    after = outcome.after
    home = next((outcome.where[name] for name in outputs if name in outcome.where), place.scope)
    right = sketched(after, home, nodes, outputs, origins, limit)
    twins, moved = paired(left, right)
    return replace(
        lane,
        before=left.finished(twins, moved),
        after=right.finished(twins, moved),
        became=_became(nodes, len(moved)),
        extras=[f"{extra}" for extra in summed(group[0].records)],
        moved=len(moved),
    )


def sketched(
    model: Model,
    scope: scoping.Scope,
    nodes: Sequence[NodeProto],
    results: Iterable[str],
    origins: Origins,
    limit: int,
    *,
    folded: bool = False,
) -> Sketch:
    """Nodes of a scope and values that result from them, drawn, loops with their bodies unless they
    are `folded`."""
    opset = model.opset_at(scope)
    loops = [node for node in _with_branches(nodes) if is_loop(node)]
    titles = {name: _title(node, opset) for node in loops for name in node.output}
    sketch = Sketch(origins, limit, partial(_is_constant, model, scope), folded)
    sketch.add(nodes, opset, titles)
    sketch.results(results)
    return sketch


def _other_constants(before: Model, after: Model, place: Place) -> list[str]:
    """The constants of the main graph that a node reads, and that are others in the outcome."""
    sides = [model.index(model.proto.graph).initializers for model in (before, after)]
    names = scoping.free_names(place.node) if before is not after else ()
    return [name for name in names if sides[0].get(name) != sides[1].get(name)]


def _is_constant(model: Model, scope: scoping.Scope, name: str) -> bool:
    """True if a scope sees a constant of this name."""
    home = model.home(scope, name)
    if home is None:
        return False
    index = model.index(home.owner)
    made = index.producers.get(name)
    if made is not None:
        return op_of(made) == "Constant"
    return name in index.initializers or name not in index.inputs


def _facts(model: Model, place: Place, opset: int) -> list[str]:
    """Facts about a loop; none if its form is unknown."""
    form = form_of(place.node, opset)
    if form is None:
        return []
    trips = TripCount(Site.at(model, place), form)
    parts = {
        "state": form.carried,
        "scanned input": form.scanned,
        "collected output": form.collected,
        "node": form.body.node,
    }
    facts = [count(len(own), what) for what, own in parts.items() if own]
    return [f"trip count {trips}", *facts]


def _title(node: NodeProto, opset: int) -> str:
    """The operator of a loop, with its opset."""
    form = form_of(node, opset)
    if form is None:
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
