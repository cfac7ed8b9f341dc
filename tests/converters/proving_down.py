"""Proof that a small model gives the same at an older opset, taken there by the whole engine: what
the nodes of a body become, what holds the body sees, and the element types fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import onnx
import pytest
from onnx import ModelProto, helper
from proving import EVERYWHERE, Feeds, drawn, parsed, placed, run

import passes

#: Older opsets that a model at 13 is taken to.
OLD = [12, 10, 9, 7]
#: Where an initializer stays one: it is an input of a function.
GRAPHS = ("main", "if", "loop")


def fixed(graph: str, **values: list[int]) -> str:
    """A graph whose inputs of these names are int64 initializers."""
    start, arrow, rest = graph.partition("=>")
    head, brace, body = rest.partition("{")
    said = ", ".join(
        f"int64[{len(value)}] {name} = {{{', '.join(map(str, value))}}}"
        for name, value in values.items()
    )
    return f"{start}{arrow}{head}<{said}> {brace}{body}"


def attributes(model: onnx.ModelProto) -> list[Mapping[str, object]]:
    """The attributes of each node of the main graph."""
    return [
        {one.name: helper.get_attribute_value(one) for one in node.attribute}
        for node in model.graph.node
    ]


def prove_down(
    graph: str | ModelProto,
    *,
    opset: int,
    target: int,
    feeds: Feeds | None = None,
    places: Iterable[str] = EVERYWHERE,
    rtol: float = 0.0,
) -> ModelProto:
    """Assert that a graph gives the same at `target`, in onnxruntime, wherever it stands.

    Args:
        graph: in ONNX text, without a header, or a model.
        opset: the opset it is written in.
        target: an older one.
        feeds: values of its inputs; what is missing is drawn.
        places: where the nodes stand: `main`, or in the body of an `if`, a `loop`, a `function`.
        rtol: 0 where the numbers must be equal.

    Returns:
        The converted model, with the nodes in the main graph.
    """
    model = parsed(graph, opset) if isinstance(graph, str) else graph
    given = {**drawn(model), **(feeds or {})}
    for place in places:
        whole, more = placed(model, place)
        after = went_down(whole, target)
        onnx.checker.check_model(after, full_check=True)
        before_values, after_values = (run(m, {**given, **more}) for m in (whole, after))
        for expected, actual in zip(before_values, after_values, strict=True):
            assert type(expected) is type(actual), place
            if isinstance(expected, np.ndarray) and not rtol:
                assert expected.dtype == actual.dtype, place
                np.testing.assert_array_equal(actual, expected, err_msg=place)
            else:
                np.testing.assert_allclose(actual, expected, rtol=rtol, atol=rtol, err_msg=place)
    return went_down(model, target)


def went_down(model: ModelProto, target: int) -> ModelProto:
    """A model at an older opset."""
    return passes.convert(model, opset=target, verify=False).model


def assert_stopped(graph: str | ModelProto, *, opset: int, target: int, why: str) -> None:
    """Assert that a graph is refused, with a sentence that `why` matches."""
    with pytest.raises(passes.NotProduced, match=why):
        went_down(parsed(graph, opset) if isinstance(graph, str) else graph, target)
