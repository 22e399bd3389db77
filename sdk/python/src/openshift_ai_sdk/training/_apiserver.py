"""Requests to the API server: retried with back-off, with readable errors."""

from __future__ import annotations

import gc
import json
import threading
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from typing import Any

from openshift_ai_sdk.training._apiserver_errors import error_of, status_in
from openshift_ai_sdk.training._driver import ConnectionLostError, Driver, Json, Request, Response, Stream
from openshift_ai_sdk.training._kinds import Resource
from openshift_ai_sdk.training._retry import RetryPolicy
from openshift_ai_sdk.training.errors import ClusterUnreachableError, JobNotFoundError, NotSupportedError, TLSError

# How many seconds a request may take; the second also if a deadline is nearer, so that each caller reads once.
REQUEST_TIMEOUT, SHORTEST_TIMEOUT = 60.0, 1.0
# After how many seconds of retries a warning says what is wrong.
QUIET = 5.0
# How many objects are listed first, when their size is unknown.
FIRST_PAGE = 500
# The limits of later pages: a JobReport may have a few KiB, or with logs more than 800 KiB.
MAX_PAGE_OBJECTS, MAX_PAGE_BYTES = 5000, 16 << 20
# How many times as many objects the next page may have so that the first page is read again with it. The API server has
# first pages in its cache, but may read further ones from etcd, which takes it several times as long.
REREAD_FACTOR = 4
# From how many bytes on an answer is decoded without collecting garbage meanwhile.
LARGE = 1 << 20


