"""The driver that blocks: a coroutine that uses it runs to its end in one step, without an event loop."""

from __future__ import annotations

import json
import queue
import socket
import ssl
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from copy import copy
from datetime import datetime, timezone
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

import urllib3

from openshift_ai_sdk.training import _tls
from openshift_ai_sdk.training._credentials import Credentials
from openshift_ai_sdk.training._driver import ConnectionLostError, Json, RefusedError, Request, Response, SilenceError

T = TypeVar("T")

CONNECT_TIMEOUT = 10.0
# How long a server other than the API server may send nothing.
FETCH_SILENCE = 15.0
# How many requests of a client are under way at a time, streams aside. More would not be answered sooner: each needs a
# connection, and to open one costs more than most requests.
MOST_REQUESTS = 32
# How many seconds the end of concurrent work is awaited.
LONGEST_END = 1.0


def host_of(url: str) -> str:
    """Return the host of a URL, for messages: the rest of it may be secret."""
    return urlsplit(url).netloc.rpartition("@")[2]


def fetch_failure(error: BaseException, url: str) -> ConnectionLostError:
    """Return the error of a URL that cannot be read, without what may be secret in it."""
    for each in _tls.wrapped(error):
        if isinstance(each, ssl.SSLCertVerificationError) and hasattr(each, "verify_message"):
            return RefusedError(
                f"the certificate of {host_of(url)} is not accepted: {each.verify_message}; if its CA is unknown, set "
                "the environment variable SSL_CERT_FILE to a file with the CA"
            )
    return ConnectionLostError(f"{host_of(url)} does not answer ({type(error).__name__})")


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine whose input and output goes through a BlockingDriver, and return its result."""
    try:
        work.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    work.close()
    raise RuntimeError("the coroutine waits for an event loop")


def iterate(items: AsyncIterator[T]) -> Iterator[T]:
    """Iterate over what an asynchronous generator that uses a BlockingDriver yields."""

    async def following() -> T:
        return await items.__anext__()

    try:
        while True:
            try:
                item = run(following())
            except StopAsyncIteration:
                return
            yield item
    finally:
        close = getattr(items, "aclose", None)
        if close is not None:
            run(close())


_clients: dict[str, Any] = {}


def shared(make: Callable[[], T]) -> T:
    """Return the one client of the process."""
    if "client" not in _clients:
        _clients["client"] = make()
    client: T = _clients["client"]
    return client


# What an error is marked with that came before a connection was open.
UNSENT = "_openshift_ai_sdk_unsent"


class Connection(urllib3.connection.HTTPSConnection):
    """A connection that marks the errors of its handshake: no request has been sent by then."""

    def connect(self) -> None:
        """Open the connection."""
        try:
            super().connect()
        except Exception as error:
            setattr(error, UNSENT, True)
            raise


class Connections(urllib3.HTTPSConnectionPool):
    """Connections to one server."""

    ConnectionCls = Connection


class EndedError(Exception):
    """The group of work that this belongs to has been ended."""


class BlockingDriver:
    """Does input and output with urllib3, through the connections of the official client."""

    def __init__(self, credentials: Credentials, parent: BlockingDriver | None = None) -> None:
        self.credentials = credentials
        self._pool = pool_of(credentials)
        # Connections to servers other than the API server, by their proxies: those of the parent, if there is one.
        self._parent = parent
        self._others: dict[str | None, urllib3.PoolManager] = parent._others if parent else {}
        self._requests = threading.BoundedSemaphore(MOST_REQUESTS)
        self._ended = threading.Event()
        self._streams: set[BlockingStream] = set()
        self._lock = threading.Lock()
        self._reloading = threading.Lock()
        self._reloaded = 0.0

    def _send(self, request: Request, timeout: float, stream: bool) -> urllib3.BaseHTTPResponse:
        body = None if request.body is None else json.dumps(request.body).encode()
        query = {key: str(value) for key, value in request.query.items() if value is not None}
        headers = {"accept": "application/json, */*", **self.credentials.headers()}
        if body is not None:
            headers["content-type"] = request.content_type
        url = self.credentials.host + request.path
        if query:
            url += "?" + urlencode(query)
        try:
            response: urllib3.BaseHTTPResponse = self._pool.request(
                request.method,
                url,
                body=body,
                headers=headers,
                timeout=urllib3.Timeout(connect=min(CONNECT_TIMEOUT, timeout), read=timeout),
                retries=False,
                redirect=False,
                preload_content=not stream,
            )
        except (urllib3.exceptions.NewConnectionError, urllib3.exceptions.ConnectTimeoutError) as error:
            raise ConnectionLostError(innermost(error), sent=False) from error
        except (urllib3.exceptions.HTTPError, OSError) as error:
            if lasting := _tls.lasting(error, self.credentials.host):
                raise lasting from error
            sent = not any(getattr(each, UNSENT, False) for each in _tls.wrapped(error))
            raise ConnectionLostError(innermost(error), sent) from error
        return response

    async def request(self, request: Request, timeout: float) -> Response:
        """Send a request and read the response."""
        with self._requests:
            response = self._send(request, timeout, stream=False)
        return Response(response.status, response.data, seconds(response.headers))

    @asynccontextmanager
    async def stream(self, request: Request, silence: float) -> AsyncIterator[BlockingStream]:
        """Send a request and read the response as it comes."""
        stream = BlockingStream(self._send(request, silence, stream=True))
        with self._lock:
            self._streams.add(stream)
        try:
            if self._ended.is_set():
                raise EndedError
            yield stream
        finally:
            with self._lock:
                self._streams.discard(stream)
            stream.close()

    async def post(self, url: str, body: Json, timeout: float) -> int:
        """Send JSON to any URL, without the cluster's credentials."""
        proxy = proxy_for(url)
        with urllib3.ProxyManager(proxy) if proxy else urllib3.PoolManager() as pool:
            try:
                response = pool.request("POST", url, json=body, timeout=timeout, retries=False)
            except (urllib3.exceptions.HTTPError, OSError) as error:
                raise ConnectionLostError(innermost(error)) from error
            return int(response.status)

    async def fetch(self, url: str, most: int, timeout: float) -> Response:
        """Get what is at any URL, without the cluster's credentials."""
        limits = urllib3.Timeout(connect=min(CONNECT_TIMEOUT, timeout), read=min(FETCH_SILENCE, timeout))
        body = bytearray()
        try:
            response = self._other(url).request(
                "GET", url, timeout=limits, retries=False, redirect=False, preload_content=False
            )
            with self._ending(BlockingStream(response), timeout):
                for chunk in response.stream(1 << 16, decode_content=False):
                    body += chunk
                    if len(body) > most:
                        raise RefusedError(f"{host_of(url)} sends more than {most} bytes")
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise fetch_failure(error, url) from None
        return Response(int(response.status), bytes(body))

    def _other(self, url: str) -> urllib3.PoolManager:
        """Return connections to a server other than the API server."""
        proxy = proxy_for(url)
        with self._lock:
            if proxy not in self._others:
                self._others[proxy] = (
                    urllib3.ProxyManager(proxy, maxsize=MOST_REQUESTS)
                    if proxy
                    else urllib3.PoolManager(maxsize=MOST_REQUESTS)
                )
            return self._others[proxy]

    @contextmanager
    def _ending(self, stream: BlockingStream, timeout: float) -> Iterator[None]:
        """Cut a response after so many seconds, or if the work of this driver ends, and close it."""
        timer = threading.Timer(timeout, stream.cut)
        timer.daemon = True
        timer.start()
        with self._lock:
            self._streams.add(stream)
        try:
            if self._ended.is_set():
                raise EndedError
            yield
        finally:
            timer.cancel()
            with self._lock:
                self._streams.discard(stream)
            stream.close()

    async def reload(self, sent: float) -> None:
        """Read the credentials again, unless that was done since a request was sent."""
        with self._reloading:
            if self._reloaded < sent:
                self.credentials.reload()
                self._pool = pool_of(self.credentials)
                self._reloaded = self.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait; raises EndedError if the group of work ends meanwhile."""
        if self._ended.wait(seconds):
            raise EndedError

    def monotonic(self) -> float:
        """Return the seconds of a clock that never goes back."""
        return time.monotonic()

    def now(self) -> datetime:
        """Return the time of day, in UTC."""
        return datetime.now(timezone.utc)

    def tasks(self) -> BlockingTasks[Any]:
        """Return a group of work, each in a thread of its own."""
        return BlockingTasks(self)

    async def call(self, function: Callable[[], T]) -> T:
        """Return the result of a function that blocks."""
        return function()

    def inbox(self) -> BlockingInbox[Any]:
        """Return an empty inbox, which any thread may fill."""
        return BlockingInbox()

    def end(self) -> None:
        """End what is done through this driver: streams are cut, sleepers woken up."""
        self._ended.set()
        with self._lock:
            for stream in self._streams:
                stream.cut()

    async def close(self) -> None:
        """Close all connections."""
        self._pool.clear()
        if self._parent is None:
            for pool in self._others.values():
                pool.clear()


class BlockingStream:
    """A response that is read as it comes."""

    def __init__(self, response: urllib3.BaseHTTPResponse) -> None:
        self._response = response
        # urllib3 forgets the connection once the response is read to its end.
        self._socket: socket.socket | None = getattr(getattr(response, "connection", None), "sock", None)

    @property
    def status(self) -> int:
        """The HTTP status code."""
        return int(self._response.status)

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the body in pieces, each as soon as it is there."""
        try:
            for chunk in self._response.stream(1 << 16, decode_content=False):
                yield chunk
        except urllib3.exceptions.ReadTimeoutError as error:
            raise SilenceError from error
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise ConnectionLostError(innermost(error)) from error

    def cut(self) -> None:
        """Make a thread that waits for the body go on at once."""
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection; what is still to come is not wanted."""
        self._response.close()


class BlockingInbox(Generic[T]):
    """Keeps items for one thread."""

    def __init__(self) -> None:
        self._items: queue.SimpleQueue[T] = queue.SimpleQueue()

    def put(self, item: T) -> None:
        """Add an item."""
        self._items.put(item)

    async def get(self, timeout: float | None) -> T:
        """Return the next item; raises SilenceError if none comes within so many seconds."""
        end = None if timeout is None else time.monotonic() + timeout
        # The main thread wakes up once in a while, so that Ctrl-C is heard on every platform.
        step = 0.5 if threading.current_thread() is threading.main_thread() else None
        while True:
            left = None if end is None else max(0.0, end - time.monotonic())
            waits = [each for each in (left, step) if each is not None]
            try:
                return self._items.get(timeout=min(waits, default=None))
            except queue.Empty:
                if end is not None and time.monotonic() >= end:
                    raise SilenceError from None


# What work hands over at its end, with the error that it has ended with.
_END = object()


class BlockingTasks(Generic[T]):
    """Work in threads. They are few: one for each pod whose log is followed."""

    _MOST_WAITING = 1000

    def __init__(self, parent: BlockingDriver) -> None:
        self.driver = BlockingDriver(parent.credentials, parent)
        self._parent = parent
        self._items: queue.Queue[tuple[Any, BaseException | None]] = queue.Queue(self._MOST_WAITING)
        # How much work was started whose end was not read yet: its items come before it.
        self._unread = 0
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []

    async def __aenter__(self) -> BlockingTasks[T]:
        return self

    async def __aexit__(self, *error: object) -> None:
        self.driver.end()
        # A thread that still waits for a server's first answer cannot be woken up: it ends by itself.
        deadline = time.monotonic() + LONGEST_END
        for thread in self._threads:
            while thread.is_alive() and time.monotonic() < deadline:
                # A thread may wait for room in the queue.
                with suppress(queue.Empty):
                    while True:
                        self._items.get_nowait()
                thread.join(0.05)
        await self.driver.close()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Start a thread that does the work."""
        with self._lock:
            self._unread += 1
        thread = threading.Thread(target=self._work, args=(work,), daemon=True, name="openshift-ai-sdk")
        self._threads.append(thread)
        thread.start()

    def _work(self, work: Coroutine[Any, Any, None]) -> None:
        failure: BaseException | None = None
        try:
            run(work)
        except EndedError:
            pass
        except BaseException as error:  # it is raised where the items are read
            failure = error
        self._items.put((_END, failure))

    async def put(self, item: T) -> None:
        """Hand an item over."""
        if self.driver._ended.is_set():
            raise EndedError
        self._items.put((item, None))

    async def items(self) -> AsyncGenerator[T, None]:
        """Yield the items until all work is done."""
        while self._unread:
            try:
                # With a timeout, so that Ctrl-C is heard on every platform.
                item, failure = self._items.get(timeout=0.5)
            except queue.Empty:
                continue
            if item is not _END:
                yield item
                continue
            with self._lock:
                self._unread -= 1
            if failure is not None:
                raise failure

    async def end(self) -> None:
        """End all work that still runs. A thread that waits for an answer ends when it has come."""
        self.driver.end()


