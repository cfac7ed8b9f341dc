"""Outputs of bodies from nodes of their own.

onnxruntime returns uninitialised memory for an output of a body that is directly an input, an
initializer or an outer value, and for one value listed twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from onnx import GraphProto, ValueInfoProto

from passes.ir import scope as scoping


def own_outputs(
    body: GraphProto,
    fresh: Callable[[str], str],
    may: Callable[[ValueInfoProto], bool] = lambda value: True,
) -> None:
    """Give every output that has no node of its own an Identity, in place; `fresh` names its value,
    `may` tells whether an Identity can return it."""
    computed = {name for node in body.node for name in node.output}
    for value in body.output:
        if value.name in computed:
            computed.discard(value.name)
        elif may(value):
            return_copy(body, value, fresh(value.name))


def return_copy(body: GraphProto, output: ValueInfoProto, name: str) -> None:
    """Let an output of a body be a copy of what it was, under a name of its own."""
    body.node.add(op_type="Identity", input=[output.name], output=[name])
    output.name = name


def keep_outputs(body: GraphProto, mapping: Mapping[str, str]) -> None:
    """Return values that have other names now under their old ones: no other node may write an
    output."""
    for name in dict.fromkeys(scoping.output_names(body)):
        if name in mapping:
            body.node.add(op_type="Identity", input=[mapping[name]], output=[name])
