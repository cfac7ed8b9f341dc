"""How many pairs are proven, by command and by scope, and why the others are not.

Use: `python -m tests.instruments.proven [PART OF A NAME]` for the golden pairs; `--exported` for
the outcomes of five commands on each exported model, which take an hour of one core. `--times`
compares each proof with the verification of the same outcome, `--write` writes the table of
`docs/trust.md` anew.
"""

from __future__ import annotations

import os
import warnings
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from time import monotonic
from typing import Protocol

import onnx

from passes.choices import ProofScope, RuleOptions
from passes.commands.comparing import Verify
from passes.ir.model import Model
from passes.ir.operators import op_of
from passes.ir.places import walk_model
from passes.proving.drawn.proving import prove_at_sizes
from passes.proving.narrowing import prove
from passes.proving.pair import NoPair, Pair
from passes.proving.promises import NO_PROMISES, Promises
from passes.proving.prover import attempt
from passes.reports.proof import Proof
from tests.instruments.soak.commands import Command

ROOT = Path(__file__).parent.parent.parent
FOLDER, PAGE = ROOT / "golden_models", ROOT / "docs" / "trust.md"
EXPORTED = FOLDER / "exported"
#: The commands whose outcomes of exported models are proven.
COMMANDS = ("optimize", "upgrade", "lower", "raise", "unroll")
#: The most characters of a sentence that is printed.
_LONGEST = 400


class Outcome(Protocol):
    """Two models that are to be proven equal, the second one made by a command."""

    @property
    def name(self) -> str: ...

    @property
    def command(self) -> str: ...

    @property
    def promises(self) -> Promises: ...

    def sides(self) -> tuple[Model, Model] | None:
        """Both models; None if the command changes nothing."""

    def verified(self) -> float:
        """The seconds that verification of the second model takes."""


@dataclass(frozen=True)
class GoldenPair:
    """A golden pair, by the path of its first model; verified as a whole."""

    path: Path

    @property
    def name(self) -> str:
        return f"{self.command}/{self.path.name.removesuffix('.before.onnxtxt')}"

    @property
    def command(self) -> str:
        return self.path.parent.name

    @property
    def promises(self) -> Promises:
        return promises_of(self.path)

    def sides(self) -> tuple[Model, Model]:
        return sides(self.path)

    def verified(self) -> float:
        before, after = self.sides()
        begin = monotonic()
        Verify(before.proto, after.proto).run()
        return monotonic() - begin


@dataclass(frozen=True)
class ExportedPair:
    """An exported model and the outcome of a command; verified as the command does it, rewrite by
    rewrite and as a whole."""

    path: Path
    command: str

    @property
    def name(self) -> str:
        return f"{self.path.relative_to(EXPORTED).with_suffix('')}, {self.command}"

    @property
    def promises(self) -> Promises:
        return NO_PROMISES

    def sides(self) -> tuple[Model, Model] | None:
        before = onnx.load(self.path)
        after = Command(self.command).run(before).model
        return None if after is before else (Model.load(before), Model.load(after))

    def verified(self) -> float:
        return Command(self.command).run(onnx.load(self.path), verify=True).report.spent.verifying


@dataclass(frozen=True)
class Found:
    """The result of a pair: the scope of its proof, else the obstacle; the verdict as a sentence;
    and the seconds of the proof and of the verification, 0 if that was not asked for."""

    name: str
    command: str
    kind: str
    sentence: str
    proving: float
    verifying: float = 0.0

    @property
    def is_proven(self) -> bool:
        """True if there is a proof."""
        return self.kind in list(ProofScope)


@dataclass(frozen=True)
class Table:
    """A table of the page: the first heading, the comment in front of it, the budget of a proof in
    seconds, and the pairs whose names have a part."""

    title: str
    mark: str
    budget: float
    pairs: Callable[[str], Sequence[Outcome]]

    def found(self, pair: Outcome, *, timed: bool = False) -> Found | None:
        """The result of a pair; None if the command changes nothing."""
        if (models := pair.sides()) is None:
            return None
        before, after = models
        begin = monotonic()
        proof = prove(before, after, self.budget, pair.promises).proof
        seconds = monotonic() - begin
        kind = proof.kind or obstacle_of(proof, before, after)
        verifying = pair.verified() if timed else 0.0
        return Found(pair.name, pair.command, kind, proof.sentence(), seconds, verifying)

    def text(self, found: Iterable[Found]) -> str:
        """A row for each command, and one for all."""
        kinds: dict[str, Counter[str]] = {}
        for one in found:
            kinds.setdefault(f"`{one.command}`", Counter())[one.kind] += 1
        kinds["**all**"] = sum(kinds.values(), Counter())
        heads = "pairs | all sizes | stated sizes | up to summation | not | why not"
        lines = [f"| {self.title} | {heads} |\n", "|---" * 7 + "|\n"]
        return "".join([*lines, *(_row(*one) for one in kinds.items())])

    def rows(self) -> dict[str, str]:
        """The rows on the page, by command."""
        text = PAGE.read_text().partition(self._begin)[2].partition(self._end)[0]
        return {line.split("`")[1]: line for line in text.splitlines(keepends=True) if "`" in line}

    def write(self, text: str) -> None:
        """Put it into the page."""
        before, _, rest = PAGE.read_text().partition(self._begin)
        after = rest.partition(self._end)[2]
        PAGE.write_text(f"{before}{self._begin}{text}{self._end}{after}")

    @property
    def _begin(self) -> str:
        return f"<!-- {self.mark} -->\n"

    @property
    def _end(self) -> str:
        return f"<!-- end of {self.mark} -->\n"


