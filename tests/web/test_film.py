import json
import re
from html import unescape

from unshuffle.web.film import Film


def test_frames_survive_the_attribute():
    frames = [{"x": '<b title="one">&amp;</b>', "caption": "start"}, {"x": "'two'", "caption": "end"}]
    html = Film('<p data-slot="x"></p>', frames).html()
    found = re.search(r'data-frames="([^"]*)"', html)
    assert json.loads(unescape(found[1])) == frames
    assert 'max="1"' in html
    assert "data-plays" in html


def test_a_still_has_no_controls():
    assert 'class="film-controls" hidden' in Film("", [{"caption": ""}]).html()
    assert "data-plays" not in Film("", [{"caption": ""}], plays=False).html()
