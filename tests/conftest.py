import pytest
import torch
from hypothesis import settings

# A loaded machine must not fail a test: no deadlines, and the same examples in every run
settings.register_profile("unshuffle", deadline=None, derandomize=True, max_examples=25)
settings.load_profile("unshuffle")


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)