def _row(name: str, kinds: Counter[str]) -> str:
    """A row: the pairs by scope, and the obstacles of the others, the most frequent first."""
    others = Counter({kind: count for kind, count in kinds.items() if kind not in list(ProofScope)})
    obstacles = sorted(others.items(), key=lambda one: (-one[1], one[0]))
    why = ", ".join(f"{kind} {count}" for kind, count in obstacles)
    cells = [kinds.total(), *(kinds[one] for one in ProofScope), others.total(), why]
    return f"| {name} | {' | '.join(map(str, cells))} |\n"


def golden_pairs(part: str = "") -> list[Path]:
    """The models before, whose path has this part, of commands whose outcomes are equal."""
    paths = sorted(FOLDER.glob("*/*.before.onnxtxt"))
    return [path for path in paths if part in str(path) and path.parent.name != "cast"]


def outcomes_of_golden(part: str = "") -> list[GoldenPair]:
    """The golden pairs whose path has this part."""
    return [GoldenPair(path) for path in golden_pairs(part)]


def exported_pairs(part: str = "") -> list[ExportedPair]:
    """The exported models with each command, whose name has this part."""
    paths = sorted(EXPORTED.glob("*/*.onnx"))
    pairs = [ExportedPair(path, command) for command in COMMANDS for path in paths]
    return [pair for pair in pairs if part in pair.name]


GOLDEN = Table(
    "golden pairs of",
    "proven by rule",
    20.0,
    outcomes_of_golden,
)
OF_EXPORTERS = Table("exported models, by", "proven of exported models", 10.0, exported_pairs)


def sides(before: Path) -> tuple[Model, Model]:
    """The models of a golden pair."""
    after = before.with_name(before.name.replace(".before.", ".after."))
    return Model.load(onnx.load(before)), Model.load(onnx.load(after))


def promises_of(before: Path) -> Promises:
    """The promises in the options of a golden model."""
    options = {one.key: one.value for one in onnx.load(before).metadata_props}
    assume = tuple(options.get("option assume", "").split(","))
    trips = options.get("option max_trips")
    check = options.get("option check_output", "")
    most = None if trips is None else int(trips)
    return Promises.of([RuleOptions(assume, max_trips=most, check_output=check)])


def proof_of(before: Path, budget: float = GOLDEN.budget) -> Proof:
    """The proof of a golden pair for all sizes, in so many seconds."""
    return for_all_sizes(*sides(before), budget, promises_of(before))


def for_all_sizes(
    before: Model,
    after: Model,
    budget: float = GOLDEN.budget,
    promises: Promises = NO_PROMISES,
) -> Proof:
    """The proof of a pair for all sizes, without the narrower ones."""
    try:
        found = attempt(Pair.of(before, after, promises), budget).proof
    except NoPair as error:
        return error.proof
    return replace(found, promised=tuple(promises.sentences()))


def at_drawn_sizes(
    before: Model, after: Model, budget: float = GOLDEN.budget, promises: Promises = NO_PROMISES
) -> Proof:
    """The proof of a pair at drawn sizes, without the wider ones."""
    try:
        return prove_at_sizes(Pair.of(before, after, promises), budget)
    except NoPair as error:
        return error.proof


def obstacle_of(proof: Proof, before: Model, after: Model) -> str:
    """The code of what is not proven, and the operator at which the proof ended."""
    path, _, side = proof.node.rpartition(" ")
    places = walk_model((before if side == "before" else after).proto)
    op = next((op_of(place.node) for place in places if place.path == path), "")
    return f"{proof.code} {op}".strip()


def results(
    table: Table, pairs: Sequence[Outcome], jobs: int, *, timed: bool = False
) -> Iterator[Found]:
    """The results of the pairs that differ, in their order, computed by so many processes."""
    run = partial(table.found, timed=timed)
    with ProcessPoolExecutor(jobs) as pool:
        yield from filter(None, pool.map(run, pairs))


def times(found: Sequence[Found]) -> str:
    """A line on how long proofs take, in seconds and against verification."""
    ratios = {one.name: one.proving / one.verifying for one in found if one.verifying}
    if not ratios:
        return "nothing was verified"
    worst = max(ratios, key=lambda name: ratios[name])
    seconds = [median(one.proving for one in found), median(one.verifying for one in found)]
    return (
        f"proving / verifying: median {median(ratios.values()):.2f}x, worst {ratios[worst]:.2f}x"
        f" ({worst}); medians {seconds[0]:.2f} s and {seconds[1]:.2f} s of {len(ratios)}"
    )


def main() -> None:
    """Print a line for each pair that is not proven, and the table."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("part", nargs="?", default="", help="only names that contain this")
    parser.add_argument("--exported", action="store_true", help="outcomes of exported models")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only each N-th pair")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count(), help="processes; default: cores"
    )
    parser.add_argument("--times", action="store_true", help="compare with verification")
    parser.add_argument("--write", action="store_true", help="write the table into docs/trust.md")
    options = parser.parse_args()
    begin = monotonic()
    table = OF_EXPORTERS if options.exported else GOLDEN
    found = []
    pairs = table.pairs(options.part)[:: options.every]
    for one in results(table, pairs, options.jobs, timed=options.times):
        found.append(one)
        if not one.is_proven:
            print(f"{one.name}: {one.sentence[:_LONGEST]}", flush=True)
    print(table.text(found), end="")
    if options.times:
        print(times(found))
    print(f"{monotonic() - begin:.0f} s")
    if options.write:
        part = f"Each {options.every}th pair.\n\n" if options.every > 1 else ""
        table.write(f"{part}{table.text(found)}")


if __name__ == "__main__":
    warnings.filterwarnings("ignore", "The onnxtxt format is experimental")
    main()
