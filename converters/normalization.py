"""Steps of normalization ops."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto

from converters.conversion import Conversion
from converters.steps import adapter


@adapter("BatchNormalization", 9)
def batch_normalization_9(node: NodeProto, at: Conversion) -> Sequence[NodeProto]:
    """The attribute `spatial` is gone: what it switched off is done on a flat input.

    With `spatial = 0` scale, bias, mean and variance are (C x D1 x ... x Dn), one for each
    activation. Version 9 advises to flatten the input (N x C x D1 x ... x Dn) to
    (N x C*D1*...*Dn), of which every column is a channel. Their shape must be known: an empty
    one cannot be restored, since a 0 in Reshape-5 copies a dim.
    """
    x, scale, *_ = node.input
    if at.attribute(node, "spatial", 1) or at.known_rank(scale) == 1:
        return [at.changed(node, without=["spatial"])]
    if any(node.output[1:]):
        raise at.refused(
            "no-equivalent",
            "BatchNormalization-9 has no training outputs of the shape (C x D1 x ... x Dn)",
        )
    dims = at.dims_of(scale) or ()
    if not all(isinstance(dim, int) and dim > 0 for dim in dims):
        raise at.refused("unknown-rank", f"the shape of {scale!r} is not known, or empty: {dims}")
    one_axis = at.value(np.array([-1], np.int64), "one_axis")
    shape = at.value(np.array([0, *dims], np.int64), "shape")  # 0 keeps N
    flat = [
        at.node("Flatten", [x], axis=1),
        *(at.node("Reshape", [name, one_axis]) for name in node.input[1:]),
    ]
    main = at.changed(
        node,
        inputs=[made.output[0] for made in flat],
        outputs=[at.fresh(f"{node.output[0]}_flat")],
        without=["spatial"],
    )
    return [*flat, main, at.node("Reshape", [main.output[0], shape], [node.output[0]])]
