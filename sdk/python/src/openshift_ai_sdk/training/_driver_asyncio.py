"""The driver for asyncio, on aiohttp: the library that both asynchronous Kubernetes clients are built on."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import datetime, timezone
from functools import partial
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

import urllib3

from openshift_ai_sdk.training import _tls
from openshift_ai_sdk.training._credentials import Credentials
from openshift_ai_sdk.training._driver import ConnectionLostError, Json, RefusedError, Request, Response, SilenceError
from openshift_ai_sdk.training._driver_blocking import (
    CONNECT_TIMEOUT,
    FETCH_SILENCE,
    MOST_REQUESTS,
    fetch_failure,
    host_of,
    pool_of,
    proxy_for,
    seconds,
)
from openshift_ai_sdk.training.errors import NotSupportedError, TrainingError, rendered

try:
    import aiohttp
    import yarl
except ImportError as error:
    raise NotSupportedError("asyncio needs aiohttp: pip install 'openshift-ai-sdk[aio]'") from error

T = TypeVar("T")

# For how many seconds a login that can be renewed is used before it is asked for again. The official client renews a
# login minutes before it expires.
FRESH = 30.0

_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, Any] = WeakKeyDictionary()


async def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine of the core, and return its result."""
    try:
        return await work
    except asyncio.CancelledError as error:
        # The class has to stay: asyncio.timeout asks for it. A notebook prints what this returns.
        error._render_traceback_ = partial(rendered, error)  # type: ignore[attr-defined]
        raise


def iterate(items: AsyncIterator[T]) -> AsyncIterator[T]:
    """Iterate over what the core yields."""
    return items


def shared(make: Callable[[], T]) -> T:
    """Return the one client of the running event loop."""
    loop = asyncio.get_running_loop()
    if loop not in _clients:
        _clients[loop] = make()
    client: T = _clients[loop]
    return client


class AsyncDriver:
    """Does input and output in an event loop."""

    def __init__(self, credentials: Credentials) -> None:
        self.credentials = credentials
        self._made: aiohttp.ClientSession | None = None
        self._others: aiohttp.ClientSession | None = None
        self._proxy: str | None = None
        self._requests = asyncio.Semaphore(MOST_REQUESTS)
        self._headers: dict[str, str] = {}
        self._fresh_until = 0.0
        self._renewing = asyncio.Lock()
        self._reloading = asyncio.Lock()
        self._reloaded = 0.0
        # How many requests use each session. After a reload an old one is closed when its last request is done.
        self._uses: dict[aiohttp.ClientSession, int] = {}

    def _session(self) -> aiohttp.ClientSession:
        """Return the session; it is made when it is first needed, in the event loop that uses it."""
        if self._made is None:
            connector = aiohttp.TCPConnector(limit=0, ssl=tls_of(self.credentials.configuration))
            # With trust_env aiohttp would read ~/.netrc in a thread before each request, so that the proxy is named.
            pool = pool_of(self.credentials)
            named = str(pool.proxy) if isinstance(pool, urllib3.ProxyManager) else None
            self._proxy = named or proxy_for(self.credentials.host)
            self._made = aiohttp.ClientSession(connector=connector, read_bufsize=1 << 17)
        return self._made

    @asynccontextmanager
    async def _used_session(self) -> AsyncIterator[aiohttp.ClientSession]:
        """Use the session for a request."""
        session = self._session()
        self._uses[session] = self._uses.get(session, 0) + 1
        try:
            yield session
        finally:
            self._uses[session] -= 1
            if not self._uses[session]:
                del self._uses[session]
                if session is not self._made:
                    await session.close()

    async def _login(self) -> dict[str, str]:
        """Return the headers that prove who the user is.

        A thread is used only for logins that the official client renews, and once in FRESH seconds: that may run a
        program that the kubeconfig names, read a file, or ask an identity provider.
        """
        if self.credentials.configuration.refresh_api_key_hook is None:
            return self.credentials.headers()
        async with self._renewing:
            if self.monotonic() >= self._fresh_until:
                self._headers = await asyncio.to_thread(self.credentials.headers)
                self._fresh_until = self.monotonic() + FRESH
        return dict(self._headers)

    async def _send(
        self, session: aiohttp.ClientSession, request: Request, timeout: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        configuration = self.credentials.configuration
        headers = await self._login()
        headers["accept"] = "application/json, */*"
        if request.body is not None:
            headers["content-type"] = request.content_type
        return await session.request(
            request.method,
            self.credentials.host + request.path,
            params={key: str(value) for key, value in request.query.items() if value is not None},
            data=None if request.body is None else json.dumps(request.body).encode(),
            headers=headers,
            timeout=timeout,
            allow_redirects=False,
            proxy=self._proxy,
            server_hostname=getattr(configuration, "tls_server_name", None) or None,
        )

    async def request(self, request: Request, timeout: float) -> Response:
        """Send a request and read the response."""
        total = None if request.is_list else timeout
        limits = aiohttp.ClientTimeout(total=total, sock_connect=min(CONNECT_TIMEOUT, timeout), sock_read=timeout)
        try:
            async with (
                self._requests,
                self._used_session() as session,
                await self._send(session, request, limits) as response,
            ):
                return Response(response.status, await response.read(), seconds(response.headers))
        except (aiohttp.ClientError, asyncio.TimeoutError, OSError) as error:
            raise self._failure(error) from error

    @asynccontextmanager
    async def stream(self, request: Request, silence: float) -> AsyncIterator[AsyncStream]:
        """Send a request and read the response as it comes."""
        limits = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT, sock_read=silence)
        async with self._used_session() as session:
            try:
                response = await self._send(session, request, limits)
            except (aiohttp.ClientError, asyncio.TimeoutError, OSError) as error:
                raise self._failure(error) from error
            try:
                yield AsyncStream(response)
            finally:
                response.close()

    def _failure(self, error: Exception) -> ConnectionLostError | TrainingError:
        """Return the error of a request that failed."""
        if lasting := _tls.lasting(error, self.credentials.host):
            return lasting
        unsent = isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)
        return ConnectionLostError(str(error) or type(error).__name__, sent=not unsent)

    async def post(self, url: str, body: Json, timeout: float) -> int:
        """Send JSON to any URL, without the cluster's credentials."""
        limits = aiohttp.ClientTimeout(total=timeout)
        try:
            async with (
                aiohttp.ClientSession(timeout=limits) as session,
                session.post(url, json=body, proxy=proxy_for(url)) as response,
            ):
                return response.status
        except (aiohttp.ClientError, asyncio.TimeoutError, OSError) as error:
            raise ConnectionLostError(str(error) or type(error).__name__) from error

    async def fetch(self, url: str, most: int, timeout: float) -> Response:
        """Get what is at any URL, without the cluster's credentials."""
        if self._others is None:
            # The environment may name the certificates, also after aiohttp was imported.
            connector = aiohttp.TCPConnector(limit=MOST_REQUESTS, ssl=ssl.create_default_context())
            self._others = aiohttp.ClientSession(
                connector=connector,
                auto_decompress=False,
                headers={"accept-encoding": "identity"},
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        limits = aiohttp.ClientTimeout(total=timeout, sock_connect=CONNECT_TIMEOUT, sock_read=FETCH_SILENCE)
        body = bytearray()
        try:
            # The URL is signed as it is.
            async with self._others.get(
                yarl.URL(url, encoded=True), proxy=proxy_for(url), allow_redirects=False, timeout=limits
            ) as response:
                async for chunk in response.content.iter_chunked(1 << 16):
                    body += chunk
                    if len(body) > most:
                        raise RefusedError(f"{host_of(url)} sends more than {most} bytes")
                return Response(response.status, bytes(body))
        except (aiohttp.ClientError, asyncio.TimeoutError, OSError, ValueError) as error:
            raise fetch_failure(error, url) from None

    async def reload(self, sent: float) -> None:
        """Read the credentials again, unless that was done since a request was sent."""
        async with self._reloading:
            if self._reloaded >= sent:
                return
            await asyncio.to_thread(self.credentials.reload)
            self._reloaded, self._fresh_until = self.monotonic(), 0.0
            old, self._made = self._made, None
            if old is not None and old not in self._uses:
                await old.close()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)

    def monotonic(self) -> float:
        """Return the seconds of a clock that never goes back."""
        return time.monotonic()

    def now(self) -> datetime:
        """Return the time of day, in UTC."""
        return datetime.now(timezone.utc)

    def tasks(self) -> AsyncTasks[Any]:
        """Return a group of work, each in an asyncio.Task."""
        return AsyncTasks(self)

    async def call(self, function: Callable[[], T]) -> T:
        """Return the result of a function that blocks, which a thread calls."""
        return await asyncio.to_thread(function)

    def inbox(self) -> AsyncInbox[Any]:
        """Return an empty inbox, which tasks of the same event loop may fill."""
        return AsyncInbox()

    async def close(self) -> None:
        """Close all connections."""
        sessions = {self._made, self._others, *self._uses}
        self._made = self._others = None
        for session in sessions:
            if session is not None:
                await session.close()


