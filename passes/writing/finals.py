"""Values that are only passed on, written directly under the name of the output."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from passes.ir.draft import Draft


def finals_renamed(drafts: list[Draft], keep: Collection[str]) -> list[Draft]:
    """The nodes without the Identities that write a name of `keep` which their source may take."""
    passed = [
        identity
        for identity in drafts
        if identity.pattern.op == "Identity" and identity.output[0] in keep
    ]
    producers = _producers(drafts, {identity.input[0] for identity in passed} - set(keep))
    renamed: dict[str, str] = {}
    gone = set()
    for identity in passed:
        source = identity.input[0]
        if source in producers and source not in renamed:
            renamed[source] = identity.output[0]
            gone.add(id(identity))
    if not renamed:
        return drafts
    first = min(producers[name] for name in renamed)  # nothing before it reads them
    for draft in drafts[first:]:
        draft.rename(renamed)
        draft.output = [renamed.get(name, name) for name in draft.output]
    return [draft for draft in drafts if id(draft) not in gone]


def _producers(drafts: Sequence[Draft], names: set[str]) -> dict[str, int]:
    """Return the positions of the producers of these values; most are near the end."""
    found: dict[str, int] = {}
    for position in range(len(drafts) - 1, -1, -1):
        if len(found) == len(names):
            break
        found.update((name, position) for name in drafts[position].output if name in names)
    return found