class Api:
    """The API server, through a driver."""

    def __init__(self, driver: Driver, retry: RetryPolicy, host: str) -> None:
        self.driver = driver
        self.retry = retry
        self.host = host

    async def call(self, request: Request, deadline: float | None = None) -> Json:
        """Send a request until it is answered, or the deadline has passed, and return the object of the answer."""
        return (await self._sized(request, deadline))[0]

    async def _sized(self, request: Request, deadline: float | None) -> tuple[Json, int]:
        """Do what call does, and return also how many bytes the answer has."""
        response = await self._answer(request, deadline)
        if response.status >= 400:
            raise error_of(response.status, status_in(response.body), request, self.host)
        try:
            body = decoded(response.body) if response.body else {}
        except ValueError:
            body = None
        if response.status >= 300 or not isinstance(body, dict):
            raise ClusterUnreachableError(
                f"the server at {self.host} is not an API server of Kubernetes: it answered {request.method} "
                f"{request.path} with {response.status} and without an object; check the server in your kubeconfig"
            )
        return body, len(response.body)

    async def _answer(self, request: Request, deadline: float | None) -> Response:
        """Return the response, after as many tries as the retry policy and the deadline allow."""
        began = self.driver.monotonic()
        end = began + self.retry.patience
        end = end if deadline is None else min(end, deadline)
        reloaded = warned = False
        for pause in self.retry.pauses():
            sent = self.driver.monotonic()
            try:
                left = REQUEST_TIMEOUT if deadline is None else deadline - sent
                response = await self.driver.request(request, max(SHORTEST_TIMEOUT, min(REQUEST_TIMEOUT, left)))
                problem = f"it answers {response.status}"
                again = is_passing(response, request)
                if response.status == 401 and not reloaded:
                    # The token may have been renewed in the kubeconfig since, for example by oc login.
                    reloaded = True
                    await self.driver.reload(sent)
                    continue
                if response.status in (503, 504) and not again:
                    raise self._uncertain(problem, request)
                if not again or self._is_over(end, pause):
                    return response
                pause = max(pause, response.retry_after or 0)
            except TLSError:
                # The certificates may have been renewed in the kubeconfig, too.
                if reloaded:
                    raise
                reloaded = True
                await self.driver.reload(sent)
                continue
            except ConnectionLostError as error:
                problem = str(error)
                if error.sent and not request.is_safe:
                    raise self._uncertain(f"the connection was cut: {problem}", request) from error
                if self._is_over(end, pause):
                    raise self.unreachable(problem) from error
            if not warned and self.driver.monotonic() - began > QUIET:
                warned = True
                left = end - self.driver.monotonic()
                warnings.warn(
                    f"the cluster at {self.host} does not respond ({problem}); trying for {left:.0f} s more",
                    stacklevel=2,
                )
            await self.driver.sleep(pause)
        raise AssertionError("pauses never end")

    def _is_over(self, end: float, pause: float) -> bool:
        return self.driver.monotonic() + pause > end

    def _uncertain(self, problem: str, request: Request) -> ClusterUnreachableError:
        """Return the error for a request that may have arrived and must not be sent again."""
        error = ClusterUnreachableError(
            f"the cluster at {self.host} has not answered {request.method} {request.path} ({problem}): the request may "
            "have succeeded; check whether the object exists before you try again"
        )
        error.may_have_succeeded = True
        return error

    def unreachable(self, problem: str) -> ClusterUnreachableError:
        """Return the error for an API server that does not answer."""
        return ClusterUnreachableError(
            f"the cluster at {self.host} cannot be reached: {problem}; check that it is up and the intended one "
            "(kubectl config current-context)"
        )

    def is_due(self, deadline: float | None) -> bool:
        """Return whether a deadline has passed or is nearer than the next retry may be."""
        return deadline is not None and self.driver.monotonic() + self.retry.maximum >= deadline

    async def get(self, resource: Resource, namespace: str | None, name: str, deadline: float | None = None) -> Json:
        """Read an object."""
        return await self.call(Request("GET", resource.path(namespace, name)), deadline)

    async def find(
        self, resource: Resource, namespace: str | None, name: str, deadline: float | None = None
    ) -> Json | None:
        """Read an object; None if there is none, or if the cluster does not know the kind."""
        try:
            return await self.get(resource, namespace, name, deadline)
        except (JobNotFoundError, NotSupportedError):
            return None

    async def list(
        self,
        resource: Resource,
        namespace: str | None,
        labels: str = "",
        deadline: float | None = None,
        name: str = "",
    ) -> tuple[list[Json], str]:
        """Read all objects, page by page, and the version up to which they are complete."""
        items: list[Json] = []
        token: str | None = None
        limit, is_first = FIRST_PAGE, True
        while True:
            query: dict[str, str | int | None] = {**selectors(labels, name), "limit": limit, "continue": token}
            request = Request("GET", resource.path(namespace), query, is_list=True)
            page, size = await self._sized(request, deadline)
            found = page.get("items") or []
            following = page["metadata"].get("continue")
            limit = page_limit(len(found), size)
            is_read_again = is_first and following and limit >= REREAD_FACTOR * len(found)
            is_first = False
            if is_read_again:
                continue
            for item in found:
                # A list leaves out what all of its items have in common.
                items.append({"apiVersion": resource.api_version, "kind": resource.kind, **item})
            token = following
            if not token:
                return items, page["metadata"]["resourceVersion"]

    async def create(
        self, resource: Resource, namespace: str | None, body: Json, dry_run: bool = False, strict: bool = True
    ) -> Json:
        """Create an object. Fields that the API server does not know are left out; if strict, they are an error."""
        query = {"fieldValidation": "Strict" if strict else None, "dryRun": "All" if dry_run else None}
        return await self.call(Request("POST", resource.path(namespace), query, body))

    async def replace(self, resource: Resource, namespace: str | None, name: str, body: Json) -> Json:
        """Replace an object by a later version of it; it is a conflict if it has changed since it was read."""
        return await self.call(Request("PUT", resource.path(namespace, name), {}, body))

    async def patch(self, resource: Resource, namespace: str, name: str, change: Json, dry_run: bool = False) -> Json:
        """Change an object by a merge patch."""
        query = {"dryRun": "All" if dry_run else None}
        path = resource.path(namespace, name)
        return await self.call(Request("PATCH", path, query, change, "application/merge-patch+json"))

    async def delete(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        uid: str | None = None,
        grace_period: int | None = None,
    ) -> None:
        """Delete an object and what it owns. With a uid only the object with this uid is deleted."""
        body: Json = {"propagationPolicy": "Background"}
        if uid is not None:
            body["preconditions"] = {"uid": uid}
        if grace_period is not None:
            body["gracePeriodSeconds"] = grace_period
        await self.call(Request("DELETE", resource.path(namespace, name), {}, body))


