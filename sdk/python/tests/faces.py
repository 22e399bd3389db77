"""Both faces of the package behind one: tests are written once, without await, and run with either."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from typing import Any

from openshift_ai_sdk.training import aio, client


class Sync:
    """The synchronous face as it is."""

    def __init__(self) -> None:
        self.TrainingClient, self.MPIJob, self.train = client.TrainingClient, client.MPIJob, client.train

    def client_driver(self, made: Any) -> Any:
        """The driver of a client."""
        return made._driver

    def close(self) -> None:
        pass


class Aio:
    """The asynchronous face; what it returns to be awaited is awaited."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.TrainingClient = self.wrap(aio.TrainingClient)
        self.MPIJob = self.wrap(aio.MPIJob)
        self.train = self.wrap(aio.train)

    def client_driver(self, made: Any) -> Any:
        """The driver of a client."""
        return made.value._driver

    def wrap(self, value: Any) -> Any:
        if isinstance(value, aio.MPIJob | aio.TrainingClient) or inspect.isclass(value) or inspect.isroutine(value):
            return Awaited(self, value)
        if isinstance(value, aio.JobList):
            return [self.wrap(job) for job in value]
        if hasattr(value, "__anext__"):
            return self.iterate(value)
        return value

    def iterate(self, items: Any) -> Iterator[Any]:
        try:
            while True:
                try:
                    yield self.loop.run_until_complete(anext(items))
                except StopAsyncIteration:
                    return
        finally:
            self.loop.run_until_complete(items.aclose())

    def close(self) -> None:
        self.loop.close()


class Awaited:
    """An object whose coroutines are awaited."""

    def __init__(self, face: Aio, value: Any) -> None:
        object.__setattr__(self, "face", face)
        object.__setattr__(self, "value", value)

    def __getattr__(self, name: str) -> Any:
        return self.face.wrap(getattr(self.value, name))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        result = self.value(*map(bare, args), **{key: bare(value) for key, value in kwargs.items()})
        if inspect.isawaitable(result):
            result = self.face.loop.run_until_complete(result)
        return self.face.wrap(result)

    def __repr__(self) -> str:
        return repr(self.value)


def bare(value: Any) -> Any:
    if isinstance(value, Awaited):
        return value.value
    return [bare(item) for item in value] if isinstance(value, list) else value
