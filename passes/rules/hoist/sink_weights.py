"""The rule `sink-weights`: weights move into the branch or body whose nodes read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from onnx import GraphProto, NodeProto, TensorProto

from passes.ir import scope as scoping
from passes.ir.protos import copied, named
from passes.ir.versions import FREE_INITIALIZERS
from passes.onnxruntime.packing import counts, read_too_far
from passes.rule import Edit, NothingToDo, Site, register


def considers(node: NodeProto, opset: int, target: int) -> bool:
    """Return whether a node has bodies."""
    return scoping.holds_graphs(node)


@register("sink-weights", considers=considers, optional=True)
def sink_weights(site: Site) -> Edit:
    """Move large weights into the branch or body that alone reads them, for onnxruntime.

    Before:

        <float[256,256] W>
        h = If (some) <then_branch = run () => (float[256] hT) {
            hT = Scan <body = step (float[256] h, float[256] x_t) => (float[256] t) {
                a = MatMul (h, W)
                t = Add (a, x_t)
            }> (h0, x)
        }, ...>

    After:

        h = If (some) <then_branch = run () => (float[256] hT) <float[256,256] W> {
            hT = Scan <body = step (float[256] h, float[256] x_t) => (float[256] t) {
                a = MatMul (h, W)
                t = Add (a, x_t)
            }> (h0, x)
        }, ...>

    onnxruntime rearranges the weights of a MatMul, Gemm or recurrent operator when it loads a
    model, if they are initializers of its graph or of the graph around that one, and those of a
    Conv, with its bias, if they are in its own graph. Weights further out move in by as many
    levels as that takes. Those that another node or branch reads too stay, as do those that a
    caller may override, that are quantized, whose data is external, or, but for a Conv, that take
    up to 4 KB.
    """
    if isinstance(site.scope.owner, GraphProto) and _may_hold_initializers(site):
        return _sunk(site, site.scope.owner)
    raise NothingToDo


def _may_hold_initializers(site: Site) -> bool:
    return not site.in_function and site.model.proto.ir_version >= FREE_INITIALIZERS


def _sunk(site: Site, owner: GraphProto) -> Edit:
    node = copied(site.node)
    moved = 0
    for attribute, graph in scoping.subgraphs(node):
        others = [other for name, other in scoping.subgraphs(node) if name != attribute]
        elsewhere = {*node.input, *(name for other in others for name in scoping.captures(other))}
        elsewhere |= scoping.defined(graph)
        too_far = read_too_far(graph, 1)
        weights = list(
            _movable(site, owner, {name: too_far[name] for name in {*too_far} - elsewhere})
        )
        names = {tensor.name: site.fresh(tensor.name) for tensor in weights}
        scoping.rename_captures(graph, names)
        graph.initializer.extend(named(tensor, names[tensor.name]) for tensor in weights)
        moved += len(weights)
    if not moved:
        raise NothingToDo
    return Edit((node,), note=f"{moved} weight{'s' * (moved != 1)} moved")


def _movable(site: Site, owner: GraphProto, names: Mapping[str, int]) -> Iterator[TensorProto]:
    """The initializers of a graph that only the site's node reads, by name."""
    held = {annotation.tensor_name for annotation in owner.quantization_annotation}
    if site.scope.outer is None:
        held.update(site.model.index(owner).inputs)
    for name in sorted({*names} - held):
        tensor = site.model.index(owner).initializers.get(name)
        alone = list(site.graph.readers.get(name, ())) == [site.place.index]
        inline = tensor is not None and tensor.data_location != TensorProto.EXTERNAL
        if tensor is not None and alone and inline and counts(tensor, names[name]):
            yield tensor
