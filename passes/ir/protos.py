"""Operations on protobuf messages that the messages lack; many are made without the collector."""

from __future__ import annotations

import gc
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, MutableSequence
from contextlib import contextmanager, suppress
from typing import Any, Protocol, TypeVar

from google.protobuf.message import Message
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

Item = TypeVar("Item", contravariant=True)
_INTS = AttributeProto.INTS  # what an empty list is one of

_Message = TypeVar("_Message", bound=Message)
_Named = TypeVar("_Named", AttributeProto, TensorProto, ValueInfoProto)


def copied(message: _Message) -> _Message:
    """A message of its own that equals this one."""
    new = type(message)()
    new.CopyFrom(message)
    return new


def named(message: _Named, name: str) -> _Named:
    """A copy under another name."""
    new = copied(message)
    new.name = name
    return new


def changed(
    node: NodeProto,
    attributes: Mapping[str, Any],
    *,
    op: str | None = None,
    inputs: Iterable[str] | None = None,
    outputs: Iterable[str] | None = None,
) -> NodeProto:
    """A copy of a node with other attributes (None: without), operator, inputs or outputs; name,
    doc string, metadata and everything else stay."""
    new = copied(node)
    if op:
        new.op_type = op
    if inputs is not None:
        replace_all(new.input, inputs)
    if outputs is not None:
        replace_all(new.output, outputs)
    made = [
        helper.make_attribute(name, value, attr_type=_INTS if value == [] else None)
        for name, value in attributes.items()
        if value is not None
    ]
    kept = [one for one in node.attribute if one.name not in attributes]
    replace_all(new.attribute, [*kept, *made])
    return new


def with_initializers(
    model: ModelProto, tensors: Iterable[TensorProto], without: Collection[str] = ()
) -> ModelProto:
    """Return a copy of a model with other initializers in its main graph, and without some fields
    of the model; what is replaced or left out is not copied."""
    copy = ModelProto()
    copy_fields(model, copy, ("graph", *without))
    copy_fields(model.graph, copy.graph, ("initializer",))
    copy.graph.initializer.extend(tensors)
    return copy


def copy_fields(source: Message, copy: Message, without: Container[str]) -> None:
    """Copy all fields of a message to one of its type, without some."""
    for part in source.DESCRIPTOR.fields:
        if part.name in without:
            continue
        if part.is_repeated:
            getattr(copy, part.name).extend(getattr(source, part.name))
        elif not source.HasField(part.name):
            continue
        elif part.message_type is not None:
            getattr(copy, part.name).CopyFrom(getattr(source, part.name))
        else:
            with suppress(UnicodeDecodeError):  # a damaged text, such as a producer's name
                setattr(copy, part.name, getattr(source, part.name))


class Repeated(Protocol[Item]):
    """The operations of all repeated fields, of scalars and of messages."""

    def __delitem__(self, key: slice, /) -> None: ...

    def extend(self, values: Iterable[Item], /) -> None: ...


def replace_all(repeated: Repeated[Item], values: Iterable[Item]) -> None:
    """Replace what a repeated field holds by `values`, which may come from the field itself."""
    kept = list(values)
    del repeated[:]
    repeated.extend(kept)


def set_metadata(model: ModelProto, key: str, value: str | None) -> None:
    """Give the metadata of a model a value for a key in place of the one that it has; None removes
    it."""
    replace_all(model.metadata_props, [one for one in model.metadata_props if one.key != key])
    if value is not None:
        model.metadata_props.add(key=key, value=value)


def drop_at(repeated: MutableSequence[Any], positions: Container[int]) -> None:
    """Drop what a repeated field holds at these positions."""
    replace_all(repeated, [one for at, one in enumerate(repeated) if at not in positions])


@contextmanager
def collector_held_back() -> Iterator[None]:
    """Hold Python's garbage collector back for as long as this takes, also where it fails.

    What checking and converting make, and making ready for a run, is kept and has no cycles: to
    look through it again and again takes a tenth of the time or more, and finds nothing.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
