"""Writes one step of a recurrent operator, on weights that are constant or computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from passes.ir.constants import Constants
from passes.ir.versions import CLIP_HAS_INPUTS
from passes.operators.cells import Function
from passes.rule import Site
from passes.rules.expand_cell.cell_form import CellForm
from passes.writing import spelling
from passes.writing.author import Author
from passes.writing.spelling import Array

#: A weight, or a part of one: an array if it is constant, else the name of what nodes compute.
Weight = str | Array


@dataclass(frozen=True)
class CellStep:
    """The step of one direction. Its values are computed before the loop.

    `elements` [steps, rows, gates * hidden] are products of the inputs, with biases; `r` is
    transposed, of a GRU that resets first those of z and r, and of h. `rb`, a row, is added to the
    product with `r`. `peepholes` are those of i, o and f, or none.
    """

    form: CellForm
    functions: Sequence[Function]
    elements: str
    r: Sequence[Weight]
    rb: Weight | None
    peepholes: Sequence[Weight]

    @classmethod
    def of(cls, site: Site, form: CellForm, author: Author, x: str, way: int) -> CellStep:
        """Write what the steps of a direction read; `x` has the time first."""
        given = form.operands
        w, r, b, holes = (
            of_way(site, author, name, len(form.directions), way) if name else ""
            for name in (given.w, given.r, given.b, given.peepholes)
        )
        w, whole = (made(author, "Transpose", np.transpose, one, perm=[1, 0]) for one in (w, r))
        elements, rb = author.op("MatMul", x, named(author, w)), None
        if given.b:
            wb, rb = parts_of(author, b, 0, "wr")
            if not form.linear:
                wb, rb = made(author, "Add", np.add, wb, rb), None
            elements = author.op("Add", elements, named(author, wb))
        products = [whole]
        if form.operator == "GRU" and not form.linear:
            z, reset, h = parts_of(author, whole, 1, form.cell.gates)
            both = made(author, "Concat", lambda *two: np.concatenate(two, 1), z, reset, axis=1)
            products = [both, h]
        peepholes = parts_of(author, holes, 0, form.cell.peepholes) if given.peepholes else []
        return cls(form, form.functions[way], elements, products, rb, peepholes)

    def write(self, author: Author, element: str, states: Sequence[str], axis: int) -> list[str]:
        """Write the step, from a row of `elements` and the states, with gates along an axis; the
        next states."""
        if self.form.operator == "GRU":
            return [self._gru(author, element, states[0], axis)]
        total = author.op("Add", element, author.op("MatMul", states[0], named(author, self.r[0])))
        if self.form.operator == "RNN":
            return [self._applied(author, 0, total)]
        return self._lstm(author, total, states[1], axis)

    def _gru(self, author: Author, element: str, h: str, axis: int) -> str:
        gates = self.form.cell.gates
        xz, xr, xn = parts(author, element, axis, gates)
        product = author.op("MatMul", h, named(author, self.r[0]))
        if self.rb is not None:
            product = author.op("Add", product, named(author, self.rb))
        linear = self.form.linear
        rz, rr, *rn = parts(author, product, axis, gates if linear else gates[:2])
        z = self._applied(author, 0, author.op("Add", xz, rz))
        reset = self._applied(author, 0, author.op("Add", xr, rr))
        if linear:
            inner = author.op("Mul", reset, *rn)
        else:
            inner = author.op("MatMul", author.op("Mul", reset, h), named(author, self.r[1]))
        new = self._applied(author, 1, author.op("Add", xn, inner))
        # not new + z * (h - new), which is a few percent quicker, but rounds away a small h
        kept = author.op("Mul", z, h)
        rest = author.op("Sub", self._number(author, 1.0), z)
        return author.op("Add", author.op("Mul", rest, new), kept)

    def _lstm(self, author: Author, total: str, c: str, axis: int) -> list[str]:
        i, o, f, new = parts(author, total, axis, self.form.cell.gates)
        i = self._applied(author, 0, self._seen(author, i, 0, c))
        if self.form.coupled:
            f = author.op("Sub", self._number(author, 1.0), i)
        else:
            f = self._applied(author, 0, self._seen(author, f, 2, c))
        new = self._applied(author, 1, new)
        memory = author.op("Add", author.op("Mul", f, c), author.op("Mul", i, new))
        o = self._applied(author, 0, self._seen(author, o, 1, memory))
        return [author.op("Mul", o, self._activated(author, 2, memory)), memory]

    def _seen(self, author: Author, gate: str, place: int, memory: str) -> str:
        if not self.peepholes:
            return gate
        return author.op(
            "Add", gate, author.op("Mul", named(author, self.peepholes[place]), memory)
        )

    def _applied(self, author: Author, place: int, value: str) -> str:
        """An activation of a clipped value."""
        clip = self.form.clip
        if clip is not None and author.opset < CLIP_HAS_INPUTS:
            value = author.op("Clip", value, min=-clip, max=clip)
        elif clip is not None:
            limits = [self._number(author, limit) for limit in (-clip, clip)]
            value = author.op("Clip", value, *limits)
        return self._activated(author, place, value)

    def _activated(self, author: Author, place: int, value: str) -> str:
        function, parameters = self.functions[place].activation, self.functions[place].parameters
        if function.is_operator:
            return author.op(function.name, value, **parameters)
        alpha, beta = (self._number(author, parameters[one]) for one in ("alpha", "beta"))
        if function.name == "Affine":
            return author.op("Add", author.op("Mul", alpha, value), beta)
        return author.op("Mul", alpha, author.op("Tanh", author.op("Mul", beta, value)))

    def _number(self, author: Author, value: float) -> str:
        dtype = helper.tensor_dtype_to_np_dtype(self.form.elem_type)
        return author.value(np.array(value).astype(dtype), "number")


def named(author: Author, weight: Weight) -> str:
    """The name of a weight, of which the author makes a constant where it is known: onnxruntime
    packs the constants of a body, and those of the graph around it, but no others."""
    return weight if isinstance(weight, str) else author.value(weight, "weight")


def of_way(site: Site, author: Author, name: str, ways: int, way: int) -> Weight:
    """The part of one direction, of an input with an axis of directions in front."""
    tensor = Constants(site.model, site.scope).tensor(name)
    if tensor is not None and tensor.data_location != TensorProto.EXTERNAL:
        known: Array = site.model.read(tensor)[way]
        return known
    if ways == 1:
        return spelling.squeeze(author, name, 0)
    return author.op("Gather", name, author.int(way), axis=0)


def made(
    author: Author, op: str, by_numpy: Callable[..., Array], *weights: Weight, **attributes: Any
) -> Weight:
    """The result of an operator on weights, computed beforehand where all are known."""
    arrays = [one for one in weights if not isinstance(one, str)]
    if len(arrays) == len(weights):
        return by_numpy(*arrays)
    return author.op(op, *(named(author, one) for one in weights), **attributes)


def parts_of(author: Author, weight: Weight, axis: int, letters: str) -> Sequence[Weight]:
    """Equal parts of a weight along an axis, one for each letter."""
    if isinstance(weight, str):
        return parts(author, weight, axis, letters)
    return np.split(weight, len(letters), axis)


def parts(author: Author, value: str, axis: int, letters: str) -> list[str]:
    """Equal parts of a value along an axis, one for each letter."""
    names = [author.fresh(letter) for letter in letters]
    spelling.split(author, value, axis, names)
    return names
