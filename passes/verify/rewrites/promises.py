"""Verifies rewrites that rely on a user's promise of at most so many iterations of a loop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from onnx import ModelProto, TensorProto, helper

from passes.engine.region import Region
from passes.engine.rounds import Rewritten, Round
from passes.ir.protos import copied
from passes.ir.scope import Key
from passes.rule import Limit
from passes.types.signature import inputs
from passes.verify.inputs.drawer import Case, Drawer, Hint
from passes.verify.inputs.goals import Counts, cases_by_branch, cases_by_count
from passes.verify.requirements import Promise
from passes.verify.rewrites.assumptions import VALID_INPUTS
from passes.verify.rewrites.observe import key_of, node_at

#: The share of a region's time that is spent on seeking trip counts.
_SHARE = 0.25


def with_check(region: Region, rewritten: Rewritten) -> ModelProto:
    """The region after the Edit, with whether the promise was kept as an output."""
    limit = rewritten.limit
    if limit is None or not limit.check:
        return region.after
    after = copied(region.after)
    after.graph.output.append(helper.make_tensor_value_info(limit.check, TensorProto.BOOL, []))
    return after


def promised_in(rewritten: Rewritten, promised: Iterable[Rewritten]) -> list[Rewritten]:
    """Those of the rewrites of `promised` loops that are the site's or in its bodies."""
    own = key_of(rewritten)
    return [one for one in promised if key_of(one)[: len(own)] == own]


def promise_of(
    region: Region, rewritten: Rewritten, inside: Sequence[Rewritten], assume: Sequence[str]
) -> Promise | None:
    """Return the promise about a region's loop, and about those `inside` it."""
    if not inside:
        return None
    original = copied(region.before)
    own, position = key_of(rewritten), position_in_region(rewritten)
    _break(original, [((0, position, *key_of(one)[len(own) :]), one) for one in inside])
    check = "" if rewritten.limit is None else rewritten.limit.check
    return Promise([original], check, VALID_INPUTS in assume)


def promise_of_model(rounds: Sequence[Round], check: str, assume: Sequence[str]) -> Promise | None:
    """Return the promises about all loops; `check` is the output that tells whether they were
    kept."""
    models = [_promised(round_) for round_ in rounds if any(map(is_promised, round_.rewritten))]
    return Promise(models, check, VALID_INPUTS in assume) if models or check else None


def is_promised(rewritten: Rewritten) -> bool:
    """Return whether a rewrite relies on a user's promise about its loop."""
    return rewritten.limit is not None and rewritten.limit.promised is not None


def _promised(round_: Round) -> ModelProto:
    """The model as a round read it, its loops made to fail where they break a promise."""
    made = copied(round_.model.proto)
    _break(made, [(key_of(one), one) for one in round_.rewritten if is_promised(one)])
    return made


def _break(model: ModelProto, loops: Iterable[tuple[Key, Rewritten]]) -> None:
    """Let loops fail where they break a promise, in place."""
    for key, rewritten in loops:  # innermost first, and outer ones hold what became of those
        assert rewritten.limit is not None
        assert rewritten.limit.promised is not None
        node_at(model, key).CopyFrom(rewritten.limit.promised)


@dataclass(frozen=True)
class Seeker:
    """Seeks cases in which loops and branches do what is telling, in a share of `seconds`."""

    hints: Mapping[str, Hint]
    seed: int
    seconds: float
    base_dir: Path | None

    def in_region(self, region: Region, rewritten: Rewritten) -> list[Case]:
        """Cases in which the region's loop runs as often as is telling, or Ifs of what replaces it
        take both branches."""
        if rewritten.edit.claim.branches:
            return cases_by_branch(
                region.after,
                self._drawer(region.after),
                seconds=self.seconds * _SHARE,
                base_dir=self.base_dir,
            )
        return self._by_count(region.before, position_in_region(rewritten), rewritten.limit)

    def in_model(self, rounds: Sequence[Round]) -> list[Case]:
        """The same for the loops of the main graph of the model as it was read."""
        loops = [
            (one.index, one.limit)
            for one in (rounds[0].rewritten if rounds else ())
            if one.limit is not None and one.scope.key == (0,)
        ]
        each = replace(self, seconds=self.seconds / max(1, len(loops)))
        return [case for loop in loops for case in each._by_count(rounds[0].model.proto, *loop)]

    def _by_count(self, model: ModelProto, position: int, limit: Limit | None) -> list[Case]:
        if limit is None:
            return []
        counts = Counts(model, position, limit.most, limit.promised is not None)
        seconds = self.seconds * _SHARE
        return cases_by_count(counts, self._drawer(model), seconds=seconds, base_dir=self.base_dir)

    def _drawer(self, model: ModelProto) -> Drawer:
        return Drawer(tuple(inputs(model.graph)), self.seed, self.hints)


def position_in_region(rewritten: Rewritten) -> int:
    """Return the position of the site's node in its region."""
    nodes = [*rewritten.context, *rewritten.replaced]
    return next(position for position, node in enumerate(nodes) if node is rewritten.place.node)
