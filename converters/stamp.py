"""Sets the opset imports and the IR version of a model once every node is converted, and finds
types of its own inputs and outputs that an older opset lacks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from onnx import FunctionProto, ModelProto, OperatorSetIdProto, TypeProto, helper

from passes.ir import scope as scoping
from passes.ir.operators import is_onnx_domain
from passes.ir.places import all_imports
from passes.ir.versions import FREE_INITIALIZERS


def ir_version_for(opset: int) -> int:
    """The smallest IR version that a model of this opset fits in (`onnx.helper.VERSION_TABLE`).

    Raises:
        ValueError: the installed onnx does not know the opset.
    """
    imports = [helper.make_opsetid("", opset)]
    try:
        version: int = helper.find_min_ir_version_for(imports)
    except ValueError as error:
        raise ValueError(f"the installed onnx does not know opset {opset}") from error
    return version


def stamp(model: ModelProto, target: int) -> None:
    """Declare, in place, that `model` and its functions are written in opset `target`.

    Imports of the standard domain are set, in both spellings; other domains keep their version.
    The IR version is raised where it must be, never lowered. From IR 4 on an input of the main
    graph that names an initializer is a default that callers may override, and stays.

    Raises:
        ValueError: the installed onnx does not know the opset.
    """
    _set(model.opset_import, target)
    for function in model.functions:
        _set(function.opset_import, target)
    declare_ir_version(model, max(model.ir_version, ir_version_for(target)))


def declare_ir_version(model: ModelProto, version: int) -> None:
    """Give a model an IR version, in place.

    On leaving IR 3, inputs that name an initializer are dropped, in bodies too: there they were
    constants. On the way to it they are added: there every initializer must be an input.
    """
    for _, owner in scoping.owners(model):
        if version < FREE_INITIALIZERS <= model.ir_version:
            scoping.list_initializers(owner)
        elif model.ir_version < FREE_INITIALIZERS <= version:
            for graph in scoping.graphs_below(owner):
                if not isinstance(graph, FunctionProto):
                    scoping.drop_constant_inputs(graph)
    model.ir_version = version


def newer_domains(model: ModelProto, opset: int) -> Iterator[str]:
    """A sentence for each domain of ONNX's own beside the standard one that a model imports in a
    version that came later than `opset`: it keeps it, for nothing converts its operators."""
    known: dict[str, int] = {}
    for _, _, standard, *others in helper.VERSION_TABLE:
        if standard <= opset:
            known.update(zip(("ai.onnx.ml", "ai.onnx.training"), others, strict=False))
    for domain, version in sorted({(one.domain, one.version) for one in all_imports(model)}):
        if version > known.get(domain, version):
            yield f"{domain} stays at version {version}, opset {opset} goes with {known[domain]}"


def _set(imports: Iterable[OperatorSetIdProto], target: int) -> None:
    for entry in imports:
        if is_onnx_domain(entry.domain):
            entry.version = target


_SEQUENCES, _OPTIONALS = 11, 15


def limits(model: ModelProto, target: int) -> list[str]:
    """Sentences on the inputs and outputs of the main graph that `target` cannot declare."""
    found = []
    for what, values in (("input", model.graph.input), ("output", model.graph.output)):
        for value in values:
            for kind, opset in _needed(value.type):
                if target < opset:
                    found.append(
                        f"the {what} {value.name!r} is {kind}, which came with opset {opset}"
                    )
                    break
    return found


def _needed(type_: TypeProto) -> Iterator[tuple[str, int]]:
    """Yield the kinds of a type, and the first opset with operators for it; of nested ones the
    newest first."""
    if type_.HasField("optional_type"):
        yield "an optional", _OPTIONALS
        yield from _needed(type_.optional_type.elem_type)
    if type_.HasField("sequence_type"):
        yield "a sequence", _SEQUENCES
        yield from _needed(type_.sequence_type.elem_type)
