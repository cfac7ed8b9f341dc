"""Applies rules: innermost sites first, every touched node list rebuilt once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper

from passes import scope as scoping
from passes.errors import BadModel, PassesError
from passes.inference import ValueTypes
from passes.model import Model
from passes.names import Names
from passes.repeated import replace_all
from passes.rule import Edit, NothingToDo, Refused, Rule, Site
from passes.scope import Owner, Place, Scope

_MOST_ROUNDS = 32
_MANY = 64  # nodes of an Edit, of which there should not be two copies
FREE_INITIALIZERS = 4  # the IR version from which initializers need not be inputs


class NotConverging(PassesError):
    """The rules undo each other's work."""


@dataclass(frozen=True)
class Rewritten:
    """A site that a rule rewrote: where it was in the model as it was read, and the Edit."""

    rule: Rule
    place: Place
    edit: Edit

    @property
    def replaced(self) -> list[NodeProto]:
        """The nodes that the Edit takes the place of, in their order."""
        positions = sorted({self.place.index, *self.edit.covered})
        return [self.place.scope.owner.node[position] for position in positions]

    @property
    def context(self) -> list[NodeProto]:
        """The nodes in front of them that stay, and on which the rewrite rests."""
        gone = {name for node in self.replaced for name in node.output if name}
        return [node for node in self.edit.context if gone.isdisjoint(node.output)]

    @property
    def reads(self) -> list[str]:
        """What all these nodes read from their surroundings, in order of first use."""
        nodes = [*self.context, *self.replaced]
        names = (name for node in nodes for name in scoping.free_names(node))
        inner = {name for node in nodes for name in node.output}
        return [name for name in dict.fromkeys(names) if name not in inner]

    @property
    def writes(self) -> list[str]:
        """What those nodes define and the Edit defines in their place."""
        names = [name for node in self.replaced for name in node.output if name]
        if not self.edit.tidies:
            return names
        made = {name for node in self.edit.nodes for name in node.output}
        return [name for name in names if name in made]


@dataclass(frozen=True)
class Refusal:
    """A site that a rule refused."""

    rule: Rule
    place: Place
    reason: Refused


@dataclass
class Round:
    """One pass over a model: `proto` is the outcome, the argument itself where nothing applied."""

    model: Model
    types: ValueTypes
    proto: ModelProto
    stage: tuple[str, ...] = ()
    rewritten: list[Rewritten] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)


@dataclass(frozen=True)
class Engine:
    """Rules, the opset their Edits are written in (None: the model's own), and their options."""

    rules: Sequence[Rule]
    target: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    progress: Callable[[str], None] | None = None

    def fixpoint(self, model: Model) -> list[Round]:
        """Apply until nothing changes; with a target opset one round is all there is.

        Raises:
            NotConverging: the rules still change the model after 32 rounds, and one for each node
                with bodies: what one loop does in vain may only show once the next one is gone.
        """
        rounds: list[Round] = []
        holders = sum(scoping.holds_graphs(one.node) for one in scoping.walk_model(model.proto))
        while len(rounds) < _MOST_ROUNDS + holders:
            rounds.append(self.round(model))
            if self.target is not None or not rounds[-1].rewritten:
                return rounds
            model = Model(rounds[-1].proto, model.path)
        rules = ", ".join(rule.name for rule in self.rules)
        raise NotConverging(f"the rules {rules} still change the model after {len(rounds)} rounds")

    def round(self, model: Model) -> Round:
        """Consider every site once, innermost first."""
        stage = tuple(rule.name for rule in self.rules)
        outcome = Round(model, model.types, model.proto, stage)
        if not self._any_considered(model):
            return outcome
        copy = ModelProto()
        copy.CopyFrom(model.proto)
        names = Names(scoping.all_names(owner for _, owner in scoping.owners(copy)))
        for scope, (_, owner) in zip(
            scoping.scopes(model.proto), scoping.owners(copy), strict=True
        ):
            opset = model.opset(scope.owner)
            _Pass(self, outcome, names, opset, self.target or opset).rewrite(scope, owner)
        if outcome.rewritten:
            outcome.proto = copy
        return outcome

    def rules_for(self, node: NodeProto, opset: int, target: int) -> list[Rule]:
        """The rules that consider a node, in the order in which they are tried."""
        return [rule for rule in self.rules if rule.considers(node, opset, target)]

    def _any_considered(self, model: Model) -> bool:
        for _, owner in scoping.owners(model.proto):
            opset = model.opset(owner)
            target = self.target or opset
            for graph in scoping.graphs_below(owner):
                nodes = graph.node
                if any(one.considers(node, opset, target) for node in nodes for one in self.rules):
                    return True
        return False


