"""Requests to the API server: retried with back-off, readable errors, and watches that survive failures."""

from __future__ import annotations

import json
import math
import random
import re
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Literal

from openshift_ai_sdk.training import errors
from openshift_ai_sdk.training._transport import (
    ConnectionLostError,
    Driver,
    Json,
    Request,
    Response,
    SilenceError,
    Stream,
)

# An API server sends a bookmark about once a minute: a watch that is silent for longer has lost its connection.
LONGEST_SILENCE = 100.0
REQUEST_TIMEOUT = 60.0
# After how many seconds of retries a warning says what is wrong.
QUIET = 5.0
# How many objects a list brings at a time: a thousand records are many megabytes.
PAGE = 500


@dataclass(frozen=True)
class RetryPolicy:
    """How requests that fail for a while are sent again.

    Attributes:
        initial: Seconds before the first retry.
        maximum: The longest pause between retries, in seconds.
        patience: How long the API server may be away, in seconds, before ClusterUnreachableError is raised; 0 sends
            each request once.

    Raises:
        InvalidJobError: A value is not a number of seconds.

    Example:
        >>> client = TrainingClient(retry=RetryPolicy(patience=30))
    """

    initial: float = 0.2
    maximum: float = 10.0
    patience: float = 300.0

    def __post_init__(self) -> None:
        found = []
        for name, value, rule in (
            ("initial", self.initial, "above 0"),
            ("maximum", self.maximum, "above 0"),
            ("patience", self.patience, "0 or more"),
        ):
            is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
            if not is_number or value < 0 or (value == 0 and rule == "above 0"):
                found.append(errors.Problem(f"retry.{name}", f"{value!r} is not allowed; use seconds, {rule}"))
        if found:
            raise errors.InvalidJobError(found)

    def pauses(self) -> Iterator[float]:
        """Yield pauses in seconds: each twice as long as the one before, up to the maximum, with 20 % of jitter."""
        pause = self.initial
        while True:
            yield pause * random.uniform(0.8, 1.2)
            pause = min(2 * pause, self.maximum)


@dataclass(frozen=True)
class Resource:
    """A kind of object and where the API server serves it."""

    api_version: str
    kind: str
    plural: str

    def path(self, namespace: str | None, name: str = "") -> str:
        """Return the path of an object, or of the list if there is no name. Without a namespace all are meant."""
        prefix = f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"
        scope = f"/namespaces/{namespace}" if namespace else ""
        return f"{prefix}{scope}/{self.plural}" + (f"/{name}" if name else "")


@dataclass(frozen=True)
class Change:
    """A change that a watch has seen. SYNCED has no object: all that is known has been yielded."""

    type: Literal["CHANGED", "DELETED", "SYNCED"]
    object: Json


