"""The errors that this package raises. All of them derive from TrainingError."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openshift_ai_sdk.training import _html
from openshift_ai_sdk.training._generated.jobreport import Finding, Remedy
from openshift_ai_sdk.training._status import JobStatus, status_as_html

__all__ = [
    "APIError",
    "ClusterUnreachableError",
    "InvalidJobError",
    "JobBlockedError",
    "JobExistsError",
    "JobNotFoundError",
    "JobRefusedError",
    "JobTimeoutError",
    "MPIJobFailed",
    "NamespaceNotFoundError",
    "NotLoggedInError",
    "NotSupportedError",
    "PermissionDeniedError",
    "Problem",
    "TLSError",
    "TrainingError",
]

PACKAGE = Path(__file__).parent


class TrainingError(Exception):
    """Base of all errors of this package. Its text states what failed and what to do next."""

    def __reduce__(self) -> tuple[Callable[..., TrainingError], tuple[Any, ...]]:
        # Errors cross processes, such as those of a pool; their arguments are not those of their constructors.
        return restored, (type(self), self.args, self.__dict__)

    def _repr_html_(self) -> str:
        return _html.error(type(self).__name__, str(self))

    def _render_traceback_(self) -> list[str]:
        """Return what a notebook prints for the error: the user's own lines of code, and the text.

        IPython would also print the code of this package, which pushes the text out of sight.
        """
        return rendered(self)


def rendered(error: BaseException) -> list[str]:
    """Return what a notebook prints for an error: the user's own lines of code, and the text."""
    lines = ["\x1b[31mTraceback\x1b[39m (your code only)"]
    for frame in traceback.extract_tb(error.__traceback__):
        if is_of_user(frame.filename):
            lines += [f"  {place_of(frame.filename)}, line {frame.lineno}", f"    {frame.line}"]
    text = f": {error}" if str(error) else ""
    return [*lines, "", f"\x1b[31m{type(error).__name__}\x1b[39m{text}"]


def is_of_user(filename: str) -> bool:
    """Return whether a file is neither of this package nor of what runs a notebook's cells."""
    path = Path(filename)
    return PACKAGE not in path.parents and not {"IPython", "ipykernel", "asyncio"} & set(path.parts)


def place_of(filename: str) -> str:
    """Return how a notebook names a file: a cell by its number."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    cell = getattr(getattr(shell, "compile", None), "format_code_name", lambda name: None)(filename)
    return " ".join(cell) if cell else f'File "{filename}"'


class Detached(KeyboardInterrupt):
    """Ctrl-C has ended the waiting for a job. What to do next was printed."""

    def _render_traceback_(self) -> list[str]:
        """Return what notebooks print: not the code of this package, which would push the hint out of sight."""
        return ["\x1b[31mKeyboardInterrupt\x1b[39m"]


def restored(kind: type[TrainingError], texts: tuple[Any, ...], attributes: dict[str, Any]) -> TrainingError:
    """Return an error from what was pickled of it."""
    error = kind.__new__(kind)
    error.args = texts
    error.__dict__.update(attributes)
    return error


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a job.

    Attributes:
        field: The argument, or the path in the job's manifest, such as ``spec.slotsPerWorker``.
        message: The value that was found and what is allowed.
    """

    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


