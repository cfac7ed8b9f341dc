"""What of a Scan's body depends on scanned inputs and captures only."""

from __future__ import annotations

from dataclasses import dataclass

from passes import scope as scoping
from passes.rules.attempt import Attempt
from passes.rules.moving import known_rank
from passes.rules.time_body import TimeBody
from passes.rules.without_iterations import may_move, may_run_on_nothing, may_run_once


@dataclass(frozen=True)
class Early:
    """Nodes that may run in front of the loop, by position.

    Those in `plain` give the same in every iteration, those in `moving` run over all iterations
    at once; `carrying` are the values of these that have time as their first axis.
    """

    plain: frozenset[int]
    moving: frozenset[int]
    carrying: frozenset[str]

    @classmethod
    def of(cls, body: TimeBody) -> Early:
        """Find them, in one walk."""
        readable = [one for one in body.form.scanned if not one.axis or known_rank(body, one)]
        rows = {one.body_input for one in readable}
        stays = {*scoping.input_names(body.rows.graph)} - rows
        attempt = Attempt.of(body, rows)
        plain, moving = set(), set()
        for at, node in enumerate(body.nodes):
            names = scoping.free_names(node)
            sees = [name for name in names if attempt.carries(name)]
            if at in body.unread or not stays.isdisjoint(names) or not may_move(body, node):
                stays.update(node.output)
            elif not sees and may_run_once(body, node):
                plain.add(at)
            elif sees and may_run_on_nothing(body, node, sees) and attempt.takes(node):
                moving.add(at)
            else:
                stays.update(node.output)
        return cls(frozenset(plain), frozenset(moving), frozenset(attempt.at.carrying))
