"""A progress bar of a training, from what the program reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from openshift_ai_sdk.training.errors import NotSupportedError
from openshift_ai_sdk.training.models import JobStatus


@contextmanager
def bar(name: str, wanted: bool) -> Iterator[Callable[[JobStatus], None] | None]:
    """Show a bar while the context is open, if it is wanted, and yield what a status is shown with."""
    if not wanted:
        yield None
        return
    try:
        from tqdm.auto import tqdm
    except ImportError as error:
        raise NotSupportedError("a progress bar needs tqdm: pip install 'openshift-ai-sdk[notebook]'") from error
    with tqdm(total=100, desc=name, unit="%", bar_format="{desc}: {percentage:3.0f}%|{bar}| {postfix}") as shown:

        def show(status: JobStatus) -> None:
            done = 1.0 if status.phase == "Succeeded" else status.progress
            if done is not None:
                shown.n = round(100 * done)
            shown.set_postfix_str(str(status), refresh=False)
            shown.refresh()

        yield show
