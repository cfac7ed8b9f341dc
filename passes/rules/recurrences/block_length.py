"""Chooses the number of iterations in a block, and decides whether blocks pay.

Measured in onnxruntime on one thread: products of matrices are fastest with 32 iterations, from 8
rows and columns on. Elements that are independent gain up to some 700 of them, since they are read
and written four times in place of twice.
"""

from __future__ import annotations

from math import prod

from passes.analysis.integers.affine import Affine
from passes.analysis.integers.integers import Integers
from passes.bodies.few_iterations import FEW, expected
from passes.bodies.time_body import TimeBody
from passes.ir.operators import op_of
from passes.rule import Refused
from passes.rules.recurrences.forms import ElementForm, MatrixForm
from passes.rules.recurrences.plan import Stage
from passes.types.value_types import Dim, dims_of

#: Iterations in a block of products.
_PRODUCTS = 32
#: The fewest iterations, rows and columns for which products pay.
_FEWEST, _NARROWEST = 16, 8
#: Iterations in a block of elements, where their number is unknown, and the fewest of them.
_ELEMENTS, _FEWEST_ELEMENTS = 128, 48
#: The most independent elements that gain, and those of a whole block, which stay in the cache.
_WIDEST, _MOST = 640, 1 << 17
#: The most elements of all steps that are written out: two such values stay in the cache.
_MOST_STEPS = 1 << 16
#: What computes the numbers of iterations, the second one with a NonZero.
_NUMBERS = ("Range", "Squeeze")


def block_length(body: TimeBody, stages: tuple[Stage, ...]) -> int:
    """Iterations in a block: near the best, and such that none are left, if that is possible.

    Raises:
        Refused: `not-worth-it`.
    """
    if trips_of(body) is None and _is_computed(body):
        raise _refusal(body, "its trip count is computed at run time, and may be small")
    matrices = [form for stage in stages for form in stage.forms if isinstance(form, MatrixForm)]
    if matrices:
        return _of_products(body, matrices)
    forms = [form for stage in stages for form in stage.forms]
    names = [state.carried.body_input for form in forms for state in form.states]
    width = max(_elements(body, name) for name in names)
    elements = [form for form in forms if isinstance(form, ElementForm)]
    if all(form.matrix for form in elements) or any(form.in_order for form in elements):
        return _of_rows(body, width)
    return _of_elements(body, width)


def _sizes(body: TimeBody) -> list[Affine]:
    """The lengths of what is scanned, as far as it is known how they are computed."""
    integers = Integers(body.site)
    sizes = (integers.size(one.tensor, one.axis) for one in body.form.scanned)
    return [size for size in sizes if size is not None]


def _is_computed(body: TimeBody) -> bool:
    """Return whether the trip count is computed: that of a while, where numbers are scanned."""
    nodes = body.site.scope.owner.node
    numbers = {name for node in nodes if op_of(node) in _NUMBERS for name in node.output}
    sizes = _sizes(body)
    counted = any(atom.tensor in numbers for size in sizes for atom, _ in size.terms)
    return counted or expected(sizes) <= FEW


def trips_of(body: TimeBody) -> int | None:
    """The trip count, also where it only follows from how sizes are computed."""
    return body.trips or next(filter(None, (size.number for size in _sizes(body))), None)


def _of_products(body: TimeBody, forms: list[MatrixForm]) -> int:
    trips = trips_of(body)
    if max(_narrowest(body, form) for form in forms) < _NARROWEST or (
        trips is not None and trips < _FEWEST
    ):
        raise _refusal(body, "its states are small, or it runs only few iterations")
    return _near(trips, _PRODUCTS)


def _near(trips: int | None, best: int) -> int:
    """The length nearest to the best one that leaves no iterations, if there is one near."""
    if trips is None:
        return best
    near = [length for length in range(best // 2, 2 * best + 1) if length and trips % length == 0]
    return min(near, key=lambda length: abs(length - best), default=min(best, trips))


def _narrowest(body: TimeBody, form: MatrixForm) -> int:
    """The smaller of the rows and columns of a state; 1 for a vector."""
    dims = dims_of(body.rows.types[form.state.carried.body_input]) or ()
    size = dict(zip(form.state.at, dims, strict=True))
    return min(_wide(size[form.along]), _wide(size[form.columns]) if form.columns else 1)


def _wide(dim: Dim) -> int:
    return dim if isinstance(dim, int) else _NARROWEST


def _of_elements(body: TimeBody, width: int) -> int:
    trips = trips_of(body)
    if width > _WIDEST:
        raise _refusal(body, f"its {width} elements are read and written more often in blocks")
    if trips is not None and trips < _FEWEST_ELEMENTS:
        raise _refusal(body, "it runs only few iterations")
    if trips is None:
        if not body.site.options.allow_reassociation:  # which asks for blocks
            what = "its trip count is unknown, and may be small"
            raise body.site.refused("not-worth-it", what, dims=None)
        return _ELEMENTS
    blocks = -(-trips * width // _MOST)
    return -(-trips // blocks)


def _of_rows(body: TimeBody, width: int) -> int:
    """Steps that are written out: as many as stay in the cache."""
    return _near(trips_of(body), max(1, min(_PRODUCTS, _MOST_STEPS // width)))


def _elements(body: TimeBody, name: str) -> int:
    dims = dims_of(body.rows.types[name]) or ()
    return prod(dim if isinstance(dim, int) else body.unknown for dim in dims)


def _refusal(body: TimeBody, sentence: str) -> Refused:
    return body.site.refused("not-worth-it", sentence)
