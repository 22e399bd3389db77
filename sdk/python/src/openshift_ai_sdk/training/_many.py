"""Calls for many jobs: several at a time, and one error for all that failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import TypeVar

from openshift_ai_sdk.training._cluster import Cluster
from openshift_ai_sdk.training._job_ref import JobRef
from openshift_ai_sdk.training.errors import (
    ClusterUnreachableError,
    NotLoggedInError,
    PermissionDeniedError,
    TLSError,
    TrainingError,
    restored,
)

# How many jobs are created side by side.
MOST_AT_ONCE = 8

T = TypeVar("T")


async def call_each(
    cluster: Cluster, places: Sequence[tuple[str, str]], calls: Sequence[Callable[[Cluster], Awaitable[T]]]
) -> list[T | TrainingError]:
    """Make calls, several at a time, and return their results, or the errors of those that have failed.

    If a right is missing, all further calls for the same kind and namespace have the same error, and are not tried; if
    the cluster cannot be reached or rejects the login, all further calls.

    Args:
        cluster: The cluster.
        places: The kind and the namespace of each call's job.
        calls: The calls.
    """
    denied: dict[tuple[str, str], TrainingError] = {}
    lasting: list[TrainingError] = []
    waiting = list(enumerate(calls))[::-1]
    results: dict[int, T | TrainingError] = {}
    async with cluster.api.driver.tasks() as tasks:
        shared = cluster.through(tasks.driver)

        async def work() -> None:
            while waiting:
                number, call = waiting.pop()
                place = places[number]
                refused = lasting[0] if lasting else denied.get(place)
                try:
                    result: T | TrainingError = refused or await call(shared)
                except TrainingError as error:
                    result = error
                    if isinstance(error, PermissionDeniedError):
                        denied[place] = error
                    elif is_lasting(error):
                        lasting.append(error)
                await tasks.put((number, result))

        for _ in range(min(MOST_AT_ONCE, len(calls))):
            tasks.start(work())
        async with aclosing(tasks.items()) as items:
            async for number, result in items:
                results[number] = result
    return [results[number] for number in range(len(calls))]


def is_lasting(error: TrainingError) -> bool:
    """Return whether all calls would have an error."""
    if isinstance(error, ClusterUnreachableError):
        return not error.may_have_succeeded
    return isinstance(error, NotLoggedInError | TLSError)


def raise_all(refs: Sequence[JobRef], results: Sequence[object], verb: str) -> None:
    """Raise one error for all jobs that something failed for: that of the only one, or one that names all.

    Raises:
        TrainingError: Of the class of the errors, if they have the same.
    """
    names = names_of(refs)
    failed = {name: each for name, each in zip(names, results, strict=True) if isinstance(each, TrainingError)}
    errors = list(failed.values())
    if not errors:
        return
    if len(names) == 1:
        raise errors[0]
    kinds = {type(error) for error in errors}
    kind = kinds.pop() if len(kinds) == 1 else TrainingError
    done = f"the other {len(names) - len(failed)} were {verb}" if len(failed) < len(names) else f"none was {verb}"
    lines = [f"{len(failed)} of {len(names)} jobs were not {verb}: {few(list(failed))}; {done}"]
    lines += [f"  - {name}: {error}" for name, error in list(failed.items())[:3]]
    text = "\n".join([*lines, *(["  - ..."] if len(failed) > 3 else [])])
    raise restored(kind, (text,), {**errors[0].__dict__, "errors": failed}) from errors[0]


def names_of(refs: Sequence[JobRef]) -> list[str]:
    """Return a name for each job that no other has: with the namespace, the kind and a number if necessary."""
    found = [ref.name for ref in refs]
    for longer in (
        [f"{ref.namespace}/{ref.name}" for ref in refs],
        [f"{ref.namespace}/{ref}" for ref in refs],
        [f"{ref.namespace}/{ref} ({number})" for number, ref in enumerate(refs, 1)],
    ):
        count = Counter(found)
        found = [name if count[name] == 1 else more for name, more in zip(found, longer, strict=True)]
    return found


def few(names: Sequence[str], most: int = 10) -> str:
    """Return names as text, at most so many."""
    return ", ".join([*names[:most], *([f"and {len(names) - most} more"] if len(names) > most else [])])
