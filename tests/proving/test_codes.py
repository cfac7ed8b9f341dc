"""Each code of a proof is in the table of codes, and the page shows that table."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from passes.commands.explanation import explanation
from passes.reports.proof import CODES

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "proof.md"
BEGIN, END = "<!-- codes of proofs -->\n", "<!-- end of codes of proofs -->\n"
#: The position of the code among the arguments.
GIVES = {
    "NotProvable": 0,
    "_Unproven": 0,
    "NoPair": 1,
    "Unequal": 0,
    "Proof": 1,
    "why": 0,
    "cannot": 0,
}


def table() -> str:
    """The codes as a table in Markdown."""
    rows = [f"| `{code}` | {meaning} |\n" for code, meaning in CODES.items()]
    return "".join(["| code | meaning |\n", "|---|---|\n", *rows])


def given() -> set[str]:
    """The codes that the prover gives."""
    found = set()
    for path in sorted((ROOT / "passes" / "proving").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
                name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
                code = [*node.args[GIVES[name] :][:1]] if name in GIVES else []
                code += [one.value for one in node.keywords if one.arg == "code"]
                code += node.args[:1] if name == "_unlike" else []
                found |= {str(one.value) for one in code if isinstance(one, ast.Constant)}
    return found


def test_each_code_that_is_given_has_a_meaning() -> None:
    assert given() == set(CODES)


def test_explain_knows_the_codes() -> None:
    for code, meaning in CODES.items():
        assert f"{code} (prove): {meaning}" in str(explanation(code))


def test_the_page_shows_them(request: pytest.FixtureRequest) -> None:
    before, _, rest = PAGE.read_text().partition(BEGIN)
    shown, _, after = rest.partition(END)
    if request.config.getoption("--update-golden"):
        PAGE.write_text(f"{before}{BEGIN}{table()}{END}{after}")
        shown = table()
    assert shown == table()