class InvalidJobError(TrainingError, ValueError):
    """A job is not valid. It is raised before any request is sent, with all problems at once.

    Attributes:
        problems: What is wrong, one entry for each field.

    Example:
        >>> from openshift_ai_sdk.training import InvalidJobError, MPIJob
        >>> try:
        ...     MPIJob("train", image="quay.io/me/train", command="train.py", workers=0)
        ... except InvalidJobError as error:
        ...     print(error.problems[0])
        workers: 0 is not allowed; use 1 or more
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        texts = [str(problem) for problem in self.problems]
        super().__init__(texts[0] if len(texts) == 1 else "\n  - ".join([f"{len(texts)} problems:", *texts]))


class JobRefusedError(TrainingError):
    """The cluster rejects a job because of a rule, a quota or a webhook.

    Attributes:
        problems: The reasons that the API server gave, one entry for each field.
    """

    def __init__(self, message: str, problems: Sequence[Problem] = ()) -> None:
        self.problems = tuple(problems)
        super().__init__("\n  - ".join([message, *map(str, self.problems)]))


class JobExistsError(TrainingError):
    """A job of that name exists already."""


class NamespaceNotFoundError(TrainingError, LookupError):
    """There is no such namespace, or project."""


class JobNotFoundError(TrainingError, LookupError):
    """There is no such job, runtime or template, or it was deleted. The text suggests similar names."""


class PermissionDeniedError(TrainingError, PermissionError):
    """The user lacks a right. The text names the right and a role that grants it."""


class NotLoggedInError(TrainingError):
    """No credentials were found, or the API server does not accept them."""


class NotSupportedError(TrainingError):
    """The cluster, or this environment, lacks something that the call needs."""


class ClusterUnreachableError(TrainingError, ConnectionError):
    """The API server could not be reached within the retry policy's limit.

    Attributes:
        may_have_succeeded: Whether a change was sent and not answered, so that it may have been made.
    """

    may_have_succeeded = False


class TLSError(TrainingError, ConnectionError):
    """The connection to the API server is not secure: a certificate is not accepted, or the server uses no TLS.

    It is raised at once, since waiting does not help.
    """


class APIError(TrainingError):
    """The API server answered with an error that has no class of its own.

    Attributes:
        code: The HTTP status code.
        reason: Kubernetes' reason, such as ``Conflict``.
    """

    def __init__(self, code: int, reason: str, message: str) -> None:
        self.code = code
        self.reason = reason
        super().__init__(message)


class JobTimeoutError(TrainingError, TimeoutError):
    """A job did not reach the wanted phase in time. It keeps running.

    Attributes:
        status: The job's last known status.
        statuses: The last known statuses of all jobs that were awaited, in their order: of those that have ended, too.
    """

    def __init__(self, message: str, status: JobStatus, statuses: Sequence[JobStatus] = ()) -> None:
        self.status = status
        self.statuses = list(statuses or [status])
        super().__init__(message)


class JobBlockedError(TrainingError):
    """A job cannot go on without a change, such as a job whose image cannot be pulled. It is not deleted.

    Attributes:
        status: The job's status.
        cause: The finding that explains what blocks the job.
        remedies: What to do, the most promising first.

    Example:
        >>> try:
        ...     job.wait_for_completion(raise_if_blocked=True)
        ... except JobBlockedError as blocked:
        ...     print(blocked.cause.code)
        ...     job.delete()
    """

    def __init__(self, status: JobStatus, cause: Finding) -> None:
        self.status = status
        self.cause = cause
        self.remedies: list[Remedy] = list(cause.remedies)
        lines = [f"{status.job} cannot go on: {cause.code}: {cause.summary}"]
        for number, remedy in enumerate(self.remedies, 1):
            lines += describe(number, remedy, None)
        super().__init__("\n".join(lines))

    def _repr_html_(self) -> str:
        return status_as_html(self.status, [None] * len(self.status.remedies))


class MPIJobFailed(TrainingError):  # noqa: N818 - the name is part of the design
    """A job failed.

    Attributes:
        status: The job's status.
        cause: The finding that explains the failure; None if the operator recorded none.
        remedies: What to do, the most promising first.
        changes: The changes by which ``clone`` applies remedies, the most promising first; empty if no remedy is a
            change of the job.
        rank: The rank that failed first; None if unknown.
        pod: The pod that failed first; None if unknown.
        log_tail: The last lines of the logs, with secrets masked.

    Example:
        >>> try:
        ...     job.wait_for_completion()
        ... except MPIJobFailed as failure:
        ...     print(failure)
        ...     if failure.changes:
        ...         job.clone(**failure.changes[0])
    """

    def __init__(self, status: JobStatus, changes: Sequence[Mapping[str, Any] | None] = ()) -> None:
        failure = status.failure
        self.status = status
        # One for each remedy.
        self._changes = [*changes, *[None] * (len(status.remedies) - len(changes))]
        self.changes: list[dict[str, Any]] = [dict(each) for each in changes if each is not None]
        self.cause: Finding | None = status.cause
        self.remedies: list[Remedy] = status.remedies
        self.rank = failure.rank if failure else None
        self.pod = failure.pod if failure else None
        self.log_tail = failure.log_tail if failure else []
        super().__init__(self._describe())

    def _repr_html_(self) -> str:
        return status_as_html(self.status, list(map(call_of, self._changes)))

    def _describe(self) -> str:
        lines = [f"{self.status.job} failed: {self._reason()}"]
        for number, (remedy, change) in enumerate(zip(self.remedies, self._changes, strict=True), 1):
            lines += describe(number, remedy, change)
        return "\n".join(lines)

    def _reason(self) -> str:
        if self.cause is None:
            return self.status.message or self.status.reason or "the operator recorded no cause"
        where = f" (pod {self.pod}" + (f", rank {self.rank})" if self.rank is not None else ")") if self.pod else ""
        return f"{self.cause.code}: {self.cause.summary}{where}"


def describe(number: int, remedy: Remedy, change: Mapping[str, Any] | None) -> list[str]:
    """Return a remedy as lines: its text, and the call or command that applies it if there is one."""
    applied = call_of(change) or remedy.action
    return [f"  {number}. {remedy.text}", *([f"     {applied}"] if applied else [])]


def call_of(change: Mapping[str, Any] | None) -> str | None:
    """Return the call of ``clone`` that makes changes; None for none."""
    if change is None:
        return None
    if all(name.isidentifier() for name in change):
        return f"job.clone({', '.join(f'{name}={value!r}' for name, value in change.items())})"
    return f"job.clone(**{dict(change)!r})"
