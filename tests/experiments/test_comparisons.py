import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from unshuffle.experiments import comparisons
from unshuffle.experiments.comparisons import read_comparisons
from unshuffle.experiments.problem import Problem

NAMES = ["tea", "coffee", "water"]
WANTED = [[0.0, 3.0, 0.0], [0.0, 0.0, 2.0], [1.0, 0.0, 0.0]]


@pytest.fixture
def read(tmp_path):
    """What is read from a file with this content."""

    def call(content):
        file = tmp_path / "votes.csv"
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_comparisons(file)

    return call


READINGS = {
    "list with a header": "winner,loser,count\ntea,coffee,3\ncoffee,water,2\nwater,tea,1\n",
    "list without": "tea,coffee,3\ncoffee,water,2\nwater,tea,1\n",
    "list that repeats itself": "tea,coffee\ntea,coffee\ntea,coffee\ncoffee,water\ncoffee,water\nwater,tea",
    "semicolons, Windows": "\ufeffWinner;Loser;Games\r\ntea;coffee;3\r\n\r\ncoffee;water;2\r\nwater;tea;1",
    "tabs": "tea\tcoffee\t3\ncoffee\twater\t2\nwater\ttea\t1\n",
    "quotes and spaces": 'winner, loser, count\n"tea", coffee , 3\ncoffee,water,2\n"water",tea,1',
    "matrix": ",tea,coffee,water\ntea,0,3,0\ncoffee,0,0,2\nwater,1,0,0\n",
    "matrix with a word in its corner": "drink,tea,coffee,water\ntea,-,3,\ncoffee,,-,2\nwater,1,0,-\n",
    "matrix with a short header": "tea,coffee,water\ntea,0,3,0\ncoffee,0,0,2\nwater,1,0,0\n",
    "matrix with names above": "tea,coffee,water\n0,3,0\n0,0,2\n1,0,0\n",
    "matrix with names beside": "tea,0,3,0\ncoffee,0,0,2\nwater,1,0,0\n",
    "margins": ",tea,coffee,water\ntea,0,3,-1\ncoffee,-3,0,2\nwater,1,-2,0\n",
}


@pytest.mark.parametrize("name", READINGS)
def test_readings(read, name):
    found = read(READINGS[name])
    assert found.names == NAMES
    assert found.preferences().tolist() == WANTED
    assert len(found.weights) == (6 if "repeats" in name else 3)


def test_names_that_are_numbers(read):
    assert read("winner,loser\n1,2\n2,3\n").names == ["1", "2", "3"]
    assert read(",2024,2025\n2024,0,1\n2025,2,0\n").preferences().tolist() == [[0, 1], [2, 0]]
    bare = read("9,1,0,2\n0,9,2,1\n3,0,9,0\n0,1,0,9\n")
    assert bare.names == ["1", "2", "3", "4"]
    assert bare.preferences().diagonal().tolist() == [0] * 4


