"""Where rules come from: the built-in packages, and other distributions."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import onnx
import pytest

from passes import rule as rules
from passes.engine.rewriting import Engine
from passes.ir.model import Model
from passes.rule import BrokenRules, UnknownRule, load_rules, rule_named

ROOT = Path(rules.__file__).parent

THIRD_PARTY = '''
"""Rules of somebody else."""

from __future__ import annotations

from onnx import helper

from passes import Edit, Site, register


@register("acme-neg", considers=lambda node, opset, target: node.op_type == "Neg")
def neg(site: Site) -> Edit:
    """Write Neg as a subtraction.

    Refuses:
    - `acme-integers`: the value is an integer
    """
    zero = helper.make_tensor(site.fresh("zero"), 1, [1], [0])
    node = helper.make_node("Sub", [zero.name, *site.node.input], site.node.output)
    return Edit((node,), (zero,), note="as a subtraction")
'''


@pytest.fixture
def third_party(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A distribution with one rule, as its entry point shows it."""
    load_rules()
    (tmp_path / "acme_rules.py").write_text(THIRD_PARTY)
    monkeypatch.syspath_prepend(tmp_path)
    known = rules.entry_points(group=rules.GROUP)
    added = EntryPoint("acme", "acme_rules", rules.GROUP)
    monkeypatch.setattr(rules, "entry_points", lambda group: [*known, added])
    load_rules.cache_clear()
    yield
    rules.RULES.pop("acme-neg", None)
    sys.modules.pop("acme_rules", None)
    load_rules.cache_clear()


def test_the_built_in_rules_are_there() -> None:
    assert {"scan-8", "opset"} <= set(load_rules())
    assert rule_named("scan-8").name == "scan-8"
    assert load_rules() is load_rules()


def test_a_rule_is_found_by_its_name_without_the_others() -> None:
    """Where two files have one name, the rule is in the one that is imported."""
    built_in = {name: one for name, one in load_rules().items() if one.is_built_in}
    found = {name: rules._modules()[name] for name in built_in}
    assert found == {name: one.rewrite.__module__ for name, one in built_in.items()}
    files = (*ROOT.rglob("*.py"), *(ROOT.parent / "converters").rglob("*.py"))
    declared = [path for path in files if "\n@register(" in path.read_text()]
    assert len(built_in) == len(declared)


def test_every_rule_says_what_it_does() -> None:
    for one in load_rules().values():
        assert one.summary.endswith("."), one.name
        assert "`" not in "".join(one.refusal_codes), one.name
        _, _, tail = one.documentation.partition("Refuses:\n")
        lines = [line for line in tail.splitlines() if line.startswith("- ")]
        assert len(lines) == len(one.refusal_codes), one.name


def test_an_unknown_rule_is_told_with_those_most_like_it() -> None:
    with pytest.raises(UnknownRule, match=r"there is no rule 'scan8'; the nearest are scan-8, "):
        rule_named("scan8")


@pytest.mark.usefixtures("third_party")
def test_a_rule_of_another_distribution() -> None:
    assert rule_named("acme-neg").summary == "Write Neg as a subtraction."
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 16]> g (float[2] x) => (float[2] y) { y = Neg (x) }'
    )
    outcome = Engine([rule_named("acme-neg")]).round(Model(model))
    assert [node.op_type for node in outcome.proto.graph.node] == ["Sub"]
    assert outcome.rewritten[0].edit.note == "as a subtraction"
    onnx.checker.check_model(outcome.proto, full_check=True)


@pytest.mark.usefixtures("third_party")
def test_a_distribution_that_does_not_load_is_named(tmp_path: Path) -> None:
    (tmp_path / "acme_rules.py").write_text("import nothing_of_this_name")
    with pytest.raises(BrokenRules) as error:
        load_rules()
    assert str(error.value) == (
        "the rules 'acme' (acme_rules) do not load: No module named 'nothing_of_this_name'"
    )


@pytest.mark.usefixtures("third_party")
def test_a_code_of_another_distribution_is_explained() -> None:
    from passes.commands.explanation import explanation

    assert explanation("acme-integers") == "acme-integers (acme-neg): the value is an integer"
