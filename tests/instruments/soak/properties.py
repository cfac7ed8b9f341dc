"""What must hold of every outcome, whatever it computes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import onnx
from onnx import ModelProto, ValueInfoProto

from passes.session import Result
from tests.instruments.soak.commands import Command


def broken(before: ModelProto, result: Result, command: Command) -> Iterator[str]:
    """Sentences, each beginning with its kind, for what does not hold."""
    after = result.model
    try:  # at IR 3, onnx's inference takes initializers of bodies for inputs
        onnx.checker.check_model(after, full_check=after.ir_version > 3)
    except Exception as error:  # its errors have no common base
        if is_valid(before):
            yield f"invalid: {error}"
    if not command.fixes_dims and _signature(before) != _signature(after, command.check):
        yield "signature: the inputs or outputs are others"
    yield from _not_left_alone(before, after, command)


def is_valid(model: ModelProto) -> bool:
    """Return whether onnx accepts a model."""
    try:
        onnx.checker.check_model(model, full_check=True)
    except Exception:  # its errors have no common base
        return False
    return True


def _signature(model: ModelProto, added: str = "") -> tuple[list[bytes], list[bytes]]:
    """The inputs and outputs, without an output that was added on request."""
    constant = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in constant]
    return _serialized(inputs), _serialized(
        value for value in model.graph.output if not added or value.name != added
    )


def _serialized(values: Iterable[ValueInfoProto]) -> list[bytes]:
    return [value.SerializeToString(deterministic=True) for value in values]


def _not_left_alone(before: ModelProto, after: ModelProto, command: Command) -> Iterator[str]:
    """Metadata, documentation, and the node that no rewrite of control flow has a word on."""
    for what in ("producer_name", "metadata_props", "doc_string", "domain", "model_version"):
        if getattr(before, what) != getattr(after, what):
            yield f"metadata: {what} is another"
    if (before.graph.name, before.graph.doc_string) != (after.graph.name, after.graph.doc_string):
        yield "metadata: name or documentation of the graph are others"
    witnesses = [node for node in before.graph.node if node.name == "witness"]
    same_opset = before.opset_import[0] == after.opset_import[0]
    kept = all(node in after.graph.node for node in witnesses)
    if command.pipeline != "upgrade" and same_opset and not kept:
        yield "witness: a node beside the loops is another"
