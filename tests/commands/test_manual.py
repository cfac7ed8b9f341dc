"""`passes docs` shows the pages of the documentation by name, and finds them by words."""

from __future__ import annotations

import re

import pytest

from passes.commands.building import example
from passes.commands.manual import Docs, pages
from passes.errors import WrongUsage


def test_every_page_has_a_line_tasks_first() -> None:
    lines = Docs().run().splitlines()
    assert len(lines) == len(pages())
    assert re.split(r"  +", lines[0]) == ["tasks/build", "Many models: a step of a build"]
    assert lines[-1].startswith("view ")


@pytest.mark.parametrize("name", ["streaming", "streaming.md", "docs/streaming.md"])
def test_a_page_is_shown_by_its_name(name: str) -> None:
    assert Docs(name).run().startswith("# Streaming: run a model chunk by chunk\n")


def test_words_find_pages_by_their_headings() -> None:
    lines = Docs("Float16 fp16").run().splitlines()
    assert [line.split()[0] for line in lines] == ["tasks/half-precision"]


def test_a_comment_in_a_block_is_no_heading() -> None:
    assert '# with "exact", a version without an end' in pages()["targets"]
    with pytest.raises(WrongUsage, match="there is no page 'without an end'; the nearest are "):
        Docs("without an end").run()


def test_a_new_configuration_names_a_page_that_explains_its_keys() -> None:
    text = example(())
    (name,) = re.findall(r"`passes docs (\S+)`", text)
    page = Docs(name).run()
    build, _, _ = text.partition("[pipelines]")
    keys = re.findall(r"^(?:# )?([a-z-]+) = ", build, re.MULTILINE)
    assert "time-limit" in keys
    assert [key for key in keys if f"`{key}`" not in page] == []
