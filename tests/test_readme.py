import re
from pathlib import Path

import pytest

from benchmarks.table import filled, pages

ROOT = Path(__file__).parent.parent
PAGES = pages(ROOT)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tables_come_from_their_records(page):
    text = page.read_text()
    assert filled(text, ROOT) == text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_linked_file_exists(page):
    for target in re.findall(r"\]\((?!http|#)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_markers_are_filled(tmp_path):
    (tmp_path / "rows.json").write_text('{"rows": [{"a": "1", "b": "2"}]}')
    assert filled("x\n<!-- table: rows.json -->\n| old |\ny\n", tmp_path) == (
        "x\n<!-- table: rows.json -->\n| a | b |\n| --- | --- |\n| 1 | 2 |\ny\n"
    )
    text = "<!-- tables: sorting 1 -->\nold\n<!-- end -->\n"
    assert "PO-U" in filled(text, ROOT)
    assert "old" not in filled(text, ROOT)
