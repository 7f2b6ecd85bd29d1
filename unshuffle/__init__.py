"""unshuffle learns the order that a set has lost."""

from unshuffle.assignment import Arrangement as Arrangement
from unshuffle.assignment import apply as apply
from unshuffle.assignment import assign as assign
from unshuffle.costs import PairwiseCost as PairwiseCost
from unshuffle.descent import descend as descend
from unshuffle.descent import total_cost as total_cost
from unshuffle.descent import trajectory as trajectory
from unshuffle.encoder import SetEncoder as SetEncoder
from unshuffle.layer import Arrange as Arrange
from unshuffle.layer import LinearStart as LinearStart
from unshuffle.search import search as search
from unshuffle.shipped import load as load
from unshuffle.sinkhorn import sinkhorn as sinkhorn
from unshuffle.solver import Solution as Solution
from unshuffle.solver import solve as solve
from unshuffle.structures import Grid as Grid
from unshuffle.structures import Lattice as Lattice
from unshuffle.structures import Sequence as Sequence
from unshuffle.version import __version__ as __version__
