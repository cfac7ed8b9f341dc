"""Writes `docs/rules.md` from the rules' docstrings: `python -m passes.document docs/rules.md`."""

from __future__ import annotations

import sys
from pathlib import Path

from passes.explanation import SESSION_CODES
from passes.pipelines import PIPELINES
from passes.plugins import load_rules
from passes.rule import Rule

_HEAD = """# The rules

Made by `python -m passes.document docs/rules.md` from the rules' docstrings; `python -m passes
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
        shown = "; then ".join(
            ", ".join(f"`{rule}`" for rule in stage.rules)
            + (" (for a Scan-8, or with `--opset`)" if stage.as_needed else "")
            for stage in stages
        )
        lines.append(f"| `{name}` | {shown} |")
    return "\n".join(lines)


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
