"""What verification of each rewritten region stops of faults that are seeded into rules, and what
verification of the whole model alone stops.

Use: `python -m tests.instruments.mutants regions [RULE ...] [--exported]`.
"""

from __future__ import annotations

import json
import random
import signal
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

import onnx

from tests.instruments.mutants.drawing import drawn_faults
from tests.instruments.mutants.faults import Fault
from tests.instruments.mutants.judge import difference
from tests.instruments.mutants.seeded import reseed
from tests.instruments.mutants.targets import GOLDEN, Target, target
from tests.instruments.mutants.trial import (
    SECONDS,
    Outcome,
    Result,
    Run,
    apart,
    outcome_of,
    prepared,
    run,
)

if TYPE_CHECKING:
    from passes.engine.rounds import Round
    from passes.ir.model import Model
    from passes.verify.rewrites.verifying import Verdicts

STEPS = "steps"
MISMATCH = "mismatch"
#: Commands that run many rules on a model of an exporter, and the rules that they run.
_COMMANDS = ("optimize", "optimize-no-control-flow", "optimize-scan-only", "optimize-loop-only")
#: Models that try a rule; exported ones have so many nodes at least.
_MODELS, _NODES = 12, 20
#: Seeds of further draws by which the judge looks for what a verification let pass.
_SEEDS = (1, 2, 3)
#: Changes of Edits that are tried on one model, until one makes a valid model.
_ATTEMPTS = 8


@dataclass
class Judged:
    """What a verification made of an outcome: `mismatch in a region`, `mismatch`, `left out`, `not
    verified`, or what else stopped it; empty if it passed. `whole` is the verdict on the whole
    model, `regions` counts those on rewrites."""

    became: str = ""
    why: str = ""
    whole: str = ""
    regions: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    sites: list[tuple[str, str]] = field(default_factory=list, repr=False)

    @property
    def stopped(self) -> bool:
        """True if nothing wrong was written."""
        return self.became not in ("", "too slow")


@dataclass
class Tried:
    """One outcome, by both ways; `wrong` is what the judge said of one that either let pass."""

    rule: str
    pipeline: str
    fault: str
    model: str
    nodes: int
    both: Judged
    alone: Judged
    wrong: str = ""
    judged: bool = False

    @property
    def name(self) -> str:
        """Who stopped it."""
        if self.both.stopped and self.alone.stopped:
            return "both"
        wrong = "" if self.wrong else ", and the whole model is right"
        if self.both.stopped:
            return f"regions alone{wrong}"
        if self.alone.stopped:
            return f"the whole alone{wrong}"
        return "slipped" if self.wrong else "right"


def main(
    rules: Sequence[str],
    count: int,
    most: int,
    seed: int,
    *,
    exported: bool,
    json_file: Path | None,
) -> int:
    """Print what only one of both stops, and the counts."""
    _warm()
    found: list[Tried] = []
    plain: dict[tuple[Path, ...], Run] = {}
    modules = apart(_modules, [name for name in rules if name != STEPS]) if exported else ()
    for name in rules:
        for rule in _targets(name, exported, seed):
            if rule.models not in plain:
                traced = replace(rule, modules=modules if exported else rule.modules)
                plain[rule.models] = run(traced, rule.models, None, trace=True)
            draw = random.Random(seed)
            here = list(_tried(rule, plain[rule.models], count, most, draw))
            for one in here:
                if one.name not in ("both", "right"):
                    print(
                        f"{one.name.upper()} {one.rule} {one.model}: {one.fault}: "
                        f"{one.both.became or one.alone.became}: {one.both.why or one.alone.why}"
                    )
            print(rule.rule, rule.pipeline, _summary(here), flush=True)
            found += here
            if json_file is not None:
                json_file.write_text(json.dumps([asdict(one) for one in found], indent=1))
    print("all", _summary(found))
    return 0


def _warm() -> None:
    """Import what is forked for each fault: that takes longer than most of them do."""
    warnings.simplefilter("ignore")
    from passes.engine.plugins import load_rules

    load_rules()
    import passes.verify.rewrites.verifying  # noqa: F401
    import tests.verification  # noqa: F401


def _summary(found: Sequence[Tried]) -> str:
    seconds = [sum(getattr(one, way).seconds for one in found) for way in ("both", "alone")]
    counts = Counter(one.name for one in found)
    return f"{len(found)} differ: {dict(counts)}; {seconds[0]:.1f} s, alone {seconds[1]:.1f} s"


