"""`python -m tests.instruments.mutants [RULE ...] [--count N] [--seed S] [--json FILE]`.

The rule `steps` stands for the files of adapters of the opset table, each of them; `stream` for the
command; `outcomes` for faults that are seeded into outcomes, not into rules (`outcomes.py`);
`proofs RULE ...` for what proof stops and what execution stops (`proved.py`); `regions RULE ...`
for what is stopped by verification of regions, and by that of the whole model alone (`regions.py`);
`edits` for the same of faults in what rules write; on golden models or, `--exported`, others.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

# shared with every process that is forked; the rules themselves must not be imported here
import onnx.reference
import onnx.shape_inference

from tests.instruments.mutants.drawing import drawn_faults
from tests.instruments.mutants.judge import difference
from tests.instruments.mutants.outcomes_tried import main as try_outcomes
from tests.instruments.mutants.proved import main as try_proofs
from tests.instruments.mutants.regions import main as try_regions
from tests.instruments.mutants.regions import main_of_edits as try_edits
from tests.instruments.mutants.steps_tried import step_targets
from tests.instruments.mutants.streams_tried import difference as unlike_the_whole
from tests.instruments.mutants.streams_tried import stream_target
from tests.instruments.mutants.targets import RULES, STREAM, Target, target
from tests.instruments.mutants.trial import Outcome, apart, run

STEPS = "steps"
OUTCOMES = "outcomes"
PROOFS = "proofs"
REGIONS = "regions"
EDITS = "edits"
_NONE = "no difference"


@dataclass(frozen=True)
class Verdict:
    """What became of one fault on one model."""

    rule: str
    fault: str
    model: str
    became: str  # who stopped it; harmless; slipped; no difference
    why: str = ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Seed faults, print what became of each and the shares; 1 where one slipped through."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.instruments.mutants", description=__doc__
    )
    parser.add_argument("rules", nargs="*", default=[*RULES, STEPS], metavar="RULE")
    parser.add_argument("--count", type=int, default=10, help="faults per rule")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--models", type=int, default=12, help="models per fault, at most")
    parser.add_argument("--exported", action="store_true", help="models of exporters")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    if OUTCOMES in asked.rules:
        return try_outcomes()
    if PROOFS in asked.rules:
        rules = [name for name in asked.rules if name != PROOFS] or [*RULES]
        return try_proofs(rules, asked.count, asked.models, asked.seed)
    if EDITS in asked.rules:
        options = {"exported": asked.exported, "json_file": asked.json}
        return try_edits(asked.count, asked.seed, **options)
    if REGIONS in asked.rules:
        rules = [name for name in asked.rules if name != REGIONS] or [*RULES, STEPS]
        options = {"exported": asked.exported, "json_file": asked.json}
        return try_regions(rules, asked.count, asked.models, asked.seed, **options)
    verdicts: list[Verdict] = []
    with tempfile.TemporaryDirectory() as scratch:
        for target in _targets(asked.rules, Path(scratch)):
            found = list(_rule(target, asked.count, asked.models, random.Random(asked.seed)))
            for verdict in found:
                if verdict.became == "slipped":
                    print(f"SLIPPED {verdict.rule} {verdict.model}: {verdict.fault}: {verdict.why}")
            print(target.rule, _shares(found), flush=True)
            verdicts += found
    print("all", _shares(verdicts))
    if asked.json:
        asked.json.write_text(json.dumps([asdict(verdict) for verdict in verdicts], indent=1))
    return int(any(verdict.became == "slipped" for verdict in verdicts))


def _shares(verdicts: Sequence[Verdict]) -> str:
    """How many faults there were, and what became of those that made a difference."""
    drawn = {(verdict.rule, verdict.fault) for verdict in verdicts}
    different = {(verdict.rule, verdict.fault) for verdict in verdicts if verdict.became != _NONE}
    became = Counter(verdict.became for verdict in verdicts if verdict.became != _NONE)
    return f"{len(drawn)} faults, {len(different)} made a difference: {dict(became)}"


def _targets(names: Sequence[str], scratch: Path) -> Iterator[Target]:
    for name in names:
        if name == STEPS:
            yield from step_targets(scratch)
        elif name == STREAM:
            yield apart(stream_target, scratch)
        else:
            yield apart(target, name)


def _rule(rule: Target, count: int, most: int, draw: random.Random) -> Iterator[Verdict]:
    """Faults at lines that run, each on models for which its line runs."""
    plain = run(rule, rule.models, None, trace=True)
    for fault, models in drawn_faults(rule, plain, count, most, draw):
        made = run(rule, models, fault)
        told = False
        for path in models:
            was, outcome = plain.outcomes[path.name], made.outcomes[path.name]
            if outcome.digest == was.digest and outcome.stopped == was.stopped:
                continue  # the fault makes no difference here
            told = True
            became, why = _became(rule, path, was, outcome)
            yield Verdict(rule.rule, str(fault), path.name, became, why)
        if not told:
            yield Verdict(rule.rule, str(fault), "", _NONE)


def _became(rule: Target, path: Path, was: Outcome, outcome: Outcome) -> tuple[str, str]:
    if outcome.stopped:
        return outcome.stopped, outcome.why
    before = onnx.load(path)
    if rule.rule == STREAM:
        sentence = apart(unlike_the_whole, before, outcome.made)
        return ("slipped", sentence) if sentence else ("harmless", "")
    said = {entry.key: entry.value for entry in before.metadata_props}
    assumed = tuple(filter(None, said.get("option assume", "").split(",")))
    sentence = apart(difference, before, outcome.made, assumed)
    return ("slipped", sentence) if sentence else ("harmless", "")


if __name__ == "__main__":
    sys.exit(main())
