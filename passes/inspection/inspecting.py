"""Looks at the loops and Ifs of a model, at types, trip counts and sizes, and asks the rules about
each kind of them once."""

from __future__ import annotations

import os
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from onnx import TypeProto, defs

from passes.analysis.bodies import body_facts
from passes.analysis.trip_count.trip_count import TripCount
from passes.choices import Batch, RuleOptions
from passes.commands.registry import command_named
from passes.commands.schedules import SCHEDULES, UPGRADE
from passes.engine.rewriting import Engine
from passes.engine.target_opset import check_known, check_reachable, loadable, target_opset
from passes.errors import BadModel, ChosenByCaller, nearest
from passes.inspection.inspection import VERSION, Answer, Group, Inspection, Slice, Value
from passes.ir import scope as scoping
from passes.ir.external_data import byte_size, external_tensors
from passes.ir.model import Model
from passes.ir.operators import op_of
from passes.ir.places import Key, Place, Scope, is_loop
from passes.ir.selection import NothingMatches, matches
from passes.loops.alike import AlikeGroup, alike
from passes.loops.form import LoopForm
from passes.loops.parts import Collected, Scanned
from passes.onnxruntime.releases import Release
from passes.operators.table import where
from passes.reports.advice import optimizing
from passes.reports.report import Advice, Size
from passes.rule import Site, load_rules, rule_named
from passes.session import Source, loaded
from passes.types.signature import describe_type
from passes.types.value_types import INFERRED

_MADE_UP = re.compile(rf"{INFERRED}\d+")
#: The schedules whose rules are asked unless all of them are to be.
_MAIN = ("raise", "unroll", "optimize")


@dataclass(frozen=True)
class WantedGroups:
    """The groups to look into, all by default.

    `loops` are patterns of paths, `op` is an operator, `depth` how many levels of the tree,
    `rule` and `code` what is answered. `most` groups are looked into at most, the first
    ones; `every_rule` is asked, or those of the commands that people run first, or none if it is
    None.
    """

    loops: Sequence[str] = ()
    op: str | None = None
    rule: str | None = None
    code: str | None = None
    depth: int | None = None
    most: int | None = None
    every_rule: bool | None = True

    @property
    def rules(self) -> Sequence[str]:
        """The rules that are asked. Raises UnknownRule where there is none of that name."""
        if self.rule is not None:
            return [rule_named(self.rule).name]
        if self.every_rule is None and self.code is None:
            return []
        return rules_of(SCHEDULES if self.every_rule or self.code is not None else _MAIN)

    def of(self, answers: Sequence[Answer]) -> tuple[Answer, ...]:
        """Return those of the answers that are wanted."""
        return tuple(one for one in answers if self.code in (None, one.code))

    @property
    def by_answer(self) -> bool:
        """True if a group without an answer is not wanted."""
        return self.rule is not None or self.code is not None


def inspect_model(
    source: Source | Model,
    asked: int | None,
    options: RuleOptions,
    release: Release | None = None,
    wanted: WantedGroups | None = None,
) -> Inspection:
    """Return the loops and Ifs of a model, with the answers of the rules.

    `asked` is the opset that the rules are to upgrade to.

    Raises:
        BadModel: the input is no valid model.
        UnknownOpset: the installed onnx does not know the requested opset.
        TooNew: the model is newer than that, or than what the release loads.
        NothingMatches: a pattern of paths matches none.
        UnknownRule: there is no such rule.
    """
    wanted = wanted or WantedGroups()
    rules = wanted.rules
    check_known(asked)
    model, survey = loaded(source)
    file = os.fspath(source) if isinstance(source, str | os.PathLike) else ""
    reached = loadable(model, asked, release)
    check_reachable(model, reached, release)
    tree = alike(model) if model.has_bodies else ()
    rows = [row for top in tree for row in top.walk()]
    found = replace(_overview(model, rows), file=file, notes=tuple(survey.notes))
    shown = _shown(rows, wanted)
    kept = list(shown)[: wanted.most]
    target, places = target_opset(model, reached), [shown[at].first for at in kept]
    by_place = ask(model, places, rules, target, options) if places else {}
    answers = {
        at: wanted.of(by_place.get((*place.scope.key, place.index), ()))
        for at, place in zip(kept, places, strict=True)
    }
    if wanted.by_answer:
        kept = [at for at in kept if answers[at]]
    groups = tuple(
        group_of(model, shown[at], above, answers[at]) for at, above in _kept(rows, kept)
    )
    left_out = 0 if wanted.by_answer else len(shown) - len(kept)
    found = replace(found, groups=groups, left_out=left_out)
    advice = next_steps(file, found, asked, release, options)
    return replace(found, advice=advice, next=advice[0].command if advice else "")


