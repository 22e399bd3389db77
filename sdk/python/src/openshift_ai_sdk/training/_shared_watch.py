"""Watches of JobReports that many waiters share.

A waiter that is alone watches the report of its own job, which costs the API server least. Many waiters in a namespace
share one watch of all its reports: a thousand threads or tasks that each wait for a job need one connection.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from openshift_ai_sdk.training._apiserver import Api
from openshift_ai_sdk.training._driver import Inbox, Json, SilenceError, Tasks
from openshift_ai_sdk.training._kinds import JOB_REPORT
from openshift_ai_sdk.training._watch import Change, watch

# So many waiters of a namespace have a watch each, of their own job; those that come while they wait share one.
MOST_ALONE = 3

Key = tuple[str, str]
"""Kind and name of a job."""


def key_of(report: Json) -> Key:
    """Return which job a report is about."""
    ref = report["spec"]["jobRef"]
    return ref["kind"], ref["name"]


@dataclass
class Watched:
    """What is known of a namespace that is watched, and who waits for news."""

    tasks: Tasks[Any]
    synced: bool = False
    reports: dict[Key, dict[str, Json]] = field(default_factory=dict)
    inboxes: dict[Key, list[Inbox[Change | BaseException]]] = field(default_factory=dict)


class Reports:
    """The reports of jobs, as those receive them who wait for a job."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._alone: dict[str, int] = {}
        self._watched: dict[str, Watched] = {}
        # The blocking driver calls from many threads. Nothing is awaited while it is held.
        self._lock = threading.Lock()

    async def watch(
        self,
        namespace: str,
        key: Key,
        labels: str,
        deadline: float | None = None,
        silence: Callable[[], float] | None = None,
    ) -> AsyncGenerator[Change, None]:
        """Yield the changes of a job's reports, and SYNCED, as watch does.

        Args:
            namespace: The job's namespace.
            key: The job.
            labels: The selector of the job's report.
            deadline: When to stop, by Driver.monotonic.
            silence: After how many seconds without a change SYNCED is yielded again.
        """
        with self._lock:
            # Who only reads once does not wait for a watch to begin.
            once = deadline is not None and self._api.driver.monotonic() >= deadline
            alone = once or (self._alone.get(namespace, 0) < MOST_ALONE and namespace not in self._watched)
            if alone:
                self._alone[namespace] = self._alone.get(namespace, 0) + 1
        if not alone:
            async with aclosing(self._shared(namespace, key, deadline, silence)) as changes:
                async for change in changes:
                    yield change
            return
        try:
            async with aclosing(watch(self._api, JOB_REPORT, namespace, labels, deadline, silence=silence)) as changes:
                async for change in changes:
                    yield change
        finally:
            with self._lock:
                self._alone[namespace] -= 1

    async def _shared(
        self, namespace: str, key: Key, deadline: float | None, silence: Callable[[], float] | None
    ) -> AsyncGenerator[Change, None]:
        driver = self._api.driver
        synced = False
        async with self._subscribed(namespace, key) as inbox:
            while deadline is None or driver.monotonic() < deadline:
                left = None if deadline is None else deadline - driver.monotonic()
                pause = silence() if silence and synced else None
                try:
                    item = await inbox.get(min((each for each in (left, pause) if each is not None), default=None))
                except SilenceError:
                    if pause is None or (left is not None and left <= pause):
                        return
                    item = Change("SYNCED", {})
                if isinstance(item, BaseException):
                    raise item
                synced = synced or item.type == "SYNCED"
                yield item

    @asynccontextmanager
    async def _subscribed(self, namespace: str, key: Key) -> AsyncGenerator[Inbox[Change | BaseException], None]:
        """Receive the changes of a job while the context is open. The first who waits starts the watch."""
        inbox: Inbox[Change | BaseException] = self._api.driver.inbox()
        with self._lock:
            watched = self._watched.get(namespace)
            if watched is None:
                watched = self._watched[namespace] = Watched(self._api.driver.tasks())
                watched.tasks.start(self._forward(namespace, watched))
            watched.inboxes.setdefault(key, []).append(inbox)
            for report in watched.reports.get(key, {}).values():
                inbox.put(Change("CHANGED", report))
            if watched.synced:
                inbox.put(Change("SYNCED", {}))
        try:
            yield inbox
        finally:
            with self._lock:
                watched.inboxes[key].remove(inbox)
                if not watched.inboxes[key]:
                    del watched.inboxes[key]
                unused = not watched.inboxes
                if unused and self._watched.get(namespace) is watched:
                    del self._watched[namespace]
            if unused:
                await watched.tasks.end()

    async def _forward(self, namespace: str, watched: Watched) -> None:
        """Watch a namespace, and hand changes to those who wait, until the watch fails or is ended."""
        api = Api(watched.tasks.driver, self._api.retry, self._api.host)
        try:
            async with aclosing(watch(api, JOB_REPORT, namespace)) as changes:
                async for change in changes:
                    with self._lock:
                        self._take(watched, change)
        except Exception as error:
            with self._lock:
                if self._watched.get(namespace) is watched:
                    del self._watched[namespace]
                for inboxes in watched.inboxes.values():
                    for inbox in inboxes:
                        inbox.put(error)

    def _take(self, watched: Watched, change: Change) -> None:
        """Take note of a change, and hand it over."""
        if change.type == "SYNCED":
            watched.synced = True
            for inboxes in watched.inboxes.values():
                for inbox in inboxes:
                    inbox.put(change)
            return
        key, uid = key_of(change.object), change.object["metadata"]["uid"]
        if change.type == "CHANGED":
            watched.reports.setdefault(key, {})[uid] = change.object
        elif reports := watched.reports.get(key):
            reports.pop(uid, None)
            if not reports:
                del watched.reports[key]
        for inbox in watched.inboxes.get(key, ()):
            inbox.put(change)
