"""The rule `inline-function`: the call of a model-local function becomes its body."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from onnx import FunctionProto, NodeProto, defs

from passes.ir import scope as scoping
from passes.ir.operators import FunctionKey, called_key, function_key, is_onnx_domain, op_of
from passes.ir.places import calls
from passes.ir.scope import Owner, function_label
from passes.rule import Edit, NothingToDo, Site, Slot, register
from passes.rules.inline_function.chosen import chosen, nodes_after
from passes.writing.function_body import FunctionBody

_CHOSEN: Slot[Mapping[FunctionKey, FunctionProto]] = Slot()
_MORE: Slot[int] = Slot()


def considers(node: NodeProto, opset: int, target: int) -> bool:
    """Return whether a node may call a function: onnx has no such operator."""
    return not is_onnx_domain(node.domain) or not defs.has(op_of(node))


@register("inline-function", considers=considers)
def inline_function(site: Site) -> Edit:
    """Replace the call of a model-local function by its body.

    Before:

        y = my.scale <by = 2.0> (x)

        my.scale <by> (a) => (b) { f = Constant <value_float = @by> () b = Mul (a, f) }

    After:

        y/f = Constant <value_float = 2.0> ()
        y = Mul (x, y/f)

    Values of the body get unique names; an attribute that neither the call nor a default of the
    function gives is left out. Functions that are called no more are dropped.

    Refuses:
    - `left-out`: the body needs an input or an attribute that the call leaves out
    - `attribute-reference`: callers of the function around may leave out an attribute that the call
      passes on, and the function has a default for it
    - `opset-differs`: an operator of the body is another one in the opset of the caller
    - `too-many-nodes`: all functions together would take more nodes than are allowed
    """
    gone = site.memory.once(_CHOSEN, lambda: chosen(site.model.proto, site.options))
    caller = site.scope.outermost.owner
    function = gone.get(called_key(site.node))
    if function is None or _goes(caller, gone):
        raise NothingToDo
    _check_size(site, gone)
    _check_opsets(site, function, caller)
    defaults = {one.name: one for one in function.attribute_proto}
    _check_references(site, defaults.keys(), caller)
    body = FunctionBody(site.node, function, site.fresh, defaults)
    nodes = body.nodes()
    _check_left_out(site, function, nodes)
    values = tuple(body.value_info())
    return Edit(tuple(nodes), value_info=values, note=f"the body of {function_label(function)}")


def _goes(owner: Owner, gone: Mapping[FunctionKey, FunctionProto]) -> bool:
    """Return whether nothing will call the function that a site lies in."""
    return isinstance(owner, FunctionProto) and function_key(owner) in gone


def _check_size(site: Site, gone: Mapping[FunctionKey, FunctionProto]) -> None:
    model, most = site.model.proto, site.options.max_nodes
    after = site.memory.once(_MORE, lambda: nodes_after(model, gone) - nodes_after(model, {}))
    if after > most:
        raise site.refused(
            "too-many-nodes",
            f"with its functions inlined the model has {after} nodes more, {most} are allowed",
        )


def _check_opsets(site: Site, function: FunctionProto, caller: Owner) -> None:
    around = caller if isinstance(caller, FunctionProto) else None
    versions = {
        domain: (site.model.opset(function, domain), site.model.opset(around, domain))
        for domain in {domain for domain, _, _ in calls(function)}
    }
    if all(inner == outer for inner, outer in versions.values()):
        return
    functions = set(map(function_key, site.model.proto.functions))
    for domain, name, overload in sorted(calls(function)):
        inner, outer = versions[domain]
        if inner == outer or (domain, name, overload) in functions:
            continue
        if _since(name, inner, domain) != (_since(name, outer, domain) or -1):
            raise site.refused(
                "opset-differs",
                f"{function_label(function)} imports version {inner} of {domain or 'ai.onnx'}, "
                f"its caller {outer}, and {name} is not known to be the same in both",
            )


def _since(name: str, opset: int, domain: str) -> int:
    """The version of an operator at an opset, 0 where onnx knows none."""
    known = defs.has(name, opset, domain)
    return defs.get_schema(name, opset, domain).since_version if known else 0


def _check_references(site: Site, defaults: Iterable[str], caller: Owner) -> None:
    """See that a default of the function is not lost where the call hands an attribute on."""
    if not isinstance(caller, FunctionProto):
        return
    given = {one.name for one in caller.attribute_proto}
    for attribute in site.node.attribute:
        reference = attribute.ref_attr_name
        if reference and reference not in given and attribute.name in defaults:
            raise site.refused(
                "attribute-reference",
                f"callers of {function_label(caller)} may leave out {reference!r}, for which "
                f"{op_of(site.node)} has a default",
            )


def _check_left_out(site: Site, function: FunctionProto, nodes: Iterable[NodeProto]) -> None:
    """See that the nodes have what their operators need, where the call leaves something out."""
    call, label = site.node, function_label(function)
    given = {one.name for one in call.attribute}
    complete = len(call.input) == len(function.input) and all(call.input)
    if complete and given.issuperset(function.attribute):
        return
    lacking = [what for node in nodes for what in _lacking(node, site.opset)]
    if lacking:
        what = f"the call leaves out what {label} needs: {lacking[0]}"
        raise site.refused("left-out", what)


def _lacking(node: NodeProto, opset: int) -> Iterator[str]:
    """Yield what a node, or one in its bodies, requires and lacks."""
    op = op_of(node)
    if is_onnx_domain(node.domain) and defs.has(op, opset):
        schema = defs.get_schema(op, opset)
        for taken, name in zip(schema.inputs, node.input, strict=False):
            if not name and taken.option == defs.OpSchema.FormalParameterOption.Single:
                yield f"{op} has no input {taken.name!r}"
        given = {one.name for one in node.attribute}
        required = {name for name, one in schema.attributes.items() if one.required}
        if not given >= required or (op == "Constant" and not given):
            yield f"{op} has no attribute {min(required - given, default='value')!r}"
    for _, graph in scoping.subgraphs(node):
        if not all(scoping.output_names(graph)):
            yield f"a body of {op} gives it back"
        for inner in graph.node:
            yield from _lacking(inner, opset)
