"""Faults that are seeded into Edits: what a rule wrote at one site, changed in one place."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

from onnx import AttributeProto, NodeProto, TensorProto, numpy_helper

from passes.engine import sweep
from passes.engine.template import Templated
from passes.ir import scope as scoping
from passes.ir.protos import copied
from passes.rule import Edit, Rule, Site
from tests.instruments.mutants.faults import MISTAKEN

#: Operators whose inputs may be swapped, or never can be, since their types are others.
_ALIKE = {
    *("Add", "Mul", "And", "Or", "Xor", "Equal", "Max", "Min", "Sum"),
    *("Unsqueeze", "Squeeze", "Slice", "Reshape", "Expand", "Gather", "Loop", "Pad", "Tile"),
}
Key = tuple[str, str]
Change = tuple[str, Callable[[], object]]


@contextmanager
def edits_noted(into: list[Key]) -> Iterator[None]:
    """Note the rule and the path of each Edit that is written."""

    def noting(rule: Rule, site: Site) -> Edit:
        edit = usual(rule, site)
        into.append((rule.name, site.path))
        return edit

    usual = sweep._edit
    with patch.object(sweep, "_edit", noting):
        yield


@contextmanager
def tampered(key: Key, seed: int, told: list[str]) -> Iterator[None]:
    """Change the Edits of one rule at one path in one place; say what was changed."""

    def tampering(rule: Rule, site: Site) -> Edit:
        edit = usual(rule, site)
        if (rule.name, site.path) != key:
            return edit
        edit = _tampered(edit, random.Random(seed), told)
        return replace(edit, template=None) if isinstance(edit, Templated) else edit

    usual = sweep._edit
    with patch.object(sweep, "_edit", tampering):
        yield


def _tampered(edit: Edit, draw: random.Random, told: list[str]) -> Edit:
    nodes = tuple(copied(node) for node in edit.nodes)
    tensors = tuple(copied(tensor) for tensor in edit.initializers)
    changes = [change for node in nodes for change in _of_node(node)]
    changes += [change for tensor in tensors for change in _of_tensor(tensor)]
    if not changes:
        return edit
    kinds = sorted({what.rpartition(" ")[2] for what, _ in changes})
    kind = draw.choice(kinds)
    what, change = draw.choice([one for one in changes if one[0].rpartition(" ")[2] == kind])
    change()
    told.append(what)
    return replace(edit, nodes=nodes, initializers=tensors)


def _of_node(node: NodeProto) -> Iterator[Change]:
    other = MISTAKEN.get(node.op_type, "")
    if other and not node.domain and (other != "Identity" or len(node.input) == 1):
        yield f"{node.op_type} is {other}: another", lambda: _become(node, other)
    own = node.op_type not in _ALIKE and len(set(node.input[:2])) == 2
    if own and all(node.input[:2]):
        yield f"inputs of {node.op_type} swapped", lambda: _swap(node.input)
    if len(node.output) > 1 and all(node.output[:2]):
        yield f"outputs of {node.op_type} swapped", lambda: _swap(node.output)
    for attribute in node.attribute:
        where = f"{attribute.name} of {node.op_type}"
        match attribute.type:
            case AttributeProto.INT if attribute.name not in ("to", "num_scan_inputs"):
                yield f"{where} off by one", lambda one=attribute: _add_one(one)
            case AttributeProto.INTS if len(set(attribute.ints)) > 1:
                yield f"{where} in reverse", lambda one=attribute: _reverse(one)
            case AttributeProto.TENSOR:
                yield from _of_tensor(attribute.t)
    if node.op_type == "If":
        yield "branches swapped", lambda: _swap_branches(node)
    for inner in scoping.inner_nodes(node):
        yield from _of_node(inner)


def _of_tensor(tensor: TensorProto) -> Iterator[Change]:
    array = numpy_helper.to_array(tensor)
    if array.size and array.dtype.kind in "if":
        yield f"a number of {array.dtype} changed", lambda: _change_number(tensor)


def _become(node: NodeProto, op: str) -> None:
    node.op_type = op
    if op == "Identity":
        del node.attribute[:]


def _swap(names: object) -> None:
    names[0], names[1] = names[1], names[0]  # type: ignore[index]


def _add_one(attribute: AttributeProto) -> None:
    attribute.i = 1 - attribute.i if attribute.i in (0, 1) else attribute.i + 1


def _reverse(attribute: AttributeProto) -> None:
    attribute.ints[:] = list(attribute.ints)[::-1]


def _swap_branches(node: NodeProto) -> None:
    first, second = node.attribute
    first.name, second.name = second.name, first.name


def _change_number(tensor: TensorProto) -> None:
    array = numpy_helper.to_array(tensor).copy()
    flat = array.reshape(-1)
    flat[-1] = flat[-1] + 1 if array.dtype.kind == "i" else flat[-1] * 1.125 + 0.0625
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
