"""Steps of ops on optionals, which came with opset 15."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto

from passes.converters.steps import adapter_down, identical, identical_down, refusal_down
from passes.converters.writing.conversion import Conversion

identical("Optional", 28)
identical("OptionalGetElement", 18)  # tensors and sequences, which hold themselves, are new
identical("OptionalGetElement", 28)
identical("OptionalHasElement", 18, because="the input may now be missing, or be no optional")
identical("OptionalHasElement", 28)


@adapter_down("OptionalGetElement", 18)
def optional_get_element_15(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """A value that is no optional is its own element: an Identity."""
    if _is_optional(node.input[0], ctx):
        return [node]
    return [ctx.changed(node, op="Identity")]


@adapter_down("OptionalHasElement", 18)
def optional_has_element_15(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """A value that is no optional always has an element, and an omitted one never."""
    name = next(iter(node.input), "")
    if name and _is_optional(name, ctx):
        return [node]
    return [ctx.changed(node, op="Identity", inputs=[ctx.value(np.array(bool(name)), "has")])]


def _is_optional(name: str, ctx: Conversion) -> bool:
    known = ctx.type_of(name)
    if known is None:
        raise ctx.refused("unknown-type", f"whether {name!r} is an optional is not known")
    return bool(known.HasField("optional_type"))


for _op in ("Optional", "OptionalGetElement", "OptionalHasElement"):
    refusal_down(
        _op, 15, "no-equivalent", f"{_op} is about an optional, and before opset 15 there are none"
    )


def _optional(node: NodeProto, ctx: Conversion) -> str:
    known = ctx.type_of(node.input[0])
    if known is not None and known.HasField("optional_type"):
        return f"{node.input[0]!r} is an optional, which Identity takes from opset 16 on"
    return ""


identical_down("Identity", 16, because="optionals are new", unless=_optional)
