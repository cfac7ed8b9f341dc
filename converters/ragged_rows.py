"""What a loop over time has collected, by row: from [longest, batch, ...] to [batch, time, ...].

Rows are looked up, for onnxruntime's Where takes several passes over them and loses -0.0; that
brings time behind batch, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from converters.sequence_lens import Lengths
from passes import spelling
from passes.author import Author


@dataclass(frozen=True)
class RaggedRows:
    """Rows that end one by one; `longest` (int64 [1], above 0) is how long the loop runs."""

    author: Author
    lengths: Lengths
    longest: str

    def padded(self, run: str, elem_type: int, output: str) -> None:
        """Zero behind the length of each row, up to the full time."""
        author, one = self.author, self.author.ints(1)
        shape = author.op("Concat", one, spelling.rest_of_shape(author, run, 1), axis=0)
        nothing = spelling.zeros(author, shape, elem_type)
        known = author.op("Concat", run, nothing, axis=0)
        author.op("GatherND", known, self._places, outputs=[output])

    def last(self, run: str) -> str:
        """What the last valid iteration of each row gave; at length 0 what its first one gave."""
        return self.author.op("GatherND", run, self._last_places)

    @cached_property
    def _rows(self) -> str:
        """The number of each row, int64 [batch, 1]."""
        author = self.author
        rows = spelling.arange(author, author.op("Shape", self.lengths.vector))
        return spelling.unsqueeze(author, rows, 1)

    @cached_property
    def _last_places(self) -> str:
        """Iteration and row, int64 [batch, 2]."""
        author, one = self.author, self.author.ints(1)
        before = author.op("Sub", author.op("Max", self.lengths.vector, one), one)
        return author.op("Concat", spelling.unsqueeze(author, before, 1), self._rows, axis=1)

    @cached_property
    def _places(self) -> str:
        """Iteration and row, or behind the last iteration, int64 [batch, time, 2]."""
        author = self.author
        steps = spelling.arange(author, self.lengths.time)
        runs = author.op("Less", steps, spelling.unsqueeze(author, self.lengths.vector, 1))
        iteration = author.op("Where", runs, steps, self.longest)
        row = author.op("Expand", self._rows, author.op("Shape", iteration))
        pair = [spelling.unsqueeze(author, one, 2) for one in (iteration, row)]
        return author.op("Concat", *pair, axis=2)
