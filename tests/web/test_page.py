"""The page in a real browser: Chromium, headless. UNSHUFFLE_SCREENSHOTS=docs/images makes the pictures of it anew:

UNSHUFFLE_SCREENSHOTS=docs/images python -m pytest tests/web/test_page.py
"""

import os
import re
import shutil
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
if BROWSER is None:
    pytest.skip("no Chromium here; on Debian: apt-get install chromium", allow_module_level=True)
sync_api = pytest.importorskip("playwright.sync_api", reason="the tests in a browser need playwright")

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WAIT = 30_000  # ms


@pytest.fixture(scope="module")
def chromium():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def asked():
    """Every address that the page asked for, and every error on its console."""
    return {"addresses": [], "errors": []}


@pytest.fixture
def page(chromium, address, asked):
    """The page, opened anew, with its first picture there."""
    page = chromium.new_page(viewport={"width": 1360, "height": 900})
    page.set_default_timeout(WAIT)
    page.on("request", lambda request: asked["addresses"].append(request.url))
    page.on("console", lambda message: asked["errors"].append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: asked["errors"].append(str(error)))
    page.goto(address)
    page.wait_for_selector("#film .picture img")
    yield page
    page.close()


@pytest.fixture
def keep():
    """Keep what the page looks like, where that is asked for; 256 colours are enough."""

    def keep(page, name, **how):
        picture = Image.open(BytesIO(page.screenshot(**how)))
        assert len(picture.getcolors(2**24)) > 50  # not an empty page
        if folder := os.environ.get("UNSHUFFLE_SCREENSHOTS"):
            picture.convert("RGB").quantize(256).save(Path(folder) / f"page-{name}.png", optimize=True)

    return keep


def source(page):
    return page.locator("#film .picture img").get_attribute("src")


def say(page, selector, words):
    sync_api.expect(page.locator(selector)).to_contain_text(re.compile(words), timeout=WAIT)


def slide(page, film, step):
    """To a step, as a hand does it: the film stops there."""
    page.locator(f"{film} input[type=range]").fill(str(step))


def test_from_upload_to_slider(page, photograph):
    before = source(page)
    page.locator("#upload input[type=file]").set_input_files(photograph)
    page.wait_for_function("before => document.querySelector('#film .picture img').src !== before", arg=before)
    sent = source(page)
    page.locator("#scramble").click()
    page.wait_for_function("before => document.querySelector('#film .picture img').src !== before", arg=sent)
    assert page.locator("#seed input").input_value() == "2"
    page.locator("#solve").click()
    say(page, "#message", "of 9 pieces in place|All 9 pieces are back in place")
    sync_api.expect(page.locator("#film output")).to_have_text("after search", timeout=WAIT)  # it plays by itself
    end = source(page)
    slide(page, "#film", 0)
    sync_api.expect(page.locator("#film output")).to_have_text("start")
    assert source(page) != end
    slide(page, "#film", 9)
    sync_api.expect(page.locator("#film output")).to_have_text("step 9")
    assert page.locator("#film svg[aria-label^=P] > image").count() == 9  # a row for each piece
    sync_api.expect(page.locator("#costs svg")).to_have_count(4)
    page.locator("#film button").click()
    sync_api.expect(page.locator("#film button")).to_have_attribute("aria-label", "Pause")
    sync_api.expect(page.locator("#film output")).to_have_text("after search", timeout=WAIT)
    assert source(page) == end


def test_a_sample_and_another_grid(page, keep):
    page.get_by_label("2×2").check()
    page.locator("#samples button").nth(1).click()
    page.locator("#solve").click()
    say(page, "#message", "4 pieces")
    page.get_by_label("3×3").check()
    page.locator("#solve").click()
    say(page, "#message", "9 pieces")
    sync_api.expect(page.locator("#film output")).to_have_text("after search", timeout=WAIT)
    slide(page, "#film", 12)
    keep(page, "picture", full_page=True)


def test_a_file_that_is_no_picture(page, tmp_path):
    (tmp_path / "picture.png").write_text("<svg onload='alert(1)'></svg>")
    page.on("dialog", lambda dialog: pytest.fail("a script ran"))
    page.locator("#upload input[type=file]").set_input_files(tmp_path / "picture.png")
    say(page, "#message", "This is no picture that can be read here")
    page.locator("#solve").click()  # the page goes on working, with the picture from before
    say(page, "#message", "9 pieces")


def test_numbers(page, keep):
    page.get_by_role("tab", name="Numbers").click()
    say(page, "#sorted", "Sorted: 0.05, 0.15, 0.33")
    slide(page, "#sorting", 4)
    sync_api.expect(page.locator("#sorting output")).to_have_text("step 4")
    keep(page, "numbers", full_page=True)
    page.locator("#numbers textarea").fill("3, 1, 2")
    page.locator("#numbers .submit-button").click()
    say(page, "#sorted", "Sorted: 1, 2, 3")
    page.locator("#numbers textarea").fill("3, one")
    page.locator("#numbers .submit-button").click()
    say(page, "#sorted", "“one” is not a number")
    page.locator("#draw").click()
    say(page, "#sorted", "orted:.*(, .*){9}")
    sync_api.expect(page.locator("#numbers textarea")).to_have_value(re.compile(r"^(0\.\d\d, ){9}"))
    page.locator("#steps input[type=number]").fill("0")
    say(page, "#sorted", "Not quite sorted")
    page.locator("#steps input[type=number]").fill("8")
    say(page, "#sorted", "Sorted:")


def test_the_tables_and_the_gallery(page, keep):
    page.get_by_role("tab", name="Results").click()
    say(page, "#tables", "PO-LA")
    keep(page, "results", full_page=True)
    page.get_by_role("tab", name="Gallery").click()
    say(page, "#figures", "allery")


def test_nothing_left_this_computer(asked, address):
    """After all of the above."""
    assert len(asked["addresses"]) > 20
    assert [url for url in asked["addresses"] if not url.startswith((address, "data:", "blob:"))] == []
    assert asked["errors"] == []