def _kept(rows: Sequence[tuple[int, AlikeGroup]], kept: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the positions of the rows that are kept, each with the number among these of the
    nearest one above it, or -1."""
    around: list[tuple[int, int]] = []
    for at, (depth, _) in enumerate(rows):
        while around and around[-1][0] >= depth:
            around.pop()
        if at in kept:
            yield at, around[-1][1] if around else -1
            around.append((depth, kept.index(at)))


def _shown(rows: Sequence[tuple[int, AlikeGroup]], wanted: WantedGroups) -> dict[int, AlikeGroup]:
    """Return the wanted groups, reduced to their wanted members, by position.

    Raises:
        NothingMatches: a pattern matches no path.
    """
    paths = [path for _, group in rows for path in group.paths]
    for pattern in wanted.loops:
        if not any(matches(pattern, [path]) for path in paths):
            close = nearest(pattern, paths) if paths else "the model has no loop and no branch"
            raise NothingMatches(f"no loop or If has a path that matches {pattern!r}; {close}")
    found = {}
    for at, (depth, group) in enumerate(rows):
        if wanted.depth is not None and depth >= wanted.depth:
            continue
        if wanted.op not in (None, op_of(group.first.node)):
            continue
        members = [
            place
            for place, path in zip(group.places, group.paths, strict=True)
            if not wanted.loops or any(matches(pattern, [path]) for pattern in wanted.loops)
        ]
        if members:
            found[at] = group if len(members) == len(group.places) else AlikeGroup(tuple(members))
    return found


def next_steps(
    file: str,
    found: Inspection,
    asked: int | None,
    release: Release | None,
    options: RuleOptions,
) -> Sequence[Advice]:
    """Return what to run next: the command that upgrades, `optimize`, if it would change anything,
    with what more its options would do, or what explains why nothing applies."""
    if not file or not found.groups:
        return []
    answers = [one for group in found.groups for one in group.answers]
    rules = [one.rule for one in answers if one.outcome == "rewrites"]
    codes = Counter(one.code for one in answers if one.outcome == "refuses")
    if any(name in UPGRADE.rules for name in rules):
        command = ["upgrade", file]
        command += ["--opset", f"{asked}"] if release is None and asked is not None else []
        command += ["--for", f"onnxruntime==1.{release.minor}"] if release is not None else []
        command += ["--batch", options.batch] if options.batch != Batch.auto else []
        return [Advice(shlex.join(["passes", *command]))]
    stays_old = any(one.rule in UPGRADE.rules for one in answers)
    if not stays_old and (advice := optimizing(Path(file), found.nodes, rules)):
        return advice
    command = ["explain", codes.most_common(1)[0][0]] if codes else ["check", file, "--all-targets"]
    return [Advice(shlex.join(["passes", *command]))]


def _overview(model: Model, rows: Sequence[tuple[int, AlikeGroup]]) -> Inspection:
    size = Size.of(model)
    return Inspection(
        schema_version=VERSION,
        file="",
        opset=model.opset(),
        ir_version=model.proto.ir_version,
        nodes=size.nodes,
        loops=size.loops,
        loop_kinds=sum(is_loop(one.first.node) for _, one in rows),
        ifs=size.operators.get("If", 0),
        sequences=sum(size.operators.get(maker, 0) for maker in where(lambda row: row.makes)),
        functions=len(model.proto.functions),
        external_bytes=sum(map(byte_size, external_tensors(model.proto))),
    )


def rules_of(schedules: Iterable[str]) -> list[str]:
    """Return the rules of `upgrade` and of schedules."""
    names = dict.fromkeys(name for schedule in schedules for name in SCHEDULES[schedule].rules)
    known = load_rules()
    rest = [name for name in names if name in known and name not in UPGRADE.rules]
    return [*UPGRADE.rules, *rest]


def ask(
    model: Model, places: Sequence[Place], rules: Sequence[str], target: int, options: RuleOptions
) -> Mapping[Key, Sequence[Answer]]:
    """Return the answers of each rule about these places, by the key of their scope and index.

    Rules that upgrade write opset `target`, the others that of the model; those of `optimize` have
    the flags of that command, and its default on sums of floats.
    """
    known, optimize = load_rules(), SCHEDULES["optimize"]
    upgrades = [known[name] for name in UPGRADE.rules if name in rules]
    rounds = [Engine(upgrades, target, options).ask(model, places)]
    rest = [name for name in rules if name not in UPGRADE.rules]
    regroups = command_named("optimize").options().for_rules().allow_reassociation
    quick = replace(options, allow_reassociation=regroups).with_flags(optimize.flags)
    for choices, own in ((quick, True), (options, False)):
        asked = [known[name] for name in rest if (name in optimize.rules) == own]
        rounds.append(Engine(asked, None, choices).ask(model, places))
    found: dict[Key, dict[Answer, None]] = defaultdict(dict)
    for round_ in rounds:
        for done in round_.rewritten:
            answer = Answer(done.rule.name, "rewrites", note=done.written.note)
            found[(*done.scope.key, done.index)][answer] = None
        for refusal in round_.refused:
            why, place = refusal.reason, refusal.place
            answer = Answer(refusal.rule.name, "refuses", code=why.code, sentence=why.sentence)
            found[(*place.scope.key, place.index)][answer] = None
    return {key: tuple(answers) for key, answers in found.items()}


def group_of(model: Model, alike: AlikeGroup, above: int, answers: Sequence[Answer]) -> Group:
    """Return the facts about a group, whose rules gave these answers.

    Raises:
        BadModel: the form of a loop is invalid.
    """
    first = alike.first
    opset = model.opset_at(first.scope)
    graphs = [graph for _, graph in scoping.subgraphs(first.node)]
    captured = dict.fromkeys(name for graph in graphs for name in scoping.captures(graph))
    group = Group(
        pattern=alike.pattern,
        paths=alike.paths,
        above=above,
        op=op_of(first.node),
        version=defs.get_schema(op_of(first.node), opset).since_version,
        opset=opset,
        nodes=sum(len(below.node) for graph in graphs for below in scoping.graphs_below(graph)),
        captured=tuple(value_of(model, first.scope, name) for name in captured),
        answers=answers,
    )
    return _looked_into(model, alike, group) if is_loop(first.node) else group


def _looked_into(model: Model, alike: AlikeGroup, group: Group) -> Group:
    (body,) = alike.first.scope.inner(alike.first.index)
    try:
        forms = [LoopForm.from_node(place.node, group.opset) for place in alike.places]
    except ChosenByCaller as error:
        return replace(group, trip_counts=("?",), unreadable=error.sentence)
    except BadModel as error:
        raise error.at(path=group.paths[0], file=model.file) from error
    form = forms[0]
    trips = [_trip_count(model, place, one) for place, one in zip(alike.places, forms, strict=True)]
    return replace(
        group,
        trip_counts=tuple(dict.fromkeys(trips)),
        lengths=bool(form.lengths),
        carried=tuple(value_of(model, body, one.body_input) for one in form.carried),
        scanned=tuple(_slice(model, body, one.body_input, one) for one in form.scanned),
        collected=tuple(_slice(model, body, one.body_output, one) for one in form.collected),
        recurrences=tuple(tuple(sorted(names)) for names in body_facts.recurrences(form)),
        invariant_nodes=len(body_facts.invariant_nodes(form)),
    )


def _trip_count(model: Model, place: Place, form: LoopForm) -> str:
    return str(TripCount(Site.at(model, place), form))


def value_of(model: Model, scope: Scope, name: str) -> Value:
    """A value that a scope sees, with its type."""
    known = describe_type(model.types.of(scope, name) or TypeProto())
    return Value(name, _MADE_UP.sub("?", known))


def _slice(model: Model, body: Scope, name: str, how: Scanned | Collected) -> Slice:
    value = value_of(model, body, name)
    return Slice(value.name, value.type, how.axis, how.reversed)
