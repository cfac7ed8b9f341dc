"""Explains rules and codes, from the rules' own docstrings and the tables of other codes."""

from __future__ import annotations

from pathlib import Path

from passes.errors import nearest
from passes.reports.precision import CODES as CAST_CODES
from passes.reports.proof import CODES as PROOF_CODES
from passes.rule import load_rules

#: The parts of loops that each rule supports, which `tests.instruments.loop_parts` measures.
LOOP_PARTS = Path(__file__).with_name("loop_parts.md")
LETTERS = "8: Scan-8, S: Scan of a later opset, L: Loop, I: If"
#: Codes that no single rule gives.
SESSION_CODES = {
    "type-not-taken": (
        "an operator that the rewrite needs does not take the element type of a value at this "
        "opset, or no kernel of onnxruntime does, which runs the original; and no Cast to a wider "
        "type and back does the same. On the way to an older opset a kernel may be missing, unless "
        "--for names a release"
    ),
    "too-deep": (
        "bodies would be nested deeper than a file can hold: protobuf reads 100 levels "
        "of messages, which are some 31 bodies"
    ),
    "ir-version": (
        "the model holds something that the IR version does not know: functions came with 8, "
        "defaults of their attributes with 9, overloads with 10, optional types with 8, sparse "
        "tensors with 6, quantization annotations with 5, training information with 7, bfloat16 "
        "with 4, float8 with 9, int4 and uint4 with 10, float4 with 11, float8e8m0 with 12, int2 "
        "and uint2 with 13, float6 with 14; below 4 an input with a default is a constant"
    ),
    "ir-metadata": (
        "the model holds what says nothing of what it computes, and the IR version does not know: "
        "metadata_props (10), types of values in functions (10), device configurations (11); "
        "--drop-metadata drops it"
    ),
    "invalid-outcome": (
        "after a rewrite the model is invalid, or the installed onnxruntime loads the original, "
        "but not the outcome: a rewrite that only improves is left out, for another one nothing is "
        "written"
    ),
    "not-verified": (
        "no case of a rewrite could be executed on both sides, so nothing vouches for it: one that "
        "only improves is left out, for another one nothing is written; "
        "--inputs may give inputs that the model takes, --allow-unverified writes it all the same"
    ),
}


def meaning(code: str, rule: str) -> str:
    """Return the meaning of the code of a refusal of a rule."""
    rules = load_rules()
    own = rules[rule].refusal_codes if rule in rules else {}
    return own.get(code) or SESSION_CODES.get(code, "")


def loop_parts(rule: str) -> dict[str, str]:
    """The parts of loops, each with the kinds of nodes that have it and that the rule rewrites, or
    refuses with a code; nothing if the rule rewrites no Scan, Loop or If."""
    lines = LOOP_PARTS.read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    own = [row for row in rows if row[0] == f"`{rule}`"]
    return dict(zip(rows[0][1:], own[0][1:], strict=True)) if own else {}


def explanation(subject: str) -> str | None:
    """The text for a rule or a code, of a refusal, a proof or a cast; None for what is neither."""
    rules = load_rules()
    lines = [f"{subject}: {rules[subject].documentation}"] if subject in rules else []
    if parts := loop_parts(subject):
        lines += ["", f"Parts of loops that it supports, by its golden models ({LETTERS}):"]
        lines += [f"- {part}: {kinds}" for part, kinds in parts.items() if kinds]
    lines += [
        f"{subject} ({name}): {rule.refusal_codes[subject]}"
        for name, rule in sorted(rules.items())
        if subject in rule.refusal_codes
    ]
    if subject in SESSION_CODES:
        lines.append(f"{subject}: {SESSION_CODES[subject]}")
    if subject in PROOF_CODES:
        lines.append(f"{subject} (prove): {PROOF_CODES[subject]}")
    if subject in CAST_CODES:
        lines.append(f"{subject} (cast): {CAST_CODES[subject]}")
    return "\n".join(lines) or None


def unexplained(subject: str) -> str:
    """The sentence for what is neither a rule nor a code."""
    rules = load_rules()
    codes = {code for rule in rules.values() for code in rule.refusal_codes}
    near = nearest(subject, sorted({*rules, *codes, *SESSION_CODES, *PROOF_CODES, *CAST_CODES}))
    return f"{subject!r} is neither a rule nor a code; {near} (`passes list` shows the rules)"