class AsyncStream:
    """A response that is read as it comes."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    @property
    def status(self) -> int:
        """The HTTP status code."""
        return self._response.status

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the body in pieces, each as soon as it is there."""
        try:
            async for chunk in self._response.content.iter_any():
                yield chunk
        except asyncio.TimeoutError as error:
            raise SilenceError from error
        except (aiohttp.ClientError, OSError) as error:
            raise ConnectionLostError(str(error) or type(error).__name__) from error


class AsyncInbox(Generic[T]):
    """Keeps items for one task."""

    def __init__(self) -> None:
        self._items: asyncio.Queue[T] = asyncio.Queue()

    def put(self, item: T) -> None:
        """Add an item."""
        self._items.put_nowait(item)

    async def get(self, timeout: float | None) -> T:
        """Return the next item; raises SilenceError if none comes within so many seconds."""
        try:
            return await asyncio.wait_for(self._items.get(), timeout)
        except asyncio.TimeoutError:
            raise SilenceError from None


class AsyncTasks(Generic[T]):
    """Work in tasks of the event loop."""

    _MOST_WAITING = 1000

    def __init__(self, driver: AsyncDriver) -> None:
        self.driver = driver
        self._items: asyncio.Queue[tuple[T | None, BaseException | None]] = asyncio.Queue(self._MOST_WAITING)
        self._running: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> AsyncTasks[T]:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.end()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Start a task that does the work."""
        self._running.add(asyncio.create_task(self._work(work)))

    async def _work(self, work: Coroutine[Any, Any, None]) -> None:
        failure: BaseException | None = None
        try:
            await work
        except Exception as error:
            failure = error
        task = asyncio.current_task()
        await self._items.put((None, failure))
        if task is not None:
            self._running.discard(task)

    async def put(self, item: T) -> None:
        """Hand an item over."""
        await self._items.put((item, None))

    async def items(self) -> AsyncGenerator[T, None]:
        """Yield the items until all work is done."""
        while self._running or not self._items.empty():
            item, failure = await self._items.get()
            if failure is not None:
                raise failure
            if item is not None:
                yield item

    async def end(self) -> None:
        """Cancel all tasks that still run."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)


def tls_of(configuration: Any) -> ssl.SSLContext | bool:
    """Return the TLS settings of a configuration of the official client."""
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, keyfile=configuration.key_file)
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
