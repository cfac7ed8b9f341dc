"""The result of one round over a model: the sites that were rewritten, and those that were
refused."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from onnx import ModelProto, NodeProto

from passes.ir import scope as scoping
from passes.ir.model import Model
from passes.ir.operators import op_of
from passes.ir.places import path_of
from passes.ir.protos import copied
from passes.ir.scope import Place, Scope
from passes.rule import Edit, Filled, Limit, Refused, Rule


@dataclass(frozen=True)
class Rewritten:
    """A site that a rule rewrote: where it was in the original model, and the Edit, or the
    template that was written in its place."""

    rule: Rule
    scope: Scope
    index: int
    written: Edit | Filled

    @cached_property
    def node(self) -> NodeProto:
        """The site's node in the original model."""
        return self.scope.owner.node[self.index]

    @property
    def place(self) -> Place:
        """The location of the site."""
        return Place(self.node, self.index, self.scope)

    @property
    def path(self) -> str:
        """The path of the site."""
        return path_of(self.scope, self.scope.owner.node[self.index], self.index)

    @property
    def site(self) -> tuple[str, str]:
        """The rule and the path."""
        return self.rule.name, self.path

    @property
    def limit(self) -> Limit | None:
        """The limit, where the loop may run another number of times than the Edit."""
        return self.edit.claim.limit

    @cached_property
    def edit(self) -> Edit:
        """The Edit that replaced the site's node."""
        written = self.written
        if isinstance(written, Edit):
            return written
        new = copied(self.place.node)
        written.write(new)
        return Edit((new,), written.tensors, note=written.note, exact=written.exact)

    @property
    def releases(self) -> bool:
        """True if something that the replaced nodes read or computed may be dead now."""
        if isinstance(self.written, Filled):
            return not self.written.template.appends or self.written.template.drops
        return True

    @property
    def renews(self) -> bool:
        """True if there are nodes that were not there before: not the site's own, changed."""
        written = self.written
        return not isinstance(written, Filled) or written.template.op != op_of(self.node)

    @property
    def replaced(self) -> list[NodeProto]:
        """The nodes that the Edit replaces, in their order."""
        positions = sorted({self.index, *self.edit.covered})
        return [self.scope.owner.node[position] for position in positions]

    @property
    def context(self) -> list[NodeProto]:
        """The nodes before them that stay, and on which the rewrite depends."""
        gone = {name for node in self.replaced for name in node.output if name}
        return [node for node in self.edit.context if gone.isdisjoint(node.output)]

    @property
    def reads(self) -> list[str]:
        """The names that all these nodes read from outside, in order of first use."""
        nodes = [*self.context, *self.replaced]
        names = (name for node in nodes for name in scoping.free_names(node))
        inner = {name for node in nodes for name in node.output}
        return [name for name in dict.fromkeys(names) if name not in inner]

    @property
    def writes(self) -> list[str]:
        """The names that those nodes define and the Edit defines, too."""
        names = [name for node in self.replaced for name in node.output if name]
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
    """One pass over a model: `proto` is the outcome, the argument itself where nothing applied;
    `target` is the opset that the model was converted to, if it was; `seconds` is what each rule
    took."""

    model: Model
    proto: ModelProto
    rules: tuple[str, ...] = ()
    target: int | None = None
    rewritten: list[Rewritten] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)

    @cached_property
    def after(self) -> Model:
        """The outcome, which must not change any more."""
        same = self.proto is self.model.proto
        return self.model if same else Model(self.proto, self.model.path)
