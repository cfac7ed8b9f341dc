"""An op that an older opset does not have, as the function body that its document gives."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from onnx import (
    FunctionProto,
    NodeProto,
    TypeProto,
    ValueInfoProto,
    checker,
    defs,
    helper,
    numpy_helper,
    shape_inference,
)

from passes.converters.writing.conversion import Conversion
from passes.converters.writing.made import Made, Noted
from passes.ir import scope as scoping
from passes.ir.constants import constant_tensor
from passes.ir.operators import is_onnx_domain, op_of
from passes.ir.protos import copied
from passes.rule import Slot
from passes.types.shape_inference import infer_shapes
from passes.types.value_types import dims_of
from passes.writing.function_body import FunctionBody
from passes.writing.spelling import content


def expand(node: NodeProto, ctx: Conversion, version: int) -> Sequence[NodeProto]:
    """Return the nodes of the function body of `version` of an op, under the names of the node.

    The nodes are of the opset that the body is written in, the oldest that there is.

    Raises:
        Refused: `no-equivalent`: the document has no body, or none for these inputs and types;
            `attribute-reference`: the body depends on an attribute that callers choose.
    """
    opset, function = _body(node, ctx, version)
    schema = defs.get_schema(op_of(node), version)
    defaults = {name: one.default_value for name, one in schema.attributes.items()}
    defaults = {name: value for name, value in defaults.items() if value.name}

    def fixed(constant: NodeProto) -> str:
        tensor = constant_tensor(constant)
        if tensor is None:
            return ""
        return ctx.value(np.asarray(numpy_helper.to_array(tensor)), constant.output[0])

    body = FunctionBody(node, function, ctx.fresh, defaults, fixed, node.domain)
    nodes = body.nodes()
    _note(nodes, ctx.made, opset)
    names = [name for one in nodes for name in one.output]
    alike = ctx.site.memory.once(_NOTED, dict)
    key = (version, function.SerializeToString(), *_surroundings(node, ctx))
    if key in alike:
        ctx.made.note(names, alike[key])
    else:
        _declare_types(nodes, ctx, opset)
        alike[key] = ctx.made.noted(names)
    return nodes


#: What was found of the values in a body, by all that it depends on.
_NOTED: Slot[dict[Hashable, Noted]] = Slot()


def _surroundings(node: NodeProto, ctx: Conversion) -> Iterator[Hashable]:
    """Yield the facts besides the body on which the types in the body of a node depend."""
    yield ctx.site.node.domain
    yield from [attribute.SerializeToString() for attribute in node.attribute]
    inputs = list(node.input)
    for name in inputs:
        known, constant = ctx.type_of(name), ctx.made.constants.get(name)
        yield inputs.index(name) if name else ""
        yield known and known.SerializeToString()
        yield None if constant is None else content(constant)
    for name in node.output:
        noted, known = ctx.made.noted([name]), ctx.site.type_of(name)
        for one in (*noted.types.values(), known):
            yield one and one.SerializeToString()


def _declare_types(nodes: Sequence[NodeProto], ctx: Conversion, opset: int) -> None:
    """Declare the types that inference finds in a whole body, where it finds more than for each
    node by itself: sizes that are computed with go from node to node."""
    computed = {name for node in nodes for name in node.output}
    outer = {name for node in nodes for name in node.input if name and name not in computed}
    constants = {name for name in outer if name in ctx.made.constants}
    types = {name: ctx.type_of(name) for name in sorted(outer - constants)}
    graph = helper.make_graph(
        nodes,
        "body",
        [ValueInfoProto(name=name, type=known) for name, known in types.items() if known],
        [],
        [numpy_helper.from_array(ctx.made.constants[name], name) for name in sorted(constants)],
    )
    imports = [helper.make_opsetid(ctx.site.node.domain, opset)]
    with suppress(
        shape_inference.InferenceError, checker.ValidationError, RuntimeError, ValueError
    ):
        found = infer_shapes(helper.make_model(graph, opset_imports=imports))
        for value in found.graph.value_info:
            if _unknown_sizes(value.type) < _unknown_sizes(ctx.type_of(value.name)):
                ctx.made.declare(value.name, value.type)


def _unknown_sizes(known: TypeProto | None) -> float:
    dims = dims_of(known)
    return math.inf if dims is None else sum(not isinstance(dim, int) for dim in dims)


def _note(nodes: Iterable[NodeProto], made: Made, opset: int) -> None:
    """Note what the nodes make, and what their bodies take."""
    for node in nodes:
        made.add(node, opset)
        for _, graph in scoping.subgraphs(node):
            made.expanded.add(node.output[0])
            for value in graph.input:
                made.declare(value.name, value.type)
            _note(graph.node, made, opset)


def _body(node: NodeProto, ctx: Conversion, version: int) -> tuple[int, FunctionProto]:
    """The body, and the opset that it is written in."""
    op = op_of(node)
    schema: Any = defs.get_schema(op, version)  # the type stubs lack its function bodies
    plain = [*schema.function_opset_versions]
    dependent = [*schema.context_dependent_function_opset_versions]
    if plain:
        opset = min(plain)
        text = schema.get_function_with_opset_version(opset)
    elif dependent:
        opset = min(dependent)
        for attribute in node.attribute:
            ctx.attribute(node, attribute.name)  # a reference has no value to build on
        types = [ctx.type_of(name) or TypeProto() for name in node.input]
        text = schema.get_context_dependent_function_with_opset_version(
            opset, _in_schema(node).SerializeToString(), [one.SerializeToString() for one in types]
        )
    else:
        text = b""
    if not text:
        what = "for such inputs and types" if dependent else "at all"
        raise ctx.refused(
            "no-equivalent",
            f"{op} came with opset {version}, and its document has no function body {what}",
        )
    body = FunctionProto.FromString(text)
    opsets = [one.version for one in body.opset_import if is_onnx_domain(one.domain)]
    return (opsets[0] if opsets else opset), body


def _in_schema(node: NodeProto) -> NodeProto:
    copy = copied(node)
    copy.domain = ""
    return copy
