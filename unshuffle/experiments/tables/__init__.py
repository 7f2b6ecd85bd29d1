"""Tables from records, beside the paper's numbers: a file for each experiment."""

from unshuffle.experiments.tables.collect import of as of
from unshuffle.experiments.tables.table import Table as Table
from unshuffle.experiments.tables.table import of_metrics as of_metrics
from unshuffle.experiments.tables.table import percent as percent
