"""What `explain` says: of rules and of codes, from the rules' own docstrings."""

from __future__ import annotations

from passes.commands.explanation import SESSION_CODES, explanation
from passes.rule import load_rules


def test_a_rule_is_explained_by_its_docstring() -> None:
    text = explanation("scan-8")
    assert text is not None
    assert text.startswith("scan-8: Upgrade a Scan-8")
    for heading in ("Before:", "After", "Refuses:"):
        assert heading in text
    assert "\n    - `" not in text, "without the indentation of the source"


def test_a_code_is_explained_with_the_rule_that_gives_it() -> None:
    text = explanation("batch-not-static")
    assert text is not None
    assert text.startswith("batch-not-static (scan-8): ")
    assert "batch size is unknown" in text


def test_a_code_that_several_rules_give_has_a_line_for_each() -> None:
    text = explanation("unknown-rank")
    assert text is not None
    givers = [name for name, rule in load_rules().items() if "unknown-rank" in rule.refusal_codes]
    assert [line.split(":")[0] for line in text.splitlines()] == [
        f"unknown-rank ({name})" for name in sorted(givers)
    ]
    assert len(givers) > 1


def test_every_rule_and_every_code_is_explained() -> None:
    for name, rule in load_rules().items():
        assert explanation(name)
        for code, sentence in rule.refusal_codes.items():
            assert sentence in (explanation(code) or "")


def test_codes_of_no_rule() -> None:
    for code, sentence in SESSION_CODES.items():
        assert explanation(code) == f"{code}: {sentence}"


def test_what_is_neither_is_not_explained() -> None:
    assert explanation("nonsense") is None
    assert explanation("") is None
