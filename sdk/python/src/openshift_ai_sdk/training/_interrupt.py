"""What is printed when Ctrl-C ends the waiting for a job."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from openshift_ai_sdk.training.errors import Detached


@contextmanager
def detachable(state: str, hint: str) -> Iterator[None]:
    """Print the state of a job, and what to do next, if Ctrl-C ends what is done in the context."""
    try:
        yield
    except KeyboardInterrupt:
        print(f"detached: {state}; {hint}")
        raise Detached from None
