"""The steps of the opset table as targets: the models that tests prove them with."""

from __future__ import annotations

import contextlib
import importlib
import io
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import patch

from onnx import ModelProto

from passes.commands.schedules import SCHEDULES
from tests.instruments.mutants.seeded import path_of, traced
from tests.instruments.mutants.targets import ROOT, Target
from tests.instruments.mutants.trial import apart

_TESTS = ROOT / "tests" / "converters"
_MOST = 600
_PROOF = re.compile(r"\bprove(_call)?\(")


def step_targets(folder: Path) -> Iterator[Target]:
    """A target for each file of adapters; the models are written into `folder`."""
    apart(_write_models, folder)
    for module, names in apart(_families_of, folder).items():
        models = tuple(folder / name for name in names)
        name = module.partition(".")[2]
        yield Target(f"steps of {name}", "upgrade", (module,), models)


def _write_models(folder: Path) -> None:
    """Run the tests of the steps, and keep each model that they convert."""
    import pytest

    sys.path[:0] = [str(_TESTS), str(_TESTS.parent / "verify")]
    proving = importlib.import_module("proving")
    usual: Callable[[ModelProto, int], ModelProto] = proving.converted
    known: set[bytes] = set()

    def noting(model: ModelProto, target: int) -> ModelProto:
        kept = ModelProto()
        kept.CopyFrom(model)
        kept.metadata_props.add(key="opset", value=str(target))
        content = kept.SerializeToString(deterministic=True)
        if content not in known and not _is_nested(kept):
            (folder / f"{len(known):04}.onnx").write_bytes(content)
            known.add(content)
        return usual(model, target)

    with patch.object(proving, "converted", noting), contextlib.redirect_stdout(io.StringIO()):
        pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", *_proofs()])


def _is_nested(model: ModelProto) -> bool:
    """Whether it is a model once more, with the nodes in a body or a function."""
    holders = any(node.op_type in ("If", "Loop") for node in model.graph.node)
    return holders or bool(model.functions)


def _proofs() -> list[str]:
    files = sorted(_TESTS.glob("test_*.py"))
    return [str(path) for path in files if _PROOF.search(path.read_text())]


def _families_of(folder: Path) -> dict[str, list[str]]:
    """For each file of adapters the models that run its lines, and that verification passes."""
    import onnx

    from passes.choices import Verifying
    from passes.converters.table import FAMILIES
    from passes.engine.outcome import Pass
    from passes.errors import PassesError
    from passes.rule import load_rules
    from passes.session import Session

    load_rules()
    files = {str(path_of(one.__name__)): one.__name__ for one in FAMILIES}
    found: dict[str, list[str]] = {name: [] for name in files.values()}
    paths = sorted(folder.glob("*.onnx"))
    for path in paths[:: max(1, len(paths) // _MOST)]:
        model = onnx.load(path)
        opset = int(model.metadata_props[-1].value)
        lines: dict[str, set[int]] = {}
        try:
            with traced([Path(file) for file in files], lines):
                Session([Pass(SCHEDULES["upgrade"], opset)], None).run(model)
            Session([Pass(SCHEDULES["upgrade"], opset)], Verifying("reference", 20)).run(model)
        except PassesError:
            continue
        for file in lines:
            found[files[file]].append(path.name)
    return {name: models for name, models in found.items() if models}