@dataclass(frozen=True)
class _Pass:
    """One round over the main graph or one function."""

    engine: Engine
    outcome: Round
    names: Names
    opset: int
    target: int

    def rewrite(self, scope: Scope, owner: Owner) -> set[str]:
        """Rewrite `owner`, the copy of what `scope` shows as it was read.

        Answers with what is read less often now, by Edits that tidy: it may be unread outside.
        """
        edits: dict[int, Edit] = {}
        places: dict[int, int] = {}
        starts: dict[int, int] = {}
        spare = self._collect(scope, owner, edits, places)
        if edits:
            read, starts = _splice(owner, edits)
            spare |= read
            edits.clear()  # they hold copies of what stands in the graph now
            for index, position in places.items():
                self._share(position, owner, starts[index])
        listed = self.outcome.proto.ir_version < FREE_INITIALIZERS
        if spare and isinstance(owner, GraphProto):
            _drop_unread(owner, spare, listed)
        if starts and listed and self.engine.target is None:  # else it leaves IR 3 with its opset
            list_initializers(owner)
        return spare

    def _collect(
        self, scope: Scope, owner: Owner, edits: dict[int, Edit], places: dict[int, int]
    ) -> set[str]:
        """Find the Edits of a graph, by the index of their nodes, its bodies rewritten before.

        `places` says where the large ones are recorded. Answers with what bodies read less often.
        """
        covered: set[int] = set()
        spare: set[str] = set()
        for index, node in enumerate(owner.node):
            if index in covered:
                continue  # an Edit in front takes its place
            if scoping.holds_graphs(node):
                inner = zip(scope.inner(index), scoping.subgraphs(node), strict=True)
                for before, (_, graph) in inner:
                    spare |= self.rewrite(before, graph)
            rules = self.engine.rules_for(node, self.opset, self.target)
            if rules and self._wanted(place := Place(node, index, scope)):
                edit = self._first_edit(rules, place)
                if edit is not None:
                    edits[index] = edit
                    covered.update(edit.covered)
                    if len(edit.nodes) >= _MANY:
                        places[index] = len(self.outcome.rewritten) - 1
        return spare

    def _share(self, position: int, owner: Owner, start: int) -> None:
        """Let a large Edit refer to its nodes where they stand now, not to copies of them."""
        one = self.outcome.rewritten[position]
        nodes = tuple(owner.node[start : start + len(one.edit.nodes)])
        self.outcome.rewritten[position] = replace(one, edit=replace(one.edit, nodes=nodes))

    def _wanted(self, place: Place) -> bool:
        """Whether the option `only` leaves this site to the rules."""
        patterns = self.engine.options.get("only", ())
        return not patterns or any(fnmatchcase(place.path, pattern) for pattern in patterns)

    def _first_edit(self, rules: Sequence[Rule], place: Place) -> Edit | None:
        """The Edit of the first rule that does not refuse."""
        edits = (self._apply(rule, place) for rule in rules)
        return next((edit for edit in edits if edit is not None), None)

    def _apply(self, rule: Rule, place: Place) -> Edit | None:
        site = Site(
            self.outcome.model,
            place,
            self.opset,
            self.target,
            self.names,
            self.outcome.types,
            self.engine.options,
        )
        original = Place(place.scope.owner.node[place.index], place.index, place.scope)
        try:
            edit = rule.rewrite(site)
        except NothingToDo:
            return None
        except Refused as refused:
            self.outcome.refused.append(Refusal(rule, original, refused))
            return None
        except BadModel as error:
            raise error.at(path=place.path, file=self.outcome.model.file) from error
        if not isinstance(edit, Edit):
            raise TypeError(
                f"the rule {rule.name!r} answered {edit!r} at {place.path}, not an Edit"
            )
        self.outcome.rewritten.append(Rewritten(rule, original, edit))
        return edit


