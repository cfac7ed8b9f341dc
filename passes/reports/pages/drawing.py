"""A few nodes and the loops among them as a graph that a page can draw."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from onnx import NodeProto, helper

from passes.errors import BadModel
from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.ir.places import is_loop
from passes.loops.form import LoopForm

#: What a mark stands for: a node, or a value that a loop or the drawing begins or ends with.
Kind = Literal["node", "state", "scanned", "collected", "iteration", "input", "result"]
#: Operators that only lay values out otherwise: what they give corresponds to what they get.
_LAYOUT = frozenset({"Identity", "Transpose", "Reshape", "Squeeze", "Unsqueeze", "Cast", "Expand"})
_MOST_SHOWN = 60  # characters of a name
_COPY = re.compile(r"_\d+$")


@dataclass(frozen=True)
class Mark:
    """A node, or a value at the edge of a loop. `name` is the value, `box` the loop that it is in
    (-1: none); marks of one `twin` correspond (-1: it has none); `moved`: it left the loop."""

    kind: Kind
    label: str
    name: str
    box: int = -1
    twin: int = -1
    moved: bool = False


@dataclass(frozen=True)
class Arrow:
    """A value from one mark to another; `back`: to the next iteration."""

    source: int
    target: int
    back: bool = False


@dataclass(frozen=True)
class Box:
    """A loop, or a branch of an If, in the box `parent` (-1: in none)."""

    title: str
    parent: int = -1
    loop: bool = True


@dataclass(frozen=True)
class Drawing:
    """Marks, arrows between their positions, and boxes; `total` nodes there are, those that are cut
    included, and `shown` are drawn."""

    marks: Sequence[Mark] = ()
    arrows: Sequence[Arrow] = ()
    boxes: Sequence[Box] = ()
    shown: int = 0
    total: int = 0

    @property
    def cut(self) -> str:
        """A sentence where not all nodes are drawn."""
        if self.shown == self.total:
            return ""
        return f"{self.shown:,} of {self.total:,} nodes are drawn, the first in the file"


def shortened(name: str, most: int = _MOST_SHOWN) -> str:
    """A name that is not too long to be shown."""
    half = most // 2 - 1
    return name if len(name) <= most else f"{name[:half]}…{name[-half:]}"


@dataclass
class Origins:
    """Numbers for what values are made of: equal for an operator of equal operands, on both sides
    of a lane, as far as names of constants and the layout of values make no difference."""

    known: dict[tuple[str, ...] | tuple[str, tuple[int, ...]], int] = field(default_factory=dict)

    def of_name(self, name: str) -> int:
        """The number of a value that is only known by its name."""
        return self._number(("", _COPY.sub("", name)))

    def of_state(self, position: int) -> int:
        """The number of a carried value inside of its loop."""
        return self._number(("state", str(position)))

    def of_node(self, node: NodeProto, operands: Sequence[int]) -> int:
        """The number of the first output of a node."""
        op = op_of(node)
        return operands[0] if op in _LAYOUT and operands else self._number((op, tuple(operands)))

    def _number(self, key: tuple[str, ...] | tuple[str, tuple[int, ...]]) -> int:
        return self.known.setdefault(key, len(self.known))


@dataclass(frozen=True)
class _Value:
    """A value while a graph is drawn: its mark, if it has one, and its origin."""

    mark: int | None
    origin: int


#: How a mark may correspond to one of the other side: by origin, or by operator and name.
Sign = tuple[str, int] | tuple[str, str]


@dataclass
class Sketch:
    """A drawing in the making: at most `limit` nodes. `signs` are those of each mark; `folded`:
    loops and Ifs are drawn without their bodies."""

    origins: Origins
    limit: int
    is_constant: Callable[[str], bool]
    folded: bool = False
    marks: list[Mark] = field(default_factory=list)
    arrows: dict[Arrow, None] = field(default_factory=dict)
    boxes: list[Box] = field(default_factory=list)
    signs: list[tuple[Sign, ...]] = field(default_factory=list)
    shown: int = 0
    total: int = 0
    _outer: dict[str, _Value] = field(default_factory=dict)

    def add(self, nodes: Iterable[NodeProto], opset: int, titles: Mapping[str, str]) -> None:
        """Draw nodes of one graph, in order, loops with their bodies; `titles` are those of loops,
        by their first output."""
        for node in nodes:
            self._any(node, opset, titles, self._outer, -1)

    def results(self, names: Iterable[str]) -> None:
        """Draw values as what comes of it all."""
        for name in names:
            value = self._outer.get(name)
            if value is not None and value.mark is not None:
                self._arrow(value, self._mark("result", "", name, -1))

    def finished(self, twins: Mapping[Sign, int], moved: Collection[int]) -> Drawing:
        """The drawing, with marks that correspond to others by their `twins`."""
        marks = []
        for mark, signs in zip(self.marks, self.signs, strict=True):
            twin = next((twins[sign] for sign in signs if sign in twins), -1)
            marks.append(replace(mark, twin=twin, moved=twin in moved))
        return Drawing(marks, list(self.arrows), self.boxes, self.shown, self.total)

    def signed(self, inside: bool) -> Iterator[tuple[Sign, ...]]:
        """The signs of the nodes inside of loops, or outside of them."""
        for mark, signs in zip(self.marks, self.signs, strict=True):
            if mark.kind == "node" and inside == (mark.box >= 0 and self.boxes[mark.box].loop):
                yield signs

    def _any(
        self,
        node: NodeProto,
        opset: int,
        titles: Mapping[str, str],
        values: dict[str, _Value],
        box: int,
    ) -> None:
        """Draw a node that is in no loop, with the bodies of a loop or the branches of an If."""
        form = None if self.folded else form_of(node, opset)
        if form is not None:
            title = next((titles[name] for name in node.output if name in titles), op_of(node))
            self._loop(form, title, values, box)
            return
        branches = scoping.subgraphs(node) if op_of(node) == "If" and not self.folded else []
        given: list[_Value] = []
        for name, graph in branches:
            inner = dict(values)
            for constant in scoping.initializer_names(graph):
                inner[constant] = _Value(None, self.origins.of_name(constant))
            self.boxes.append(Box(f"If: {name.removesuffix('_branch')}", box, loop=False))
            own = len(self.boxes) - 1
            for one in graph.node:
                self._any(one, opset, titles, inner, own)
            given += [self._read(output, inner) for output in scoping.output_names(graph)]
        if branches:  # behind them: what it gives is what one of them gives
            node = helper.make_node(op_of(node), node.input, node.output)
        self._node(node, values, box)
        mark = values[next(filter(None, node.output))].mark if branches else None
        if mark is not None:
            for value in given:
                self._arrow(value, mark)

    def _loop(self, form: LoopForm, title: str, outer: dict[str, _Value], parent: int) -> None:
        box = len(self.boxes)
        self.boxes.append(Box(title, parent))
        inner = dict(outer)
        for name in (*form.constant_inputs, *scoping.initializer_names(form.body)):
            inner[name] = _Value(None, self.origins.of_name(name))
        states = []
        for position, carried in enumerate(form.carried):
            mark = self._mark("state", "", carried.body_input, box)
            states.append(mark)
            self._arrow(self._read(carried.initial, outer), mark)
            inner[carried.body_input] = _Value(mark, self.origins.of_state(position))
        for scanned in form.scanned:
            tensor = self._read(scanned.tensor, outer)
            mark = self._mark("scanned", "reversed" * scanned.reversed, scanned.body_input, box)
            self._arrow(tensor, mark)
            inner[scanned.body_input] = _Value(mark, tensor.origin)
        if form.iteration:
            reads = scoping.all_reads(form.body.node)
            first: int | None = None
            if form.iteration in reads:
                first = self._mark("iteration", "", form.iteration, box)
            inner[form.iteration] = _Value(first, self.origins.of_name("iteration"))
        if form.condition is not None:
            inner[form.condition.body_input] = _Value(None, self.origins.of_name("condition"))
        for node in form.body.node:
            self._node(node, inner, box)
        for state, carried in zip(states, form.carried, strict=True):
            made = self._read(carried.body_output, inner)
            if made.mark is not None and made.mark != state:
                self.arrows[Arrow(made.mark, state, back=True)] = None
            outer[carried.final] = made
        for collected in form.collected:
            made = self._read(collected.body_output, inner)
            mark = self._mark("collected", "", collected.tensor or collected.body_output, box)
            self._arrow(made, mark)
            outer[collected.tensor] = _Value(mark, made.origin)

    def _node(self, node: NodeProto, values: dict[str, _Value], box: int) -> None:
        """Draw a node, with what it reads; a constant is left out."""
        if op_of(node) == "Constant":
            for name in node.output:
                values[name] = _Value(None, self.origins.of_name(name))
            return
        self.total += 1
        names = scoping.free_names(node)
        read = [self._read(name, values) for name in names]
        origin = self.origins.of_node(node, [value.origin for value in read])
        mark = None
        first = next(filter(None, node.output), "")
        if self.shown < self.limit:
            self.shown += 1
            inside = sum(len(graph.node) for _, graph in scoping.subgraphs(node))
            holds = f" ({inside} inside)" if inside else ""
            op = op_of(node)
            mark = self._mark("node", op + holds, first, box)
            base = _COPY.sub("", first.rpartition("/")[2])
            self.signs[mark] = ((op, base),) if op in _LAYOUT else ((op, origin), (op, base))
            for value in read:
                self._arrow(value, mark)
        for position, name in enumerate(filter(None, node.output)):
            own = origin if not position else self.origins.of_name(f"{origin}.{position}")
            values[name] = _Value(mark, own)

    def _read(self, name: str, values: Mapping[str, _Value]) -> _Value:
        """The value of a name; one from outside of the drawing becomes an input of it, unless it
        is a constant."""
        if name in values:
            return values[name]
        mark = None
        if name and not self.is_constant(name):
            mark = self._mark("input", "", name, -1)
        value = self._outer[name] = _Value(mark, self.origins.of_name(name))
        return value

    def _mark(self, kind: Kind, label: str, name: str, box: int) -> int:
        self.marks.append(Mark(kind, shortened(label), name, box))
        self.signs.append(((kind, _COPY.sub("", name)),))
        return len(self.marks) - 1

    def _arrow(self, value: _Value, target: int) -> None:
        if value.mark is not None:
            self.arrows[Arrow(value.mark, target)] = None


def form_of(node: NodeProto, opset: int) -> LoopForm | None:
    """A loop taken apart; None for any other node, and a loop whose form its callers choose."""
    try:
        return LoopForm.from_node(node, opset) if is_loop(node) else None
    except BadModel:
        return None


def paired(left: Sketch, right: Sketch) -> tuple[dict[Sign, int], set[int]]:
    """Return a number for each thing that corresponds on both sides, and which of these numbers
    moved: in the loop on the left, and outside of any on the right."""
    shared = {sign for signs in left.signs for sign in signs}
    shared &= {sign for signs in right.signs for sign in signs}
    twins: dict[Sign, int] = {}
    count = 0
    for signs in (*left.signs, *right.signs):
        own = [sign for sign in signs if sign in shared]
        if own:
            known = next((twins[sign] for sign in own if sign in twins), count)
            count += known == count
            for sign in own:
                twins.setdefault(sign, known)

    def numbers(sketch: Sketch, inside: bool) -> set[int]:
        return {twins[sign] for signs in sketch.signed(inside) for sign in signs if sign in twins}

    if not any(box.loop for box in right.boxes):
        return twins, set()
    gone = numbers(left, inside=True) - numbers(right, inside=True)
    return twins, gone & numbers(right, inside=False)