class Api:
    """The API server, through a driver."""

    def __init__(self, driver: Driver, retry: RetryPolicy, host: str) -> None:
        self.driver = driver
        self.retry = retry
        self.host = host

    async def call(self, request: Request, deadline: float | None = None) -> Json:
        """Send a request until it is answered, or the deadline has passed, and return the object of the answer."""
        response = await self._answer(request, deadline)
        if response.status >= 400:
            raise error_of(response.status, status_in(response.body), request, self.host)
        try:
            body = json.loads(response.body) if response.body else {}
        except ValueError:
            body = None
        if response.status >= 300 or not isinstance(body, dict):
            raise errors.ClusterUnreachableError(
                f"the server at {self.host} is not an API server of Kubernetes: it answered {request.method} "
                f"{request.path} with {response.status} and without an object; check the server in your kubeconfig"
            )
        return body

    async def _answer(self, request: Request, deadline: float | None) -> Response:
        """Return the response, after as many tries as the retry policy and the deadline allow."""
        began = self.driver.monotonic()
        end = began + self.retry.patience
        end = end if deadline is None else min(end, deadline)
        reloaded = warned = False
        for pause in self.retry.pauses():
            try:
                response = await self.driver.request(request, REQUEST_TIMEOUT)
                problem = f"it answers {response.status}"
                again = response.status in (429, 503, 504) or (response.status == 500 and request.is_safe)
                if response.status == 401 and not reloaded:
                    # The token may have been renewed in the kubeconfig since, for example by oc login.
                    reloaded = True
                    await self.driver.reload()
                    continue
                if not again or self._is_over(end, pause):
                    return response
                pause = max(pause, response.retry_after or 0)
            except errors.TLSError:
                # The certificates may have been renewed in the kubeconfig, too.
                if reloaded:
                    raise
                reloaded = True
                await self.driver.reload()
                continue
            except ConnectionLostError as error:
                problem = str(error)
                if error.sent and not request.is_safe:
                    raise errors.ClusterUnreachableError(
                        f"the connection to {self.host} was cut ({problem}) during {request.method} {request.path}: "
                        "the request may have succeeded; check whether the object exists before you try again"
                    ) from error
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

    def unreachable(self, problem: str) -> errors.ClusterUnreachableError:
        """Return the error for an API server that does not answer."""
        return errors.ClusterUnreachableError(
            f"the cluster at {self.host} cannot be reached: {problem}; check that it is up and the intended one "
            "(kubectl config current-context)"
        )

    async def get(self, resource: Resource, namespace: str | None, name: str) -> Json:
        """Read an object."""
        return await self.call(Request("GET", resource.path(namespace, name)))

    async def find(self, resource: Resource, namespace: str | None, name: str) -> Json | None:
        """Read an object; None if there is none, or if the cluster does not know the kind."""
        try:
            return await self.get(resource, namespace, name)
        except (errors.JobNotFoundError, errors.NotSupportedError):
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
        while True:
            query: dict[str, str | int | None] = {**selectors(labels, name), "limit": PAGE, "continue": token}
            page = await self.call(Request("GET", resource.path(namespace), query), deadline)
            for item in page.get("items") or []:
                # A list leaves out what all of its items have in common.
                items.append({"apiVersion": resource.api_version, "kind": resource.kind, **item})
            token = page["metadata"].get("continue")
            if not token:
                return items, page["metadata"]["resourceVersion"]

    async def create(self, resource: Resource, namespace: str, body: Json, dry_run: bool = False) -> Json:
        """Create an object. Fields that the API server does not know are an error."""
        query = {"fieldValidation": "Strict", "dryRun": "All" if dry_run else None}
        return await self.call(Request("POST", resource.path(namespace), query, body))

    async def patch(self, resource: Resource, namespace: str, name: str, change: Json, dry_run: bool = False) -> Json:
        """Change an object by a merge patch."""
        query = {"dryRun": "All" if dry_run else None}
        path = resource.path(namespace, name)
        return await self.call(Request("PATCH", path, query, change, "application/merge-patch+json"))

    async def delete(
        self, resource: Resource, namespace: str, name: str, uid: str | None = None, grace_period: int | None = None
    ) -> None:
        """Delete an object and what it owns. With a uid only the object with this uid is deleted."""
        body: Json = {"propagationPolicy": "Background"}
        if uid is not None:
            body["preconditions"] = {"uid": uid}
        if grace_period is not None:
            body["gracePeriodSeconds"] = grace_period
        await self.call(Request("DELETE", resource.path(namespace, name), {}, body))

    async def watch(
        self,
        resource: Resource,
        namespace: str | None,
        labels: str = "",
        deadline: float | None = None,
        name: str = "",
        silence: Callable[[], float] | None = None,
    ) -> AsyncGenerator[Change, None]:
        """Yield all existing objects, then SYNCED, then each change, until the deadline (of Driver.monotonic).

        Objects are chosen by a label selector, or by their name. If ``silence`` is given, SYNCED is yielded again when
        nothing has changed for as many seconds as it returns.

        The watch survives cut connections, expired versions (410) and API server restarts: if changes were missed,
        the objects are listed again and the differences are yielded, deletions included.
        """
        known: dict[str, Json] = {}
        version: str | None = None
        pauses = self.retry.pauses()
        down_since: float | None = None
        while deadline is None or self.driver.monotonic() < deadline:
            problem: Exception
            try:
                if version is None:
                    items, version = await self.list(resource, namespace, labels, deadline, name)
                    for change in differences(known, items):
                        yield change
                    yield Change("SYNCED", {})
                async with aclosing(
                    self._changes(
                        resource, namespace, selectors(labels, name), version, deadline, silence and silence()
                    )
                ) as changes:
                    async for news, version in changes:  # noqa: B007 - the version is where to go on
                        # Any event, including a bookmark, proves that the API server is up.
                        pauses, down_since = self.retry.pauses(), None
                        if news is None:
                            continue
                        uid = news.object["metadata"]["uid"]
                        if news.type == "DELETED":
                            known.pop(uid, None)
                        else:
                            known[uid] = news.object
                        yield news
                pauses, down_since = self.retry.pauses(), None
                if silence is not None:
                    yield Change("SYNCED", {})
                continue
            except _ExpiredError as error:
                version, problem = None, error
            except ConnectionLostError as error:
                problem = error
            except errors.ClusterUnreachableError:
                if deadline is not None and self.driver.monotonic() + self.retry.maximum >= deadline:
                    return
                raise
            except errors.APIError as error:
                if error.code < 500 and error.code != 429:
                    raise
                problem = error
            now = self.driver.monotonic()
            down_since = down_since if down_since is not None else now
            if now - down_since > self.retry.patience:
                raise self.unreachable(str(problem)) from problem
            pause = next(pauses)
            await self.driver.sleep(pause if deadline is None else max(0.0, min(pause, deadline - now)))

    async def _changes(
        self,
        resource: Resource,
        namespace: str | None,
        selected: Mapping[str, str | None],
        version: str,
        deadline: float | None,
        longest: float | None,
    ) -> AsyncGenerator[tuple[Change | None, str], None]:
        """Yield what one connection brings, each with the version from which to go on; None for a bookmark."""
        left = LONGEST_SILENCE if deadline is None else deadline - self.driver.monotonic()
        silence = max(0.05, min(LONGEST_SILENCE, left, longest or LONGEST_SILENCE))
        query: dict[str, str | int | None] = {
            "watch": "true",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            **selected,
        }
        request = Request("GET", resource.path(namespace), query)
        async with opened(self.driver, request, silence) as stream:
            if stream.status >= 400:
                body = b"".join([chunk async for chunk in stream.chunks()])
                if stream.status == 410:
                    raise _ExpiredError
                raise error_of(stream.status, status_in(body), request, self.host)
            try:
                async for line in lines_of(stream.chunks()):
                    if not line.endswith(b"\n"):
                        raise ConnectionLostError("the watch was cut within an event")
                    event = json.loads(line)
                    item = event["object"]
                    if event["type"] == "ERROR":
                        if item.get("code") == 410:
                            raise _ExpiredError
                        raise errors.APIError(item.get("code", 500), item.get("reason", ""), item.get("message", ""))
                    version = item["metadata"]["resourceVersion"]
                    if event["type"] == "BOOKMARK":
                        yield None, version
                    else:
                        yield Change("DELETED" if event["type"] == "DELETED" else "CHANGED", item), version
                    if deadline is not None and self.driver.monotonic() >= deadline:
                        return
            except SilenceError:
                return


