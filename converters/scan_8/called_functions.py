"""The model-local functions that a body calls, in the words of the target opset.

The functions of a model are converted for themselves, in the same round; a rule that takes a body
apart needs them at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, helper

from passes.converters.opset import considers, rewrite
from passes.ir import scope as scoping
from passes.ir.operators import called_key, function_key, is_onnx_domain
from passes.ir.protos import copied, replace_all
from passes.ir.scope import Owner, Place, Scope
from passes.rule import Edit, Site

Name = tuple[str, str, str]


def called_functions(site: Site, body: GraphProto) -> list[FunctionProto]:
    """Return the functions that `body` calls, directly or not, each at the target opset of the
    site.

    Raises:
        Refused: a node of a function cannot be converted; with the codes of the rule `opset`.
    """
    defined = {_name(scope.owner): scope for scope in _functions(site.model.proto)}
    found: dict[Name, FunctionProto] = {}
    pending = list(_calls(body))
    while pending:
        name = pending.pop()
        if name not in defined or name in found:
            continue
        found[name] = _converted(site, defined[name])
        pending += _calls(found[name])
    return list(found.values())


def _functions(model: ModelProto) -> Iterator[Scope]:
    return (scope for scope in scoping.scopes(model) if isinstance(scope.owner, FunctionProto))


def _name(owner: Owner) -> Name:
    assert isinstance(owner, FunctionProto)
    return function_key(owner)


def _calls(owner: Owner) -> Iterator[Name]:
    for graph in scoping.graphs_below(owner):
        for node in graph.node:
            yield called_key(node)


def _converted(site: Site, scope: Scope) -> FunctionProto:
    assert isinstance(scope.owner, FunctionProto)
    function = copied(scope.owner)
    _convert(replace(site, opset=site.model.opset(scope.owner)), scope, function)
    for entry in function.opset_import:
        if is_onnx_domain(entry.domain):
            entry.version = site.target
    return function


def _convert(site: Site, scope: Scope, owner: Owner) -> None:
    """Convert `owner`, the copy of what `scope` shows as it was read, bodies first."""
    nodes: list[NodeProto] = []
    constants: dict[str, TensorProto] = {}
    for index, node in enumerate(owner.node):
        for inner, (_, graph) in zip(scope.inner(index), scoping.subgraphs(node), strict=True):
            _convert(site, inner, graph)
        if not considers(node, site.opset, site.target):
            nodes.append(node)
            continue
        edit: Edit = rewrite(replace(site, place=Place(node, index, scope)))
        nodes += edit.nodes
        constants.update((tensor.name, tensor) for tensor in edit.initializers)
    if isinstance(owner, GraphProto):
        owner.initializer.extend(constants.values())
    else:
        made = constants.items()
        nodes = [helper.make_node("Constant", [], [name], value=one) for name, one in made] + nodes
    replace_all(owner.node, nodes)
