"""Logins that are rejected while other requests are under way."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

from smallapi import JOBS, REPORTS, SmallAPI

from openshift_ai_sdk.training import aio
from openshift_ai_sdk.training._driver import Request


def test_a_rejected_login_cuts_no_other_request(small: SmallAPI) -> None:
    answers: list[Any] = [(401, {})]
    small.fails = lambda method, path: answers.pop() if answers and path == JOBS else None

    async def work() -> Any:
        async with aio.TrainingClient("default", configuration=small.configuration()) as client:
            driver = client._driver
            watch = Request("GET", REPORTS, {"watch": "true", "resourceVersion": "0"})
            async with driver.stream(watch, 20) as stream:
                first = driver._made
                assert await client.list_jobs() == [] and not answers
                assert driver._made is not first and first is not None and not first.closed
                small.put(REPORTS, {"metadata": {"name": "train"}})
                chunk = await anext(stream.chunks())
            assert first.closed
            return json.loads(chunk)["object"]["metadata"]["name"]

    assert asyncio.run(work()) == "train"


def test_many_requests_with_a_rejected_login_read_it_again_once(small: SmallAPI, monkeypatch: Any) -> None:
    count, together, reloads = [0], threading.Barrier(10), []

    def fails(method: str, path: str) -> tuple[int, dict[str, Any]] | None:
        count[0] += 1
        if count[0] > 10:
            return None
        together.wait(10)
        return 401, {}

    small.fails = fails

    async def work() -> None:
        async with aio.TrainingClient("default", configuration=small.configuration()) as client:
            monkeypatch.setattr(client._driver.credentials, "reload", lambda: reloads.append(1))
            await asyncio.gather(*(client._cluster.api.call(Request("GET", JOBS)) for _ in range(10)))

    asyncio.run(work())
    assert (count[0], len(reloads)) == (20, 1)
