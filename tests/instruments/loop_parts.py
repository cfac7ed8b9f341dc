"""Writes the parts of loops that each rule supports, as the golden models show them.

    python -m tests.instruments.loop_parts

Each golden model is rewritten, and each Scan, Loop and If that a rule is given is taken apart. A
rule supports a part if a loop that has it is rewritten. A code is listed if no such loop is
rewritten, some are refused with the code, and no rule refuses a loop without the part with it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from unittest.mock import patch

import onnx

from passes.analysis.trip_count.trip_count import TripCount
from passes.commands.explanation import LOOP_PARTS
from passes.commands.schedules import SCHEDULES
from passes.engine.outcome import Pass
from passes.errors import NotProduced, PassesError
from passes.ir.operators import op_of
from passes.ir.places import holds_graphs, inner_nodes, subgraphs
from passes.ir.scope import captures
from passes.loops.form import Kind, LoopForm
from passes.rule import RULES, Edit, Refused, Rule, Site, load_rules
from passes.session import Session
from passes.testing import options_of as typed
from tests.test_golden import BEFORE, REFUSED, options_of, target_of

IF = "If"
#: The letter of each kind of node.
LETTERS = {Kind.SCAN_8: "8", Kind.SCAN: "S", Kind.LOOP: "L", IF: "I"}
#: The parts of a Scan or Loop.
OF_A_LOOP: Mapping[str, Callable[[LoopForm, TripCount], bool]] = {
    "carried": lambda form, count: bool(form.carried),
    "scanned": lambda form, count: bool(form.scanned),
    "collected": lambda form, count: bool(form.collected),
    "reversed": lambda form, count: any(one.reversed for one in (*form.scanned, *form.collected)),
    "another axis": lambda form, count: (
        form.kind is Kind.SCAN and any(one.axis for one in (*form.scanned, *form.collected))
    ),
    "`sequence_lens`": lambda form, count: bool(form.lengths),
    "ended by a condition": lambda form, count: form.kind is Kind.LOOP and count.ends_early,
    "no trip count": lambda form, count: count.unlimited,
    "trip count not static": lambda form, count: count.static is None,
    "possibly no iteration": lambda form, count: not count.always_runs,
}
#: The parts that an If has, too.
OF_ALL: Mapping[str, Callable[[Site], bool]] = {
    "captured": lambda site: any(captures(graph) for _, graph in subgraphs(site.node)),
    "bodies in bodies": lambda site: any(map(holds_graphs, inner_nodes(site.node))),
    "in a function": lambda site: site.in_function,
    "sequences, optionals": lambda site: any(
        kind is not None and kind.WhichOneof("value") not in (None, "tensor_type")
        for kind in map(site.type_of, (*site.node.input, *site.node.output))
    ),
}
#: What every node has.
REWRITES = "rewrites"


def parts_of(site: Site) -> tuple[str, frozenset[str]]:
    """The kind of a Scan, Loop or If, and the parts that it has.

    Raises:
        PassesError: the node is invalid, or the caller of a function chooses its attributes.
    """
    found = frozenset([REWRITES, *(part for part, has in OF_ALL.items() if has(site))])
    if op_of(site.node) == IF:
        return IF, found
    form = LoopForm.from_node(site.node, site.opset)
    count = TripCount(site, form)
    return form.kind, found.union(part for part, has in OF_A_LOOP.items() if has(form, count))


@dataclass(frozen=True)
class Answer:
    """The answer of a rule to a node with these parts: the code of a refusal, "" for a rewrite."""

    rule: str
    kind: str
    parts: frozenset[str]
    code: str = ""


def answers(path: Path) -> list[Answer]:
    """The answers of all rules to the loops and Ifs of a golden model; rewrites only of a model
    whose outcome is verified."""
    found: list[Answer] = []

    def noting(rule: Rule) -> Rule:
        def noted(site: Site) -> Edit:
            try:
                known = [parts_of(site)] if op_of(site.node) in ("Scan", "Loop", IF) else []
            except PassesError:
                known = []  # the rule reports it
            try:
                edit = rule.rewrite(site)
            except Refused as refused:
                found.extend(Answer(rule.name, *one, refused.code) for one in known)
                raise
            if path in BEFORE:
                found.extend(Answer(rule.name, *one) for one in known)
            return edit

        return replace(rule, rewrite=noted)

    model = onnx.load(path)
    schedule, options = SCHEDULES[path.parent.name], typed(options_of(model))
    rules = {name: noting(rule) for name, rule in load_rules().items()}
    with patch.dict(RULES, rules), suppress(NotProduced):
        Session([Pass(schedule, target_of(path), options)], None).run(model)
    return found


def table(found: Collection[Answer]) -> str:
    """The table in Markdown, with a row for each rule that rewrites some Scan, Loop or If."""
    columns = [REWRITES, *OF_A_LOOP, *OF_ALL]
    lines = [["rule", *columns], ["---"] * (len(columns) + 1)]
    met: dict[str, list[frozenset[str]]] = {}  # the parts of all that are refused with a code
    for one in found:
        met.setdefault(one.code, []).append(one.parts)
    naming = {code: frozenset.intersection(*parts) for code, parts in met.items() if code}
    for rule in sorted({one.rule for one in found if not one.code}):
        own = [one for one in found if one.rule == rule]
        lines.append([f"`{rule}`", *(cell(own, part, naming) for part in columns)])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def cell(found: Collection[Answer], part: str, naming: Mapping[str, Set[str]]) -> str:
    """The kinds of nodes that a rule rewrites with a part, and the codes that name the part, with
    which it refuses others."""
    with_it = [one for one in found if part in one.parts]
    rewritten = {one.kind for one in with_it if not one.code}
    words = [" ".join(LETTERS[kind] for kind in LETTERS if kind in rewritten)]
    for kind in [kind for kind in LETTERS if kind not in rewritten]:
        codes = {one.code for one in with_it if one.kind == kind}
        named = [f"`{code}`" for code in sorted(codes) if part in naming[code]]
        words += [f"not {LETTERS[kind]}: {', '.join(named)}"] if named else []
    return "; ".join(filter(None, words))


def measured() -> str:
    """The table of all golden models."""
    return table([one for path in (*BEFORE, *REFUSED) for one in answers(path)])


if __name__ == "__main__":
    warnings.filterwarnings("ignore", "The onnxtxt format is experimental")
    LOOP_PARTS.write_text(measured(), encoding="utf-8")