@asynccontextmanager
async def opened(driver: Driver, request: Request, silence: float) -> AsyncGenerator[Stream, None]:
    """Open a stream as Driver.stream does.

    If the login or a certificate is rejected, the credentials are read again once.
    """
    async with AsyncExitStack() as stack:
        stream: Stream | None = None
        with suppress(errors.TLSError):
            stream = await stack.enter_async_context(driver.stream(request, silence))
        if stream is None or stream.status == 401:
            await stack.aclose()
            await driver.reload()
            stream = await stack.enter_async_context(driver.stream(request, silence))
        yield stream


class _ExpiredError(Exception):
    """The version to go on from is too old: the objects have to be listed again."""


def status_in(body: bytes) -> Json:
    """Return the Status object of an error response; for a path that is not served, the response is plain text."""
    try:
        status = json.loads(body)
    except ValueError:
        return {}
    return status if isinstance(status, dict) else {}


def selectors(labels: str, name: str) -> dict[str, str | None]:
    """Return the parameters that choose objects."""
    return {"labelSelector": labels or None, "fieldSelector": f"metadata.name={name}" if name else None}


def differences(known: dict[str, Json], items: list[Json]) -> Iterator[Change]:
    """Bring what is known of objects to the state of a list, and yield what has changed."""
    there = {item["metadata"]["uid"]: item for item in items}
    for uid in [uid for uid in known if uid not in there]:
        yield Change("DELETED", known.pop(uid))
    for uid, item in there.items():
        before = known.get(uid)
        known[uid] = item
        if before is None or before["metadata"]["resourceVersion"] != item["metadata"]["resourceVersion"]:
            yield Change("CHANGED", item)


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


