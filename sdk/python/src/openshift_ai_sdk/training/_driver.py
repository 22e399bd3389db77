"""The interface between the core and the outside world.

The core of this package is written once, as coroutines that do all input and output through a Driver. There are two
drivers: that of ``_driver_asyncio`` suspends, and an event loop goes on with other work; that of
``_driver_blocking`` never suspends, so that a coroutine runs from its beginning to its end in one step, without an
event loop.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, TypeVar

Json = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True)
class Request:
    """An HTTP request to the API server.

    Attributes:
        query: Parameters in the URL; those that are None are left out.
        body: An object that is sent as JSON.
        is_list: Whether the response may be large. It may take any time while the server sends.
    """

    method: str
    path: str
    query: Mapping[str, str | int | None] = field(default_factory=dict)
    body: Json | None = None
    content_type: str = "application/json"
    is_list: bool = False

    @property
    def is_safe(self) -> bool:
        """Whether the request can be sent again when it is unknown whether the first one arrived."""
        return self.method in ("GET", "PATCH", "DELETE")


@dataclass(frozen=True)
class Response:
    """A response with its whole body."""

    status: int
    body: bytes
    retry_after: float | None = None


class ConnectionLostError(Exception):
    """There is no connection, or it was cut.

    Attributes:
        sent: Whether the request may have reached the server.
    """

    def __init__(self, message: str, sent: bool = True) -> None:
        self.sent = sent
        super().__init__(message)


class RefusedError(ConnectionLostError):
    """A server cannot be read from, and asking again does not help."""


class SilenceError(Exception):
    """A stream brought nothing for as long as the caller was ready to wait."""


class Stream(Protocol):
    """A response whose body is read as it comes."""

    @property
    def status(self) -> int:
        """The HTTP status code."""

    def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the body in pieces of any size. Raises ConnectionLostError and SilenceError."""


class Tasks(Protocol[T]):
    """Work that runs side by side and hands over items. Leaving the context ends all work that still runs."""

    @property
    def driver(self) -> Driver:
        """The driver that the work must use, so that it can be ended."""

    async def __aenter__(self) -> Tasks[T]: ...

    async def __aexit__(self, *error: object) -> None: ...

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Start to work."""

    async def put(self, item: T) -> None:
        """Hand an item over; this waits while too many items are pending."""

    def items(self) -> AsyncGenerator[T, None]:
        """Yield the items until all work is done. The first error of any work is raised here."""

    async def end(self) -> None:
        """End all work that still runs, without waiting for answers of servers."""


class Inbox(Protocol[T]):
    """Keeps items for one reader, in their order and without a limit."""

    def put(self, item: T) -> None:
        """Add an item; this never waits."""

    async def get(self, timeout: float | None) -> T:
        """Return the next item; raises SilenceError if none comes within so many seconds."""


class Driver(Protocol):
    """Does input and output, in one of the two ways."""

    async def request(self, request: Request, timeout: float) -> Response:
        """Send a request and read the response; raises ConnectionLostError, TLSError. The timeout is in seconds."""

    def stream(self, request: Request, silence: float) -> AbstractAsyncContextManager[Stream]:
        """Send a request and read the response as it comes. Silence is the longest pause, in seconds.

        Raises ConnectionLostError and TLSError.
        """

    async def post(self, url: str, body: Json, timeout: float) -> int:
        """Send JSON to any URL, without the cluster's credentials, and return the status code."""

    async def fetch(self, url: str, most: int, timeout: float) -> Response:
        """Get what is at any URL within so many seconds, without the cluster's credentials and redirects.

        Raises ConnectionLostError, whose text does not contain the URL; RefusedError for a body of more than so many
        bytes, and a certificate that is not accepted.
        """

    async def reload(self, sent: float) -> None:
        """Read the credentials again, unless that was done since a request was sent (of monotonic).

        Other requests and streams go on.
        """

    async def sleep(self, seconds: float) -> None:
        """Wait."""

    def monotonic(self) -> float:
        """Return the seconds of a clock that never goes back."""

    def now(self) -> datetime:
        """Return the time of day, in UTC."""

    def tasks(self) -> Tasks[Any]:
        """Return a group of work that runs side by side."""

    async def call(self, function: Callable[[], T]) -> T:
        """Return the result of a function that blocks."""

    def inbox(self) -> Inbox[Any]:
        """Return an empty inbox."""

    async def close(self) -> None:
        """Close all connections."""
