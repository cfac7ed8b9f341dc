"""What a long run counted: several runs add up.

`python -m tests.instruments.tally one.json two.json` prints the sum.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Tally:
    """`runs` say which seeds were run; `counts` are of things that are alike, under a title;
    `faults` and `known` map a kind of fault to the seeds that show it."""

    runs: list[str] = field(default_factory=list)
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    faults: dict[str, list[int]] = field(default_factory=dict)
    known: dict[str, list[int]] = field(default_factory=dict)

    def count(self, title: str, what: str, number: int = 1) -> None:
        """Count something."""
        self.counts.setdefault(title, Counter())[what] += number

    def number(self, title: str) -> int:
        """How many things there are under a title."""
        return self.counts.get(title, Counter()).total()

    def add(self, other: Tally) -> None:
        """Take in another run.

        Raises:
            ValueError: it was taken in before.
        """
        if again := set(self.runs) & set(other.runs):
            raise ValueError(f"counted twice: {', '.join(sorted(again))}")
        self.runs += other.runs
        for title, counts in other.counts.items():
            self.counts.setdefault(title, Counter()).update(counts)
        for ours, theirs in ((self.faults, other.faults), (self.known, other.known)):
            for kind, seeds in theirs.items():
                ours.setdefault(kind, []).extend(seeds)

    def lines(self) -> Iterator[str]:
        """The report."""
        yield from self.runs
        for title, counts in self.counts.items():
            yield f"{title}: {counts.total()}"
            yield from (f"  {number:7} {what}" for what, number in sorted(counts.items()))
        for name, kinds in (("known", self.known), ("fault", self.faults)):
            for kind, seeds in kinds.items():
                yield f"{name}, {len(seeds)} times, seeds {seeds[:5]}: {kind}"

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(vars(self), indent=1), encoding="utf-8")

    @staticmethod
    def load(path: Path) -> Tally:
        """What `save` wrote."""
        said = json.loads(path.read_text(encoding="utf-8"))
        counts = {title: Counter(one) for title, one in said["counts"].items()}
        return Tally(said["runs"], counts, said["faults"], said["known"])


def main() -> None:
    """Print the sum of the runs in some files."""
    parser = argparse.ArgumentParser(prog="python -m tests.instruments.tally", description=__doc__)
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the sum, too")
    options = parser.parse_args()
    total = Tally()
    for path in options.files:
        total.add(Tally.load(path))
    print("\n".join(total.lines()))
    if options.json is not None:
        total.save(options.json)


if __name__ == "__main__":
    main()
