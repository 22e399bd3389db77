"""Connections that break."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes import client
from smallapi import JOBS, SmallAPI

from openshift_ai_sdk.training import ClusterUnreachableError, NotSupportedError, RetryPolicy
from openshift_ai_sdk.training._credentials import Credentials
from openshift_ai_sdk.training._driver import Request
from openshift_ai_sdk.training._driver_blocking import BlockingDriver, run


class Closing:
    """Accepts connections and closes each when its first bytes have come: a balancer without a live server."""

    def __init__(self, resets: bool) -> None:
        self.first: list[bytes] = []
        self.resets = resets
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = int(self.server.getsockname()[1])
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        while True:
            try:
                connection, _ = self.server.accept()
            except OSError:
                return
            self.first.append(connection.recv(1 << 16))
            if self.resets:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()


@pytest.fixture(params=["ends", "resets"])
def closing(request: pytest.FixtureRequest) -> Iterator[Closing]:
    made = Closing(request.param == "resets")
    yield made
    made.server.close()


def create(face: Any, host: str) -> str:
    configuration = client.Configuration(host=host)
    made = face.TrainingClient("default", configuration=configuration, retry=RetryPolicy(initial=0.05, patience=1))
    job = face.MPIJob("train", image="image", command="train", client=made)
    with pytest.raises(ClusterUnreachableError) as caught:
        made.create_jobs([job])
    made.close()
    return str(caught.value)


def test_a_handshake_that_is_cut_is_tried_again(face: Any, closing: Closing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openshift_ai_sdk.training._create.is_restricted", never)
    assert "cannot be reached" in create(face, f"https://127.0.0.1:{closing.port}")
    # 0x16 begins a TLS handshake; nothing of the request was sent.
    assert len(closing.first) > 1 and {each[:1] for each in closing.first} == {b"\x16"}


def test_a_request_that_may_have_arrived_is_sent_once(
    face: Any, closing: Closing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openshift_ai_sdk.training._create.is_restricted", never)
    assert "may have succeeded" in create(face, f"http://127.0.0.1:{closing.port}")
    assert [each[:4] for each in closing.first] == [b"POST"]


async def never(*_: object) -> bool:
    return False


@pytest.mark.parametrize("code", [503, 504])
def test_a_creation_that_may_have_succeeded_is_not_repeated(small_client: Any, small: SmallAPI, code: int) -> None:
    small.fails = lambda method, path: (code, {"message": "timeout"}) if method == "POST" else None
    small.arrives = True
    with pytest.raises(ClusterUnreachableError, match=f"it answers {code}.*may have succeeded; check whether"):
        small_client.create_job("train", container_image="image", command="train.py")
    assert f"{JOBS}/train" in small.objects
    assert [method for method, _ in small.requests if method == "POST"] == ["POST"]


@pytest.mark.parametrize(("code", "headers"), [(429, {}), (503, {"Retry-After": "0"})])
def test_a_creation_that_was_turned_away_is_repeated(
    small_client: Any, small: SmallAPI, code: int, headers: dict[str, str]
) -> None:
    answers = [(code, {"message": "later"}), None]
    small.fails = lambda method, path: answers.pop(0) if method == "POST" else None
    small.headers = headers
    assert small_client.create_job("train", container_image="image", command="train.py").name == "train"


def test_what_is_only_read_is_asked_for_again(small_client: Any, small: SmallAPI) -> None:
    small_client.create_job("train", container_image="image", command="train.py")
    answers = [(504, {}), (503, {}), (500, {})]
    small.fails = lambda method, path: answers.pop(0) if answers else None
    assert small_client.get_job("train").name == "train" and not answers


@pytest.mark.parametrize("code", [503, 504])
def test_a_metrics_server_that_is_down_is_told_soon(small_client: Any, small: SmallAPI, code: int) -> None:
    job = small_client.create_job("train", container_image="image", command="train.py")
    small.fails = lambda method, path: (code, {"message": "unavailable"}) if "metrics.k8s.io" in path else None
    began = time.monotonic()
    with pytest.raises(NotSupportedError, match=r"metrics server .* does not answer \(.*unavailable"):
        job.get_usage()
    assert time.monotonic() - began < 8


def blocking() -> BlockingDriver:
    return BlockingDriver(Credentials(client.Configuration(host="http://127.0.0.1:1")))


def test_the_error_of_the_last_work_is_raised() -> None:
    tasks = blocking().tasks()
    put = tasks._items.put

    def put_late(item: Any) -> None:
        time.sleep(0.3)
        put(item)

    tasks._items.put = put_late  # type: ignore[method-assign] # the thread is interrupted here

    async def fail() -> None:
        raise ValueError("lost")

    async def read() -> list[Any]:
        async with tasks:
            tasks.start(fail())
            return [item async for item in tasks.items()]

    with pytest.raises(ValueError, match="lost"):
        run(read())


def test_a_server_that_does_not_answer_holds_nobody_up(small: SmallAPI) -> None:
    driver = BlockingDriver(Credentials(small.configuration()))
    small.fails = lambda method, path: time.sleep(10)  # type: ignore[func-returns-value]

    async def work(tasks: Any) -> None:
        async with tasks.driver.stream(Request("GET", JOBS), 20):
            await tasks.put("answered")

    async def leave() -> None:
        async with driver.tasks() as tasks:
            tasks.start(work(tasks))
            await driver.sleep(0.3)

    began = time.monotonic()
    run(leave())
    assert time.monotonic() - began < 5
