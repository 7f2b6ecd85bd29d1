import torch

from benchmarks.ordering import METHODS, read_problem, row, value

# Three against three in a circle, and a fourth who loses to all: the best order drops the lightest arc
PROBLEM = "4\n 7 5 0 9\n 1 7 4 9\n 3 0 7 9\n 0 0 0 7\n"


def test_every_method_on_a_problem_that_is_known(tmp_path):
    (tmp_path / "circle").write_text(PROBLEM)
    preferences = read_problem(tmp_path / "circle")
    assert preferences.shape == (4, 4)
    assert value(preferences, torch.arange(4)) == 5 + 4 + 27
    for name, method in METHODS.items():
        order = method(preferences)
        assert order.sort().values.tolist() == [0, 1, 2, 3], name
    found = row("us.order", {"circle": preferences}, {"circle": 36.0})
    assert found["optimal"] == "1 of 1"
    assert found["mean gap"] == "0.0000%"
    assert row("row sums of W − Wᵀ", {"circle": preferences}, {"circle": 72.0})["mean gap"] == "50.0000%"
