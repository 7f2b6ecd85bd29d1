import pytest

from unshuffle.experiments import paper, tables
from unshuffle.experiments.problem import Problem
from unshuffle.experiments.records import Record
from unshuffle.experiments.sorting import INTERVALS

SHARES = {"exact": 0.5, "pixel_exact": 0.75, "tiles": 0.9}


def mosaic_record(model, dataset="mnist", side=2, **metrics):
    config = {"model": model, "dataset": dataset, "side": side, "epochs": 8}
    return Record("mosaic", config, {"mse": 0.125} | SHARES | metrics, 1000, 300.0, {"precision": "bf16"})


def test_ours_beside_the_papers(tmp_path):
    mosaic_record("po-la", side=3).write(tmp_path / "mosaic-a.json")
    searched = {f"search_{name}": 1.0 for name in ("mse", *SHARES)}
    mosaic_record("neighbours", side=3, true_costs_less=0.02, **searched).write(tmp_path / "mosaic-b.json")
    error, accuracy, pixels, *_, missed, budget = tables.of("mosaic", tmp_path)
    assert accuracy.header == ["model", "mnist 2×2", "mnist 3×3", "mnist 4×4", "mnist 5×5"]
    assert accuracy.rows == [
        ["PO-LA", "–", "50.0 (73.1)", "–", "–"],
        ["neighbours (ours)", "–", "50.0", "–", "–"],
        ["neighbours (ours), with search", "–", "100.0", "–", "–"],
    ]
    assert error.rows[0][2] == "0.12 (0.00)"
    assert pixels.rows[0][2] == "75.0"
    assert missed.rows[1][2] == "2.0"
    assert budget.rows[0][2] == "8, 5 min"


def classify_record(model, dataset, side, accuracy, mse):
    config = {"model": model, "dataset": dataset, "side": side, "epochs": 3}
    return Record("classify", config, {"accuracy": accuracy, "mse": mse, "images": 10_000}, 60_000, 300.0, {})


def test_classify(tmp_path):
    classify_record("neighbours", "mnist", 4, 0.97, 0.1).write(tmp_path / "classify-a.json")
    classify_record("min", "mnist", 5, 0.15, 1.7).write(tmp_path / "classify-b.json")
    classify_record("po-u", "cifar10", 2, 0.7, 0.35).write(tmp_path / "classify-c.json")
    Record("classifier", {"dataset": "mnist", "size": 28}, {}, 1, 1.0, {}).write(tmp_path / "classifier-mnist-28.json")
    accuracy, error, budget = tables.of("classify", tmp_path)
    sides = [f"{side}×{side}" for side in (2, 3, 4, 5)]
    assert accuracy.header == ["model", *(f"mnist {side}" for side in sides), *(f"cifar10 {side}" for side in sides)]
    assert accuracy.rows == [
        ["min", "–", "–", "–", "15.0 (14.6)", "–", "–", "–", "–"],
        ["PO-U", "–", "–", "–", "–", "70.0 (70.8)", "–", "–", "–"],
        ["neighbours (ours)", "–", "–", "97.0", "–", "–", "–", "–", "–"],
    ]
    assert error.rows[0][4] == "1.70 (1.72)"
    assert budget.rows[2][3] == "60,000, 5 min"


def test_sorting(tmp_path):
    shares = {f"{low}-{high}": 1.0 for low, high in INTERVALS}
    metrics = {"sets": 1000, "sorted": shares | {"1000-1001": 0.998}, "other_sizes": {"5": 1.0}}
    Record("sorting", {"model": "po-u", "size": 10}, metrics, 2**18, 61.2, {}).write(tmp_path / "sorting-10.json")
    sorted_sets, others = tables.of("sorting", tmp_path)
    assert sorted_sets.rows == [["PO-U", "10", *["100.0"] * 6, "99.8", "1,000", "262,144", "61 s"]]
    assert others.rows == [["PO-U", "10", "100.0"]]


def test_vqa_is_mean_and_deviation_over_seeds(tmp_path):
    for seed, number in enumerate((0.5, 0.51, 0.54)):
        metrics = {"overall": 0.6, "number": number, "kinds": {"how many": number}}
        config = {"data": "some/where/scenes", "model": "ban-po-u", "seed": seed}
        Record("vqa", config, metrics, 100, 120.0, {}).write(tmp_path / f"vqa-scenes-ban-po-u-seed{seed}.json")
    single = Record("vqa", {"data": "cocoqa", "model": "ban"}, {"overall": 0.3, "kinds": {"number": 0.4}}, 9, 9.0, {})
    single.write(tmp_path / "vqa-cocoqa-ban-seed0.json")
    coco, coco_kinds, scenes, kinds = tables.of("vqa", tmp_path)
    assert scenes.header == ["model", "overall", "yes/no", "number", "other", "seeds", "time of one"]
    assert scenes.rows == [
        ["BAN + PO-U", "60.00 ± 0.00 (66.33 ± 0.09)", "– (83.50 ± 0.10)", "51.67 ± 2.08 (50.42 ± 0.46)",
         "– (57.48 ± 0.10)", "3", "2 min"],
    ]  # fmt: skip
    assert kinds.rows == [["BAN + PO-U", "51.67 ± 2.08"]]
    assert coco.rows[0][:2] == ["BAN", "30.00 (65.96 ± 0.16)"]
    assert coco_kinds.header == ["model", "number"]


@pytest.mark.parametrize(
    ("share", "text"),
    [(None, "–"), (0.0, "0.0"), (1.0, "100.0"), (0.123, "12.3"), (0.9996, "99.96"), (0.0001, "0.01"), (0.9985, "99.9")],
)
def test_percent_rounds_no_miss_away(share, text):
    assert tables.percent(share) == text


def test_markdown_and_terminal():
    table = tables.Table("Title", ["model", "x"], [["a", "1"]])
    assert table.markdown() == "**Title**\n\n| model | x |\n| --- | --- |\n| a | 1 |\n"
    assert table.rich().row_count == 1


def test_no_records(tmp_path):
    with pytest.raises(Problem, match="holds no record of mosaic; `unshuffle reproduce mosaic` makes them"):
        tables.of("mosaic", tmp_path)


def test_a_file_that_is_no_record(tmp_path):
    (tmp_path / "mosaic-x.json").write_text('{"experiment": "mosaic"}')
    with pytest.raises(Problem, match=r"mosaic-x\.json is not a record"):
        tables.of("mosaic", tmp_path)


def test_the_papers_numbers_are_whole():
    for rows in (paper.MOSAIC_ERROR, paper.MOSAIC_ACCURACY, paper.CLASSIFY_ERROR, paper.CLASSIFY_ACCURACY):
        assert {len(sides) for datasets in rows.values() for sides in datasets.values()} == {4}
        assert {tuple(datasets) for datasets in rows.values()} == {("mnist", "cifar10", "tiny-imagenet")}
