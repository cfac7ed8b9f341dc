"""The page of onnxruntime's releases, made of `passes/onnxruntime/releases.py`."""

from __future__ import annotations

from passes.choices import DEFAULT_OPSET
from passes.onnxruntime.releases import RELEASES, release_of

_PAGE = """# onnxruntime releases, opsets and IR versions

What each release loads was measured with a model of one node at each opset and each IR version. A
patch release loads what its minor release does. `--for onnxruntime==1.22` converts a model to the
newest opset and IR version of that row; the default opset, {default}, loads in every release since
1.{first}.

| onnxruntime | newest opset | newest IR version |
|---|---|---|
{rows}

Releases since 1.{limited} load opsets beyond {last}, but none has kernels of opset {next} or newer
for {operators}. `--for` takes a model with one of these operators to opset {last} at most.
"""


def page() -> str:
    """The page in Markdown."""
    operators = sorted(_without_kernel())
    last = release_of("onnxruntime==1.32").opset_for(operators)
    rows = [
        f"| 1.{one.minor} | {one.opset} | {one.ir_version} |"
        for one in sorted(RELEASES, key=lambda one: -one.minor)
    ]
    return _PAGE.format(
        default=DEFAULT_OPSET,
        first=min(one.minor for one in RELEASES if one.opset >= DEFAULT_OPSET),
        limited=min(one.minor for one in RELEASES if one.opset > last),
        last=last,
        next=last + 1,
        operators=", ".join(operators),
        rows="\n".join(rows),
    )


def _without_kernel() -> set[str]:
    """The operators that hold a release back from the newest opset that it loads."""
    import onnx

    newest = RELEASES[-1]
    names = {schema.name for schema in onnx.defs.get_all_schemas() if schema.domain == ""}
    return {name for name in names if newest.opset_for([name]) < newest.opset}