BAD = {
    "": " is empty",
    "\n \n,,\n": " is empty",
    "winner,loser\n": "holds no comparison",
    "tea,coffee\ntea\n": ", line 2: 1 fields, where the first line has 2",
    "tea,coffee\ncoffee,tea,2\n": ", line 2: 3 fields, where the first line has 2",
    "tea,coffee,2\n\ncoffee,tea,much\n": ", line 3: 'much' is not a number",
    "tea,coffee,2\ncoffee,tea,nan\n": ", line 2: 'nan' is not a number",
    "tea,coffee,2\ncoffee,tea,1e999\n": ", line 2: '1e999' is not a number",
    "tea,coffee,2\ncoffee,tea,\n": ", line 2: '' is not a number",
    "tea,coffee,0\n": ", line 1: a count must be above 0, got 0",
    "tea,coffee,-2\n": "a count must be above 0, got -2",
    "tea,coffee\nmilk,milk\n": ", line 2: 'milk' is compared with itself",
    "tea,coffee\n,milk\n": ", line 2: the winner has no name",
    "tea,coffee\nmilk,\n": ", line 2: the loser has no name",
    ",a,b,c\na,0,1,2\nb,3,0,4\n": "a matrix must be square",
    "1,2,3,4\n5,6,7,8\n": "a matrix must be square",
    ",a,b,c\na,0,1,2\nb,3,0\nc,1,1,0\n": ", line 3: 3 fields, where line 2 has 4",
    ",a,b,c\na,0,1,2\nb,3,0,x\nc,1,1,0\n": ", line 3: 'x' is not a number",
    ",a,b,c\na,0,1,2\nb,3,0,NaN\nc,1,1,0\n": ", line 3: 'NaN' is not a number",
    ",a,b,c\na,0,1,2\nb,3,0,-4\nc,1,1,0\n": ", line 3: a preference below 0, -4 of 'b' before 'c'",
    ",a,b,a\na,0,1,2\nb,3,0,4\na,1,1,0\n": ", line 4: 'a' is there twice",
    "a,b,c,a\n0,1,2,3\n0,1,2,3\n0,1,2,3\n0,1,2,3\n": ", line 1: 'a' is there twice",
    ",a,b,c\na,0,1,2\nc,3,0,4\nb,1,1,0\n": ", line 3: the row of 'c' stands where the columns have 'b'",
    ",a,b,c\na,0,1,2\nb,3,0,4\n,1,1,0\n": ", line 4: the row of '' stands where",
    ",a,b,c\na,0,0,0\nb,0,0,0\nc,0,0,0\n": "prefers nothing",
    "tea,coffee\n0,3\n1,0\n": "can be read as 3 comparisons and as a matrix: begin comparisons with the line",
    "1,2,3\n4,5,6\n7,8,9\n": "can be read as 3 comparisons and as a matrix",
    'tea,"coffee\nmilk,tea\n': ": this is not CSV",
    b"tea,coffee\nmilk,\xff\xfe\n": ", line 2: this is not text in UTF-8",
    b"\x89PNG\r\n\x1a\n\x00\x00": ", line 1: this is not text in UTF-8",
    b"tea,coffee\nmilk,t\x00\x01ea\n": ", line 2: a control character",
    "tea,coffee\nmilk,\x1b[31mred\n": ", line 2: a control character",
}


@pytest.mark.parametrize("content", BAD)
def test_bad_files(read, tmp_path, content):
    with pytest.raises(Problem) as problem:
        read(content)
    message = str(problem.value)
    assert BAD[content] in message
    assert message.startswith(str(tmp_path / "votes.csv"))
    assert "\n" not in message


@given(content=st.one_of(st.binary(max_size=60), st.text('ab,;\n"1 .-\t', max_size=60)))
def test_any_bytes_are_read_or_refused(tmp_path_factory, content):
    file = tmp_path_factory.mktemp("any") / "any.csv"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    try:
        found = read_comparisons(file)
    except Problem:
        return
    assert len(found.names) >= 2
    assert found.weights.isfinite().all()
    assert (found.weights > 0).all()
    assert (found.winners != found.losers).all()


def test_too_large(read, monkeypatch):
    monkeypatch.setattr(comparisons, "MOST_ROWS", 3)
    with pytest.raises(Problem, match="more than 3 rows"):
        read("a,b\n" * 4)
    monkeypatch.setattr(comparisons, "MOST_ITEMS", 4)
    with pytest.raises(Problem, match="has 6 items; a ranking takes 2 to 4"):
        read("a,b\nc,d\ne,f\n")
    monkeypatch.setattr(comparisons, "MOST_BYTES", 2**20)
    with pytest.raises(Problem, match="larger than 1 MiB"):
        read("a,b\n" * 2**18 + "a,b\n")


def test_no_file(tmp_path):
    with pytest.raises(Problem, match=r"cannot read .*none.csv: No such file"):
        read_comparisons(tmp_path / "none.csv")
    with pytest.raises(Problem, match=r"cannot read .*: Is a directory"):
        read_comparisons(tmp_path)


def test_weights_are_exact(read):
    assert torch.equal(read("a,b,0.1\nb,c,1e15\n").weights, torch.tensor([0.1, 1e15], dtype=torch.float64))
