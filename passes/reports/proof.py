"""The result of a proof: the verdict and what it covers, as data, and the codes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from passes.choices import ProofScope
from passes.reports.words import scientific

#: `symbolic`: for all sizes, or those that are stated; `terms`: equal terms at drawn sizes;
#: `field`: equal up to the order of sums and products at drawn sizes; `reals`: equal over the reals
#: there, so that rounding alone differs.
Method = Literal["symbolic", "terms", "field", "reals"]
#: The most characters of sizes or conditions in a sentence.
_LONGEST = 50


def first_of(parts: Sequence[str], separator: str) -> str:
    """As many parts as a sentence has room for, the first one at least, and the number of the
    others."""
    ends = accumulate(len(f"{part}{separator}") for part in parts)
    kept = max(1, sum(end <= _LONGEST for end in ends))
    first = parts[0] if len(parts[0]) <= _LONGEST else f"{parts[0][:_LONGEST]}..."
    more = [f"{len(parts) - kept} more"] if len(parts) > kept else []
    return separator.join([first, *parts[1:kept], *more])


@dataclass(frozen=True)
class Draw:
    """The shapes of the inputs of one case, and the elements of those that are no free ones."""

    shapes: tuple[tuple[str, tuple[int, ...]], ...]
    elements: tuple[tuple[str, tuple[int | bool | str, ...]], ...] = ()

    def __str__(self) -> str:
        sizes = [
            f"{name}[{','.join(map(str, shape))}]" if shape else name
            for name, shape in self.shapes
            if shape or " " in name
        ]
        named = [f"{name} = {_written(elements)}" for name, elements in self.elements]
        return ", ".join([*sizes, *named]) or "scalars"


def _written(elements: tuple[int | bool | str, ...]) -> str:
    written = [repr(one) if isinstance(one, str) else str(one) for one in elements]
    return written[0] if len(written) == 1 else f"({', '.join(written)})"


@dataclass(frozen=True)
class Stated:
    """A size, or a whole number that is an input, and the first and the last of its values for
    which it is proven, None if there is no last one."""

    name: str
    first: int
    last: int | None

    @property
    def values(self) -> range:
        """All of its values."""
        return range(self.first, sys.maxsize if self.last is None else self.last + 1)

    def __str__(self) -> str:
        if self.last is None:
            return f"{self.name} >= {self.first}"
        only = self.first == self.last
        return (
            f"{self.name} = {self.first}" if only else f"{self.name} in {self.first}..{self.last}"
        )


@dataclass(frozen=True)
class Scope:
    """The inputs that a proof covers.

    `stated` are the ranges of sizes for which it is proven, if these are not all, and `static` is
    whether no size is free and it covers all inputs. `draws` are the cases of a proof that is not
    `symbolic`; one that is, and is `regrouped`, holds up to the order of summation. `decisions` is
    the number of conditions on floats after which a run was left out, 0 if none was. The error of
    `field` is below 2 ** -`bits`, and `executed` cases agreed. With `reals`, `bounds` are the
    largest difference of each output whose terms differ, for inputs within their `ranges`, -1 to 1
    if they have none.
    """

    method: Method = "symbolic"
    draws: tuple[Draw, ...] = ()
    decisions: int = 0
    bits: int = 0
    executed: int = 0
    regrouped: bool = False
    static: bool = False
    stated: tuple[Stated, ...] = ()
    bounds: tuple[tuple[str, float], ...] = ()
    ranges: tuple[tuple[str, float, float], ...] = ()

    @property
    def kind(self) -> ProofScope:
        """The scope as users name it."""
        if self.method == "reals":
            return ProofScope.reals
        if self.regrouped or self.method == "field":
            return ProofScope.summation
        is_all = not self.stated and (self.static or self.method == "symbolic")
        return ProofScope.all if is_all else ProofScope.sizes

    @property
    def sizes(self) -> str:
        """The drawn sizes, all of them; empty if there are none, or if these are all, or ranges."""
        return "" if self.static or self.stated else "; ".join(map(str, self.draws))

    def sentence(self) -> str:
        """The scope in words, after `proven`; of many sizes, the first ones."""
        if self.stated:
            where = f"for {' and '.join(map(str, self.stated))}"
        elif self.static:
            where = "for all inputs"
        elif self.method == "symbolic":
            where = "for all sizes"
        else:
            where = f"at sizes {first_of([*map(str, self.draws)], '; ')}"
        if self.decisions:
            where += f", for at most {self.decisions} conditions on floats in a run"
        if self.method == "reals":
            ends = [f"{name} within [{lo:g}, {hi:g}]" for name, lo, hi in self.ranges]
            usual = f"{'other ' * bool(ends)}inputs within [-1, 1]"
            within = first_of([*ends, usual], ", ")
            most = scientific(1.05 * max(bound for _, bound in self.bounds))  # rounded up
            sizes = f" {where}" * (not self.static)
            return f"equal up to rounding{sizes}: |difference| <= {most} for {within}"
        order = ", up to the order of summation"
        return where + order * (self.kind == ProofScope.summation)


#: For all inputs and sizes.
ALL_SIZES = Scope()

Verdict = Literal["proven", "unproven", "not-provable", "disproven"]
#: Why there is no proof, by code: outputs, sides, nodes, forms, drawn sizes, limits.
CODES = {
    "element": "an element of an output is another term in the new model",
    "size": "an axis of an output has another size in the new model, as far as terms tell",
    "type": "element types differ: those of an output of both models, or of operands of a node",
    "mismatch": "both models were executed, and differ on the inputs that are named",
    "fails": "the new model may fail where the original answers; the node is named",
    "signature": "the models have other inputs, outputs or defaults; nothing is executed",
    "model": "one of the models is invalid: onnx's checks and type inference tell why",
    "promise": "the original answers no inputs that keep what the user promised",
    "operator": "an operator, or an attribute or element type of it, is not modelled",
    "function": "a function reads an attribute that no caller gives it",
    "opset": "the opset is older than 7, the oldest that is modelled",
    "random": "an operator draws random numbers",
    "sparse": "a sparse initializer is not modelled",
    "obligation": "a node fails unless a condition holds, and that is not shown of every iteration",
    "overflow": "an int64 that decides something may overflow: it is not shown that it fits",
    "input": "an input is no tensor, or its rank is unknown, or it is too large to draw",
    "shape": "sizes are computed, or have a form that executors answer in other ways",
    "axis": "an axis does not exist, is named twice, or none is named",
    "empty": "a reduction may have nothing to reduce",
    "state": "a state of a loop changes its type or rank, or does not grow evenly",
    "condition": "a loop has no end, or begins under a condition that depends on an iteration",
    "decision": "a choice depends on an iteration, an index or floats",
    "branch": "the branches of an If in a loop differ in sizes, or one of them fails",
    "body": "a body fails if it runs, and it is not shown that it never does",
    "draws": "the original answers at no sizes that were drawn",
    "executed": "executed cases do not agree up to the order of summation",
    "rounding": "there is no finite bound on rounding: the part that has none is named",
    "budget": "the proof takes too long (`--budget`, `--prove-budget`), or has too many cases",
}


@dataclass(frozen=True)
class Proof:
    """The verdict on two models.

    `code` is why it is not `proven`, and `detail` a sentence on it. If elements or sizes of an
    `output` differ as terms, `before` and `after` are the smallest parts that do, as formulas,
    `within` what they are a part of. `where` are the conditions of the case in which the proof
    ended, `node` the path of the node at which it did. `assumed` is what the proof assumes, in
    words, `promised` are the promises of the user that it may use, each after its option. `paths`
    is the number of cases, `scope` what a proof holds for; `at_sizes` is why there is none at drawn
    sizes either. If the models are disproven, `inputs` are those that show it, in short.
    """

    verdict: Verdict
    code: str = ""
    detail: str = ""
    output: str = ""
    before: str = ""
    after: str = ""
    within: str = ""
    where: Sequence[str] = ()
    node: str = ""
    assumed: Sequence[str] = ()
    promised: Sequence[str] = ()
    paths: int = 0
    inputs: Sequence[str] = ()
    scope: Scope = ALL_SIZES
    at_sizes: str = ""

    @property
    def is_proven(self) -> bool:
        """True if the models are proven equal."""
        return self.verdict == "proven"

    @property
    def kind(self) -> ProofScope | None:
        """The scope of the proof; None if there is no proof."""
        return self.scope.kind if self.is_proven else None

    @property
    def rests_on(self) -> list[str]:
        """The lines on what its sentence leaves out: sizes, executed cases, why there is no proof
        at drawn sizes; on what it assumes, and on what the user promised."""
        sizes, bits, executed = self.scope.sizes, self.scope.bits, self.scope.executed
        groups = [
            ("sizes", [sizes] if sizes not in self.sentence() else []),
            ("error", [f"below 2^-{bits}, {executed} executed cases agree"] if bits else []),
            ("at drawn sizes", [self.at_sizes] if self.at_sizes else []),
            ("assumed", self.assumed),
            ("promised", self.promised),
        ]
        return [f"{word}: {one}" for word, sentences in groups for one in sentences]

    @property
    def short(self) -> str:
        """The verdict for the first line of a report: without formulas if there is no proof."""
        if self.is_proven:
            return self.sentence()
        unlike = f"output {self.output} is not shown to be equal" if self.output else ""
        why, _, _ = (self.detail or CODES[self.code]).partition(": ")
        return f"not proven: {unlike or f'{self.node or self.code}: {why}'}"

    @property
    def line(self) -> str:
        """The verdict for a report of more than the proof."""
        return (
            self.sentence()
            if self.is_proven
            else f"not proven: {self.sentence().partition(': ')[2]}"
        )

    def sentence(self) -> str:
        """The verdict in one line."""
        if self.is_proven:
            options = dict.fromkeys(one.partition(": ")[0] for one in self.promised)
            under = f", under {', '.join(options)}" if options else ""
            return f"proven {self.scope.sentence()}{under}"
        if self.verdict == "disproven":
            return f"disproven by {', '.join(self.inputs) or 'its outputs'}; {self.detail}"
        parts = [self.verdict, self.code]
        if self.output:
            within = f" in {self.within}" if self.within else ""
            differ = f"`{self.before}` before, `{self.after}` after"
            parts.append(f"output {self.output}{within}: {differ}")
        parts += [one for one in (self.node, self.detail) if one]
        cases = [f"({one})" if " or " in one else one for one in self.where]
        where = f"; if {first_of(cases, ' and ')}" if cases else ""
        return f"{': '.join(parts)}{where}"