def main_of_edits(count: int, seed: int, *, exported: bool, json_file: Path | None) -> int:
    """The same for faults that are seeded into Edits: on models of the golden folders, or on those
    of exporters."""
    _warm()
    draw, found = random.Random(seed), list[Tried]()
    targets = list(apart(_of_edits, exported))
    for number in range(count):
        rule = targets[number % len(targets)]
        path = draw.choice(rule.models)
        try:
            one = apart(_on_edit, rule, path, draw.random(), number % 2 == 1)
        except EOFError:
            continue
        if one is None:
            continue
        tried, outcome = one
        found.append(_with_judgement(tried, path, outcome))
        if tried.name not in ("both", "right"):
            print(
                f"{tried.name.upper()} {tried.rule} {tried.pipeline} {tried.model}: {tried.fault}: "
                f"{tried.both.became or tried.alone.became}: {tried.both.why or tried.alone.why}",
                flush=True,
            )
        if json_file is not None and number % 10 == 9:
            json_file.write_text(json.dumps([asdict(one) for one in found], indent=1))
    print("all", _summary(found))
    return 0


def _of_edits(exported: bool) -> list[Target]:
    from passes.engine.schedules import SCHEDULES

    if exported:
        return [
            Target("", name, (), _models(name, random.Random(0), 1000))
            for name in (*_COMMANDS, "upgrade", "unroll-partial")
        ]
    folders = [folder for folder in GOLDEN.iterdir() if folder.name in SCHEDULES]
    return [
        Target(
            "",
            one.name,
            (),
            tuple(sorted(path for path in one.glob("*.onnxtxt") if ".before." in path.name)),
        )
        for one in sorted(folders)
        if any(".before." in path.name for path in one.glob("*.onnxtxt"))
    ]


def _on_edit(
    rule: Target, path: Path, chance: float, alone_first: bool
) -> tuple[Tried, Outcome] | None:
    from tests.instruments.mutants.edits import edits_noted, tampered

    draw, keys = random.Random(chance), list[tuple[str, str]]()
    with edits_noted(keys):
        right = _in_time(partial(outcome_of, rule, path, verify=False))
    if right is None or right.stopped or not keys:
        return None
    names = sorted({name for name, _ in keys})
    for number in range(_ATTEMPTS):
        name = draw.choice(names)
        key = draw.choice([one for one in keys if one[0] == name])
        told: list[str] = []
        with tampered(key, number, told):
            outcome = _in_time(partial(outcome_of, rule, path, verify=False))
            if outcome is None or outcome.stopped or outcome.digest == right.digest:
                continue
            what = f"{key[1]}: {told[0] if told else ''}"
            ways = (alone_first, not alone_first)
            found = {alone: _judged(rule, path, alone) for alone in ways}
            if key not in found[False].sites:
                continue  # the model is invalid after the rewrite, which is left out
        nodes = _nodes(path)
        tried = Tried(name, rule.pipeline, what, path.name, nodes, found[False], found[True])
        return tried, outcome
    return None


def _targets(name: str, exported: bool, seed: int) -> Iterator[Target]:
    if name == STEPS:
        for module in apart(_families):
            models = _models("upgrade", random.Random(seed))
            yield Target(f"steps of {module}", "upgrade", (module,), models)
        return
    own = apart(target, name)
    own = replace(own, modules=tuple(filter(_is_of_rules, own.modules)))
    if not exported:
        draw = random.Random(seed)
        yield replace(own, models=_sample(own.models, draw))
        return
    pipeline = apart(_pipeline, name, own.pipeline)
    yield replace(own, pipeline=pipeline, models=_models(pipeline, random.Random(seed)))


def _is_of_rules(module: str) -> bool:
    """False for what verification is built on, too: with a fault there it is another one."""
    return not module.startswith("passes.analysis.")


def _modules(rules: Sequence[str]) -> tuple[str, ...]:
    """What these rules, and the steps, are written in: models are traced once for all of them."""
    found = [module for rule in rules for module in target(rule).modules if _is_of_rules(module)]
    return tuple(dict.fromkeys([*found, *_families()]))


def _families() -> list[str]:
    from passes.converters.table import FAMILIES

    return [one.__name__ for one in FAMILIES]


def _pipeline(rule: str, own: str) -> str:
    """The command with most rules that runs a rule."""
    from passes.engine.schedules import SCHEDULES

    return next((name for name in _COMMANDS if rule in SCHEDULES[name].rules), own)


def _models(pipeline: str, draw: random.Random, most: int = _MODELS) -> tuple[Path, ...]:
    """Exported models, the large ones of the newest opset, or any for the steps."""
    paths = sorted((GOLDEN / "exported").glob("*/*.onnx"), key=_opset)
    if pipeline != "upgrade":
        paths = list({(path.parent.name, path.name.split(".")[0]): path for path in paths}.values())
    large = [path for path in paths if _nodes(path) >= _NODES]
    return _sample(large, draw, most)


