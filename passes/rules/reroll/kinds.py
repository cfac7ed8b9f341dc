"""The types of values that must be the same in all copies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from onnx import TypeProto

from passes.analysis.integers.integers import Integers
from passes.rule import Site
from passes.types.value_types import INFERRED, Dims, dims_of, elem_type_of, is_static, tensor_type


class Kinds:
    """The types of the values around a site; sizes are equal where that is proven. Values that are
    `alike` others have the types of these."""

    def __init__(self, site: Site, alike: Mapping[str, str]) -> None:
        self.site, self._alike = site, alike
        #: Whether sizes were needed that are known only at run time.
        self.symbolic = False

    @cached_property
    def _integers(self) -> Integers:
        return Integers(self.site)

    def of(self, name: str) -> tuple[int, Dims]:
        """The element type and the sizes of a tensor.

        Raises:
            Refused: `unknown-shape`.
        """
        name = self._alike.get(name, name)
        known = self.site.type_of(name)
        elem_type, dims = elem_type_of(known), dims_of(known)
        if elem_type and not is_static(dims):
            self.symbolic = True
            dims = self._integers.proven_dims(self.site.scope, name)
        if not elem_type or dims is None or None in dims:
            what = f"the type or the shape of {name!r} is unknown"
            raise self.site.refused("unknown-shape", what, name)
        return elem_type, dims

    def other(self, names: Sequence[str]) -> int | None:
        """The position of the first value of another type than that of the first one, if any."""
        kind = self.of(names[0])
        return next((at for at, name in enumerate(names) if at and self.of(name) != kind), None)

    def declared(self, name: str, without: int | None = None) -> TypeProto:
        """The type for an input or output of a body: that of a value, or of its slices along the
        axis that they are `without`."""
        elem_type, dims = elem_type_of(self.site.type_of(name)), dims_of(self.site.type_of(name))
        if dims is None:
            return tensor_type(elem_type, None)
        kept = [None if isinstance(dim, str) and dim.startswith(INFERRED) else dim for dim in dims]
        if without is not None:
            del kept[without]
        return tensor_type(elem_type, tuple(kept))
