"""The trip count of a loop, as far as it is known before the model runs, and the Ifs around a loop
that ensure an iteration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from passes.analysis.integers.affine import Affine, Atom, single_of
from passes.analysis.integers.integers import Integers
from passes.analysis.trip_count.conditions import ends_with_its_count, never_ends, starts_always
from passes.ir.operators import op_of
from passes.ir.scope import Place
from passes.ir.versions import LESS_TAKES_INTEGERS
from passes.loops.form import Kind, LoopForm
from passes.loops.parts import conjuncts
from passes.rule import Site
from passes.types.value_types import Dim, dims_of
from passes.writing import spelling
from passes.writing.author import Author


def declared_size(site: Site, tensor: str, axis: int) -> Dim:
    """The size of an axis of an outer tensor by its type; None where that is unknown."""
    dims = dims_of(site.type_of(tensor))
    return dims[axis] if dims is not None and -len(dims) <= axis < len(dims) else None


@dataclass(frozen=True)
class TripCount:
    """The trip count of a Scan-8, Scan or Loop at its site; each fact is computed on demand.

    `size` iterations run at most, and just as many unless the loop is `conditional`; of a Scan-8,
    for each row of the batch, which may be empty.
    """

    site: Site
    form: LoopForm

    def __str__(self) -> str:
        shown = "dynamic" if self.declared is None else str(self.declared)
        return f"<= {shown}" if self.conditional and self.declared is not None else shown

    # -- how many iterations ------------------------------------------------------------------

    @cached_property
    def declared(self) -> Dim:
        """The most iterations by types and constants alone: a number, a symbol, or None."""
        if self._is_loop:
            return None if self._maximum is None else max(0, self._maximum)
        scanned = self.form.scanned
        known = [declared_size(self.site, read.tensor, read.axis) for read in scanned]
        found = sorted((dim for dim in known if dim is not None), key=lambda d: isinstance(d, str))
        return found[0] if found else None

    @property
    def constant(self) -> int | None:
        """The number of iterations in every run, where types and constants alone determine it."""
        return None if self.conditional or not isinstance(self.declared, int) else self.declared

    @cached_property
    def static(self) -> int | None:
        """The number of iterations in every run; None where it is unknown.

        That of a Loop may follow from known sizes: then it depends on the nodes before the loop.
        """
        if self.never_runs:
            return 0
        if self.conditional or isinstance(self.declared, int):
            return self.constant
        return self.size.number if self._is_loop else None

    @cached_property
    def size(self) -> Affine:
        """The most iterations in terms of sizes: M, or the length of what is scanned."""
        if self._maximum is not None:
            return Affine(self._maximum)
        name = self.form.trip_count
        if name:
            known = single_of(self._integers.outside(name))
            if known is not None:
                return known
        elif not self._is_loop:
            sizes = [
                self._integers.size(scanned.tensor, scanned.axis) for scanned in self.form.scanned
            ]
            fixed = [size for size in sizes if size is not None and size.number is not None]
            return next(iter(fixed or sizes), None) or self._unknown
        return self._unknown

    @property
    def unlimited(self) -> bool:
        """True if it is a Loop without M, which nothing but a condition ends."""
        return self._is_loop and not self.form.trip_count

    # -- conditions ---------------------------------------------------------------------------

    @cached_property
    def starts(self) -> str:
        """The condition that lets the loop run at all, "" where it always holds."""
        if self.form.condition is None or starts_always(self.site, self.form):
            return ""
        return self.form.condition.initial

    @cached_property
    def ends_early(self) -> bool:
        """True if what the body computes, or sequence_lens, may end it."""
        return bool(self.form.lengths) or not never_ends(self.site, self.form)

    @property
    def conditional(self) -> bool:
        """True if fewer iterations may run than `size`."""
        return bool(self.starts) or self.ends_early

    # -- the first iteration ------------------------------------------------------------------

    @cached_property
    def always_runs(self) -> bool:
        """True if an iteration runs in every run of the model, proven or assumed by the user."""
        return self._surely_runs or (self.site.assumes("non-empty") and self.runs_if_non_empty)

    @cached_property
    def never_runs(self) -> bool:
        """True if no iteration runs, whatever the inputs."""
        if not self._is_loop:
            return self.declared == 0
        first = self.site.constant(self.starts) if self.starts else None
        stopped = first is not None and first.size == 1 and not first.item()
        return stopped or (self.size.number is not None and self.size.number < 1)

    @cached_property
    def at_most_once(self) -> bool:
        """True if no second iteration runs; a Scan-8 may run one for each row of the batch."""
        if self._is_loop:
            return self.size.number == 1
        return self.declared == 1 and self.form.kind is Kind.SCAN

    @cached_property
    def runs_if_non_empty(self) -> bool:
        """True if an iteration runs in every run of the model in which no size is 0, but for those
        that conditions decide."""
        if not self._is_loop:
            return not self.never_runs
        sizes = all(self._is_size(atom) and n > 0 for atom, n in self.size.terms)
        least = self.size.constant + sum(count for _, count in self.size.terms)
        some = not self.starts and sizes and self.size.fits() and least >= 1
        return some or self._surely_runs

    def _is_size(self, atom: Atom) -> bool:
        """Return whether it is the size of an axis, and none that a condition decides: the user
        promised that the others are not 0."""
        if atom.axis is None:
            return False
        model, home = self.site.model, self.site.model.home(self.site.scope, atom.tensor)
        producer = None if home is None else model.producer(home.owner, atom.tensor)
        if home is None or producer is None or op_of(producer) not in ("If", "Loop"):
            return True
        index = model.index(home.owner).positions[atom.tensor]
        is_loop = op_of(producer) == "Loop"
        return is_loop and ends_with_its_count(model, home, index, self.site.opset)

    @cached_property
    def evidently_runs(self) -> bool:
        """True if it always runs by constants and types alone, or by a static trip count."""
        if not self._is_loop:
            return self._surely_runs
        if self.static is not None:
            return self.static > 0
        return not self.starts and (self.unlimited or bool(self.declared))

    @property
    def rests_on_proof(self) -> bool:
        """True if the proof that the loop runs, or a part of it, depends on nodes before it."""
        if self.always_runs or not self._is_loop or self.unlimited:
            return self.always_runs
        condition = self.form.condition
        started = condition is not None and condition.initial and not self.starts
        return bool(started) or self.size.number is not None

    @cached_property
    def _surely_runs(self) -> bool:
        if self._is_loop:
            return not self.starts and (self.unlimited or self.size.at_least(1))
        if self.form.kind is Kind.SCAN_8:
            rows = (declared_size(self.site, scanned.tensor, 0) for scanned in self.form.scanned)
            if self.form.lengths or not any(isinstance(size, int) and size for size in rows):
                return False
        return isinstance(self.declared, int) and self.declared > 0

    # -- what guards M ------------------------------------------------------------------------

    @cached_property
    def guards(self) -> frozenset[str]:
        """The values on the way to M that are guarded."""
        return frozenset(self._guarding)

    @cached_property
    def zeros(self) -> tuple[Affine, ...]:
        """Differences that these guards make 0, since they compare sizes for equality."""
        return tuple(zero for found in self._guarding.values() for zero in found or ())

    @cached_property
    def only_equalities(self) -> bool:
        """True if the guards compare nothing else."""
        return None not in self._guarding.values()

    def vanishes(self, slack: Affine) -> Affine:
        """A difference, reduced by what the guards on M make 0."""
        for zero in self.zeros:
            for factor in (1, -1):
                if (slack + zero.times(factor)).number is not None:
                    return slack + zero.times(factor)
        return slack

    @cached_property
    def _guarding(self) -> dict[str, list[Affine] | None]:
        """The differences that each guard makes 0; None where it checks anything else."""
        found = self._integers.guards(self.form.trip_count)
        return {name: self._equalities(guard.condition) for name, guard in found.items()}

    def _equalities(self, condition: str) -> list[Affine] | None:
        found, integers = [], self._integers
        for node, _ in conjuncts(condition, integers.producer):
            if node is None or op_of(node) != "Equal":
                return None
            left, right = (single_of(integers.outside(name)) for name in node.input)
            if left is None or right is None:
                return None
            found.append(left - right)
        return found

    # -- written ------------------------------------------------------------------------------

    @property
    def can_be_computed(self) -> bool:
        """True if the model can compute before the loop whether it runs, and branch on that."""
        if self.site.options.no_branches:
            return False
        return self.form.kind is not Kind.SCAN_8 and self.site.target >= LESS_TAKES_INTEGERS

    def scalar(self, author: Author) -> str:
        """The most iterations as an int64 scalar; below 1 where the loop does not run."""
        if not self._is_loop:
            first = self.form.scanned[0]
            size = spelling.size_of_axis(author, first.tensor, first.axis)
            return spelling.squeeze(author, size, 0)
        if self.size.number is not None:
            count = author.int(self.size.number)
        else:
            name = self.form.trip_count
            count = spelling.scalar(author, name, self.site.type_of(name))
        if not self.starts:
            return count
        return author.op("Where", self._started(author), count, author.int(0))

    def condition(self, author: Author) -> str:
        """Write whether an iteration runs, a bool scalar; where that `can_be_computed`."""
        if self.unlimited:
            return self._started(author)
        return author.op("Greater", self.scalar(author), author.int(0))

    def _started(self, author: Author) -> str:
        return author.op("Reshape", self.starts, author.ints())

    # -- the parts ----------------------------------------------------------------------------

    @property
    def _is_loop(self) -> bool:
        return self.form.kind is Kind.LOOP

    @cached_property
    def _maximum(self) -> int | None:
        """M, where it is a constant."""
        value = self.site.constant(self.form.trip_count) if self.form.trip_count else None
        return int(value.item()) if value is not None and value.size == 1 else None

    @cached_property
    def _integers(self) -> Integers:
        return Integers(self.site)

    @property
    def _unknown(self) -> Affine:
        """An unknown number."""
        name = self.form.trip_count
        return Affine.of(Atom(("trip count", self.site.path), name, shown=name))


def is_guarded_by_if(site: Site, form: LoopForm) -> bool:
    """Return whether a Scan runs at least once because an If around it ensures that.

    The condition must compare the size of the scanned axis itself with a number of 0 or
    more, as `raise-loop` writes it. What rests on this holds in the branch only: an Edit says so
    by `entered`.
    """
    if form.kind is not Kind.SCAN:
        return False
    integers = Integers(site)
    sizes = [integers.size(scanned.tensor, scanned.axis) for scanned in form.scanned]
    exceeded = [count for count, bound in _exceeding(site) if bound.at_least(0)]
    return any(size is not None and size.at_least(least) for least in exceeded for size in sizes)


def least_size(site: Site, tensor: str, axis: int) -> int:
    """The least size of an axis of an outer tensor that Ifs around the site allow."""
    size = Integers(site).size(tensor, axis)
    if size is None:
        return 0
    return max(
        (
            bound.number + 1
            for count, bound in _exceeding(site)
            if bound.number is not None and (size - count).number == 0
        ),
        default=0,
    )


def _exceeding(site: Site) -> Iterator[tuple[Affine, Affine]]:
    """Numbers, and what they exceed whenever the site runs."""
    for scope in site.scope.chain():
        if scope.outer is None:
            return
        index, attribute = scope.key[-2:]
        assert isinstance(index, int)
        node = scope.outer.owner.node[index]
        if op_of(node) == "If" and attribute == "then_branch":
            found = exceeding(replace(site, place=Place(node, index, scope.outer)))
            if found is not None:
                yield found


def exceeding(site: Site) -> tuple[Affine, Affine] | None:
    """A number, and what it exceeds exactly where the If at a site takes its first branch."""
    name = site.node.input[0]
    home = site.model.home(site.scope, name)  # an outer graph where `hoist-invariants` moved it
    test = None if home is None else site.model.producer(home.owner, name)
    if home is None or test is None or op_of(test) != "Greater":
        return None
    place = Place(test, site.model.index(home.owner).positions[name], home)
    integers = Integers(replace(site, place=place))
    count, bound = (single_of(integers.outside(name)) for name in test.input)
    return None if count is None or bound is None else (count, bound)