def page_limit(objects: int, size: int) -> int:
    """Return how many objects the next page may have, by the size in bytes of the last page."""
    if objects <= 0 or size <= 0:
        return FIRST_PAGE
    return min(max(MAX_PAGE_BYTES * objects // size, 1), MAX_PAGE_OBJECTS)


# How many threads decode without collecting garbage, and the thresholds from which it is collected otherwise.
_decoding = 0
_thresholds = gc.get_threshold()
_changing = threading.Lock()


@contextmanager
def uncollected() -> Iterator[None]:
    """Collect no garbage, in all threads, until the last one has left this context.

    This leaves gc.enable() and gc.disable() to the program, and keeps thresholds that another thread sets meanwhile.
    """
    global _decoding, _thresholds
    with _changing:
        if not _decoding or gc.get_threshold()[0]:
            _thresholds = gc.get_threshold()
        _decoding += 1
        gc.set_threshold(0)
    try:
        yield
    finally:
        with _changing:
            _decoding -= 1
            if not _decoding and not gc.get_threshold()[0]:
                if gc.isenabled() and hasattr(gc, "freeze") and not gc.get_freeze_count():
                    # All objects become old ones, without being looked at: with 5,000 jobs that would take 0.4 s.
                    gc.freeze()
                    gc.unfreeze()
                gc.set_threshold(*_thresholds)


def decoded(body: bytes) -> Any:
    """Decode JSON. Until Python 3.12, collecting garbage meanwhile takes most of the time for many objects."""
    if len(body) < LARGE:
        return json.loads(body)
    with uncollected():
        return json.loads(body)


def is_passing(response: Response, request: Request) -> bool:
    """Return whether a request with this response may be answered if it is sent again, and does no harm.

    A gateway answers 504, and may answer 503, to requests that the API server has carried out.
    """
    if request.is_safe:
        return response.status in (429, 500, 503, 504)
    return response.status == 429 or (response.status == 503 and response.retry_after is not None)


@asynccontextmanager
async def opened(driver: Driver, request: Request, silence: float) -> AsyncGenerator[Stream, None]:
    """Open a stream as Driver.stream does.

    If the login or a certificate is rejected, the credentials are read again once.
    """
    async with AsyncExitStack() as stack:
        stream: Stream | None = None
        sent = driver.monotonic()
        with suppress(TLSError):
            stream = await stack.enter_async_context(driver.stream(request, silence))
        if stream is None or stream.status == 401:
            await stack.aclose()
            await driver.reload(sent)
            stream = await stack.enter_async_context(driver.stream(request, silence))
        yield stream


def selectors(labels: str, name: str) -> dict[str, str | None]:
    """Return the parameters that choose objects."""
    return {"labelSelector": labels or None, "fieldSelector": f"metadata.name={name}" if name else None}


async def lines_of(chunks: AsyncIterator[bytes], longest: int = 1 << 22) -> AsyncGenerator[bytes, None]:
    r"""Yield lines with their \n; the last has none if the stream ends within it. What is too long is cut off."""
    rest = b""
    async for chunk in chunks:
        rest += chunk
        *whole, rest = rest.split(b"\n")
        for line in whole:
            yield line[:longest] + b"\n"
        rest = rest[: longest + 1]
    if rest:
        yield rest
