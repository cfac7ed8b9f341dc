"""One round over a graph: innermost sites first, every touched node list rebuilt once."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace

from google.protobuf.message import DecodeError
from onnx import FunctionProto, GraphProto, NodeProto, TensorProto

from passes.choices import RuleOptions
from passes.engine.memory import Memory
from passes.engine.rounds import Refusal, Rewritten, Round
from passes.engine.selection import hand_on, is_meant
from passes.engine.template import Filled, Template, likeness
from passes.errors import BadModel, ChosenByCaller
from passes.ir import scope as scoping
from passes.ir.names import Names
from passes.ir.scope import Owner, Place, Scope
from passes.ir.versions import FREE_INITIALIZERS
from passes.onnxruntime.dequantized import with_dequantized_apart
from passes.onnxruntime.fitting_types import with_fitting_types
from passes.onnxruntime.nesting import fitting_depth, too_deep
from passes.onnxruntime.own_strings import with_own_strings
from passes.onnxruntime.said_conditions import with_conditions_said
from passes.rule import Edit, NothingToDo, Refused, Rule, Site
from passes.writing.splicing import drop_unread, list_initializers, splice

_TRAPS = (with_own_strings, with_dequantized_apart, with_conditions_said, with_fitting_types)
_MANY = 64  # nodes of an Edit, of which there should not be two copies


@dataclass
class _Found:
    """What becomes of the nodes of one graph, which `scope` shows as it was read.

    `edits` are by the index of their nodes, `large` says where the large ones are recorded.
    `constants`: Edits that share one each bring it along. `filled` are the templates in use.
    """

    scope: Scope
    edits: dict[int, Edit] = field(default_factory=dict)
    large: dict[int, int] = field(default_factory=dict)
    constants: dict[str, TensorProto] = field(default_factory=dict)
    filled: dict[Hashable, Filled] = field(default_factory=dict)

    def add(self, tensors: Sequence[TensorProto]) -> None:
        """Add constants to the graph."""
        for tensor in tensors:
            self.constants[tensor.name] = tensor


@dataclass(frozen=True)
class Sweep:
    """One round over the main graph or one function, whose outcome is noted in `outcome`.

    `converting`: to the opset `target`, the model as a whole.
    """

    rules: Sequence[Rule]
    options: RuleOptions
    memory: Memory
    converting: bool
    outcome: Round
    names: Names
    opset: int
    target: int
    templates: dict[Hashable, Template]

    def rewrite(self, scope: Scope, owner: Owner) -> set[str]:
        """Rewrite `owner`, the copy of what `scope` shows as it was read.

        Answers with what is read less often now, by Edits that tidy: it may be unread outside.
        """
        found = _Found(scope)
        spare = self._collect(owner, found)
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
        if starts and listed and not self.converting:  # else it leaves IR 3 with its opset
            list_initializers(owner)
        return spare

    def _collect(self, owner: Owner, found: _Found) -> set[str]:
        """Find what becomes of the nodes of a graph, its bodies rewritten before.

        Answers with what bodies read less often.
        """
        covered: set[int] = set()
        spare: set[str] = set()
        for index, node in enumerate(owner.node[:]):
            if index in covered:
                continue  # an Edit in front takes its place
            holds = scoping.holds_graphs(node)
            if holds:
                inner = zip(found.scope.inner(index), scoping.subgraphs(node), strict=True)
                for before, (_, graph) in inner:
                    spare |= self.rewrite(before, graph)
            rules = [one for one in self.rules if one.considers(node, self.opset, self.target)]
            if not rules or not self._wanted(node):
                continue
            if holds or len(rules) > 1 or isinstance(owner, FunctionProto):
                edit = self._first_edit(rules, Place(node, index, found.scope))
            else:
                edit = self._edit_or_template(rules[0], node, index, found)
            if edit is not None and not found.edits.keys().isdisjoint(edit.covered):
                self.outcome.rewritten.pop()  # it waits for what became of these nodes now
            elif edit is not None:
                found.edits[index] = edit
                found.add(edit.initializers)
                covered.update(edit.covered)
                if len(edit.nodes) >= _MANY:
                    found.large[index] = len(self.outcome.rewritten) - 1
        return spare

    def _edit_or_template(
        self, rule: Rule, node: NodeProto, index: int, found: _Found
    ) -> Edit | None:
        """The Edit of a rule; None, too, where a template is written in place."""
        key = likeness(node, self.opset)
        if key not in self.templates:
            edit = self._first_edit([rule], Place(node, index, found.scope))
            if edit is None or edit.template is None:
                return edit
            self.templates[key] = edit.template
            self.outcome.rewritten.pop()
        filled = found.filled.get(key)
        if filled is None:
            site = self._site(Place(node, index, found.scope))
            filled = found.filled[key] = self.templates[key].at(site)
            found.add(filled.tensors)
        self.outcome.rewritten.append(Rewritten(rule, found.scope, index, filled))
        filled.write(node)
        return None

    def _share(self, position: int, owner: Owner, start: int) -> None:
        """Let a large Edit refer to its nodes where they stand now, not to copies of them."""
        one = self.outcome.rewritten[position]
        nodes = tuple(owner.node[start : start + len(one.edit.nodes)])
        edit = replace(one.edit, nodes=nodes)
        self.outcome.rewritten[position] = replace(one, written=edit)

    def _wanted(self, node: NodeProto) -> bool:
        """Whether `only` leaves this site to the rules; a model is converted as a whole."""
        chosen = self.options.only and not self.converting
        return not chosen or is_meant(node)

    def _first_edit(self, rules: Sequence[Rule], place: Place) -> Edit | None:
        """The Edit of the first rule that does not refuse."""
        for rule in rules:
            edit = self._apply(rule, place)
            if edit is not None:
                self.outcome.rewritten.append(Rewritten(rule, place.scope, place.index, edit))
                return edit
        return None

    def _apply(self, rule: Rule, place: Place) -> Edit | None:
        try:
            edit = self._fitting(rule, place)
            if why := self.options.left_out.get((rule.name, place.path)):
                raise Refused("not-verified", why, [place.path])
        except NothingToDo:
            return None
        except Refused as refused:
            self.outcome.refused.append(Refusal(rule, _original(place), refused))
            return None
        except ChosenByCaller as error:
            if not rule.optional:
                reason = Refused("attribute-reference", error.sentence, [place.path])
                self.outcome.refused.append(Refusal(rule, _original(place), reason))
            return None
        except BadModel as error:
            raise error.at(path=place.path, file=self.outcome.model.file) from error
        if self.options.only:
            hand_on(place.node, edit.nodes)
        return edit

    def _fitting(self, rule: Rule, place: Place) -> Edit:
        """The Edit of a rule, without what onnxruntime would trip over.

        Raises:
            Refused: what the rule refuses with; `too-deep` where no file could hold the Edit.
        """
        site = self._site(place)
        try:
            edit = rule.rewrite(site)
            if not isinstance(edit, Edit):
                raise TypeError(
                    f"the rule {rule.name!r} answered {edit!r} at {place.path}, not an Edit"
                )
            proven = edit
            for without_trap in _TRAPS:
                edit = without_trap(site, edit)
        except DecodeError as error:  # protobuf copies no message that is nested too deep
            raise too_deep(site) from error
        # a proof speaks of what the rule wrote
        edit = edit if edit is proven else replace(edit, proof="")
        return fitting_depth(site, edit)

    def _site(self, place: Place) -> Site:
        return Site(
            self.outcome.model,
            place,
            self.opset,
            self.target,
            self.names,
            self.outcome.types,
            self.options,
            self.memory,
        )


def _original(place: Place) -> Place:
    """The same place in the model as it was read."""
    return Place(place.scope.owner.node[place.index], place.index, place.scope)
