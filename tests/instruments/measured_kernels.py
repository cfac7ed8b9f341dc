"""Writes the operators of the profile `onnxruntime` from the kernels of the release installed.

    python -m tests.instruments.measured_kernels >> passes/targets/profiles/onnxruntime.toml

An operator is taken in the versions that a CPU kernel is registered for, and in those whose
function body onnxruntime writes out instead. It inserts casts around what has a kernel for float,
but none for float16.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import onnx.defs
from onnx.defs import OpSchema
from onnxruntime.capi import onnxruntime_pybind11_state as state

from passes.onnxruntime.releases import RELEASES

_DOMAINS = ("", "ai.onnx.ml", "com.microsoft")
_WITH_BODIES = ("If", "Loop", "Scan")
_OPEN = 2**31 - 1
#: What is refused although there is a kernel or a body: what loading the tests of onnx showed.
_LAYOUT = "attributes = {layout = [0]}"
_REFUSED = {"SwiGLU": None, "RNN": _LAYOUT, "GRU": _LAYOUT, "LSTM": _LAYOUT}


def kernels() -> dict[tuple[str, str], list[Any]]:
    """The CPU kernels, by domain and operator."""
    found: dict[tuple[str, str], list[Any]] = {}
    for kernel in state.get_all_opkernel_def():
        domain = "" if kernel.domain == "ai.onnx" else kernel.domain
        if kernel.provider == "CPUExecutionProvider" and domain in _DOMAINS:
            found.setdefault((domain, kernel.op_name), []).append(kernel)
    return found


def bodies(name: str, schemas: Iterable[OpSchema]) -> list[int]:
    """The versions of an operator that are written out as functions, of nodes with kernels."""
    return [
        schema.since_version
        for schema in schemas
        if (schema.has_function or schema.has_context_dependent_function)
        and RELEASES[-1].opset_for([name]) >= schema.since_version
    ]


def types_of(found: Iterable[Any], schemas: Iterable[OpSchema]) -> list[str]:
    """The element types of the first input, or output, that some kernel has; none if any is."""
    newest = max(schemas, key=lambda schema: int(schema.since_version))
    first = [*newest.inputs, *newest.outputs][0].type_str
    types = {one for kernel in found for one in kernel.type_constraints.get(first, ())}
    if not types or any(not one.startswith("tensor(") for one in types):
        return []
    names = {one[len("tensor(") : -1] for one in types}
    return sorted(names | ({"float16"} if "float" in names else set()))


def lines() -> Iterator[str]:
    """The operators, a line for each."""
    schemas: dict[tuple[str, str], list[OpSchema]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        schemas.setdefault((schema.domain, schema.name), []).append(schema)
    registered = kernels()
    for domain, name in sorted({*registered, *(key for key in schemas if key[0] in _DOMAINS[:2])}):
        known, found = schemas.get((domain, name), []), registered.get((domain, name), [])
        ranges = {tuple(kernel.version_range) for kernel in found}
        versions = [[low] if high == _OPEN else [low, high] for low, high in sorted(ranges)]
        covered = {one for low, *high in versions for one in range(low, (high or [low])[0] + 1)}
        written_out = bodies(name, known)
        versions += [[one] for one in written_out if one not in covered]
        limit = _REFUSED.get(name, "")
        if not versions or limit is None or name in _WITH_BODIES or not (domain or known):
            continue
        facts = [f'domain = "{domain}"'] if domain else []
        facts += [f"versions = {sorted(versions)}"] if known else []
        types = types_of(found, known) if known and not written_out else []
        facts += [f"types = {types}".replace("'", '"')] if types else []
        facts += [limit] if limit else []
        key = f'"{domain}.{name}"' if domain else name
        yield f"{key} = {{{', '.join(facts)}}}"


if __name__ == "__main__":
    print("\n".join(lines()))
