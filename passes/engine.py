"""Applies rules: innermost sites first, every touched node list rebuilt once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto

from passes import scope as scoping
from passes.errors import BadModel, PassesError
from passes.inference import ValueTypes
from passes.model import Model
from passes.names import Names
from passes.own_strings import with_own_strings
from passes.rule import Edit, NothingToDo, Refused, Rule, Site
from passes.scope import Owner, Place, Scope
from passes.selection import hand_on, is_meant
from passes.splicing import FREE_INITIALIZERS, drop_unread, list_initializers, splice
from passes.template import Filled, Template, likeness

_MOST_ROUNDS = 32
_MANY = 64  # nodes of an Edit, of which there should not be two copies


class NotConverging(PassesError):
    """The rules undo each other's work."""


@dataclass(frozen=True)
class Rewritten:
    """A site that a rule rewrote: where it was in the model as it was read, and the Edit, or the
    template that was written in its place."""

    rule: Rule
    place: Place
    written: Edit | Filled

    @cached_property
    def edit(self) -> Edit:
        """What took the place of the site's node."""
        return (
            self.written if isinstance(self.written, Edit) else self.written.edit(self.place.node)
        )

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
        first = model
        while len(rounds) < _MOST_ROUNDS or len(rounds) < _MOST_ROUNDS + _holders(first):
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
        templates: dict[Hashable, Template] = {}
        for scope, (_, owner) in zip(
            scoping.scopes(model.proto), scoping.owners(copy), strict=True
        ):
            opset = model.opset(scope.owner)
            target = self.target or opset
            _Pass(self, outcome, names, opset, target, templates).rewrite(scope, owner)
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


def _holders(model: Model) -> int:
    """How many nodes have bodies."""
    return sum(scoping.holds_graphs(one.node) for one in scoping.walk_model(model.proto))


@dataclass
class _Found:
    """What becomes of the nodes of one graph.

    `edits` are by the index of their nodes, `large` says where the large ones are recorded.
    `constants`: Edits that share one each bring it along. `filled` are the templates in use.
    """

    edits: dict[int, Edit] = field(default_factory=dict)
    large: dict[int, int] = field(default_factory=dict)
    constants: dict[str, TensorProto] = field(default_factory=dict)
    filled: dict[Hashable, Filled] = field(default_factory=dict)

    def add(self, tensors: Sequence[TensorProto]) -> None:
        """Add constants to the graph."""
        self.constants.update((tensor.name, tensor) for tensor in tensors)


@dataclass(frozen=True)
class _Pass:
    """One round over the main graph or one function."""

    engine: Engine
    outcome: Round
    names: Names
    opset: int
    target: int
    templates: dict[Hashable, Template]

    def rewrite(self, scope: Scope, owner: Owner) -> set[str]:
        """Rewrite `owner`, the copy of what `scope` shows as it was read.

        Answers with what is read less often now, by Edits that tidy: it may be unread outside.
        """
        found = _Found()
        spare = self._collect(scope, owner, found)
        starts: dict[int, int] = {}
        if found.edits:
            read, starts = splice(owner, found.edits, found.constants)
            spare |= read
            found.edits.clear()  # they hold copies of what stands in the graph now
            for index, position in found.large.items():
                self._share(position, owner, starts[index])
        elif found.constants and isinstance(owner, GraphProto):
            owner.initializer.extend(found.constants.values())
        listed = self.outcome.proto.ir_version < FREE_INITIALIZERS
        if spare and isinstance(owner, GraphProto):
            drop_unread(owner, spare, listed)
        if starts and listed and self.engine.target is None:  # else it leaves IR 3 with its opset
            list_initializers(owner)
        return spare

    def _collect(self, scope: Scope, owner: Owner, found: _Found) -> set[str]:
        """Find what becomes of the nodes of a graph, its bodies rewritten before.

        Answers with what bodies read less often.
        """
        covered: set[int] = set()
        spare: set[str] = set()
        for index, node in enumerate(owner.node):
            if index in covered:
                continue  # an Edit in front takes its place
            holds = scoping.holds_graphs(node)
            if holds:
                inner = zip(scope.inner(index), scoping.subgraphs(node), strict=True)
                for before, (_, graph) in inner:
                    spare |= self.rewrite(before, graph)
            rules = self.engine.rules_for(node, self.opset, self.target)
            if not rules or not self._wanted(place := Place(node, index, scope)):
                continue
            if holds or len(rules) > 1 or isinstance(owner, FunctionProto):
                edit = self._first_edit(rules, place)
            else:
                edit = self._edit_or_template(rules[0], place, found)
            if edit is not None:
                found.edits[index] = edit
                found.add(edit.initializers)
                covered.update(edit.covered)
                if len(edit.nodes) >= _MANY:
                    found.large[index] = len(self.outcome.rewritten) - 1
        return spare

    def _edit_or_template(self, rule: Rule, place: Place, found: _Found) -> Edit | None:
        """The Edit of a rule; None, too, where a template is written in place."""
        key = likeness(place.node, self.opset)
        if key not in self.templates:
            edit = self._first_edit([rule], place)
            if edit is None or edit.template is None:
                return edit
            self.templates[key] = edit.template
            self.outcome.rewritten.pop()
        filled = found.filled.get(key)
        if filled is None:
            filled = found.filled[key] = self.templates[key].at(self._site(place))
            found.add(filled.tensors)
        self._record(rule, place, filled)
        filled.write(place.node)
        return None

    def _share(self, position: int, owner: Owner, start: int) -> None:
        """Let a large Edit refer to its nodes where they stand now, not to copies of them."""
        one = self.outcome.rewritten[position]
        nodes = tuple(owner.node[start : start + len(one.edit.nodes)])
        edit = replace(one.edit, nodes=nodes)
        self.outcome.rewritten[position] = Rewritten(one.rule, one.place, edit)

    def _wanted(self, place: Place) -> bool:
        """Whether `only` leaves this site to the rules; a model is converted as a whole."""
        chosen = self.engine.options.get("only") and self.engine.target is None
        return not chosen or is_meant(place.node)

    def _first_edit(self, rules: Sequence[Rule], place: Place) -> Edit | None:
        """The Edit of the first rule that does not refuse."""
        for rule in rules:
            edit = self._apply(rule, place)
            if edit is not None:
                self._record(rule, place, edit)
                return edit
        return None

    def _apply(self, rule: Rule, place: Place) -> Edit | None:
        try:
            edit = rule.rewrite(self._site(place))
        except NothingToDo:
            return None
        except Refused as refused:
            self.outcome.refused.append(Refusal(rule, _original(place), refused))
            return None
        except BadModel as error:
            raise error.at(path=place.path, file=self.outcome.model.file) from error
        if not isinstance(edit, Edit):
            raise TypeError(
                f"the rule {rule.name!r} answered {edit!r} at {place.path}, not an Edit"
            )
        edit = with_own_strings(self._site(place), edit)
        if self.engine.options.get("only"):
            hand_on(place.node, edit.nodes)
        return edit

    def _record(self, rule: Rule, place: Place, written: Edit | Filled) -> None:
        self.outcome.rewritten.append(Rewritten(rule, _original(place), written))

    def _site(self, place: Place) -> Site:
        return Site(
            self.outcome.model,
            place,
            self.opset,
            self.target,
            self.names,
            self.outcome.types,
            self.engine.options,
        )


def _original(place: Place) -> Place:
    """The same place in the model as it was read."""
    return Place(place.scope.owner.node[place.index], place.index, place.scope)
