"""Which faults seeded into outcomes verification finds.

Use: `python -m tests.instruments.mutants outcomes`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import onnx.parser

from tests.instruments.mutants.outcomes import Pair, is_out_of_reach, pairs


def tried() -> Iterator[tuple[Pair, str, str]]:
    """Each pair, what became of it (`mismatch`, `not-compared`, `slipped`, `wrongly stopped`), and
    why."""
    from passes.verify.reference import ReferenceExecutor
    from tests.verification import verify

    executors = [ReferenceExecutor(keep=2)]
    for pair in pairs():
        before, after = (
            onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> g {text}')
            for text in (pair.before, pair.after)
        )
        right = verify(before, before, executors=executors, exact=False)
        wrong = verify(before, after, executors=executors, exact=False, case_timeout=1.0)
        if right.verdict != "verified":
            yield pair, "wrongly stopped", right.reason
        else:
            became = "slipped" if wrong.verdict == "verified" else wrong.verdict
            yield pair, became, wrong.reason


def main() -> int:
    """Try them all, print what slipped and how many of each kind were found; 1 where one slipped
    that is in reach."""
    counts: Counter[tuple[str, str]] = Counter()
    lost = 0
    for pair, became, why in tried():
        counts[pair.kind, became] += 1
        if became != "mismatch":
            reason = is_out_of_reach(pair)
            lost += not reason
            print(f"{became.upper()} {pair.kind}: {pair.name}: {reason or why}", flush=True)
    for kind in dict.fromkeys(kind for kind, _ in counts):
        total = sum(count for (one, _), count in counts.items() if one == kind)
        print(f"{kind}: {counts[kind, 'mismatch']} of {total} found")
    total, found = sum(counts.values()), sum(c for (_, b), c in counts.items() if b == "mismatch")
    print(f"all: {found} of {total} found")
    return int(lost > 0)
