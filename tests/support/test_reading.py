"""What is known of an operator is what the parts of the tool do with it."""

from __future__ import annotations

from typing import get_type_hints

import pytest
from onnx import defs

from passes.operators.traits import Shape, Traits, Word, Work
from passes.support.operators import Ability, KnownOperator
from passes.support.reading import UnknownOperator, known_operators, meanings, names


def known_operator(name: str, opset: int | None = None) -> KnownOperator:
    (one,) = known_operators(name, opset=opset).operators
    return one


def abilities(one: KnownOperator) -> dict[str, Ability]:
    return {ability.name: ability for ability in one.abilities}


def test_an_operator_that_every_part_treats() -> None:
    gather = known_operator("Gather")
    assert gather.versions == [1, 11, 13]
    ways = [(step.version, step.way) for step in gather.steps]
    assert ways == [(11, "up"), (11, "down"), (13, "up"), (13, "down")]
    assert gather.steps[0].text == "identical"
    assert gather.steps[1].text.startswith("adapter: Indices that count from the back")
    assert ("indices", "1") in [(trait.column, trait.value) for trait in gather.traits]
    can = abilities(gather)
    assert [name for name, one in can.items() if not one.holds] == ["safe"]
    assert can["batches"].file == "passes/vectorize/ops/indexing.py"
    assert can["down"].note == "to opset 7"
    assert [(kind.variable, kind.what) for kind in gather.types] == [
        ("T", "takes"),
        ("Tind", "takes"),
    ]
    assert not any(gather.targets.values())


def test_an_operator_that_hardly_any_part_treats() -> None:
    can = abilities(known_operator("NegativeLogLikelihoodLoss"))
    assert [name for name, one in can.items() if one.holds] == ["up", "down", "executes"]
    assert can["batches"].note == "refused: no-batching-rule"
    assert can["safe"].note == "has no row in passes/operators"
    assert can["executes"].note == "by onnx's kernel"


def test_an_operator_that_has_no_kernel() -> None:
    assert abilities(known_operator("Mish"))["executes"].note == "by the function of its document"
    executes = abilities(known_operator("Multinomial"))["executes"]
    assert not executes.holds
    assert executes.note == "not compared, unless onnxruntime runs it"


def test_a_way_down_that_is_refused() -> None:
    down = abilities(known_operator("Unique"))["down"]
    assert not down.holds
    assert down.note.startswith("from 11: refused: `no-equivalent`: ")


def test_an_operator_of_another_domain_has_two_spellings() -> None:
    one = known_operator("com.microsoft.LinearAttention")
    assert one == known_operator("com.microsoft::LinearAttention")
    assert (one.name, one.version, one.versions) == ("com.microsoft::LinearAttention", 0, [])
    file = abilities(one)["executes"].file
    assert file == "passes/verify/reference/ops/linear_attention.py"
    assert one.targets["onnxruntime"] == ""
    assert one.targets["tract"] == "the operator is not listed"
    assert known_operator("ai.onnx.Add") == known_operator("Add")


def test_at_an_older_opset() -> None:
    assert known_operator("Gather", opset=10).version == 1
    assert abilities(known_operator("Upsample", opset=8))["executes"].holds
    older = [one.name for one in known_operators(opset=17, domain="ai.onnx").operators]
    assert "DFT" in older
    assert "Mish" not in older


def test_a_deprecated_operator_is_looked_at_before_it_was() -> None:
    upsample = known_operator("Upsample")
    assert (upsample.version, upsample.deprecated) == (9, True)
    assert abilities(upsample)["executes"].holds
    assert abilities(upsample)["down"].holds


def test_an_operator_that_there_is_not() -> None:
    with pytest.raises(UnknownOperator, match=r"no operator 'gather'; the nearest are Gather, "):
        known_operator("gather")
    with pytest.raises(UnknownOperator, match="no operator 'Mish' at opset 9; the nearest are "):
        known_operator("Mish", opset=9)
    with pytest.raises(UnknownOperator, match="no operator of the domain 'my'; the nearest are "):
        known_operators(domain="my")


def test_all_operators_of_onnx_are_known() -> None:
    every = {(one.domain, one.name) for one in defs.get_all_schemas_with_history()}
    assert {f"{domain}::{name}" if domain else name for domain, name in every} <= {*names()}


def test_each_column_and_each_word_has_its_meaning() -> None:
    others = {Shape.OTHER, Work.OTHER}  # they tell nothing
    for column, kind in get_type_hints(Traits, include_extras=True).items():
        if isinstance(kind, type) and issubclass(kind, Word):
            assert {word for word in kind if not word.meaning} <= others, column
        else:
            (meaning,) = kind.__metadata__
            assert meaning, column


def test_each_part_tells_what_it_means_that_it_can_do_something() -> None:
    assert list(meanings()) == list(abilities(known_operator("Add")))
    assert all(meanings().values())
