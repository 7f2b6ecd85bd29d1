from pathlib import Path

from benchmarks.table import filled

ROOT = Path(__file__).parent.parent


def test_tables_come_from_their_records():
    text = (ROOT / "README.md").read_text()
    assert filled(text, ROOT) == text
    assert "| descent" in text


def test_every_linked_file_exists():
    import re

    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\((?!http|#)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
