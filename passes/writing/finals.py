"""Values that are only passed on, written under the name by which the outside knows them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from passes.writing.draft import Draft


def finals_renamed(drafts: list[Draft], keep: Collection[str]) -> list[Draft]:
    """The nodes without the Identities that write a name of `keep` which their source may have."""
    passed = [one for one in drafts if one.pattern.op == "Identity" and one.output[0] in keep]
    makers = _makers(drafts, {one.input[0] for one in passed} - set(keep))
    renamed: dict[str, str] = {}
    gone = set()
    for one in passed:
        source = one.input[0]
        if source in makers and source not in renamed:
            renamed[source] = one.output[0]
            gone.add(id(one))
    if not renamed:
        return drafts
    first = min(makers[name] for name in renamed)  # nobody in front of it reads them
    for draft in drafts[first:]:
        draft.rename(renamed)
        draft.output = [renamed.get(name, name) for name in draft.output]
    return [draft for draft in drafts if id(draft) not in gone]


def _makers(drafts: Sequence[Draft], names: set[str]) -> dict[str, int]:
    """Where those of these values are computed that are; most stand near the end."""
    found: dict[str, int] = {}
    for at in range(len(drafts) - 1, -1, -1):
        if len(found) == len(names):
            break
        found.update((name, at) for name in drafts[at].output if name in names)
    return found
