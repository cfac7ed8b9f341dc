"""The interface of a rule: a function of a read-only Site that returns an Edit, or refuses; and the
rules by name, those of other distributions with them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

from onnx import AttributeProto, NodeProto, TensorAnnotation, TensorProto, ValueInfoProto

from passes.errors import PassesError, WrongUsage, nearest
from passes.ir.model import Model
from passes.ir.operators import op_of
from passes.ir.protos import replace_all
from passes.ir.purposes import Extra
from passes.ir.site import Refused, Site, Slot
from passes.ir.versions import SCAN_HAS_AXES

__all__ = [
    "RULES",
    "BrokenRule",
    "Claim",
    "Edit",
    "Extra",
    "Limit",
    "NothingToDo",
    "Refused",
    "Rule",
    "Site",
    "Slot",
    "register",
]


class NothingToDo(Exception):
    """A rule's answer where there is nothing for it to do: it leaves no record.

    A site that ought to be rewritten, but cannot be, is refused instead.
    """


class UnknownRule(WrongUsage):
    """No rule has this name."""


class BrokenRules(PassesError):
    """The rules of another distribution cannot be imported."""


class BrokenRule(PassesError):
    """A rule failed, or returned no Edit; the sentence names the rule, the site and the reason."""


@dataclass(frozen=True)
class Limit:
    """That an Edit writes out `most` iterations of a loop that may run fewer, or more.

    Verification seeks inputs on which it runs never, once, so often and more often. `promised`
    is the site's node made to fail where it runs more often than a user promised: there the Edit
    may fail too; None where `most` cannot be exceeded. `check` names a bool that the Edit writes
    in place of a guard: whether the promise was kept.
    """

    most: int
    promised: NodeProto | None = None
    check: str = ""


@dataclass(frozen=True)
class Claim:
    """The claims about an Edit that verification needs, besides whether it is exact.

    `further`: by how many times further than in the original roundings may carry. `limit`: the loop
    may run another number of times than the Edit. `entered`: an If around the site sees to it that
    what the site scans is not empty, so it is not verified on empty inputs; the whole model is.
    `branches`: an If chooses between the original and the new form, and inputs are sought for both.
    `proof`, where both sides can only agree: it is reported in place of a run of the region, and
    only the whole model is executed.
    """

    further: float = 1.0
    limit: Limit | None = None
    entered: bool = False
    branches: bool = False
    proof: str = ""


@dataclass(frozen=True)
class Edit:
    """The nodes that replace a site's node.

    `nodes` define the node's outputs under their old names, at least those that are read;
    `initializers` go to the enclosing graph (into Constant nodes where that is a function), those
    of one name once; `value_info` and `annotations` are the types of new values, and how they are
    quantized. Initializers that nothing reads any more are dropped after the round. `note` names
    the strategy for the report. `exact` means that only values move, or that the same arithmetic
    runs, so both sides must agree bit for bit. `covered` are the positions of further nodes of the
    same graph that are removed too: those that only the site's node feeds or reads, before or after
    it. `context` are nodes before the site, in order, on which the proof of the rewrite depends:
    when it is verified, both sides have them. `extras` count the nodes for each
    purpose, and name the option that leaves them out: `Author.extras` counts them. `claim` is what
    else verification must know, for a few rules. `regroups`: floats are summed, multiplied or
    compared in another order, which an operator or loop specified.
    """

    nodes: tuple[NodeProto, ...]
    initializers: tuple[TensorProto, ...] = ()
    value_info: tuple[ValueInfoProto, ...] = ()
    note: str = ""
    exact: bool = True
    covered: tuple[int, ...] = ()
    context: tuple[NodeProto, ...] = ()
    annotations: tuple[TensorAnnotation, ...] = ()
    extras: tuple[Extra, ...] = ()
    claim: Claim = Claim()
    regroups: bool = False


#: A constant, as a tensor of the graph that a site lies in.
FixedInput = Callable[[Site], TensorProto]


@dataclass(frozen=True)
class Template:
    """The same rewrite for every node that is alike.

    Each of the new inputs is a position among the `count` old ones, the name "" of an omitted one,
    or a constant; of the outputs the first `outputs` stay, which are not all if it `drops` some.
    `fixed` are the positions of old inputs that must be the same constant.
    """

    op: str
    attributes: tuple[AttributeProto, ...]
    count: int
    inputs: tuple[int | str | FixedInput, ...]
    outputs: int
    drops: bool
    note: str
    exact: bool
    fixed: tuple[int, ...] = ()

    def at(self, site: Site) -> Filled:
        """The template for the graph that a site lies in."""
        inputs: list[int | str] = []
        tensors: list[TensorProto] = []
        for source in self.inputs:
            if callable(source):
                tensors.append(source(site))
                inputs.append(tensors[-1].name)
            else:
                inputs.append(source)
        return Filled(self, tuple(inputs), tuple(tensors))

    @cached_property
    def appends(self) -> bool:
        """True if the old inputs stay, with all new ones after them."""
        return self.inputs[: self.count] == tuple(range(self.count))


@dataclass(frozen=True)
class Templated(Edit):
    """An Edit that is the same for all nodes that are alike."""

    template: Template | None = None


@dataclass(frozen=True)
class Filled:
    """A template, and the tensors of a graph that it reads."""

    template: Template
    inputs: tuple[int | str, ...]
    tensors: tuple[TensorProto, ...]

    @property
    def note(self) -> str:
        """The description of the rewrite in the report."""
        return self.template.note

    @property
    def exact(self) -> bool:
        """True if the same arithmetic runs, as of an Edit."""
        return self.template.exact

    def write(self, node: NodeProto) -> None:
        """Rewrite a node in place; what stays is not touched, for speed."""
        template = self.template
        node.ClearField("attribute")
        if not template.appends:
            old = node.input[:]
            new = [old[source] if isinstance(source, int) else source for source in self.inputs]
            replace_all(node.input, new)
        if template.drops:
            del node.output[template.outputs :]
        node.MergeFrom(self._news)

    @cached_property
    def _news(self) -> NodeProto:
        """What every node gets: the operator, its attributes, and inputs after the old ones."""
        template = self.template
        more = self.inputs[template.count :] if template.appends else ()
        return NodeProto(
            op_type=template.op, attribute=template.attributes, input=[str(name) for name in more]
        )


Rewrite = Callable[[Site], Edit]
Considers = Callable[[NodeProto, int, int], bool]
Closer = Callable[[Model, int], Considers | None]


@dataclass(frozen=True)
class ByOp:
    """Considers nodes by their operator; `closely` only those of which that does not tell."""

    of_op: Callable[[str, int, int], bool | None]
    closely: Considers = lambda node, opset, target: True

    def __call__(self, node: NodeProto, opset: int, target: int) -> bool:
        known = self.of_op(op_of(node), opset, target)
        return self.closely(node, opset, target) if known is None else known


def nodes_of(*operators: str, since: int = 0) -> ByOp:
    """Return what considers the nodes of some operators, from an opset on."""
    return ByOp(lambda op, opset, target: opset >= since and op in operators)


#: Consider Scans of version 9 or later, which have no batch axis, and with these all Loops.
SCANS = nodes_of("Scan", since=SCAN_HAS_AXES)
LOOPS = ByOp(lambda op, *opsets: op == "Loop" or SCANS.of_op(op, *opsets))


_CODE = re.compile(r"^\s*- `(?P<code>[a-z0-9-]+)`: (?P<sentence>.+)$")


@dataclass(frozen=True)
class Rule:
    """A registered rewrite. `list`, `explain` and the docs are made from its docstring.

    `considers` answers quickly, for a node, the opset it is written in and the target, whether
    the rule has anything to say about it. `closer` gives, for a model and the target, a `considers`
    that knows the model; None where the rule has nothing to say of any node. `converts`: it brings
    a node to another opset, in a phase that brings the whole model there.
    """

    name: str
    rewrite: Rewrite
    considers: Considers
    optional: bool = False
    closer: Closer | None = None
    converts: bool = False

    def considers_op(self, op: str, opset: int, target: int) -> bool | None:
        """As `considers` answers for all nodes of an operator; None where that depends on the
        node."""
        known = self.considers
        return known.of_op(op, opset, target) if isinstance(known, ByOp) else None

    @property
    def is_built_in(self) -> bool:
        """Return whether it belongs to this package, not to another one."""
        return self.rewrite.__module__.startswith("passes.")

    @property
    def documentation(self) -> str:
        """The whole docstring, without its indentation."""
        return inspect.cleandoc(self.rewrite.__doc__ or "")

    @property
    def summary(self) -> str:
        """The first line of the docstring."""
        return self.documentation.partition("\n")[0]

    @property
    def refusal_codes(self) -> dict[str, str]:
        """The codes that the docstring lists under `Refuses:`, with what each means."""
        _, _, tail = self.documentation.partition("Refuses:")
        found = (_CODE.match(line) for line in tail.splitlines())
        return {match["code"]: match["sentence"] for match in found if match}


GROUP = "passes.rules"
_BUILT_IN = ("passes.converters", "passes.rules")
RULES: dict[str, Rule] = {}


def _blamed(name: str, considers: Considers) -> Considers:
    """The `considers` of a rule of another package, which raises BrokenRule if it fails."""

    def considered(node: NodeProto, opset: int, target: int) -> bool:
        try:
            return considers(node, opset, target)
        except Exception as error:  # whatever the code of another package may raise
            what = f"considers({op_of(node)} {node.name!r}, {opset}, {target})"
            sentence = f"the rule {name!r} failed: {what}: {type(error).__name__}: {error}"
            raise BrokenRule(sentence) from error

    return considered


def register(
    name: str,
    *,
    considers: Considers,
    optional: bool = False,
    closer: Closer | None = None,
    converts: bool = False,
) -> Callable[[Rewrite], Rewrite]:
    """Make a function a rule that pipelines may name.

    Raises:
        ValueError: the name is taken by another function, or the function has no docstring.
    """

    def add(rewrite: Rewrite) -> Rewrite:
        rule = Rule(name, rewrite, considers, optional, closer, converts)
        if not rule.is_built_in:
            rule = replace(rule, considers=_blamed(name, considers))
        if name in RULES and RULES[name].rewrite is not rewrite:
            raise ValueError(f"two rules are called {name!r}")
        if not rule.summary:
            raise ValueError(f"the rule {name!r} has no docstring")
        RULES[name] = rule
        return rewrite

    return add


@cache
def load_rules() -> dict[str, Rule]:
    """Return every rule by name; the modules of the entry points register them on import.

    Raises:
        BrokenRules: the module of another distribution does not import.
    """
    for module in _modules().values():
        import_module(module)
    for entry in entry_points(group=GROUP):
        if entry.module.partition(".")[0] == "passes":  # older installations list the built-in ones
            continue
        try:
            entry.load()
        except Exception as error:  # whatever the import of somebody else's module may raise
            raise BrokenRules(
                f"the rules {entry.name!r} ({entry.value}) do not load: {error}"
            ) from error
    return RULES


@cache
def _modules() -> dict[str, str]:
    """The modules of the built-in packages, by the name of the rule that each may define: a rule is
    located in the file of its name, so that it is found without importing the others."""
    found = {}
    for package in _BUILT_IN:
        (folder,) = map(Path, import_module(package).__path__)
        for file in sorted(folder.rglob("*.py")):
            parts = file.relative_to(folder).with_suffix("").parts
            found[file.stem.replace("_", "-")] = ".".join((package, *parts))
    return found


def rule_named(name: str) -> Rule:
    """The rule called `name`.

    Raises:
        UnknownRule: there is none; the sentence names those most like it.
    """
    if name not in RULES and name in _modules():
        import_module(_modules()[name])
    rules = RULES if name in RULES else load_rules()
    if name not in rules:
        raise UnknownRule(
            f"there is no rule {name!r}; {nearest(name, rules)} (`passes list` shows all)"
        )
    return rules[name]
