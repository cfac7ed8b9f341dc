"""Loop-invariant work in the body of a loop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from onnx import NodeProto, TensorProto

from passes.analysis.bodies.nested_graphs import NestedGraph, collects_strings
from passes.analysis.safety.randomness import first_random, is_pure
from passes.analysis.trip_count.trip_count import TripCount
from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.ir.versions import IDENTITY_OF_OPTIONALS
from passes.loops.form import LoopForm
from passes.operators.table import traits_of
from passes.operators.traits import Work
from passes.types.value_types import elem_type_of


def is_cheap(node: NodeProto) -> bool:
    """Return whether a node is not worth moving alone: it is free, or its outputs, which would have
    to be kept, are much larger than its inputs."""
    return traits_of(node).work in (Work.FREE, Work.FILL)


@dataclass(frozen=True)
class Candidate:
    """A node, or a constant where `node` is None, that may move out of its graph.

    `outputs` are the values that it defines, `reads` the outputs of other candidates that it reads.
    `guarded`: it may run only where the loop runs. `cheap`: it moves only with a candidate that
    reads it.
    """

    level: NestedGraph
    position: int
    node: NodeProto | None
    outputs: tuple[str, ...]
    reads: tuple[tuple[int, str], ...] = ()
    guarded: bool = False
    cheap: bool = False


@dataclass(frozen=True)
class Obstacle:
    """Why an invariant node may not move."""

    code: str
    node: NodeProto


@dataclass
class Invariants:
    """The candidates of a loop, in an order in which they may run.

    `outside` holds (candidate, output) for all that is read by what stays in the loop.
    """

    form: LoopForm
    count: TripCount
    strings_stay: bool
    candidates: list[Candidate] = field(default_factory=list)
    outside: set[tuple[int, str]] = field(default_factory=set)
    obstacles: list[Obstacle] = field(default_factory=list)
    _producers: dict[str, int | None] = field(default_factory=dict)  # None: varies, or must stay

    @classmethod
    def of(cls, level: NestedGraph, form: LoopForm, count: TripCount) -> Invariants:
        """Look through the body at `level`, and through the branches of the Ifs in it."""
        found = cls(form, count, collects_strings(level.site, form))
        constant = set(form.constant_inputs)
        fed = (name for name in form.body_inputs if name not in constant)
        found._producers.update(dict.fromkeys(fed))
        found._visit(level)
        return found

    def _visit(self, level: NestedGraph) -> None:
        own = scoping.defined(level.graph) if level.is_branch else set()
        around = {name: self._producers[name] for name in own if name in self._producers}
        scales = _scales(level)
        for name in sorted(scoping.initializer_names(level.graph)):
            if self._must_stay(level, name):
                self._producers[name] = None
            else:
                self._add(Candidate(level, -1, None, (name,), cheap=True))
        for position, node in enumerate(level.graph.node):
            reads = scoping.free_names(node)
            declared = [scale for name in node.output for scale in scales.get(name, ())]
            producers = {
                name: self._producers[name]
                for name in (*reads, *declared)
                if name in self._producers
            }
            found = None if None in producers.values() else self._found(level, position, producers)
            if found is not None:
                self._add(found)
            else:
                self._stay(level, position, reads)
        self._read(scoping.output_names(level.graph))
        for name in own:  # another branch may call its values the same
            self._producers.pop(name, None)
        self._producers.update(around)

    def _add(self, candidate: Candidate) -> None:
        number = len(self.candidates)
        self.candidates.append(candidate)
        self._producers.update(dict.fromkeys(candidate.outputs, number))

    def _found(
        self, level: NestedGraph, position: int, producers: Mapping[str, int | None]
    ) -> Candidate | None:
        """A candidate for an invariant node; None where it may not move."""
        node = level.graph.node[position]
        reads = tuple((number, name) for name, number in producers.items() if number is not None)
        if not is_pure(node):
            random = first_random(level.site.model, [node]) is not None
            self.obstacles.append(Obstacle("random" if random else "unknown-operator", node))
            return None
        if not all(_can_return(level, name) for name in node.output):
            self.obstacles.append(Obstacle("unknown-type", node))
            return None
        if any(self._must_stay(level, name) for name in node.output):
            self.obstacles.append(Obstacle("strings", node))
            return None
        open_ = level.is_branch or not self.count.always_runs
        safe = not open_ or level.cannot_fail(node)
        guarded = not self.count.always_runs and (
            not safe or any(self.candidates[number].guarded for number, _ in reads)
        )
        if (level.is_branch and not safe) or (guarded and not self.count.can_be_computed):
            self.obstacles.append(Obstacle("may-fail", node))
            return None
        outputs = tuple(filter(None, node.output))
        return Candidate(level, position, node, outputs, reads, guarded, is_cheap(node))

    def _must_stay(self, level: NestedGraph, name: str) -> bool:
        return self.strings_stay and elem_type_of(level.type_of(name)) == TensorProto.STRING

    def _stay(self, level: NestedGraph, position: int, reads: Iterable[str]) -> None:
        node = level.graph.node[position]
        if self._looks_into(node):
            self._read(node.input)
            for branch in level.branches(position):
                self._visit(branch)
        else:
            self._read(reads)
        self._producers.update(dict.fromkeys(filter(None, node.output)))

    def _looks_into(self, node: NodeProto) -> bool:
        """Return whether work may leave a node's branches.

        It runs once then, whether or not the branch is ever taken: in a loop of more than one
        iteration that is a gain.
        """
        is_if = op_of(node) == "If"
        return is_if and not self.count.at_most_once

    def _read(self, names: Iterable[str]) -> None:
        for name in names:
            number = self._producers.get(name)
            if number is not None:
                self.outside.add((number, name))


def _can_return(level: NestedGraph, name: str) -> bool:
    """Return whether an Identity can return a value that moves, if the graph returns it."""
    if name not in level.returned or level.site.opset >= IDENTITY_OF_OPTIONALS:
        return True
    return bool(elem_type_of(level.type_of(name)))


def _scales(level: NestedGraph) -> dict[str, list[str]]:
    """The quantization parameters of values: where these go, they must go too."""
    return {
        annotation.tensor_name: [entry.value for entry in annotation.quant_parameter_tensor_names]
        for annotation in level.graph.quantization_annotation
    }
