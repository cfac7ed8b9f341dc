"""One round over a graph: innermost sites first; every touched node list is rebuilt once, with the
Edits in place of their nodes."""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from google.protobuf.message import DecodeError
from onnx import FunctionProto, GraphProto, NodeProto, TensorProto, helper

from passes.analysis.bodies.context import held_to_declared
from passes.choices import RuleOptions
from passes.engine.rounds import Refusal, Rewritten, Round
from passes.engine.template import Templates, likeness
from passes.errors import BadModel, ChosenByCaller, PassesError
from passes.ir import scope as scoping
from passes.ir.graph_index import GraphIndex
from passes.ir.names import Names
from passes.ir.operators import op_of
from passes.ir.protos import copied, named, replace_all
from passes.ir.scope import Owner, Place, Scope
from passes.ir.selection import hand_on, is_meant
from passes.ir.site import Memory
from passes.ir.versions import FREE_INITIALIZERS
from passes.onnxruntime.bodies import (
    fitting_depth,
    too_deep,
    with_explicit_conditions,
    with_own_strings,
)
from passes.onnxruntime.dequantized import with_dequantized_apart
from passes.onnxruntime.fitting_types import with_fitting_types
from passes.rule import BrokenRule, Edit, Filled, NothingToDo, Refused, Rule, Site, Templated

_TRAPS = (with_own_strings, with_dequantized_apart, with_explicit_conditions, with_fitting_types)
_MANY = 64  # nodes of an Edit that should not exist twice


