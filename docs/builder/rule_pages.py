"""The pages of the rules: an index of rules and codes, and a page for each rule.

Rules and codes come from docstrings, examples from the golden models that each code refuses.
`python docs/builder/rule_pages.py docs/rules.md` writes the page of all rules in one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from refusals import Example, examples

from passes.commands.explanation import LETTERS, LOOP_PARTS, SESSION_CODES
from passes.commands.schedules import SCHEDULES
from passes.engine.schedules import Phase
from passes.reports.precision import CODES as CAST_CODES
from passes.reports.proof import CODES as PROOF_CODES
from passes.rule import Rule, load_rules

_INDEX = """# The rules

A rule rewrites one kind of node, or refuses it with a code and a sentence. Each has a page that
describes it and shows, for every code, a model that is refused, the command and what it prints.
`passes list` lists the rules, `passes explain NAME` explains a rule or a code.

| rule | what it does |
|---|---|
{rules}

{schedules}

{loops}
## Codes of refusals and proofs

| code | rule | meaning |
|---|---|---|
{codes}
"""
_EVERY = "every-command"
_PROOFS = "[`prove`](proof.md#what-a-verdict-means)"
_CASTS = "[`cast`](precision.md#what-keeps-its-type)"
_RUN = "The commands in the examples run in a checkout of the repository."
#: Why there is no example of a code, by rule and code.
NOT_SHOWN = {
    ("opset", "unknown-op"): "The command reports such a model as invalid before the rule sees it.",
    ("opset", "no-step"): "A release of onnx with operators newer than this package gives it.",
    (_EVERY, "too-deep"): "An example takes 32 bodies, each in the one before.",
    (_EVERY, "ir-metadata"): "The text form of ONNX has no such metadata.",
    (_EVERY, "invalid-outcome"): "It takes a rule with a fault.",
    (_EVERY, "not-verified"): "It depends on the executors that are installed.",
}


def names() -> list[str]:
    """The names of the pages of rules."""
    return [*sorted(load_rules()), _EVERY]


def pages() -> Iterator[tuple[str, str]]:
    """The address of each page in the site, and its Markdown."""
    rules = [rule for _, rule in sorted(load_rules().items())]
    listed = [
        f"| [`{rule.name}`](rules/{rule.name}.md) | {_cell(rule.summary)} |" for rule in rules
    ]
    codes = [
        (code, f"[`{rule.name}`](rules/{rule.name}.md#{code})", meaning)
        for rule in rules
        for code, meaning in rule.refusal_codes.items()
    ]
    codes += [
        (code, f"[every command](rules/{_EVERY}.md#{code})", meaning)
        for code, meaning in SESSION_CODES.items()
    ]
    codes += [(code, _PROOFS, meaning) for code, meaning in PROOF_CODES.items()]
    codes += [(code, _CASTS, meaning) for code, meaning in CAST_CODES.items()]
    rows = [f"| `{code}` | {rule} | {_cell(meaning)} |" for code, rule, meaning in sorted(codes)]
    index = _INDEX.format(
        rules="\n".join(listed), codes="\n".join(rows), schedules=schedules(), loops=loops()
    )
    yield "rules.md", index
    for rule in rules:
        yield f"rules/{rule.name}.md", _page(rule)

    yield f"rules/{_EVERY}.md", _refusals("# Codes of every command", _EVERY, SESSION_CODES)


def _page(rule: Rule) -> str:
    text, _, _ = rule_text(rule).partition("\nRefuses:")
    title = "# The rule" + text.strip().removeprefix("##")
    if not rule.refusal_codes:
        return f"{title}\n"
    return _refusals(f"{title}\n\n## Refusals", rule.name, rule.refusal_codes)


def _refusals(head: str, rule: str, codes: Mapping[str, str]) -> str:
    parts = [head, _RUN]
    for code, meaning in codes.items():
        parts.append(f"### {code}\n\n{_sentence(meaning)}")
        found = shown(rule, code)
        parts.append(_shown(found[0], len(found)) if found else NOT_SHOWN[rule, code])
    return "\n\n".join(parts) + "\n"


def shown(rule: str, code: str) -> list[Example]:
    """The examples of a code of a rule; those of another rule where there are none."""
    own = examples().get((rule, code))
    others = (found for (_, other), found in examples().items() if other == code)
    return own or next(others, [])


def _shown(example: Example, count: int) -> str:
    folder = example.model.parent.name
    others = f", the shortest of {count} such models in `golden_models/{folder}`" * (count > 1)
    return "\n".join(
        (
            f"`{example.model.name}`{others}:",
            "",
            "```text",
            example.text,
            "```",
            "",
            "```console",
            f"$ {example.command}",
            example.line,
            "```",
        )
    )


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


_HEAD = """# The rules

Made by `python docs/builder/rule_pages.py docs/rules.md` from the rules' docstrings;
`python -m passes explain NAME` shows the same text.
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
