"""Proves two models equal: on every path of decisions, wherever the original answers, the new one
answers the same."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic

from onnx import ValueInfoProto

from passes.check import load_checked
from passes.errors import BadModel
from passes.ir.model import Model
from passes.ir.operators import op_of
from passes.ir.places import walk_model
from passes.types.inference import light_model
from passes.types.shape_inference import objection
from passes.verify import signature
from passes.verify.prove import loops, operators  # the table of operators
from passes.verify.prove.algebra import Algebra, Contradiction, Manner
from passes.verify.prove.arrays import Array, NotProvable, parameter
from passes.verify.prove.evaluator import Evaluator, Fails, Fork, Values, dtype_name, versions
from passes.verify.prove.terms import OutOfTime, Term, subterms

__all__ = ["Proof", "loops", "operators", "prove"]

_MOST_PATHS = 80
_MOST_CASES = 6

#: What every proof assumes.
ALWAYS = (
    "axes of one name have one size",
    "no axis is longer than 2^31 - 1, no loop iterates more than 2^47 times",
    "NaNs are alike",
    "rows that no iteration collects have the sizes that the body would give them",
)


@dataclass(frozen=True)
class Proof:
    """The answer: `verdict` is `proven`, `unproven` or `not-provable`, with a code and a detail
    where it is not the first; `assumed` in words, `paths` the cases that were told apart."""

    verdict: str
    code: str = ""
    detail: str = ""
    assumed: tuple[str, ...] = ()
    paths: int = 0

    @property
    def is_proven(self) -> bool:
        """Whether the models are proven equal."""
        return self.verdict == "proven"

    def sentence(self) -> str:
        """The answer in one line."""
        if not self.is_proven:
            return f"{self.verdict}: {self.code}: {self.detail}"
        cases = "1 case" if self.paths == 1 else f"{self.paths} cases"
        return f"proven for all inputs, sizes and trip counts ({cases})"


#: What is assumed where sums are regrouped, as the documents of recurrent operators leave open.
REGROUPED = "numbers add up to the same in any order, and zeros change no sum"
DISTRIBUTED = "products distribute over differences"
CELLS = {"RNN", "GRU", "LSTM"}
#: In which manners a model of recurrent operators is tried, others in the first.
_MANNERS = (
    Manner(written_out=False),
    Manner(written_out=False, regrouped=True),
    Manner(written_out=False, regrouped=True, distributed=True),
    Manner(),
    Manner(regrouped=True),
)
#: Why a proof fails in every manner.
_IN_ANY_MANNER = {"function", "input", "model", "operator", "opset", "random", "sparse", "type"}


class _Unproven(Exception):
    def __init__(self, code: str, detail: str) -> None:
        super().__init__(code)
        self.code = code
        self.detail = detail


def prove(before: Model, after: Model, budget: float = 20.0) -> Proof:
    """Prove that `after` answers the same as `before` wherever that answers.

    The `budget` is in seconds.
    """
    try:
        before, after = load_checked(before)[0], load_checked(after)[0]
    except BadModel as error:
        return Proof("not-provable", "model", str(error))
    differs = signature.difference(before.proto, after.proto)
    if differs is not None:
        return Proof("unproven", "signature", differs)
    if _defaults(before) != _defaults(after):
        return Proof("unproven", "signature", "the defaults of inputs differ")
    wrong = objection(light_model(after.proto), check_types=True)
    if wrong:
        return Proof("not-provable", "model", f"the new model is not valid: {wrong}")
    end = monotonic() + budget
    found = None
    for manner in _MANNERS if _has_cells(before) or _has_cells(after) else (Manner(),):
        tried = _proof(before, after, manner, end)
        if found is None or tried.is_proven:
            found = tried
        if tried.is_proven or tried.code in _IN_ANY_MANNER:
            break
    assert found is not None
    return found


def _has_cells(model: Model) -> bool:
    """Return whether a model has recurrent operators, whose documents leave sums open."""
    return any(op_of(place.node) in CELLS for place in walk_model(model.proto))


def _proof(before: Model, after: Model, manner: Manner, end: float) -> Proof:
    """Prove it in a manner, until this time."""
    algebra = Algebra(manner)
    algebra.terms.end = end
    pending: list[tuple[tuple[Term, bool], ...]] = [()]
    assumed = {REGROUPED} if manner.regrouped else set[str]()
    assumed |= {DISTRIBUTED} if manner.distributed else set()
    paths = 0
    while pending:
        decisions = pending.pop()
        paths += 1
        if paths > _MOST_PATHS:
            return Proof("not-provable", "budget", f"more than {paths - 1} cases", paths=paths)
        try:
            algebra.start(decisions)
            _path(algebra, before, after, assumed)
        except Contradiction:
            continue
        except Fork as fork:
            pending.append((*decisions, (fork.condition, True)))
            if not fork.certain:
                pending.append((*decisions, (fork.condition, False)))
        except NotProvable as error:
            return Proof("not-provable", error.code, error.detail, paths=paths)
        except OutOfTime:
            return Proof("not-provable", "budget", "more time than is given", paths=paths)
        except RecursionError:
            return Proof("not-provable", "budget", "terms are nested too deeply", paths=paths)
        except BadModel as error:
            return Proof("not-provable", "model", str(error), paths=paths)
        except _Unproven as error:
            where = " and ".join(str(c) if holds else f"not {c}" for c, holds in decisions)
            detail = f"{error.detail}; where {where}" if where else error.detail
            return Proof("unproven", error.code, detail, paths=paths)
    return Proof("proven", assumed=(*ALWAYS, *sorted(assumed)), paths=paths)


def _path(algebra: Algebra, before: Model, after: Model, assumed: set[str]) -> None:
    """Prove it on one path; `assumed` gets what is assumed on it, also where it is divided.

    Raises:
        Fork: the path has to be divided.
        NotProvable: an operator, or a form, is not modelled.
    """
    try:
        old = Evaluator(before, algebra, True, assumed)
        left = outputs_of(old)
    except Fails:
        return
    new = Evaluator(after, algebra, False, assumed)
    try:
        right = outputs_of(new)
    except Fails as error:
        raise _Unproven(
            "fails", f"the new model fails where the original may answer: {error}"
        ) from error
    for value, one, other in zip(before.proto.graph.output, left, right, strict=True):
        _same(algebra, value.name, one, other)


def outputs_of(evaluator: Evaluator) -> list[Array]:
    """What a model makes of any inputs."""
    model = evaluator.model.proto
    opsets = versions(model.opset_import)
    values: Values = evaluator.constants(model.graph)
    values.update((v.name, _parameter(evaluator.algebra, v)) for v in signature.feedable(model))
    inner = evaluator.run(model.graph.node, values, opsets)
    return [inner[one.name] for one in model.graph.output]


def _defaults(model: Model) -> dict[str, bytes]:
    """The values of inputs that a caller need not feed."""
    names = {value.name for value in signature.defaults(model.proto)}
    tensors = [one for one in model.proto.graph.initializer if one.name in names]
    return {one.name: model.read(one).tobytes() for one in tensors}


def _parameter(algebra: Algebra, value: ValueInfoProto) -> Array:
    """Any value of an input."""
    tensor = value.type.tensor_type
    if not value.type.HasField("tensor_type") or not tensor.HasField("shape"):
        raise NotProvable("input", f"{value.name!r} is no tensor of a known rank")
    shape = []
    for axis, dim in enumerate(tensor.shape.dim):
        if dim.HasField("dim_value") and dim.dim_value >= 0:
            shape.append(algebra.whole(dim.dim_value))
        else:
            name = dim.dim_param or (value.name, axis)
            shape.append(algebra.lift(algebra.terms.make("dim", name)))
    return parameter(algebra, value.name, dtype_name(tensor.elem_type), tuple(shape))


def _same(algebra: Algebra, name: str, left: Array, right: Array) -> None:
    """Show that two outputs have equal sizes and elements.

    Raises:
        _Unproven: it is not shown.
    """
    if left.dtype != right.dtype or left.rank != right.rank:
        raise _Unproven(
            "type",
            f"output {name!r}: {left.dtype} of rank {left.rank} before, {right.dtype} of rank"
            f" {right.rank} after",
        )
    for sizes in zip(left.shape, right.shape, strict=True):
        if algebra.eq0(algebra.sub(*sizes)) is not algebra.true:
            choice = algebra.choice(*sizes)
            if choice is not None:
                raise Fork(choice)
            raise _Unproven("size", f"output {name!r}: {sizes[0]} before, {sizes[1]} after")
    if any(size is algebra.zero for size in left.shape):
        return
    variables = [algebra.variable(size) for size in left.shape]
    at = [algebra.lift(one) for one in variables]
    _equal(algebra, name, left.at(at), right.at(at), _MOST_CASES)


def _equal(algebra: Algebra, name: str, left: Term, right: Term, depth: int) -> None:
    """Show that two elements are equal, by cases of their indices where that helps."""
    if left is right:
        return
    both = left.op == right.op == "poly"
    if both and algebra.eq0(algebra.sub(left, right)) is algebra.true:
        return
    condition = _case(algebra, left, right) if depth else None
    if condition is None:
        choice = algebra.choice(left, right)
        if choice is not None:
            raise Fork(choice)
        raise _Unproven("element", f"output {name!r}: {_apart(left, right)}")
    for one in (condition, algebra.negation(condition)):
        with algebra.assuming(one) as possible:
            if possible:
                old, new = (algebra.subst(side, {}, whole=True) for side in (left, right))
                _equal(algebra, name, old, new, depth - 1)


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
    plain = {
        "ge0",
        "eq0",
        "poly",
        "mono",
        "var",
        "dim",
        "idiv",
        "min",
        "max",
        "elem",
        "st",
        "trips",
    }
    return all(one.op in plain or not one.free for one in subterms(term)) and not any(
        one.op in ("bv", "bp", "ph") for one in subterms(term) if one.uid in term.free
    )


def _apart(left: Term, right: Term) -> str:
    """The first parts in which two elements differ."""
    while left.op == right.op and left.data == right.data and len(left.args) == len(right.args):
        unlike = [
            pair for pair in zip(left.args, right.args, strict=True) if pair[0] is not pair[1]
        ]
        if len(unlike) != 1:
            break
        ((left, right),) = unlike
    return f"{left} before, {right} after"
