"""Cuts small models out of a model: one for each kind of finding at a node."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import onnx
from onnx import GraphProto, ModelProto, ValueInfoProto

from passes.errors import PassesError
from passes.ir import scope as scoping
from passes.ir.boundary import Outer, close
from passes.ir.constants import Constants
from passes.ir.model import Model
from passes.ir.places import imports_of
from passes.ir.protos import copied
from passes.ir.scope import Place, Scope
from passes.targets.findings import TargetFindings

#: Bytes of a constant that is kept as one; a larger one becomes an input.
_SMALL = 1 << 16


class CannotWriteCulprits(PassesError):
    """The folder of culprits cannot be written."""


def culprits(model: Model, checked: TargetFindings) -> Iterator[tuple[str, ModelProto]]:
    """For the first node of each kind of finding, a file name and a model of that node alone: what
    it reads are inputs, or constants where they are small. One whose values have unknown types is
    left out."""
    first: dict[tuple[str, ...], str] = {}
    for finding in checked.findings:
        first.setdefault(finding.kind, finding.path)
    wanted = {path: kind for kind, path in first.items()}
    number = 0
    for place in scoping.walk_model(model.proto):
        if place.path in wanted:
            kind = wanted.pop(place.path)
            found = _alone(model, place)
            if found is not None:
                name = "-".join(re.sub(r"\W+", "-", part) for part in (kind[0], kind[1]) if part)
                number += 1
                yield f"{name}-{number}.onnx", found


def save(model: Model, checked: TargetFindings, folder: Path) -> list[Path]:
    """Write them to a folder, which is made.

    Raises:
        CannotWriteCulprits: that cannot be.
    """
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, found in culprits(model, checked):
            (folder / name).write_bytes(found.SerializeToString())
            written.append(folder / name)
    except OSError as error:
        raise CannotWriteCulprits(f"{folder}: cannot be written ({error.strerror})") from error
    return written


def _alone(model: Model, place: Place) -> ModelProto | None:
    """A model of a node, which onnx's checker takes; None where there is none."""
    node = copied(place.node)
    graph = GraphProto(name="culprit", node=[node])
    outer = {name: _outer(model, place.scope, name) for name in scoping.free_names(node)}
    made = {name: model.types.of(place.scope, name) for name in filter(None, node.output)}
    if None in outer.values() or None in made.values():
        return None
    close(graph, outer)
    graph.output.extend(ValueInfoProto(name=name, type=known) for name, known in made.items())
    alone = ModelProto(
        ir_version=model.proto.ir_version,
        graph=graph,
        producer_name="passes",
        opset_import=imports_of(model.proto, place.scope.outermost.owner),
        functions=model.proto.functions,
    )
    try:
        onnx.checker.check_model(alone)
    except onnx.checker.ValidationError:
        return None
    return alone


def _outer(model: Model, scope: Scope, name: str) -> Outer:
    tensor = Constants(model, scope).tensor(name)
    if tensor is not None and tensor.ByteSize() <= _SMALL and not tensor.external_data:
        return tensor
    return model.types.of(scope, name)
