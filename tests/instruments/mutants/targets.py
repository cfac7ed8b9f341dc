"""Which golden models try a rule, and which modules it is written in."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from passes.rule import load_rules
from tests.instruments.mutants.seeded import path_of

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "golden_models"

#: Folders of golden models, by the rule that they show.
RULES = {
    "scan-8": "upgrade",
    "lower-scan": "lower",
    "raise-loop": "raise",
    "count-loop": "raise",
    "bound-loop": "bound-loop",
    "carry-captures": "carry-captures",
    "expand-cell": "expand",
    "forward-cell": "forward-cell",
    "unroll": "unroll",
    "unroll-partial": "unroll-partial",
    "peel": "peel",
    "hoist-constants": "hoist",
    "fold-constants": "hoist",
    "hoist-invariants": "hoist-invariants",
    "batch-inputs": "batch-inputs",
    "batch-outputs": "batch-outputs",
    "dissolve-map": "dissolve-map",
    "flatten-scan": "flatten-scan",
    "collect-sequence": "collect-sequence",
    "drop-sequences": "drop-sequences",
    "recognize-cell": "recognize-cell",
    "expand-attention": "expand-attention",
    "recognize-attention": "recognize-attention",
    "regroup-sum": "regroup-sum",
    "reroll": "reroll",
    "run-in-blocks": "run-in-blocks",
    "split-state": "split-state",
    "prune-loop": "simplify",
    "prune-if": "simplify",
    "inline-if": "simplify",
    "drop-empty-branch": "simplify",
    "drop-copies": "simplify",
    "declare-shapes": "declare-shapes",
    "drop-reshapes": "simplify",
    "inline-loop": "simplify",
    "select-branches": "select-branches",
    "share-subexpressions": "simplify",
}
#: The command that is tried as rules are; it is none.
STREAM = "stream"
#: What rules are written in; what all of them stand on is not changed.
_ROOMS = (
    "passes.rules.",
    "passes.analysis.",
    "passes.vectorize.",
    "passes.converters.",
    "passes.writing.spelling",
)
_OPSET = {"upgrade": 21, "lower": 21}


@dataclass(frozen=True)
class Target:
    """A rule, the modules it is written in, and the models that try it."""

    rule: str
    pipeline: str
    modules: tuple[str, ...]
    models: tuple[Path, ...]

    @property
    def opset(self) -> int | None:
        """The opset to run the pipeline at."""
        return _OPSET.get(self.pipeline)

    @property
    def files(self) -> list[Path]:
        """The files of the modules."""
        return [path_of(module) for module in self.modules]


def target(rule: str) -> Target:
    """What tries a rule; models that it refuses are among them: it must go on refusing them."""
    pipeline, module = RULES[rule], load_rules()[rule].rewrite.__module__
    models = [path for path in GOLDEN.glob(f"{pipeline}/*.onnxtxt") if _is_tried(path)]
    return Target(rule, pipeline, tuple(_written_in(module)), tuple(sorted(models)))


def _is_tried(path: Path) -> bool:
    """Not the outcomes, nor models that are to fail where a promise is not kept: that they do
    would look like a fault that slipped through."""
    return ".after." not in path.name and "option max_trips" not in path.read_text()


def _written_in(module: str) -> list[str]:
    """A module and the rooms that it is built on."""
    found = [module]
    for name in found:
        found += [entry for entry in _imports(path_of(name)) if entry not in found]
    return found


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            for name in names:
                file = ROOT.joinpath(*name.split(".")).with_suffix(".py")
                if file.exists() and name.startswith(_ROOMS):
                    yield name
