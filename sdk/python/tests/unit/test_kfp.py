"""What a step of a pipeline returns."""

import json
import sys
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

import openshift_ai_sdk.training

pytest.importorskip("kfp")


class Done:
    """A job that has succeeded with some figures."""

    name = "train"
    training: Any = None
    options: ClassVar[dict[str, Any]] = {}

    def __init__(self, *args: Any, **options: Any) -> None:
        Done.options = options

    def create(self) -> "Done":
        return self

    def wait_for_completion(self, **options: Any) -> Any:
        return SimpleNamespace(training=self.training)


@pytest.mark.parametrize(
    ("accuracy", "loss", "want"),
    [
        (None, None, (-1, sys.float_info.max)),
        ("0.97", "0.1", (0.97, 0.1)),
        ("97%", "1,234.5", (0.97, 1234.5)),
        ("0", "0.0", (0, 0)),
        ("high", "nan", (-1, sys.float_info.max)),
        ("inf", "-inf", (-1, sys.float_info.max)),
    ],
)
def test_figures_are_numbers_in_json(
    accuracy: str | None, loss: str | None, want: tuple[float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    from openshift_ai_sdk.training.kfp import run_mpijob

    monkeypatch.setattr(Done, "training", SimpleNamespace(accuracy=accuracy, loss=loss))
    monkeypatch.setattr(openshift_ai_sdk.training, "MPIJob", Done)
    job, *figures = run_mpijob("train", "image", "train.py")
    assert job == "train" and tuple(figures) == pytest.approx(want)
    json.dumps(figures, allow_nan=False)


def test_a_job_without_figures_has_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    from openshift_ai_sdk.training.kfp import run_mpijob

    monkeypatch.setattr(openshift_ai_sdk.training, "MPIJob", Done)
    assert run_mpijob("train", "image", "train.py") == ("train", -1.0, sys.float_info.max)


def test_a_step_has_the_options_of_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    from openshift_ai_sdk.training.kfp import run_mpijob

    monkeypatch.setattr(openshift_ai_sdk.training, "MPIJob", Done)
    run_mpijob("train", "image", "train.py")
    empty = {"shm": None, "output_dir": None, "node_selector": {}, "tolerations": [], "retries": None}
    assert {name: Done.options[name] for name in empty} == empty
    given: dict[str, Any] = {
        "shm": "8Gi",
        "output_dir": "results:/results",
        "node_selector": {"gpu": "a100"},
        "tolerations": ["nvidia.com/gpu"],
        "retries": 0,
    }
    run_mpijob("train", "image", "train.py", **given)
    assert {name: Done.options[name] for name in given} == given
