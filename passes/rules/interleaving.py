"""Puts in order what the copies of a partially unrolled loop collected, and what the rest did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onnx import TypeProto, helper

from passes import spelling
from passes.author import Author


@dataclass(frozen=True)
class Interleaving:
    """`rounds` and `rest` name how often both loops run, int64 scalars."""

    author: Author
    factor: int
    rounds: str
    rest: str

    def write(self, parts: Sequence[str], tail: str, kind: TypeProto, name: str) -> None:
        """What the copies collected (`parts`), in the order of the iterations, then what the rest
        did (`tail`), of type `kind`, as `name`.

        A loop that did not run knows only some sizes of what it collected, so only what did run
        is put together.
        """
        author = self.author
        some = author.op("Less", author.int(0), self.rounds)
        together = author.inside(f"{author.prefix}/ordered")
        inside = self._joined(together, self._interleaved(together, parts), tail, kind)
        alone = author.inside(f"{author.prefix}/alone")
        only = alone.op("Identity", tail)
        author.op(
            "If",
            some,
            outputs=[name],
            then_branch=together.graph("ordered", [], [helper.make_value_info(inside, kind)]),
            else_branch=alone.graph("alone", [], [helper.make_value_info(only, kind)]),
        )

    def _interleaved(self, author: Author, parts: Sequence[str]) -> str:
        """Row r of copy c becomes row r * factor + c."""
        count = author.int(self.factor)
        vector = spelling.unsqueeze(author, self.rounds, 0)
        at = spelling.arange(author, author.op("Mul", vector, author.ints(self.factor)))
        row = author.op("Div", at, count)
        copy = author.op("Sub", at, author.op("Mul", row, count))
        index = author.op("Add", author.op("Mul", copy, self.rounds), row)
        return author.op("Gather", author.op("Concat", *parts, axis=0), index, axis=0)

    def _joined(self, author: Author, rows: str, tail: str, kind: TypeProto) -> str:
        both, first = author.inside(f"{author.prefix}/both"), author.inside(f"{author.prefix}/one")
        all_rows, same = both.op("Concat", rows, tail, axis=0), first.op("Identity", rows)
        return author.op(
            "If",
            self.author.op("Less", self.author.int(0), self.rest),
            then_branch=both.graph("both", [], [helper.make_value_info(all_rows, kind)]),
            else_branch=first.graph("one", [], [helper.make_value_info(same, kind)]),
        )
