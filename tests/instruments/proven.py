"""How many golden pairs are proven, by command and by method, and why the others are not.

Use: `python -m tests.instruments.proven [PART OF A PATH]`; `--write` writes the table of
`docs/trust.md` anew.
"""

from __future__ import annotations

import warnings
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from time import monotonic

import onnx

from passes.choices import ProofScope, RuleOptions
from passes.ir.model import Model
from passes.proving.drawn.proving import prove_at_sizes
from passes.proving.narrowing import prove
from passes.proving.pair import NoPair, Pair
from passes.proving.promises import NO_PROMISES, Promises
from passes.proving.prover import attempt
from passes.reports.proof import Proof

ROOT = Path(__file__).parent.parent.parent
FOLDER, PAGE = ROOT / "golden_models", ROOT / "docs" / "trust.md"
BEGIN, END = "<!-- proven by rule -->\n", "<!-- end of proven by rule -->\n"
_BUDGET = 20.0


def golden_pairs(part: str = "") -> list[Path]:
    """The models before, whose path has this part, of commands whose outcomes are equal."""
    paths = sorted(FOLDER.glob("*/*.before.onnxtxt"))
    return [path for path in paths if part in str(path) and path.parent.name != "cast"]


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


def proof_of(before: Path, budget: float = _BUDGET) -> Proof:
    """The proof of a golden pair for all sizes, in so many seconds."""
    return for_all_sizes(*sides(before), budget, promises_of(before))


def proof_in_turn(before: Path) -> Proof:
    """The widest proof of a golden pair."""
    return prove(*sides(before), _BUDGET, promises_of(before)).proof


def for_all_sizes(
    before: Model, after: Model, budget: float = _BUDGET, promises: Promises = NO_PROMISES
) -> Proof:
    """The proof of a pair for all sizes, without the narrower ones."""
    try:
        found = attempt(Pair.of(before, after, promises), budget).proof
    except NoPair as error:
        return error.proof
    return replace(found, promised=tuple(promises.sentences()))


def at_drawn_sizes(
    before: Model, after: Model, budget: float = _BUDGET, promises: Promises = NO_PROMISES
) -> Proof:
    """The proof of a pair at drawn sizes, without the wider ones."""
    try:
        return prove_at_sizes(Pair.of(before, after, promises), budget)
    except NoPair as error:
        return error.proof


def kind_of(proof: Proof) -> str:
    """The scope of a proof, or the code of what is not proven."""
    return proof.kind or proof.code


def table(proofs: Mapping[str, Counter[str]]) -> str:
    """The table of the page: a row for each command, and one for all."""
    head = "| golden pairs of | all sizes | stated sizes | up to summation | not | why not |\n"
    lines = [head, "|---|---|---|---|---|---|\n"]
    total: Counter[str] = Counter()
    for command, kinds in proofs.items():
        lines.append(row(f"`{command}`", kinds))
        total += kinds
    return "".join([*lines, row("**all**", total)])


def row(name: str, kinds: Counter[str]) -> str:
    """A row of the table: the pairs by scope, and the codes of the others."""
    scopes = [*ProofScope]
    codes = {kind: count for kind, count in kinds.items() if kind not in scopes}
    why = ", ".join(f"{kind} {count}" for kind, count in sorted(codes.items()))
    cells = [*(kinds[one] for one in scopes), sum(codes.values()), why]
    return f"| {name} | {' | '.join(map(str, cells))} |\n"


def main() -> None:
    """Print a line for each pair that is not proven, and the table."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("part", nargs="?", default="", help="only paths that contain this")
    parser.add_argument("--write", action="store_true", help="write the table into docs/trust.md")
    options = parser.parse_args()
    part, is_written = options.part, options.write
    proofs: dict[str, Counter[str]] = {}
    begin = monotonic()
    for path in golden_pairs(part):
        proof = proof_in_turn(path)
        proofs.setdefault(path.parent.name, Counter())[kind_of(proof)] += 1
        if not proof.is_proven:
            name = path.name.removesuffix(".before.onnxtxt")
            print(f"{path.parent.name}/{name}: {proof.sentence()[:400]}")
    print(table(proofs), end="")
    print(f"{monotonic() - begin:.0f} s")
    if is_written:
        before, _, rest = PAGE.read_text().partition(BEGIN)
        after = rest.partition(END)[2]
        PAGE.write_text(f"{before}{BEGIN}{table(proofs)}{END}{after}")


if __name__ == "__main__":
    warnings.filterwarnings("ignore", "The onnxtxt format is experimental")
    main()
