"""`python -m passes.cli.document docs/rules.md`: writes it from the rules' docstrings."""

from __future__ import annotations

import sys
from pathlib import Path

from passes.cli.explanation import SESSION_CODES
from passes.engine.pipelines import PIPELINES
from passes.engine.plugins import load_rules
from passes.engine.stage import Stage
from passes.rule import Rule

_SHOWN = 3  # so many stages that run once more are written out
_HEAD = """# The rules

Made by `python -m passes.cli.document docs/rules.md` from the rules' docstrings; `python -m passes
explain NAME` shows the same text.
"""


def document() -> str:
    """All rules, pipelines and codes, as Markdown."""
    parts = [_HEAD, _pipelines()]
    parts += [_rule(rule) for _, rule in sorted(load_rules().items())]
    codes = [f"- `{code}`: {meaning}" for code, meaning in sorted(SESSION_CODES.items())]
    parts.append("\n".join(["## Codes of every command", "", *codes]))
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _pipelines() -> str:
    lines = ["## Commands", "", "| command | stages |", "|---|---|"]
    for name, stages in PIPELINES.items():
        lines.append(f"| `{name}` | {'; then '.join(map(_stage, stages))} |")
    return "\n".join(lines)


def _stage(stage: Stage) -> str:
    """The rules of a stage, and when others follow it."""
    shown = ", ".join(f"`{rule}`" for rule in stage.rules)
    if stage.as_needed:
        shown += " (for a Scan-8, or with `--opset`)"
    if stage.then:
        again = ", ".join(_stage(one) for one in stage.then)
        if len(stage.then) > _SHOWN:
            first = stage.then[0].rules[0]
            again = f"the {len(stage.then)} stages in front of it, from `{first}` on"
        shown += f" (where they find something, once more {again})"
    return shown


def _rule(rule: Rule) -> str:
    lines = [f"## {rule.name}", ""]
    code = False
    for line in rule.documentation.splitlines():
        indented = line.startswith("    ")
        if indented != code and line.strip():
            if code:
                lines[-1:] = ["```", ""]  # the blank line goes behind the block
            else:
                lines.append("```text")
            code = indented
        lines.append(line[4:] if indented else line)
    return "\n".join([*lines, "```"] if code else lines)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(document(), encoding="utf-8")
