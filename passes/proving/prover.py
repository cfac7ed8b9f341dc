"""Proves two models equal: on every path of decisions, wherever the original answers, the new one
answers the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from time import monotonic
from typing import Any

from passes.analysis.safety.randomness import first_random
from passes.choices import PROOF_BUDGET as BUDGET
from passes.errors import BadModel
from passes.ir.model import Model
from passes.ir.operators import is_onnx_domain, op_of
from passes.ir.places import MAIN, walk_model
from passes.operators.cells import RECURRENT
from passes.proving import operators  # the table
from passes.proving.assumptions import ALIKE, ALWAYS, REGROUPED
from passes.proving.clues import NO_CLUES, Clues
from passes.proving.excluding import Excluded
from passes.proving.loops.relations import Comparison, Relations
from passes.proving.nodes import versions
from passes.proving.operators.calls import Calls, MainGraph
from passes.proving.pair import Pair
from passes.proving.symbolic_evaluator import (
    Fails,
    Fork,
    SymbolicEvaluator,
    Values,
)
from passes.proving.terms.algebra import Algebra, Contradiction
from passes.proving.terms.arrays import Array, NotProvable, Unranked
from passes.proving.terms.conditions import MOST_PARTS
from passes.proving.terms.field import AtAllSizes
from passes.proving.terms.term import OutOfTime, Term, difference, formula, subterms
from passes.reports.proof import Proof, Scope
from passes.verify.compare.verdicts import Failure

__all__ = ["Attempt", "attempt", "operators"]

#: Terms of whole numbers.
_PLAIN = frozenset(
    ["ge0", "eq0", "poly", "mono", "var", "dim", "idiv", "min", "max", "elem", "st", "trips"]
)
_MOST_PATHS = 80
#: Cases of the indices of one output.
_MOST_CASES = 96


@dataclass(frozen=True)
class Attempt:
    """A proof for all sizes; else what the answer depends on, or the failure that disproves it, and
    a `narrower` proof, without some sizes. `answers` is whether the original is known to answer
    some inputs."""

    proof: Proof
    clues: Clues = NO_CLUES
    failure: Failure | None = None
    answers: bool = False
    narrower: Proof | None = None


#: What is too large for a proof, but time.
_TOO_LARGE = {
    RecursionError: "terms are nested too deeply",
    MemoryError: "terms take more memory than there is",
}


class _Unproven(Exception):
    def __init__(self, code: str, *terms: Term, **details: str) -> None:
        super().__init__(code)
        self.code = code
        self.terms = terms
        self.details: dict[str, Any] = details


def attempt(pair: Pair, budget: float = BUDGET) -> Attempt:
    """The proof for all sizes that are not fixed, and the terms at which it ended.

    The `budget` is in seconds.
    """
    end, promises = monotonic() + budget, pair.promises
    has_cells = _has_cells(pair.before) or _has_cells(pair.after)
    algebra = Algebra(written_out=not has_cells)
    compared = Comparison(algebra, AtAllSizes(algebra) if has_cells else None)
    calls, is_same = _calls(pair)
    if is_same and not promises:
        scope = Scope(static=pair.is_static)
        return Attempt(Proof("proven", assumed=(ALIKE,), paths=1, scope=scope), answers=True)
    pending: list[Decisions] = [()]
    promised: Decisions = ()
    assumed = set[str]()
    paths, answers, excluded, certain = 0, False, Excluded(), set[Term]()
    first: Attempt | None = None  # of those that fail
    while pending:
        decisions = pending.pop()
        paths += 1
        algebra.terms.end = end  # also after a path that fails, of which formulas are written
        if paths > _MOST_PATHS:
            many = Proof("not-provable", "budget", f"more than {paths - 1} cases", paths=paths)
            return first or Attempt(many, Clues(decisions))
        ended, failed = _Ended(algebra, decisions, paths), None
        try:
            if promises.non_empty and not decisions:
                promised = tuple((one, True) for one in pair.not_empty(algebra))
            algebra.start((*promised, *excluded.conditions(algebra), *decisions))
            made, non_empty = calls.empty(), promises.non_empty
            old = SymbolicEvaluator(pair.before, algebra, made, True, assumed, non_empty=non_empty)
            answers |= _path(compared, old, pair, ended)
        except Contradiction:  # nothing is like that
            continue
        except Fork as fork:
            pending.append((*decisions, (fork.condition, True)))
            if fork.certain:
                certain.add(fork.condition)
            else:
                pending.append((*decisions, (fork.condition, False)))
        except NotProvable as error:
            failed = ended.at_node(error)
        except (OutOfTime, RecursionError, MemoryError) as error:
            detail = _TOO_LARGE.get(type(error)) or f"{error}" or f"more than {budget:g} s"
            failed = ended.why("budget", detail)
        except BadModel as error:
            failed = ended.why("model", str(error))
        except _Unproven as error:
            failed = ended.unproven(error)
        if failed is not None:
            first = first or failed
            chosen = [one for one in decisions if one[0] not in certain]
            if failed.proof.code == "budget" or not excluded.add(algebra, chosen):
                return first
    if first is not None and not answers:
        return first
    if promises and not answers and not pair.fixed:
        none = "the original answers no inputs that keep the promises"
        return Attempt(Proof("not-provable", "promise", none, paths=paths))
    assumptions = (*ALWAYS, *sorted(assumed), *[REGROUPED] * compared.regrouped)
    scope = Scope(regrouped=compared.regrouped, static=pair.is_static, stated=excluded.stated())
    proof = Proof("proven", assumed=assumptions, paths=paths, scope=scope)
    if first is not None:
        return replace(first, narrower=proof)
    return Attempt(proof, answers=answers)


def _calls(pair: Pair) -> tuple[Calls, bool]:
    """What is known of the calls of two models before they are evaluated, and whether the new model
    is part of the original, with the same outputs."""
    newer = max(_opsets(pair.before), default=0) <= min(_opsets(pair.after), default=0)
    terms = Algebra().terms
    try:
        before, after = (MainGraph.of(model, terms, newer) for model in (pair.before, pair.after))
    except NotProvable:
        return Calls(newer), False
    is_random = first_random(pair.before, pair.before.proto.graph.node) is not None
    return Calls(newer, before.shared_reads(after)), after.is_part_of(before) and not is_random


def _opsets(model: Model) -> list[int]:
    """The opsets of ONNX that a model and its functions import."""
    imports = [model.proto.opset_import, *(one.opset_import for one in model.proto.functions)]
    return [one.version for some in imports for one in some if is_onnx_domain(one.domain)]


def _has_cells(model: Model) -> bool:
    """Return whether a model has recurrent operators, whose documents leave sums open."""
    return any(op_of(place.node) in RECURRENT for place in walk_model(model.proto))


Decisions = tuple[tuple[Term, bool], ...]


@dataclass
class _Ended:
    """The end of a proof on a path."""

    algebra: Algebra
    decisions: Decisions
    paths: int
    evaluator: SymbolicEvaluator | None = None

    @property
    def _where(self) -> tuple[str, ...]:
        self.algebra.forget()  # else what is known is not written
        self.algebra.terms.end = inf  # the time may be over
        return tuple(
            formula(condition if holds else self.algebra.negation(condition))
            for condition, holds in self.decisions
        )

    def why(self, code: str, detail: str) -> Attempt:
        """Nothing is found out."""
        return Attempt(Proof("not-provable", code, detail, paths=self.paths), Clues(self.decisions))

    def at_node(self, error: NotProvable) -> Attempt:
        """A node of one of the models is not modelled."""
        node, detail = "", error.detail
        if self.evaluator is not None and self.evaluator.path:
            place = self.evaluator.place()
            node, _, rest = detail.partition(": ")
            node, detail = (node, rest) if node.startswith(f"{MAIN}/") else (place, detail)
            node += " before" if self.evaluator.original else " after"
        proof = Proof("not-provable", error.code, detail, node=node, paths=self.paths)
        return Attempt(replace(proof, where=self._where), Clues(self.decisions, error.terms))

    def unproven(self, error: _Unproven) -> Attempt:
        """The models are different terms."""
        proof = Proof("unproven", error.code, where=self._where, paths=self.paths, **error.details)
        return Attempt(proof, Clues(self.decisions, error.terms))


def _path(compared: Comparison, old: SymbolicEvaluator, pair: Pair, ended: _Ended) -> bool:
    """Prove it on one path; return whether the original answers there.

    `old` gets what is assumed on it, also where it is divided, `ended` what is evaluated.

    Raises:
        Fork: the path has to be divided.
        NotProvable: an operator, or a form, is not modelled.
    """
    ended.evaluator = old
    try:
        left = outputs_of(old, pair)
    except Fails:
        return False
    new = ended.evaluator = old.after(pair.after, partial(_is_same, compared))
    try:
        right = outputs_of(new, pair)
    except Fails as error:
        detail = f"the new model fails where the original may answer: {error}"
        raise _Unproven("fails", detail=detail) from error
    alone = new.over_nothing - old.over_nothing
    old.assumed |= {one for one, _ in alone if (one, None) not in old.over_nothing}
    for value, one, other in zip(pair.after.proto.graph.output, left, right, strict=True):
        try:
            _same(compared, value.name, one, other)
        except NotProvable as error:  # an output of unknown sizes
            raise next(iter(old.obstacles), error) from None
    return True


def outputs_of(evaluator: SymbolicEvaluator, pair: Pair) -> list[Array]:
    """The outputs of a model of a pair for any inputs that the original declares."""
    model = evaluator.model.proto
    values: Values = evaluator.constants(model.graph)
    known = evaluator.calls.leaves
    for name, value in pair.parameters(evaluator.algebra).items():
        values[name] = known.setdefault(name, value)
    inner = evaluator.run(model.graph, values, versions(model.opset_import))
    evaluator.twins = inner
    return [inner[one.name] for one in model.graph.output]


def _same(compared: Comparison, name: str, left: Array, right: Array) -> None:
    """Show that two outputs have equal sizes and elements.

    Raises:
        _Unproven: it is not shown.
    """
    algebra = compared.algebra
    if left is right:
        return
    if isinstance(left, Unranked) and isinstance(right, Unranked):
        if not _alike(compared, left.term, right.term)[2]:
            raise _unlike("element", repr(name), left.term, right.term)
        return
    if left.kind != right.kind or left.rank != right.rank:
        types = [f"{side.dtype} of rank {side.rank}" for side in (left, right)]
        raise _Unproven("type", output=repr(name), before=types[0], after=types[1])
    for axis, shown in enumerate(zip(left.shape, right.shape, strict=True)):
        old, new = (algebra.subst(one, {}, whole=True) for one in shown)  # by what is known by now
        if not _alike(compared, old, new)[2]:
            choice = algebra.choice(old, new)
            if choice is not None:
                raise Fork(choice)
            raise _unlike("size", f"{name!r}, size of axis {axis}", old, new)
    if any(size is algebra.zero for size in left.shape):
        return
    variables = [algebra.variable(size) for size in left.shape]
    at = [algebra.lift(one) for one in variables]
    some = algebra.all(algebra.ge0(algebra.sub(size, algebra.one)) for size in left.shape)
    sides = left.at(at), right.at(at)  # of arrays that other outputs read, whatever this one's size
    with algebra.assuming(some) as possible:
        if possible:
            old, new = (algebra.subst(side, {}, whole=True) for side in sides)
            _Elements(compared, name, variables).equal(old, new)


def _is_same(compared: Comparison, name: str, left: Array, right: Array) -> bool:
    """Return whether two values within the models are shown equal, without another decision."""
    try:
        _same(compared, name, left, right)
    except (_Unproven, Fork, NotProvable):
        return False
    return True


@dataclass
class _Elements:
    """The elements of an output at any indices, compared by cases of these where that helps;
    `tried` is the number of cases so far."""

    compared: Comparison
    name: str
    variables: Sequence[Term]
    tried: int = 0

    def equal(self, left: Term, right: Term, cases: tuple[Term, ...] = ()) -> None:
        """Show that two elements are equal in these cases.

        Raises:
            Fork: that depends on a condition on sizes.
            _Unproven: it is not shown.
        """
        algebra = self.compared.algebra
        left, right, equal = _alike(self.compared, left, right)
        if equal:
            return
        self.tried += 1
        is_open = self.tried <= _MOST_CASES
        cut = _cut(algebra, left, right) if is_open else None
        if cut is not None:
            for part in algebra.parts(*cut):
                old, new = (algebra.subst(side, {cut[0]: part}) for side in (left, right))
                here = algebra.eq0(algebra.sub(algebra.lift(cut[0]), part))
                self.equal(old, new, (*cases, here))
            return
        condition = _case(algebra, left, right) if is_open else None
        if condition is None:
            choice = algebra.choice(left, right)
            if choice is not None:
                raise Fork(choice)
            indices = ", ".join(formula(one, self.variables) for one in self.variables)
            output = f"{self.name!r}[{indices}]" if indices else repr(self.name)
            raise _unlike("element", output, left, right, self.variables, cases)
        for one in (condition, algebra.negation(condition)):
            with algebra.assuming(one) as possible:
                if possible:
                    old, new = (algebra.subst(side, {}, whole=True) for side in (left, right))
                    self.equal(old, new, (*cases, one))


def _unlike(
    code: str,
    output: str,
    left: Term,
    right: Term,
    variables: Sequence[Term] = (),
    cases: Sequence[Term] = (),
) -> _Unproven:
    """The parts of an output that are not shown equal, in these cases of its indices."""
    found = zip(("before", "after", "within"), difference(left, right, variables), strict=True)
    details = {"output": output, **dict(found)}
    if cases:
        details["detail"] = "for " + ", ".join(formula(one, variables) for one in cases)
    return _Unproven(code, left, right, *cases, **details)


def _cut(algebra: Algebra, left: Term, right: Term) -> tuple[Term, int] | None:
    """An index of which a quotient by a small number is read, and that number."""
    for term in (*subterms(left), *subterms(right)):
        if term.op == "idiv":
            by = algebra.number(term.args[1])
            names = [one for one in subterms(term.args[0]) if one.op == "var"]
            if by is not None and by <= MOST_PARTS and len(names) == 1:
                return names[0], by
    return None


def _alike(compared: Comparison, left: Term, right: Term) -> tuple[Term, Term, bool]:
    """Two terms that read the same recurrences where that is shown, and whether they are equal."""
    relations = Relations(compared, (left, right))
    if compared.same(left, right) or relations.regrouped(left, right):
        return left, right, True
    old, new = relations.normal(left, right)
    return old, new, relations.alike(old, new) or relations.regrouped(old, new)


def _case(algebra: Algebra, left: Term, right: Term) -> Term | None:
    """A condition on the indices of an output that one of its elements asks for."""
    for side in (left, right):
        for term in subterms(side):
            if term.op == "ite" and _is_plain(term.args[0]):
                return term.args[0]
            if term.op in ("min", "max") and _is_plain(term):
                return algebra.ge0(algebra.sub(*term.args))
    return None


def _is_plain(term: Term) -> bool:
    """Return whether a condition is one of whole numbers, and of nothing that is bound."""
    return all(
        one.op in _PLAIN or not one.free or (one.op == "ew" and one.parts[0] == "Cast")
        for one in subterms(term)
    ) and not any(one.op in ("bv", "bp", "ph") for one in subterms(term) if one.uid in term.free)
