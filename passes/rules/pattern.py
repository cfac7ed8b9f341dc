"""A node of a body, taken apart once so that it is quickly written many times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from google.protobuf.internal.containers import RepeatedCompositeFieldContainer
from onnx import NodeProto, StringStringEntryProto

from passes import scope as scoping


@dataclass(frozen=True)
class Pattern:
    """`rest` is the node without its inputs and outputs, `bodies` whether it has bodies."""

    rest: NodeProto
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    bodies: bool

    @classmethod
    def of(cls, node: NodeProto) -> Pattern:
        """Take a node apart."""
        rest = NodeProto()
        rest.CopyFrom(node)
        del rest.input[:]
        del rest.output[:]
        bodies = scoping.holds_graphs(node)
        return cls(rest, node.name, tuple(node.input), tuple(node.output), bodies)

    def write(
        self,
        nodes: RepeatedCompositeFieldContainer[NodeProto],
        mapping: Mapping[str, str],
        outputs: Sequence[str],
        tag: str,
        note: Sequence[StringStringEntryProto],
    ) -> None:
        """Write the node behind `nodes`: it reads what `mapping` says, its name ends in `tag`."""
        copy = nodes.add()
        copy.CopyFrom(self.rest)
        if self.bodies:
            scoping.rename_free(copy, mapping)
        copy.input.extend([mapping.get(name, name) for name in self.inputs])
        copy.output.extend(outputs)
        if self.name:
            copy.name = f"{self.name}/{tag}"
        copy.metadata_props.extend(note)
