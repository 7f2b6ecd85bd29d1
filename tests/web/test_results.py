import pytest
from PIL import Image

from unshuffle.web import results


def test_tables_beside_the_papers(records):
    html = results.tables(records)
    assert "<th>mnist 3×3</th>" in html
    assert "<td>50.0 (73.1)</td>" in html


def test_no_records(tmp_path):
    assert "No run has left a record yet" in results.tables(tmp_path)
    assert "There is no folder of records at “none”" in results.tables(tmp_path / "none")


def test_a_damaged_record_is_said_and_the_rest_is_shown(records, tmp_path):
    for path in records.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "sorting-x.json").write_text("{")
    html = results.tables(tmp_path)
    assert "is not a record" in html
    assert "50.0 (73.1)" in html


def test_the_gallery_holds_its_pictures(tmp_path):
    docs = tmp_path / "docs"
    (docs / "images").mkdir(parents=True)
    Image.new("RGB", (2, 2)).save(docs / "images" / "a.png")
    Image.new("RGB", (2, 2)).save(tmp_path / "secret.png")
    page = docs / "gallery.md"
    page.write_text("# Gallery\n\n![the costs](images/a.png)\n\n![elsewhere](../secret.png)\n\n<script>no</script>\n")
    html = results.gallery(page)
    assert '<img loading="lazy" alt="the costs" src="data:image/png;base64,' in html
    assert html.count("<img") == 1
    assert "<script>" not in html


def test_no_gallery(tmp_path):
    assert "docs/gallery.md of a checkout" in results.gallery(tmp_path / "gallery.md")


@pytest.mark.parametrize("words", ["![x](https://example.org/a.png)", "![x](/etc/passwd)", "![x](data:text/html,x)"])
def test_no_picture_from_elsewhere(tmp_path, words):
    assert "<img" not in results.render(words, tmp_path)
    assert "<img" not in results.render(words)
