"""Writes `docs/opset-proofs.md` from what the tests ran: `python tests/converters/prove_steps.py`.

It runs the tests of this folder, slow ones too, and notes every step that a model took which gave
the same before and after.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import onnx
import pytest

from passes.converters import table
from passes.converters.steps import STEPS

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "opset-proofs.md"
TOLD = {
    frozenset(("onnxruntime", "reference")): "both executors",
    frozenset(("onnxruntime",)): "onnxruntime",
    frozenset(("reference",)): "reference executor",
}
HEAD = """# How the opset steps were proven

Made by `python tests/converters/prove_steps.py`, which runs the tests under `tests/converters`.

A step is proven where a model that takes it was run in the old version and converted, with equal
answers: in onnxruntime, in the reference executor, or in both. onnxruntime loads models up to
opset 26, so steps beyond it have the reference executor alone. What the steps do stands in
[opset-steps.md](opset-steps.md).

The {opset} steps up to opset {newest}: {counts}.

| op | version | proven in |
|---|---|---|
"""


def document(proven: dict[tuple[str, int], set[str]]) -> str:
    """The page: a row for each step."""
    how = {key: told(key, proven.get(key, set())) for key in STEPS}
    counts = Counter(text.partition(":")[0] for text in how.values())
    listed = ", ".join(f"{count} in {text}" for text, count in counts.most_common())
    listed = listed.replace("in not run", "not run")
    newest = onnx.defs.onnx_opset_version()
    rows = [f"| {op} | {version} | {how[op, version]} |\n" for op, version in sorted(STEPS)]
    return HEAD.format(opset=len(STEPS), newest=newest, counts=listed) + "".join(rows)


def told(key: tuple[str, int], executors: set[str]) -> str:
    """How a step was proven, or why it could not be run."""
    if executors:
        return TOLD[frozenset(executors)]
    op, version = key
    schema = onnx.defs.get_schema(op, version)
    if schema.deprecated:
        return "not run: the op is deprecated in this version; only documents were compared"
    older = onnx.defs.get_schema(op, version - 1).since_version
    return (
        f"not run: no executor has both {op}-{older} and {op}-{version}; "
        "only documents were compared"
    )


def main() -> int:
    """Run the tests, then write the page."""
    assert table.FAMILIES
    sys.path.insert(0, str(HERE))
    status = pytest.main(["-q", "--slow", "-p", "no:cacheprovider", "-p", "no:xdist", str(HERE)])
    if status:
        return int(status)
    from steps_taken import PROVEN

    PAGE.write_text(document(PROVEN), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