@dataclass
class _Found:
    """The rewrites of the nodes of one graph, which `scope` and `graph` show as it was originally.

    `edits` are by the index of their nodes, `large` maps the indices of large ones to their
    records. `constants`: Edits that share one each bring it along. `filled` are the templates in
    use.
    """

    scope: Scope
    graph: GraphIndex
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
    """One round over the main graph or one function of an `opset`, which is recorded in `outcome`;
    all sweeps of a round share names, templates, and what rules remember."""

    rules: Sequence[Rule]
    options: RuleOptions
    outcome: Round
    names: Names
    opset: int = 0
    memory: Memory = field(default_factory=Memory)
    templates: Templates = field(default_factory=Templates)
    by_op: dict[str, list[tuple[Rule, bool | None]]] = field(default_factory=dict, init=False)

    @property
    def converting(self) -> bool:
        """True if the model as a whole is converted, to the opset `target`."""
        return self.outcome.target is not None

    @property
    def target(self) -> int:
        """The opset that Edits are written in."""
        return self.outcome.target or self.opset

    def rewrite(self, scope: Scope, owner: Owner) -> None:
        """Rewrite `owner`, the copy of what `scope` shows as it was originally."""
        found = _Found(scope, self.outcome.model.index(scope.owner))
        covered: set[int] = set()
        model = self.outcome.model
        own = {function.name for function in model.proto.functions}
        nodes = zip(owner.node[:], found.graph.ops, strict=True)
        for index, (node, op) in enumerate(nodes):
            if index in covered:
                continue  # an earlier Edit replaces it
            holds = index in found.graph.holders
            first = len(self.outcome.rewritten)
            if holds:
                inner = zip(found.scope.inner(index), scoping.subgraphs(node), strict=True)
                for before, (_, graph) in inner:
                    self.rewrite(before, graph)
            rules = self._considering(node, op)
            if not rules or not self._is_selected(node):
                continue
            last = len(self.outcome.rewritten)
            if holds or len(rules) > 1 or isinstance(owner, FunctionProto) or op in own:
                edit = self._first_edit(rules, Place(node, index, found.scope))
            else:
                edit = self._edit_or_template(rules[0], node, index, found)
            if edit is not None and not found.edits.keys().isdisjoint(edit.covered):
                self.outcome.rewritten.pop()  # it waits for the outcome of these nodes
            elif edit is not None:
                self._rest_on(found, first, last)
                found.edits[index] = edit
                found.add(edit.initializers)
                covered.update(edit.covered)
                if len(edit.nodes) >= _MANY:
                    found.large[index] = len(self.outcome.rewritten) - 1
        self._write(owner, found)

    def ask(self, place: Place) -> None:
        """Record what the first rule that considers a site would do with it, and where the model is
        converted, with what is in its bodies: those are converted first."""
        if self.converting:
            node = copied(place.node)
            inner = zip(place.scope.inner(place.index), scoping.subgraphs(node), strict=True)
            for before, (_, graph) in inner:
                self.rewrite(before, graph)
            place = Place(node, place.index, place.scope)
        self._first_edit(self._considering(place.node, op_of(place.node)), place)

    def _write(self, owner: Owner, found: _Found) -> None:
        """Put the Edits into a graph, in place of their nodes."""
        starts: dict[int, int] = {}
        if found.edits:
            starts = splice(owner, found.edits, found.constants)
            found.edits.clear()  # they hold copies of what is in the graph now
            for index, position in found.large.items():
                self._share(position, owner, starts[index])
        elif found.constants and isinstance(owner, GraphProto):
            owner.initializer.extend(found.constants.values())
        listed = self.outcome.proto.ir_version < FREE_INITIALIZERS
        if starts and listed and not self.converting:  # else it leaves IR 3 with its opset
            scoping.list_initializers(owner)

    def _rest_on(self, found: _Found, first: int, last: int) -> None:
        """Let the newest Edit depend on what those in the bodies of its node, from `first` to
        `last`, depend on in this graph, and be no more exact: its region begins with these bodies
        as they were."""
        inside = [rewritten.written for rewritten in self.outcome.rewritten[first:last]]
        if not inside:
            return
        newest = self.outcome.rewritten[-1]
        edits = [written for written in inside if isinstance(written, Edit)]
        edit = replace(
            newest.edit,
            exact=newest.edit.exact and all(written.exact for written in inside),
            context=self._context(found, newest, [node for edit in edits for node in edit.context]),
        )
        self.outcome.rewritten[-1] = replace(newest, written=edit)

    def _context(
        self, so_far: _Found, newest: Rewritten, nodes: Sequence[NodeProto]
    ) -> tuple[NodeProto, ...]:
        """Return the nodes of this graph on which an Edit depends, given `nodes` for those in its
        bodies: a rewritten one comes with those that it depended on."""
        if not nodes:
            return newest.edit.context
        scope = so_far.scope
        positions = self.outcome.model.index(scope.owner).positions
        rewritten = [
            node
            for name in (node.output[0] for node in nodes)
            if name in positions and positions[name] in so_far.edits
            for node in so_far.edits[positions[name]].context
        ]
        bodies = [graph for _, graph in scoping.subgraphs(newest.node)]
        read = {name for node in newest.replaced for name in scoping.free_names(node)}
        drawn = held_to_declared(nodes, [value.name for graph in bodies for value in graph.input])
        outputs = {node.output[0] for node in (*nodes, *rewritten, *newest.edit.context)}
        found = []
        for position in sorted({positions[name] for name in outputs if name in positions})[::-1]:
            node = scope.owner.node[position]
            if not read.isdisjoint(node.output) and drawn.isdisjoint(node.output):
                found.append(node)
                read.update(scoping.free_names(node))
        own = [node for node in newest.edit.context if node.output[0] not in positions]
        return (*own, *found[::-1])

    def _edit_or_template(
        self, rule: Rule, node: NodeProto, index: int, found: _Found
    ) -> Edit | None:
        """The Edit of a rule; None also where a template is written in place."""

        def site() -> Site:
            return self._site(Place(node, index, found.scope))

        likes = likeness(found.graph, index, self.opset)
        key = self.templates.key(likes, site)
        if key not in self.templates.known:
            edit = self._first_edit([rule], site().place)
            if not isinstance(edit, Templated) or edit.template is None:
                return edit
            self.templates.add(likes, site(), edit.template)
            key = self.templates.key(likes, site)
            if key not in self.templates.known:
                return edit
            self.outcome.rewritten.pop()
        filled = found.filled.get(key)
        if filled is None:
            filled = found.filled[key] = self.templates.known[key].at(site())
            found.add(filled.tensors)
        self.outcome.rewritten.append(Rewritten(rule, found.scope, index, filled))
        filled.write(node)
        return None

    def _share(self, position: int, owner: Owner, start: int) -> None:
        """Let a large Edit refer to its nodes in the graph instead of copies of them."""
        rewritten = self.outcome.rewritten[position]
        nodes = tuple(owner.node[start : start + len(rewritten.edit.nodes)])
        edit = replace(rewritten.edit, nodes=nodes)
        self.outcome.rewritten[position] = replace(rewritten, written=edit)

    def _considering(self, node: NodeProto, op: str) -> list[Rule]:
        """The rules that consider a node, which is of the operator `op`."""
        opset, target = self.opset, self.target
        rules = self.by_op.get(op)
        if rules is None:
            known = ((rule, rule.considers_op(op, opset, target)) for rule in self.rules)
            rules = self.by_op[op] = [(rule, sure) for rule, sure in known if sure is not False]
        return [rule for rule, sure in rules if sure or rule.considers(node, opset, target)]

    def _is_selected(self, node: NodeProto) -> bool:
        """Return whether `only` selects this site; a model is converted as a whole."""
        chosen = self.options.only and not self.converting
        return not chosen or is_meant(node)

    def _first_edit(self, rules: Sequence[Rule], place: Place) -> Edit | None:
        """The Edit of the first rule that does not refuse, without what onnxruntime fails on.

        Raises:
            BrokenRule: a rule of another package failed, or returned something else.
            BadModel: the model is invalid at the site.
        """
        spent = self.outcome.seconds
        for rule in rules:
            started = time.monotonic()
            site, edit, refusal = self._site(place), None, None
            try:
                edit = _without_traps(site, _checked(rule.rewrite(site), rule, site))
                if why := self.options.left_out.get((rule.name, place.path)):
                    edit, refusal = None, Refused(*why, [place.path])
            except NothingToDo:
                pass
            except Refused as refused:
                refusal = refused
            except ChosenByCaller as error:
                if not rule.optional:
                    refusal = Refused("attribute-reference", error.sentence, [place.path])
            except DecodeError:  # protobuf copies no message that is nested too deeply
                refusal = too_deep(site)
            except BadModel as error:
                raise error.at(path=place.path, file=self.outcome.model.file) from error
            except PassesError:
                raise
            except Exception as error:  # whatever the code of another package may raise
                if rule.is_built_in:
                    raise
                failed = f"the rule {rule.name!r} failed at {site.path}"
                raise BrokenRule(f"{failed}: {type(error).__name__}: {error}") from error
            spent[rule.name] = spent.get(rule.name, 0.0) + time.monotonic() - started
            if refusal is not None:
                self.outcome.refused.append(Refusal(rule, _original(place), refusal))
            if edit is not None:
                if self.options.only:
                    hand_on(place.node, edit.nodes)
                self.outcome.rewritten.append(Rewritten(rule, place.scope, place.index, edit))
                return edit
        return None

    def _site(self, place: Place) -> Site:
        return Site(
            self.outcome.model,
            place,
            self.opset,
            self.target,
            self.names,
            self.options,
            self.memory,
        )