def _sample(paths: Sequence[Path], draw: random.Random, most: int = _MODELS) -> tuple[Path, ...]:
    return tuple(sorted(draw.sample(paths, min(most, len(paths)))))


def _opset(path: Path) -> int:
    return int(path.stem.partition(".opset")[2])


def _nodes(path: Path) -> int:
    return _count(onnx.load(path).graph)


def _count(graph: onnx.GraphProto) -> int:
    bodies = [one.g for node in graph.node for one in node.attribute if one.HasField("g")]
    return len(graph.node) + sum(map(_count, bodies))


def _tried(rule: Target, plain: Run, count: int, most: int, draw: random.Random) -> Iterator[Tried]:
    """Faults that change an outcome, each with the first model for which it does."""
    for number, (fault, models) in enumerate(drawn_faults(rule, plain, count, most, draw)):
        models = [path for path in models if not plain.outcomes[path.name].stopped]
        known = {path.name: plain.outcomes[path.name].digest for path in models}
        try:
            made = apart(_both, rule, models, fault, known, number % 2 == 1)
        except EOFError:
            continue
        if made is None:
            continue
        path, outcome, both, alone = made
        one = Tried(rule.rule, rule.pipeline, str(fault), path.name, _nodes(path), both, alone)
        yield _with_judgement(one, path, outcome)


def _with_judgement(one: Tried, path: Path, outcome: Outcome) -> Tried:
    if not (one.both.stopped and one.alone.stopped):
        before = onnx.load(path)
        said = {entry.key: entry.value for entry in before.metadata_props}
        assumed = [name for name in said.get("option assume", "").split(",") if name]
        one.wrong, one.judged = apart(difference, before, outcome.made, assumed, _SEEDS), True
    return one


def _both(
    rule: Target, models: Sequence[Path], fault: Fault, known: dict[str, str], alone_first: bool
) -> tuple[Path, Outcome, Judged, Judged] | None:
    reseed(fault.module, fault.source)
    for path in models:
        outcome = _in_time(partial(outcome_of, rule, path, verify=False))
        if outcome is None or outcome.stopped or outcome.digest == known[path.name]:
            continue
        found = {alone: _judged(rule, path, alone) for alone in (alone_first, not alone_first)}
        if any(one.seconds for one in found.values()):
            return path, outcome, found[False], found[True]
    return None


def _in_time(work: Callable[[], Result]) -> Result | None:
    signal.signal(signal.SIGALRM, _too_slow)
    signal.alarm(SECONDS)
    try:
        return work()
    except TimeoutError:
        return None
    finally:
        signal.alarm(0)


def _too_slow(number: int, frame: object) -> None:
    raise TimeoutError


def _judged(rule: Target, path: Path, alone: bool) -> Judged:
    return _in_time(partial(judged, rule, path, alone)) or Judged("too slow")


def judged(rule: Target, path: Path, alone: bool) -> Judged:
    """What verification makes of an outcome, of the whole model `alone` or of regions, too."""
    from passes import session
    from passes.reports.report import NOT_VERIFIED
    from passes.verify.rewrites import verifying

    usual, seen = verifying.verify_rounds, Judged()

    class Nothing(verifying.Uses):
        @staticmethod
        def of(round_: Round) -> verifying.Uses:
            return verifying.Uses([], [None] * len(round_.rewritten))

    def noting(
        model: Model, rounds: Sequence[Round], *arguments: object, **options: object
    ) -> Verdicts:
        seen.sites = [one.site for round_ in rounds for one in round_.rewritten]
        started = time.monotonic()
        verdicts: Verdicts = usual(model, rounds, *arguments, **options)
        seen.seconds += time.monotonic() - started
        seen.whole = "" if verdicts.whole is None else verdicts.whole.verdict
        seen.regions = dict(Counter(one.verdict for one in verdicts.rewrites))
        return verdicts

    model, command = prepared(rule, path, verify=True)
    with (
        patch.object(verifying, "verify_rounds", noting),
        patch.object(verifying, "Uses", Nothing if alone else verifying.Uses),
    ):
        try:
            result = command.run(model)
        except session.Mismatch as error:
            found = error.found
            seen.became = MISMATCH if found.path == "main" else f"{MISMATCH} in a region"
            seen.why = found.sentence
        except session.NotVerified as error:
            seen.became, seen.why = "not verified", str(error)
        except TimeoutError:
            raise
        except Exception as error:  # whatever a mutant may raise
            seen.became, seen.why = "failed", f"{type(error).__name__}: {error}"
        else:
            if any(one.code == NOT_VERIFIED for one in result.report.left_out):
                seen.became = "left out"
            elif alone and seen.whole not in ("", "verified"):
                seen.became, seen.why = "not verified", str(result.report.checked)
    return seen