def pool_of(credentials: Credentials) -> urllib3.PoolManager:
    """Return connections with the certificates, proxies and addresses of the credentials."""
    from kubernetes.client import ApiClient

    configuration = copy(credentials.configuration)
    configuration.connection_pool_maxsize = MOST_REQUESTS
    pool: urllib3.PoolManager = ApiClient(configuration).rest_client.pool_manager
    classes = pool.pool_classes_by_scheme
    # Those of a SOCKS proxy stay.
    if classes["https"] is urllib3.HTTPSConnectionPool:
        pool.pool_classes_by_scheme = {**classes, "https": Connections}
    return pool


def proxy_for(url: str) -> str | None:
    """Return the proxy that the environment names for a URL; None for none."""
    from urllib.parse import urlsplit
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(url)
    return None if proxy_bypass(parts.hostname or "") else getproxies().get(parts.scheme)


def urlencode(query: Mapping[str, str]) -> str:
    """Return the parameters in the form used in a URL."""
    from urllib.parse import urlencode as encode

    return encode(query)


def seconds(headers: Mapping[str, str]) -> float | None:
    """Return the value of Retry-After in seconds, if it is a number."""
    text = headers.get("Retry-After", "")
    return float(text) if text.isdigit() else None


def innermost(error: BaseException) -> str:
    """Return the text of the error that others wrap."""
    reason = getattr(error, "reason", None)
    while isinstance(reason, BaseException):
        error, reason = reason, getattr(reason, "reason", None)
    return str(error) or type(error).__name__