def _checked(edit: Edit, rule: Rule, site: Site) -> Edit:
    """What a rule returned, if that is an Edit. Raises BrokenRule."""
    if not isinstance(edit, Edit):
        raise BrokenRule(f"the rule {rule.name!r} returned {edit!r} at {site.path}, not an Edit")
    for node in edit.nodes:
        if not isinstance(node, NodeProto):
            what = f"an Edit with {node!r}, which is no NodeProto"
            raise BrokenRule(f"the rule {rule.name!r} returned {what}, at {site.path}")
    return edit


def _without_traps(site: Site, proven: Edit) -> Edit:
    """An Edit without what onnxruntime fails on; a proof covers only what the rule wrote.

    Raises:
        Refused: `too-deep` where no file could hold it.
    """
    edit = proven
    for without_trap in _TRAPS:
        edit = without_trap(site, edit)
    edit = edit if edit is proven else replace(edit, claim=replace(edit.claim, proof=""))
    return fitting_depth(site, edit)


def _original(place: Place) -> Place:
    """The same place in the original model."""
    return Place(place.scope.owner.node[place.index], place.index, place.scope)


def splice(
    owner: Owner, edits: Mapping[int, Edit], constants: Mapping[str, TensorProto]
) -> dict[int, int]:
    """Rebuild a node list with the Edits in place of their nodes, add the constants, and drop the
    types of values that are gone.

    Returns where each Edit begins.
    """
    nodes: list[NodeProto] = []
    starts: dict[int, int] = {}
    covered = {index for edit in edits.values() for index in edit.covered}
    for index, node in enumerate(owner.node):
        edit = edits.get(index)
        if edit is None and index not in covered:
            nodes.append(node)
        if edit is not None:
            starts[index] = len(nodes)
            nodes.extend(edit.nodes)
            owner.value_info.extend(edit.value_info)
            if isinstance(owner, GraphProto):
                owner.quantization_annotation.extend(edit.annotations)
    if isinstance(owner, GraphProto):
        owner.initializer.extend(constants.values())
    else:
        nodes = [_constant_node(tensor) for tensor in constants.values()] + nodes
        starts = {index: start + len(constants) for index, start in starts.items()}
    _name_apart(nodes, [node for edit in edits.values() for node in edit.nodes])
    gone = {name for index in covered for name in owner.node[index].output}
    del owner.node[:]
    owner.node.extend(nodes)
    if covered:
        gone.difference_update(name for node in nodes for name in node.output)
        kept = [value for value in owner.value_info if value.name not in gone]
        replace_all(owner.value_info, kept)
    return starts


def _name_apart(nodes: Sequence[NodeProto], made: Sequence[NodeProto]) -> None:
    """Give the nodes of Edits unique names, which onnxruntime requires within a graph."""
    named = [node for node in made if node.name]
    if not named:
        return
    new = {id(node) for node in made}
    names = Names(node.name for node in nodes if id(node) not in new)
    for node in named:
        node.name = names.fresh(node.name)


def _constant_node(tensor: TensorProto) -> NodeProto:
    """A constant for a function, which has no initializers."""
    value = named(tensor, "")  # onnx's text format cannot read back a name here
    return helper.make_node("Constant", [], [tensor.name], value=value)
