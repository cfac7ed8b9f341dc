"""The opsets and IR versions that each release of onnxruntime loads, so that models can be written
for one.

Measured on every release, with a model of one node at each opset and at each IR version.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from passes.errors import WrongUsage

_FORM = re.compile(r"onnxruntime==(\d{1,4})\.(\d{1,4})(\.\d+)?")


_LAST_KERNEL = 21
#: What no release has a kernel for beyond this opset: measured.
_WITHOUT_KERNEL = frozenset(
    {
        *("RoiAlign", "MaxRoiPool", "GlobalLpPool", "Bernoulli", "Multinomial"),
        *("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"),
    }
)


class UnknownRelease(WrongUsage):
    """The requested target is not a release whose limits are known."""


@dataclass(frozen=True)
class Release:
    """Release 1.`minor` of onnxruntime, with the newest opset and IR version that it loads."""

    minor: int
    opset: int
    ir_version: int

    def __str__(self) -> str:
        return f"onnxruntime 1.{self.minor}"

    def opset_for(self, operators: Iterable[str]) -> int:
        """The newest opset at which the release loads a model of these standard operators."""
        lacking = not _WITHOUT_KERNEL.isdisjoint(operators)
        return min(self.opset, _LAST_KERNEL) if lacking else self.opset

    def includes(self, version: str) -> bool:
        """Return whether a version, such as 1.22.1, is one of this release."""
        return version.split(".")[:2] == ["1", f"{self.minor}"]


RELEASES = tuple(
    Release(*facts)
    for facts in (
        *((8, 14, 7), (9, 15, 8), (10, 15, 8), (11, 16, 8), (12, 17, 8), (13, 17, 8)),
        *((14, 18, 8), (15, 19, 9), (16, 19, 9), (17, 20, 9), (18, 21, 10), (19, 21, 10)),
        *((20, 21, 10), (21, 22, 10), (22, 22, 10), (23, 23, 11), (24, 25, 13), (25, 26, 13)),
        *((26, 26, 13), (27, 26, 13), (28, 26, 13), (29, 26, 13), (30, 26, 13), (31, 26, 13)),
        (32, 28, 14),
    )
)


def release_of(text: str) -> Release:
    """The release that `onnxruntime==1.22` names; a patch release loads what its minor one does.

    Raises:
        UnknownRelease: it names none, or one that is not in the table.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise UnknownRelease(f"{text!r} is not of the form onnxruntime==1.22")
    major, minor = int(match[1]), int(match[2])
    ordinal = (major - 1) * 10_000 + minor
    nearest = min(RELEASES, key=lambda release: abs(release.minor - ordinal))
    if nearest.minor != ordinal:
        raise UnknownRelease(
            f"what onnxruntime {major}.{minor} loads is unknown, the nearest release that is "
            f"known is onnxruntime==1.{nearest.minor}"
        )
    return nearest
