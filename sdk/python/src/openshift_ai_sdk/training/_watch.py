"""Watches of objects that survive cut connections and restarts of the API server."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Literal

from openshift_ai_sdk.training._apiserver import Api, lines_of, opened, selectors
from openshift_ai_sdk.training._apiserver_errors import error_of, status_in
from openshift_ai_sdk.training._driver import ConnectionLostError, Json, Request, SilenceError
from openshift_ai_sdk.training._kinds import Resource
from openshift_ai_sdk.training.errors import APIError, ClusterUnreachableError

# An API server sends a bookmark about once a minute: a watch that is silent for longer has lost its connection.
LONGEST_SILENCE = 100.0
# A watch that ends within so many seconds, and has brought nothing, is opened again after a pause.
SHORT = 1.0


@dataclass(frozen=True)
class Change:
    """A change that a watch has seen. SYNCED has no object: all that is known has been yielded."""

    type: Literal["CHANGED", "DELETED", "SYNCED"]
    object: Json


async def watch(
    api: Api,
    resource: Resource,
    namespace: str | None,
    labels: str = "",
    deadline: float | None = None,
    name: str = "",
    silence: Callable[[], float] | None = None,
) -> AsyncGenerator[Change, None]:
    """Yield all existing objects, then SYNCED, then each change, until the deadline (of Driver.monotonic).

    Objects are read once even if the deadline has passed.

    Objects are chosen by a label selector, or by their name. If ``silence`` is given, SYNCED is yielded again when
    nothing has changed for as many seconds as it returns.

    The watch survives cut connections, expired versions (410) and API server restarts: if changes were missed,
    the objects are listed again and the differences are yielded, deletions included.
    """
    known: dict[str, Json] = {}
    version: str | None = None
    pauses = api.retry.pauses()
    down_since: float | None = None
    tried = False
    while not tried or deadline is None or api.driver.monotonic() < deadline:
        tried = True
        problem: Exception
        try:
            if version is None:
                items, version = await api.list(resource, namespace, labels, deadline, name)
                for change in differences(known, items):
                    yield change
                yield Change("SYNCED", {})
                if deadline is not None and api.driver.monotonic() >= deadline:
                    return
            began, came = api.driver.monotonic(), False
            longest = silence() if silence is not None else LONGEST_SILENCE
            async with aclosing(
                changes_of(api, resource, namespace, selectors(labels, name), version, deadline, longest)
            ) as changes:
                async for news, version in changes:  # noqa: B007 - the version is where to go on
                    # Any event, including a bookmark, proves that the API server is up.
                    pauses, down_since, came = api.retry.pauses(), None, True
                    if news is None:
                        continue
                    uid = news.object["metadata"]["uid"]
                    if news.type == "DELETED":
                        known.pop(uid, None)
                    else:
                        known[uid] = news.object
                    yield news
                    # A connection keeps its longest silence; what was deleted may make a shorter one due.
                    if news.type == "DELETED" and silence and longest == LONGEST_SILENCE and silence() < longest:
                        break
            down_since = None
            if silence is not None:
                yield Change("SYNCED", {})
            if came or api.driver.monotonic() - began >= min(SHORT, longest):
                pauses = api.retry.pauses()
                continue
            # A server, or a proxy before it, that ends each watch at once is not asked all the time.
            await pause(api, pauses, deadline)
            continue
        except _ExpiredError as error:
            version, problem = None, error
        except ConnectionLostError as error:
            problem = error
        except ClusterUnreachableError:
            if api.is_due(deadline):
                return
            raise
        except APIError as error:
            if error.code < 500 and error.code != 429:
                raise
            problem = error
        now = api.driver.monotonic()
        down_since = down_since if down_since is not None else now
        if now - down_since > api.retry.patience:
            raise api.unreachable(str(problem)) from problem
        await pause(api, pauses, deadline)


async def pause(api: Api, pauses: Iterator[float], deadline: float | None) -> None:
    """Wait for the next pause, or until the deadline."""
    left = math.inf if deadline is None else deadline - api.driver.monotonic()
    await api.driver.sleep(max(0.0, min(next(pauses), left)))


async def changes_of(
    api: Api,
    resource: Resource,
    namespace: str | None,
    selected: Mapping[str, str | None],
    version: str,
    deadline: float | None,
    longest: float,
) -> AsyncGenerator[tuple[Change | None, str], None]:
    """Yield what one connection brings, each with the version from which to go on; None for a bookmark."""
    left = LONGEST_SILENCE if deadline is None else deadline - api.driver.monotonic()
    silence = max(0.05, min(LONGEST_SILENCE, left, longest))
    query: dict[str, str | int | None] = {
        "watch": "true",
        "resourceVersion": version,
        "allowWatchBookmarks": "true",
        **selected,
    }
    request = Request("GET", resource.path(namespace), query)
    async with opened(api.driver, request, silence) as stream:
        if stream.status >= 400:
            body = b"".join([chunk async for chunk in stream.chunks()])
            if stream.status == 410:
                raise _ExpiredError
            raise error_of(stream.status, status_in(body), request, api.host)
        try:
            async for line in lines_of(stream.chunks()):
                if not line.endswith(b"\n"):
                    raise ConnectionLostError("the watch was cut within an event")
                event = json.loads(line)
                item = event["object"]
                if event["type"] == "ERROR":
                    if item.get("code") == 410:
                        raise _ExpiredError
                    raise APIError(item.get("code", 500), item.get("reason", ""), item.get("message", ""))
                version = item["metadata"]["resourceVersion"]
                if event["type"] == "BOOKMARK":
                    yield None, version
                else:
                    yield Change("DELETED" if event["type"] == "DELETED" else "CHANGED", item), version
                if deadline is not None and api.driver.monotonic() >= deadline:
                    return
        except SilenceError:
            return


class _ExpiredError(Exception):
    """The version to go on from is too old: the objects have to be listed again."""


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
