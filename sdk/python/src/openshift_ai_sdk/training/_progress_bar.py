"""A progress bar of a training, from what the program reports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import Any

from openshift_ai_sdk.training import _logs, _training_history, _wait
from openshift_ai_sdk.training._cluster import Cluster
from openshift_ai_sdk.training._driver import ConnectionLostError
from openshift_ai_sdk.training._job_ref import JobRef
from openshift_ai_sdk.training._notify import Observer
from openshift_ai_sdk.training.errors import NotSupportedError, TrainingError
from openshift_ai_sdk.training.models import JobStatus, Phase, TrainingPoint

# How often the launcher's log is read, in seconds: the operator reads progress twice a minute only.
INTERVAL = 2.0
# How many last lines of it.
LINES = 200


class Bar:
    """A bar that shows statuses of a job, and what its log says between them."""

    def __init__(self, shown: Any) -> None:
        self._shown = shown
        self._status: JobStatus | None = None
        # Whether the log has had a figure: that of the operator is older.
        self._is_read = False

    @property
    def is_running(self) -> bool:
        """Whether the job's program runs, so that its log may have news."""
        return self._status is not None and self._status == Phase.RUNNING

    def show(self, status: JobStatus) -> None:
        """Show a status."""
        self._status = status
        done = None if self._is_read else status.progress
        self._move(1.0 if status == Phase.SUCCEEDED else done, str(status))

    def show_point(self, point: TrainingPoint) -> None:
        """Show what a line of the log says."""
        if self.is_running:
            values = {name: getattr(point, name) for name in ("epoch", "step", "loss", "accuracy")}
            text = ", ".join(f"{name} {value:g}" for name, value in values.items() if value is not None)
            self._is_read = self._is_read or point.progress is not None
            self._move(point.progress, f"Running: {text}" if text else None)

    def _move(self, done: float | None, text: str | None) -> None:
        if done is not None:
            # It may be less than before: a program may count again from 0, and 1 is all of the work or 1 %.
            self._shown.n = round(100 * done)
        if text is not None:
            self._shown.set_postfix_str(text, refresh=False)
        self._shown.refresh()


@contextmanager
def bar(name: str, wanted: bool) -> Iterator[Bar | None]:
    """Show a bar while the context is open, if it is wanted, and yield it."""
    if not wanted:
        yield None
        return
    try:
        if find_spec("ipywidgets") is None:
            # Without widgets tqdm.auto warns in each notebook, and shows text all the same.
            from tqdm.std import tqdm
        else:
            from tqdm.auto import tqdm
    except ImportError as error:
        raise NotSupportedError("a progress bar needs tqdm: pip install 'openshift-ai-sdk[notebook]'") from error
    with tqdm(total=100, desc=name, unit="%", bar_format="{desc}: {percentage:3.0f}%|{bar}| {postfix}") as shown:
        yield Bar(shown)


async def wait_with_bar(
    cluster: Cluster, ref: JobRef, phases: Sequence[str], timeout: float | None, observer: Observer, shown: Bar | None
) -> JobStatus:
    """Wait as _wait.wait does; meanwhile a bar is moved by what the launcher's log says."""
    if shown is None:
        return await _wait.wait(cluster, ref, phases, timeout, observer)
    async with cluster.api.driver.tasks() as tasks:
        tasks.start(_read(cluster.through(tasks.driver), ref, shown))
        return await _wait.wait(cluster, ref, phases, timeout, observer)


async def _read(cluster: Cluster, ref: JobRef, shown: Bar) -> None:
    while True:
        if shown.is_running:
            # The status counts; the log only shows more of it.
            with suppress(TrainingError, ConnectionLostError):
                found = await cluster.find_same(ref)
                lines = await _logs.Reader(cluster, found, _logs.Selection(tail=LINES, main=True)).read()
                if points := _training_history.history(lines):
                    shown.show_point(latest(points))
        await cluster.api.driver.sleep(INTERVAL)


def latest(points: list[TrainingPoint]) -> TrainingPoint:
    """Return the last value of each kind."""
    names = ("time", "epoch", "step", "loss", "accuracy", "progress")
    values = {name: [getattr(point, name) for point in points if getattr(point, name) is not None] for name in names}
    return TrainingPoint(**{name: found[-1] for name, found in values.items() if found})
