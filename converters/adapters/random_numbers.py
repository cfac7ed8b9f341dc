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
    """Whether a uniform random number is less than the probability."""
    if ctx.attribute(node, "seed") is not None:
        raise ctx.refused(
            "no-equivalent", "Bernoulli has a seed, which gives other numbers elsewhere"
        )
    (given,) = node.input
    elem_type = ctx.known_elem_type(given)
    drawn = ctx.node("RandomUniformLike", [given], dtype=elem_type)
    less = ctx.node("Less", [drawn.output[0], given])
    to = ctx.attribute(node, "dtype", elem_type)
    cast = ctx.changed(node, op="Cast", inputs=[less.output[0]], without=["seed", "dtype"], to=to)
    return [drawn, less, cast]
