"""Steps of ops that draw random numbers."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import NodeProto

from passes.converters.steps import adapter_down, identical
from passes.converters.writing.conversion import Conversion

for _op in (
    "Bernoulli",
    "Multinomial",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
):
    identical(_op, 22)


@adapter_down("Bernoulli", 15, exact=False)
def bernoulli_14(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Return whether a uniform random number is less than the probability."""
    if ctx.attribute(node, "seed") is not None:
        raise ctx.refused(
            "no-equivalent", "Bernoulli has a seed, which gives other numbers elsewhere"
        )
    (given,) = node.input
    elem_type = ctx.known_elem_type(given)
    less = ctx.op("Less", ctx.op("RandomUniformLike", given, dtype=elem_type), given)
    to = ctx.attribute(node, "dtype", elem_type)
    return [ctx.changed(node, op="Cast", inputs=[less], without=["seed", "dtype"], to=to)]
