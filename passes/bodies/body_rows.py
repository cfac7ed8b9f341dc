"""A body as a model of its own, in the opset that the model is converted to."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import starmap

from onnx import FunctionProto, GraphProto, ModelProto, TypeProto, helper

from passes.analysis.integers.integers import Integers
from passes.ir import scope as scoping
from passes.ir.operators import is_onnx_domain
from passes.ir.versions import FREE_INITIALIZERS
from passes.loops.form import Scanned
from passes.rule import Site
from passes.types.value_types import dims_of, elem_type_of, tensor_type
from passes.vectorize import Rows, prepare


def rows_of(site: Site, body: GraphProto, functions: Sequence[FunctionProto] = ()) -> Rows:
    """A body of the site's node, made ready for vectorising, with what is known of the values that
    it captures. These functions are inlined; other ones stay calls."""
    lists = (site.model.proto.opset_import, *(function.opset_import for function in functions))
    entries = [entry for entries in lists for entry in entries if not is_onnx_domain(entry.domain)]
    versions = {entry.domain: entry.version for entry in reversed(entries)} | {"": site.target}
    model = ModelProto(
        # up to IR 3, inference does not look at initializers that are no inputs
        ir_version=max(site.model.proto.ir_version, FREE_INITIALIZERS),
        opset_import=starmap(helper.make_opsetid, versions.items()),
        functions=functions,
    )
    captured = {name: site.outer(name) for name in scoping.captures(body)}
    return prepare(body, captured, model, site.names, site.is_visible)


def measured_type(site: Site, name: str) -> TypeProto | None:
    """The type of an outer value, with the sizes that follow from how it is computed."""
    known = site.type_of(name)
    dims = dims_of(known)
    if dims is None:
        return known
    integers = Integers(site)
    sizes = [integers.size(name, axis) for axis in range(len(dims))]
    return tensor_type(
        elem_type_of(known),
        tuple(
            dim if size is None or size.number is None else size.number
            for dim, size in zip(dims, sizes, strict=True)
        ),
    )


def element_type(site: Site, scanned: Scanned) -> TypeProto | None:
    """The type of what one iteration reads of a scanned tensor."""
    known = measured_type(site, scanned.tensor)
    dims = dims_of(known)
    if dims is None or not -len(dims) <= scanned.axis < len(dims):
        return None
    axis = scanned.axis % len(dims)
    return tensor_type(elem_type_of(known), (*dims[:axis], *dims[axis + 1 :]))
