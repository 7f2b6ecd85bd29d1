import json

import pytest

from tests.experiments.vqa.conftest import question
from unshuffle.experiments.problem import Problem
from unshuffle.experiments.vqa.questions import read, write_split


def paths(folder):
    return folder / "train_questions.json", folder / "train_annotations.json"


def test_what_is_written_is_read(tmp_path):
    asked = [question(3), question(1, 12, "is it?", "yes/no", ("yes", "no"), "yes")]
    write_split(tmp_path, "train", asked)
    assert read(*paths(tmp_path)) == asked


def test_the_official_files(tmp_path):
    """As they are published, with more around the lists, and annotations in another order."""
    questions, annotations = paths(tmp_path)
    asked = {"image_id": 458752, "question": "What is this photo taken looking through?", "question_id": 458752000}
    given = [{"answer": "net", "answer_confidence": "maybe", "answer_id": k} for k in range(1, 11)]
    annotation = {
        "question_type": "what is this", "multiple_choice_answer": "net", "answers": given,
        "image_id": 458752, "answer_type": "other", "question_id": 458752000,
    }  # fmt: skip
    other = annotation | {"question_id": 7, "image_id": 1}
    questions.write_text(json.dumps({"info": {}, "task_type": "Open-Ended", "questions": [asked], "license": {}}))
    annotations.write_text(json.dumps({"info": {}, "annotations": [other, annotation]}))
    (found,) = read(questions, annotations)
    assert (found.number, found.image, found.answers) == (458752000, 458752, ("net",) * 10)
    assert (found.answer_type, found.question_type, found.chosen) == ("other", "what is this", "net")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answer_type": "colour"}, r"train_annotations.json: question 1 has the unknown answer type 'colour'"),
        ({"answers": []}, r"train_annotations.json: question 1 has no answers"),
        ({"answers": "two"}, r"annotation of question 1: answers must be list"),
        ({"answers": [{"text": "two"}]}, r"annotation of question 1: answer must be str"),
        ({"question_id": 2}, r"train_annotations.json has no annotation of question 1"),
        ({"question_id": "1"}, r"question_id must be int"),
        ({"image_id": 12}, r"question 1 is about image 12, but .*train_questions.json says 11"),
    ],
)
def test_bad_annotations(tmp_path, change, message):
    write_split(tmp_path, "train", [question(1)])
    path = paths(tmp_path)[1]
    content = json.loads(path.read_text())
    content["annotations"][0] |= change
    path.write_text(json.dumps(content))
    with pytest.raises(Problem, match=message):
        read(*paths(tmp_path))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"questions": [{"question_id": 1, "image_id": 11}]}', r"question 1: question must be str"),
        ('{"questions": [7]}', r"train_questions.json: question question_id must be int, got 7"),
        ('{"questions": []}', r"has no list 'questions', or an empty one"),
        ('{"questions": [', r"train_questions.json is not a file of VQA questions: it is not JSON"),
    ],
)
def test_bad_questions(tmp_path, content, message):
    write_split(tmp_path, "train", [question(1)])
    paths(tmp_path)[0].write_text(content)
    with pytest.raises(Problem, match=message):
        read(*paths(tmp_path))
