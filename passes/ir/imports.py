"""The import of onnxruntime's own domain."""

from __future__ import annotations

from onnx import ModelProto, OperatorSetIdProto

from passes.ir import scope as scoping

#: A domain of which there is one version, known to onnxruntime without an import.
CONTRIB = "com.microsoft"
_ONLY_VERSION = 1


def all_imports(model: ModelProto) -> list[OperatorSetIdProto]:
    """The opsets that a model imports, and those that its functions do."""
    return [*model.opset_import, *(one for each in model.functions for one in each.opset_import)]


def import_contrib(model: ModelProto) -> bool:
    """Add the import that operators of the main graph, or of its bodies, lack; whether they do."""
    if any(entry.domain == CONTRIB for entry in model.opset_import):
        return False
    graphs = scoping.graphs_below(model.graph)
    if not any(node.domain == CONTRIB for graph in graphs for node in graph.node):
        return False
    model.opset_import.add(domain=CONTRIB, version=_ONLY_VERSION)
    return True
