"""The way from the command line to a rule is short, and leads down only."""

from __future__ import annotations

import sys
import traceback
from dataclasses import replace
from pathlib import Path

import pytest

import passes
from passes.__main__ import main
from passes.rule import RULES, Edit, Site, rule_named

#: The files on the way, from the top; one may call itself.
WAY = [
    *("__main__.py", "cli/rewriting.py", "commands/task.py", "commands/pipeline.py", "session.py"),
    *("engine/outcome.py", "engine/rewriting.py", "engine/sweep.py"),
]
MODEL = Path(__file__).parents[2] / "golden_models/upgrade/bidirectional.before.onnxtxt"


def test_twelve_calls_lead_from_main_to_a_rule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule, stacks = rule_named("scan-8"), list[traceback.StackSummary]()

    def seen(site: Site) -> Edit:
        stacks.append(traceback.extract_stack())
        return rule.rewrite(site)

    monkeypatch.setitem(RULES, "scan-8", replace(rule, rewrite=seen))
    outcome = str(tmp_path / "outcome.onnx")
    monkeypatch.setattr(
        sys, "argv", ["passes", "upgrade", str(MODEL), "-o", outcome, "--no-verify"]
    )
    with pytest.raises(SystemExit, match="0"):
        main()
    home = Path(passes.__file__).parent
    own = [Path(one.filename) for one in stacks[0] if Path(one.filename).is_relative_to(home)]
    assert len(own) <= 12
    assert list(dict.fromkeys(path.relative_to(home).as_posix() for path in own)) == WAY
