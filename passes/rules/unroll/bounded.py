"""The bound of a loop, and the iterations of one that may end before it, written out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

from onnx import NodeProto, TensorProto, numpy_helper

from passes.analysis.trip_count.trip_count import TripCount
from passes.ir.operators import op_of
from passes.ir.protos import copied
from passes.ir.purposes import GUARD_PROMISE
from passes.loops.form import Kind, LoopForm
from passes.operators.exactness import Array
from passes.operators.folding import folded
from passes.rule import Claim, Edit, Limit, NothingToDo, Refused, Site
from passes.rules.count_loop.count_loop import considers, count_loop
from passes.rules.unroll.unrolling import Outputs, Unrolling
from passes.types.value_types import elem_type_of
from passes.writing import guards, spelling
from passes.writing.author import Author

_MOST = 1 << 31  # with an M above this, exporters say that only the condition ends the loop


@dataclass(frozen=True)
class Bound:
    """The trip count of a loop: `size`, or at most that, according to M or the user."""

    size: int
    exact: bool = False
    promised: bool = False  # by a user: the loop itself might run more often


def bound_of(site: Site, form: LoopForm) -> Bound:
    """Return the bound of a Scan-9+ or Loop: its trip count, M, or the option `max_trips`.

    A Loop that ends by a counter whose start, step and bound are constants has a trip count; or, if
    data may end it before, a most.

    Raises:
        Refused: `trip-count-not-static` where nothing bounds it.
    """
    count = TripCount(site, form)
    if count.static is not None:
        return Bound(count.static, exact=True)
    if form.kind is Kind.LOOP:
        counted = _counted(site) if count.conditional else None
        if counted is not None and counted.exact:
            return counted
        most = count.declared if isinstance(count.declared, int) else _MOST
        most = most if counted is None else min(most, counted.size)
        declared = site.options.max_trips
        endless = count.unlimited and not count.conditional
        if declared is not None and not endless and declared < most:
            return Bound(declared, promised=True)
        if most < _MOST:
            return Bound(most)
    raise _unbounded(count)


def _unbounded(count: TripCount) -> Refused:
    form, path = count.form, count.site.path
    if count.unlimited and not count.conditional:
        return Refused("trip-count-not-static", "nothing ends the loop", [path])
    culprits = [form.trip_count, *(scanned.tensor for scanned in form.scanned)]
    why = "the trip count of the loop is known only at run time"
    if count.declared is not None:
        why = f"the loop runs {count} times, which is known only at run time"
    if count.conditional:
        why = "a condition ends the loop, and its trip count has no known bound"
        assert form.condition is not None
        culprits.append(form.condition.body_output)
    if form.kind is Kind.LOOP:
        why += " (--max-trips bounds it)"
    return Refused("trip-count-not-static", why, [path, *filter(None, culprits)])


def _counted(site: Site) -> Bound | None:
    """The trip count that the rule `count-loop` finds for a while loop, where it is a number; not
    exact where data may end the loop before."""
    if not considers(site.node, site.opset, site.target):
        return None
    try:
        edit = count_loop(site)
    except (NothingToDo, Refused):
        return None
    (loop,) = [node for node in edit.nodes if op_of(node) == "Loop"]
    trips = _evaluation(edit, site.constant)(loop.input[0])
    if trips is None or trips.size != 1:
        return None
    return Bound(max(0, int(trips.item())), exact=not considers(loop, site.opset, site.target))


def _evaluation(edit: Edit, outer: Callable[[str], Array | None]) -> Callable[[str], Array | None]:
    """The values that an Edit writes, where they follow from constants."""
    values = {tensor.name: numpy_helper.to_array(tensor) for tensor in edit.initializers}
    producers: dict[str, NodeProto] = {name: node for node in edit.nodes for name in node.output}

    def value(name: str) -> Array | None:
        if name in values:
            return values[name]
        return folded(producers[name], value) if name in producers else outer(name)

    return value


def promised(site: Site, form: LoopForm, most: int) -> NodeProto:
    """The site's Loop, made to fail if it runs more iterations than promised.

    Only verification runs it, to distinguish a broken promise from a wrong rewrite.
    """
    assert form.condition is not None
    author = Author(site.target, site.names, f"{site.node.name or 'loop'}/promised")
    number = author.op("Reshape", form.iteration, author.ints())
    kept = author.op("Less", number, author.int(most))
    output = form.condition.body_output
    guarded = guards.guarded(author, output, kept, TensorProto.BOOL)
    body = copied(form.body)
    body.node.extend(author.nodes)
    body.initializer.extend(author.constants)
    body.output[0].name = guarded
    condition = replace(form.condition, body_output=guarded)
    # what was no input before IR 4 is one now: the constants are of the body alone
    return replace(form, body=body, condition=condition).to_node()


class Bounded(Unrolling, ABC):
    """Writes `bound.size` iterations; each takes place only if those before it did, and the loop
    continues. `_step` writes one."""

    guards = GUARD_PROMISE

    def __init__(self, site: Site, form: LoopForm, bound: Bound) -> None:
        super().__init__(site, form, bound.size)
        self.bound = bound
        self.loop = form
        count = TripCount(site, form)
        self.count = "" if isinstance(count.declared, int) else self._scalar(form.trip_count)
        self.initial = count.starts
        self.ends = count.ends_early

    def _scalar(self, name: str) -> str:
        return spelling.scalar(self.author, name, self.site.type_of(name))

    def edit(self, note: str) -> Edit:
        """Write the iterations, then the states after the last one that ran, and all collected
        rows."""
        author = self.author
        author.adopt(self.body.nodes, self.body.constants)
        states = self.initials
        going = self._both([self._scalar(self.initial)], 0)
        flags = []
        for index in range(self.trips):
            flags.append(going)
            done = self._step(index, going, states) if going else self._run(author, index, states)
            states = done.states
            self._keep(done.rows)
            going = self._both(self._still(going, done.go_on), index + 1)
        if not self.bound.promised:
            self._finish(states, flags, "")
            return replace(self._cleaned(note), claim=Claim(limit=Limit(self.trips)))
        reported = bool(self.site.options.check_output)
        with nullcontext() if reported else author.serving(self.guards):
            kept = author.op("Not", going, outputs=[author.fresh("enough")])
        check = kept if reported else ""
        self._finish(states, flags, "" if check or self._valid_inputs else kept)
        edit = self._cleaned(note, [check] if check else ())
        broken = promised(self.site, self.loop, self.trips)
        return replace(edit, claim=Claim(limit=Limit(self.trips, broken, check)))

    def _finish(self, states: Sequence[str], flags: Sequence[str], kept: str) -> None:
        for carried, state in zip(self.form.carried, states, strict=True):
            self._hand_on(state, carried.final, kept)
        if not any(collected.tensor for collected in self.form.collected):
            return
        count = self._how_many(flags)
        for collected, rows in zip(self.form.collected, self.collected, strict=True):
            if collected.tensor:
                every = spelling.joined(self.author, rows)
                elem_type = elem_type_of(self.site.type_of(collected.tensor))
                self._hand_on(
                    spelling.prefix(self.author, every, count, elem_type), collected.tensor, kept
                )

    def _how_many(self, flags: Sequence[str]) -> str:
        """The number of iterations that took place, int64 [1]."""
        author = self.author
        open_ = [spelling.unsqueeze(author, flag, 0) for flag in flags if flag]
        if not open_:
            return author.ints(len(flags))
        every = author.op("Cast", spelling.joined(author, open_), to=TensorProto.INT64)
        total = spelling.total(author, every)
        count = spelling.unsqueeze(author, total, 0)
        certain = len(flags) - len(open_)
        return author.op("Add", count, author.ints(certain)) if certain else count

    @abstractmethod
    def _step(self, index: int, going: str, states: list[str]) -> Outputs:
        """Write iteration `index`, which takes place if `going` holds; what it collects counts only
        then."""

    def _run(self, author: Author, index: int, states: list[str]) -> Outputs:
        """Write an iteration unconditionally; its condition is a scalar, "" where it is ignored."""
        assert self.form.condition is not None
        done = self.iteration(author, f"it{index}", self._number(index), states, lifted=True)
        known = self.site.body_type_of("body", self.form.condition.body_output)
        go_on = spelling.scalar(author, done.go_on, known) if self.ends else ""
        return replace(done, go_on=go_on)

    def _still(self, going: str, go_on: str) -> list[str]:
        """The conditions for going on after an iteration, besides M."""
        return [going, go_on]

    def _both(self, conditions: Sequence[str], index: int) -> str:
        """Return whether iteration `index` takes place, by these conditions and by M; "" for
        always."""
        parts = [condition for condition in conditions if condition]
        if self.count:
            parts.append(self.author.op("Less", self.author.int(index), self.count))
        return spelling.both(self.author, parts) if parts else ""


class Masked(Bounded):
    """Runs every iteration, and selects its results only where the loop had not ended."""

    def _step(self, index: int, going: str, states: list[str]) -> Outputs:
        """Write an iteration, and choose between its states and those before it."""
        done = self._run(self.author, index, states)
        chosen = [
            self._chosen(position, index, going, new, old)
            for position, (new, old) in enumerate(zip(done.states, states, strict=True))
        ]
        return replace(done, states=chosen)

    def _chosen(self, position: int, index: int, going: str, new: str, old: str) -> str:
        if new == old:
            return old
        carried = self.form.carried[position]
        elem_type = elem_type_of(self.site.body_type_of("body", carried.body_input))
        name = self.author.names.fresh(f"{carried.body_output}/it{index}/kept")
        return spelling.select(self.author, going, new, old, elem_type, [name])
