"""What one round over a model did: the sites that were rewritten, and those that were refused."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from onnx import ModelProto, NodeProto

from passes.engine.template import Filled
from passes.ir import scope as scoping
from passes.ir.model import Model
from passes.ir.scope import Place, Scope
from passes.rule import Edit, Refused, Rule
from passes.types.inference import ValueTypes


@dataclass(frozen=True)
class Rewritten:
    """A site that a rule rewrote: where it was in the model as it was read, and the Edit, or the
    template that was written in its place."""

    rule: Rule
    scope: Scope
    index: int
    written: Edit | Filled

    @property
    def node(self) -> NodeProto:
        """The site's node, as it was read."""
        return self.scope.owner.node[self.index]

    @property
    def place(self) -> Place:
        """Where the site was."""
        return Place(self.node, self.index, self.scope)

    @cached_property
    def edit(self) -> Edit:
        """What took the place of the site's node."""
        written = self.written
        if isinstance(written, Edit):
            return written
        new = NodeProto()
        new.CopyFrom(self.place.node)
        written.write(new)
        return Edit((new,), written.tensors, note=written.note, exact=written.template.exact)

    @property
    def replaced(self) -> list[NodeProto]:
        """The nodes that the Edit takes the place of, in their order."""
        positions = sorted({self.index, *self.edit.covered})
        return [self.scope.owner.node[position] for position in positions]

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
