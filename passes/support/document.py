"""`python -m passes.support.document docs/operators.md`: writes it from the tables of the tool."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from passes.support.reading import known_operators
from passes.support.text import answer, cells_of

_HEAD = """# Operators

Made by `python -m passes.support.document docs/operators.md` from the tables of this tool.
`python -m passes operators NAME` shows all that is known of one operator: what it is, its versions
and types, and where each part of this tool treats it. To add one:
[a new operator](../CONTRIBUTING.md#a-new-operator).

The columns are about the newest version of each operator, or the last one before it was deprecated:

- *up*, *down*: its nodes are converted to every newer opset, and to every older one from 7 on,
  unless a node uses what an adapter refuses ([the steps](opset-steps.md)).
- *safe*: it fails on no values of the right types and shapes, so it may run where the original
  does not.
- *exact*: it rounds nothing.
- *batches*: it runs for all rows, or all iterations, at once. The upgrade of a Scan-8,
  `batch-inputs` and `dissolve-map` need that of each operator in a body.
- *streams*: `stream` takes it where it reads frames.
- *executes*: the reference executor runs it, so rewrites of it are verified without onnxruntime.
- *proves*: `prove` has a model of it for all sizes; *drawn*: at drawn sizes. Of others it assumes
  that equal inputs give equal outputs, and at drawn sizes their kernels or functions are tried.
- *folds*: constant integers are computed before the model runs; *integers*: sums of sizes are
  followed through it; *sizes*: the sizes of its output follow from those of its inputs.
- *targets*: how many [targets](targets.md) take some of its nodes; the
  [last table](#targets) shows which.
"""
_TARGETS = """The targets that take some nodes of the operator, in the version of the first table.
Which nodes depends on types, attributes and constants: `passes check --target NAME` tells it of a
model."""


def document() -> str:
    """All operators, and the targets that take them, as Markdown."""
    known = known_operators().operators
    targets = [at.target for at in known[0].targets]
    taken = [[one.name, *(answer(not at.refusal) for at in one.targets)] for one in known]
    parts = [
        _HEAD.rstrip(),
        _table(
            ["operator", *cells_of(known[0])],
            ([one.name, *cells_of(one).values()] for one in known),
        ),
        "## Targets",
        _TARGETS,
        _table(["operator", *targets], taken),
    ]
    return "\n\n".join(parts) + "\n"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(document(), encoding="utf-8")
