"""Which attributes of a model-local function every caller gives."""

from __future__ import annotations

from onnx import FunctionProto, ModelProto

from passes.ir import scope as scoping
from passes.ir.operators import called_key, function_key
from passes.rule import Site

_Given = dict[tuple[str, str, str], set[str]]


def is_given(site: Site, attribute: str) -> bool:
    """Whether an attribute of the function that `site` lies in always has a value.

    It has if the function has a default for it, or if each of its calls gives it.
    """
    *_, outermost = site.scope.chain()
    function = outermost.owner
    if not isinstance(function, FunctionProto):
        return False
    if any(one.name == attribute for one in function.attribute_proto):
        return True
    given = site.memory.once("given attributes", lambda: _given_by_all(site.model.proto))
    return attribute in given.get(function_key(function), set())


def _given_by_all(model: ModelProto) -> _Given:
    """The attributes that all calls of a function set, by domain, name and overload.

    What a call only passes on from a function around it may be missing there.
    """
    found: _Given = {function_key(one): set() for one in model.functions}
    called: set[tuple[str, str, str]] = set()
    for place in scoping.walk_model(model):
        node = place.node
        key = called_key(node)
        if key not in found:
            continue
        given = {one.name for one in node.attribute if not one.ref_attr_name}
        found[key] = found[key] & given if key in called else given
        called.add(key)
    return found
