"""Adds an output to a model that tells whether all promises of the user about its loops were
kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from onnx import ModelProto, TensorProto, helper

from passes.engine.rounds import Round
from passes.errors import DoesNotFit
from passes.ir import scope as scoping
from passes.ir.names import Names
from passes.ir.protos import copied


class NameTaken(DoesNotFit):
    """The output that is to be added would have a name that the model uses."""


def refuse_taken(model: ModelProto, name: str) -> None:
    """See that a new output may be called `name`.

    Raises:
        NameTaken: a value of the model is called so.
    """
    if name in _names(model):
        raise NameTaken(f"the model has a value called {name!r} already")


def checks_of(rounds: Iterable[Round]) -> list[str]:
    """Return the values in which rewrites store whether a promise was kept."""
    limits = [rewrite.limit for round_ in rounds for rewrite in round_.rewritten]
    return [limit.check for limit in limits if limit is not None and limit.check]


def with_check_output(model: ModelProto, name: str, checks: Sequence[str]) -> ModelProto:
    """The model with an output `name`, bool [], the last: whether all `checks` hold."""
    made = copied(model)
    names = Names(_names(model) | {name})
    if checks:
        held, *others = checks
        for other in others:
            both = names.fresh(f"{name}/and")
            made.graph.node.add(op_type="And", input=[held, other], output=[both])
            held = both
        made.graph.node.add(op_type="Identity", input=[held], output=[name])
    else:
        one = names.fresh(f"{name}/one")  # a float, of which Constants hold nothing else at first
        value = helper.make_tensor("value", TensorProto.FLOAT, [], [1])
        made.graph.node.append(helper.make_node("Constant", [], [one], value=value))
        made.graph.node.append(helper.make_node("Cast", [one], [name], to=TensorProto.BOOL))
    made.graph.output.append(helper.make_tensor_value_info(name, TensorProto.BOOL, []))
    return made


def _names(model: ModelProto) -> set[str]:
    return scoping.all_names(owner for _, owner in scoping.owners(model))
