"""Models in which operators of which nothing is modelled, and which may fail, take the place of
operators that compute each element."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from passes.ir.operators import op_of
from passes.ir.protos import copied
from tests.instruments.definedness.change import Site, sites
from tests.instruments.definedness.sources import Source

_REPLACED = frozenset(
    ("Abs", "Cos", "Exp", "Identity", "Neg", "Relu", "Sigmoid", "Sin", "Softplus", "Sqrt", "Tanh")
)
_REPLACED_IN_TEN = 7
_FIRST_OPSET = 14
#: Above which element a sum along an axis that does not exist is asked for.
_MOST = 4.0


def veiled(
    sources: Callable[[random.Random], Iterator[Source]],
) -> Callable[[random.Random], Iterator[Source]]:
    """The outcomes of sources, with other operators, each equal to itself."""

    def changed(draw: random.Random) -> Iterator[Source]:
        for source in sources(draw):
            model = copied(source.outcome)
            opset = max((one.version for one in model.opset_import if not one.domain), default=0)
            if opset >= _FIRST_OPSET and _veil(model, draw):
                yield replace(source, equal=model, outcome=model)

    return changed


def _veil(model: ModelProto, draw: random.Random) -> int:
    """Replace operators; return how many."""
    found = [
        site
        for site in sites(model)
        if op_of(site.node) in _REPLACED
        and (kind := site.kind_of(site.node.input[0])) is not None
        and kind[0] == TensorProto.FLOAT
        and kind[1]
        and draw.randrange(10) < _REPLACED_IN_TEN
    ]
    for number, site in reversed([*enumerate(found)]):  # the places of earlier nodes stay
        site.replace(*_sums(site, number))
    return len(found)


def _sums(site: Site, number: int) -> list[NodeProto]:
    """Sums along the first axis; they fail if an element is large."""
    name, output = site.node.input[0], site.node.output[0]
    most, large, which, axis = (f"veil_{number}_{part}" for part in ("most", "large", "as", "axis"))
    bound, by = (f"veil_{number}_{part}" for part in ("bound", "by"))
    values = {bound: np.array(_MOST, np.float32), by: np.array(9, np.int64)}
    return [
        *(
            helper.make_node("Constant", [], [one], value=numpy_helper.from_array(value))
            for one, value in values.items()
        ),
        helper.make_node("ReduceMax", [name], [most], keepdims=0),
        helper.make_node("Greater", [most, bound], [large]),
        helper.make_node("Cast", [large], [which], to=TensorProto.INT64),
        helper.make_node("Mul", [which, by], [axis]),
        helper.make_node("CumSum", [name, axis], [output]),
    ]
