"""`python -m passes.cli.document docs/rules.md`: writes it from the rules' docstrings."""

from __future__ import annotations

import sys
from pathlib import Path

from passes.cli.explanation import LETTERS, LOOP_PARTS, SESSION_CODES
from passes.commands.schedules import SCHEDULES
from passes.engine.schedules import Phase
from passes.rule import Rule, load_rules

_HEAD = """# The rules

Made by `python -m passes.cli.document docs/rules.md` from the rules' docstrings; `python -m passes
explain NAME` shows the same text.
"""
_ORDER = """\
A phase is a rule, or a few that run together until none of them finds anything to do; what a rule
left unread is dropped behind each round. Of the phases of a command, the first that may find
something to do runs next, until none does: what stands in front sees each change first. All but
`upgrade` and `hoist-invariants` begin with the upgrade where the model holds a Scan-8, or with
`--opset`. `optimize` with a target other than onnxruntime is `optimize-TARGET` here."""

_LOOPS = f"""\
The parts of loops that each rule supports, measured on the golden models.
{LETTERS}.
A letter: the rule rewrites a node of this kind that has the part. `not L` and a code: it rewrites
no Loop that has the part, and the code refuses only such loops. Empty: no golden model shows it.
Every Scan-8 has a batch. Rules without a row rewrite other nodes."""


def document() -> str:
    """All rules, schedules and codes, as Markdown."""
    parts = [_HEAD, schedules(), loops()]
    parts += [rule_text(rule) for _, rule in sorted(load_rules().items())]
    codes = [f"- `{code}`: {meaning}" for code, meaning in sorted(SESSION_CODES.items())]
    parts.append("\n".join(["## Codes of every command", "", *codes]))
    return "\n\n".join(part.strip() for part in parts) + "\n"


def loops() -> str:
    """The table of the parts of loops that the rules support."""
    return f"## Parts of loops\n\n{_LOOPS}\n\n{LOOP_PARTS.read_text(encoding='utf-8')}"


def schedules() -> str:
    """The phases with more than one rule, then the commands in terms of them."""
    every = (phase for schedule in SCHEDULES.values() for phase in schedule.phases)
    phases = dict.fromkeys(phase for phase in every if not phase.first)
    lines = ["## Commands", "", _ORDER, "", "| phase | rules |", "|---|---|"]
    for phase in phases:
        if len(phase.rules) > 1:
            lines.append(f"| {phase.name} | {', '.join(f'`{rule}`' for rule in phase.rules)} |")
    lines += ["", "| command | phases |", "|---|---|"]
    for name, schedule in SCHEDULES.items():
        own = [_named(phase) for phase in schedule.phases if not phase.first]
        lines.append(f"| `{name}` | {', '.join(own)} |")
    return "\n".join(lines)


def _named(phase: Phase) -> str:
    return phase.name if len(phase.rules) > 1 else f"`{phase.name}`"


def rule_text(rule: Rule) -> str:
    """A rule's docstring below its name, as Markdown."""
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