def _splice(owner: Owner, edits: Mapping[int, Edit]) -> tuple[set[str], dict[int, int]]:
    """Rebuild a node list with the Edits in the place of their nodes.

    Answers with what the nodes that went have read, where their Edits tidy, and with where each
    Edit begins.
    """
    nodes: list[NodeProto] = []
    starts: dict[int, int] = {}
    constants: dict[str, TensorProto] = {}  # Edits that share a constant each bring it along
    spare: set[str] = set()
    covered = {index for edit in edits.values() for index in edit.covered}
    for tidy in edits.values():
        if tidy.tidies:
            gone = (owner.node[index] for index in tidy.covered)
            spare.update(name for node in gone for name in node.input)
    for index, node in enumerate(owner.node):
        edit = edits.get(index)
        if edit is None and index not in covered:
            nodes.append(node)
        if edit is not None:
            if edit.tidies:
                spare.update(scoping.free_names(node))
            starts[index] = len(nodes)
            nodes.extend(edit.nodes)
            constants.update((tensor.name, tensor) for tensor in edit.initializers)
            owner.value_info.extend(edit.value_info)
            if isinstance(owner, GraphProto):
                owner.quantization_annotation.extend(edit.annotations)
    if isinstance(owner, GraphProto):
        owner.initializer.extend(constants.values())
    else:
        nodes = [_constant_node(tensor) for tensor in constants.values()] + nodes
        starts = {index: start + len(constants) for index, start in starts.items()}
    _tell_apart(nodes, [node for edit in edits.values() for node in edit.nodes])
    del owner.node[:]
    owner.node.extend(nodes)
    return spare, starts


def _tell_apart(nodes: Sequence[NodeProto], made: Sequence[NodeProto]) -> None:
    """Give those that Edits made names of their own: onnxruntime wants that within a graph."""
    new = {id(node) for node in made}
    names = Names(node.name for node in nodes if id(node) not in new)
    for node in made:
        if node.name:
            node.name = names.fresh(node.name)


def _drop_unread(graph: GraphProto, names: set[str], listed: bool) -> None:
    """Drop those of the named initializers that nothing reads, and that no caller can give.

    `listed`: the graph is of IR 3, where initializers are inputs too, and constant all the same.
    """
    unread = names.intersection(tensor.name for tensor in graph.initializer)
    if not unread:
        return
    unread -= scoping.all_reads(graph.node)
    unread.difference_update(scoping.output_names(graph))
    unread.difference_update(
        entry.value
        for annotation in graph.quantization_annotation
        for entry in annotation.quant_parameter_tensor_names
    )
    if listed:
        replace_all(graph.input, [one for one in graph.input if one.name not in unread])
    unread.difference_update(scoping.input_names(graph))
    if unread:
        kept = [tensor for tensor in graph.initializer if tensor.name not in unread]
        replace_all(graph.initializer, kept)


def list_initializers(owner: Owner) -> None:
    """Up to IR 3, every initializer must also be an input, in bodies too."""
    for graph in scoping.graphs_below(owner):
        if isinstance(graph, GraphProto):
            listed = set(scoping.input_names(graph))
            graph.input.extend(
                helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
                for tensor in graph.initializer
                if tensor.name not in listed
            )


def _constant_node(tensor: TensorProto) -> NodeProto:
    """A constant for a function, which has no initializers."""
    value = TensorProto()
    value.CopyFrom(tensor)
    value.name = ""  # onnx's text format cannot read back a name here
    return helper.make_node("Constant", [], [tensor.name], value=value)