DENIED = re.compile(
    r'User "(?P<user>[^"]*)" cannot (?P<verb>\S+) resource "(?P<resource>[^"]*)" in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]*)")?'
)
# The roles that allow changes which mpijob-user does not include.
OTHER_ROLES = {"pods": "edit", "workloads.kueue.x-k8s.io": "kueue-workload-editor-role"}


def error_of(code: int, status: Mapping[str, Any], request: Request, host: str) -> errors.TrainingError:
    """Return the error for an answer of the API server."""
    message = str(status.get("message") or f"{request.method} {request.path} was answered with {code}")
    reason = str(status.get("reason") or "")
    details = status.get("details") or {}
    if code == 401:
        return errors.NotLoggedInError(
            f"the cluster at {host} does not accept your login (401 Unauthorized): it has expired or was revoked; "
            "log in again, for example with oc login"
        )
    if code == 403:
        return forbidden(message)
    if code == 404:
        if not details.get("name"):
            return errors.NotSupportedError(
                f"the cluster does not serve {request.path}: the operator, or the project that owns the kind, "
                "is not installed"
            )
        if details.get("kind") == "namespaces":
            name = details["name"]
            return errors.NamespaceNotFoundError(
                f"the namespace {name!r} does not exist on {host}: name another one, for example with "
                f"TrainingClient(namespace=...), or create it with kubectl create namespace {name}"
            )
        return errors.JobNotFoundError(message)
    if code == 409 and reason == "AlreadyExists":
        get = f"get it with MPIJob.get({details['name']!r})" if details.get("name") else "get it"
        return errors.JobExistsError(f"{message}: take another name, delete that one first, or {get}")
    if code == 400 and not status:
        return errors.TLSError(
            f"the server at {host} rejects {request.method} {request.path} (400): if it is an API server, the address "
            "needs https; check the server in your kubeconfig"
        )
    if code in (400, 422):
        _, strict, unknown = message.partition("strict decoding error: ")
        causes = [
            errors.Problem(str(cause.get("field", "")), " ".join(str(cause.get("message", "")).split()))
            for cause in details.get("causes") or []
        ]
        if strict:
            return errors.JobRefusedError(f"the job has unknown fields: {unknown}")
        name = details.get("name") or "the job"
        # The API server names them in any order.
        problems = sorted(set(causes), key=lambda problem: (problem.field, problem.message))
        return errors.JobRefusedError(f"{name} is invalid:" if problems else message, problems)
    return errors.APIError(code, reason, message)


def forbidden(message: str) -> errors.TrainingError:
    """Return the error for 403: a missing right, or the message of a quota or webhook."""
    found = DENIED.search(message)
    if found is None:
        return errors.JobRefusedError(message)
    if found["user"] == "system:anonymous":
        return errors.NotLoggedInError(
            "the cluster got no credentials from you: log in, for example with oc login, and check that the program "
            "that your kubeconfig names for them works"
        )
    group = found["group"]
    resource = found["resource"] + (f".{group}" if group else "")
    place = f"in the namespace {found['namespace']}" if found["namespace"] else "in the whole cluster"
    reads = found["verb"] in ("get", "list", "watch")
    role = "view (or mpijob-viewer)" if reads else OTHER_ROLES.get(resource, "edit (or mpijob-user)")
    return errors.PermissionDeniedError(
        f"you ({found['user']}) may not {found['verb']} {resource} {place}: ask an administrator of the cluster "
        f"for the role {role}"
    )
