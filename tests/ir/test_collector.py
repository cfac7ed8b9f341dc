"""Python's garbage collector is held back while a model is converted, and only then."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import onnx
import pytest

import passes
from passes.errors import BadModel
from passes.ir.protos import collector_held_back
from tests.written import changed

NEGATED = """<ir_version: 4, opset_import: ["" : 8]>
    g (float[2] x) => (float[2] y) { y = NODE (x) }"""


@pytest.fixture(autouse=True)
def enabled() -> Iterator[None]:
    gc.enable()
    yield
    gc.enable()


def test_it_is_off_inside_and_on_behind() -> None:
    with collector_held_back():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_is_on_behind_a_model_that_is_converted() -> None:
    passes.upgrade(onnx.parser.parse_model(changed(NEGATED, {"NODE": "Neg"})), verify=False)
    assert gc.isenabled()


def test_it_is_on_behind_a_model_that_is_not_valid() -> None:
    with pytest.raises(BadModel, match="Nope"):
        passes.upgrade(onnx.parser.parse_model(changed(NEGATED, {"NODE": "Nope"})), verify=False)
    assert gc.isenabled()


def test_who_turned_it_off_finds_it_off() -> None:
    gc.disable()
    with collector_held_back():
        pass
    assert not gc.isenabled()
