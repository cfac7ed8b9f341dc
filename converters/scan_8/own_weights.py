"""Moves weights that only the body of one Scan-8 reads into it.

onnxruntime packs the weights of a body only where they are defined in the body or right around the
loop. In the branch of an If, or in a loop over the batch, the loop would be one level deeper,
which costs up to half of the speed. And each value that a body captures costs some time in every
iteration, up to a sixth in a small cell.
"""

from __future__ import annotations

from dataclasses import replace

from onnx import GraphProto, TensorProto

from passes.converters.scan_8.batched_scan import BatchedScan
from passes.ir import scope as scoping
from passes.ir.external_data import byte_size
from passes.ir.protos import copied, named
from passes.ir.versions import FREE_INITIALIZERS
from passes.rule import Site

_SMALL = 4096  # bytes; packing less than this gains nothing


def with_own_weights(site: Site, scan: BatchedScan) -> BatchedScan | None:
    """The Scan with the weights that it captures in its body.

    None where a large one cannot move: another node reads it, too, a caller may override it, its
    data is external, or it is defined further out.
    """
    weights = {name: _weight(site, name) for name in scoping.captures(scan.body)}
    own = {name: one for name, one in weights.items() if one is not None and _is_own(site, name)}
    if any(one is not None and name not in own and _is_large(one) for name, one in weights.items()):
        return None
    names = {name: site.fresh(name) for name in own}
    body = copied(scan.body)
    scoping.rename_captures(body, names)
    body.initializer.extend(named(tensor, names[name]) for name, tensor in own.items())
    return replace(scan, body=body)


def _weight(site: Site, name: str) -> TensorProto | None:
    """Return the initializer of a captured name, in any graph around it."""
    found = (site.model.index(scope.owner).initializers.get(name) for scope in site.scope.chain())
    return next((tensor for tensor in found if tensor is not None), None)


def _is_large(tensor: TensorProto) -> bool:
    return byte_size(tensor) > _SMALL


def _is_own(site: Site, name: str) -> bool:
    """Return whether it may move: only this node reads it, and no caller can override it."""
    owner = site.scope.owner
    tensor = site.model.index(owner).initializers.get(name)
    if tensor is None or not isinstance(owner, GraphProto):
        return False
    annotated = any(annotation.tensor_name == name for annotation in owner.quantization_annotation)
    default = (
        site.model.proto.ir_version >= FREE_INITIALIZERS and name in site.model.index(owner).inputs
    )
    alone = list(site.graph.readers.get(name, ())) == [site.place.index]
    inline = tensor.data_location != TensorProto.EXTERNAL
    return alone and inline and not default and not annotated
