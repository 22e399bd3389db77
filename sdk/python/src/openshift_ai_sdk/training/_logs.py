"""Reads the logs of a job's pods: by rank, worker and time, and follows them without loss or repetition."""

from __future__ import annotations

import heapq
import re
import warnings
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from itertools import islice

from openshift_ai_sdk.training._apiserver import lines_of, opened
from openshift_ai_sdk.training._apiserver_errors import error_of, status_in
from openshift_ai_sdk.training._cluster import Cluster
from openshift_ai_sdk.training._driver import (
    ConnectionLostError,
    Driver,
    Json,
    RefusedError,
    Request,
    SilenceError,
    Tasks,
)
from openshift_ai_sdk.training._duration import parse_duration
from openshift_ai_sdk.training._interrupt import detachable
from openshift_ai_sdk.training._job_ref import Found, found_again, is_finished, selector_of
from openshift_ai_sdk.training._kept_logs import (
    MOST_INDEX,
    MOST_PART_DATA,
    DamagedLogsError,
    KeptLine,
    Part,
    each_line,
    missing_in,
    missing_in_complete,
    moment,
    parse_index,
    unpack,
)
from openshift_ai_sdk.training._kinds import POD, TRAIN_JOB
from openshift_ai_sdk.training._levels import NONE, Levels, parse_level
from openshift_ai_sdk.training._mask import CUT_MARGIN, Masker
from openshift_ai_sdk.training._trainer_runtime import runtime_of
from openshift_ai_sdk.training._value_rules import whole
from openshift_ai_sdk.training._wait_reports import watch_reports
from openshift_ai_sdk.training._watch import Change, watch
from openshift_ai_sdk.training.errors import (
    APIError,
    ClusterUnreachableError,
    InvalidJobError,
    JobNotFoundError,
    JobRefusedError,
    PermissionDeniedError,
    Problem,
    TrainingError,
)
from openshift_ai_sdk.training.models import JobStatus, LogLine

LONGEST_LINE = 256 << 10
# A stream that brings nothing for so many seconds is opened again, since a dead connection looks the same.
SILENCE = 20.0
# How long an object with complete logs may take, in seconds, how often it is asked for if that fails, and how many are
# fetched at once.
FETCH_TIMEOUT, FETCH_TRIES, FETCHES = 60.0, 3, 4
# How often the rest of a log that has ended is asked for when that fails.
MOST_FAILURES = 6
# What a kubelet answers in place of the log of a container that was removed, as if it were one.
LOG_GONE = b"unable to retrieve container logs for "

RankSet = int | str | Sequence[int]
Since = str | float | timedelta | datetime

# Tags that MPI's launchers and training libraries put before a rank's line:
#   [1,5]<stdout>: text        mpirun --tag-output (Open MPI 4), horovodrun
#   [1,5]<stdout>: text        mpirun --tag-output or --output tag (Open MPI 5); some versions write [prterun-x@1,5]
#   [5] text                   mpirun -prepend-rank (Intel MPI, MPICH)
#   [rank5]: text              PyTorch
TAGGED = re.compile(r"\[(?P<host>[^\]@,]*@)?(?:[^\],]*,)?(?P<rank>\d+)\]<std\w+>:?(?P<text>.*)", re.DOTALL)
NUMBERED = re.compile(r"\[(?P<named>rank)?(?P<rank>\d+)\](?P<colon>:?)(?: (?P<text>.*))?", re.DOTALL)
# A log line of a worker's agent about a rank.
AGENT = re.compile(r'\{"time":.*?,"rank":(?P<rank>\d+)')
# One that only reports what is as it should be.
ROUTINE = re.compile(r'\{(?="time":|"level":)(?=.*"level":"(?:DEBUG|INFO)")(?=.*"logger":"mpi-agent")')
# The options of mpirun that tag lines with their ranks, and what tags them by itself.
TAGS = re.compile(r"-tag-output|-prepend-rank|-output[ =]\S*tag|horovodrun")


@dataclass(frozen=True)
class Selection:
    """Which lines are wanted.

    Attributes:
        ranks: Lines of these ranks alone; None takes all.
        worker: Lines of this worker and of its ranks; None takes the launcher's log.
        launcher: Whether the job has a launcher. Without one, each worker has the output of its ranks alone.
        main: Without a launcher, lines of worker 0 alone.
        all_pods: Lines of all pods.
        pattern: Lines that it is found in; None takes all.
        since: The time of the first line; None takes all.
        until: The time of the last line; None takes all.
        level: The lowest level of a line; NONE takes all, also lines without a level.
        tail: How many last lines of each log are read; None reads all.
        untagged: For a worker, also lines in the launcher's log whose rank is unknown.
    """

    ranks: frozenset[int] | None = None
    worker: int | None = None
    launcher: bool = True
    main: bool = False
    all_pods: bool = False
    pattern: re.Pattern[str] | None = None
    since: datetime | None = None
    until: datetime | None = None
    level: int = NONE
    tail: int | None = None
    untagged: bool = False

    def reads(self, place: Place) -> bool:
        """Return whether the log of a pod may have selected lines. Most ranks write through the launcher."""
        if place.role == "launcher":
            return True
        if place.role != "worker":
            return False
        if not self.launcher and self.worker is None:
            return not self.main or place.index == 0
        return self.all_pods or self.ranks is not None or self.worker == place.index

    def takes(self, source: Place, line: LogLine) -> bool:
        """Return whether a line in the log of a pod is selected."""
        if self.ranks is not None and line.rank not in self.ranks:
            return False
        # Ranks are asked for what they write, not for how the agent starts and ends them.
        if (self.worker is not None or self.ranks is not None) and not self.all_pods and ROUTINE.match(line.text):
            return False
        if self.worker is not None:
            is_there = line.role == "worker" and line.index == self.worker
            is_maybe = self.untagged and is_untagged(line)
            return (is_there or is_maybe) and self._matches(line)
        if self.launcher and not self.all_pods and self.ranks is None and source.role != "launcher":
            return False
        return self._matches(line)

    def _matches(self, line: LogLine) -> bool:
        return self.pattern is None or self.pattern.search(line.text) is not None


def is_untagged(line: LogLine) -> bool:
    """Return whether a line came through the launcher and may be of any rank."""
    return line.role == "launcher" and line.rank is None


@dataclass(frozen=True)
class Place:
    """A pod of a job: its role, and its number from 0."""

    role: str
    index: int = 0


@dataclass
class Hosts:
    """How a job's ranks are spread over its pods, where MPI fills one host after another.

    The ranks that the agents report take precedence.
    """

    slots: int = 0
    ranks: int = 0
    launcher_runs: bool = False
    seen: dict[int, Place] = field(default_factory=dict)

    @classmethod
    def of(cls, found: Found) -> Hosts:
        """Return the layout in a job's report, or without a report that of its specification."""
        status = found.status
        if status.mpi and status.mpi.ranks and status.mpi.slots_per_worker and status.workers:
            slots, ranks = status.mpi.slots_per_worker, status.mpi.ranks
            return cls(slots, ranks, ranks == slots * (status.workers.wanted + 1))
        if found.object is None or found.ref.kind == TRAIN_JOB.kind:
            return cls()
        spec = found.object["spec"]
        slots, runs = spec.get("slotsPerWorker", 1), bool(spec.get("runLauncherAsWorker"))
        pods = (spec["mpiReplicaSpecs"].get("Worker") or {}).get("replicas") or 0
        return cls(slots, slots * (pods + runs), runs)

    @property
    def is_one(self) -> bool:
        """Whether all ranks run on one worker."""
        return self.slots > 0 and not self.launcher_runs and self.ranks == self.slots

    def place(self, rank: int, otherwise: Place) -> Place:
        """Return where a rank runs."""
        if rank in self.seen:
            return self.seen[rank]
        if not self.slots:
            return otherwise
        host = rank // self.slots - self.launcher_runs
        return Place("launcher") if host < 0 else Place("worker", host)

    def only_rank(self, place: Place) -> int | None:
        """Return the rank of a pod that has room for one alone."""
        rank = place.index + self.launcher_runs
        return rank if self.slots == 1 and place.role == "worker" and rank < self.ranks else None

    def read(self, source: Place, pod: str, text: str, time: datetime | None) -> LogLine:
        """Return a line in the log of a pod with the rank that wrote it, and where."""
        rank, rest = rank_of(text)
        if rank is not None and (not self.ranks or rank < self.ranks):
            place = self.place(rank, source)
            return LogLine(rest, pod, place.role, place.index, rank, time)
        rank = None
        if source.role == "worker":
            found = AGENT.match(text)
            rank = int(found["rank"]) if found else self.only_rank(source)
            if found and rank is not None and '"msg":"rank started"' in text:
                self.seen[rank] = source
        return LogLine(text, pod, source.role, source.index, rank, time)


def rank_of(line: str) -> tuple[int | None, str]:
    """Return the rank in a line's tag, and the line without the tag; None if it has no tag.

    Example:
        >>> rank_of("[1,5]<stdout>:epoch 1")
        (5, 'epoch 1')
    """
    if not line.startswith("["):
        return None, line
    tagged = TAGGED.match(line)
    if tagged:
        text = tagged["text"]
        # Open MPI 5 adds a blank, version 4 does not. Programs indent by an even number of blanks.
        blanks = len(text) - len(text.lstrip(" "))
        return int(tagged["rank"]), text.removeprefix(" ") if tagged["host"] or blanks % 2 else text
    numbered = NUMBERED.fullmatch(line)
    if numbered and (numbered["named"] or not numbered["colon"]):
        return int(numbered["rank"]), numbered["text"] or ""
    return None, line


@dataclass
class Resume:
    """Knows how far a log was read, so that it can be read on after a cut: no line twice, and none lost.

    The API takes whole seconds to read from, lines may have the same time, and a program that writes to two pipes has
    its lines a little out of order. So the last two seconds are asked for again, and as many lines are skipped.
    """

    middle: bool = False
    first: datetime | None = None
    newest: datetime | None = None
    second: datetime | None = None
    last: int = 0
    before: int = 0
    skip: int = 0
    skipped: int = 0

    @property
    def since(self) -> datetime | None:
        """Where to read on; None at the beginning."""
        return None if self.second is None else self.second - timedelta(seconds=1)

    def again(self) -> None:
        """Prepare to read what there is since then."""
        self.skip, self.skipped = self.last + self.before, 0

    def is_new(self, time: datetime) -> bool:
        """Take note of a line by its time, and return whether it was not read before."""
        if self.skip and self.newest is not None:
            if self.middle and self.first is not None and time < self.first:
                return False
            if time <= self.newest:
                self.skip -= 1
                self.skipped += 1
                return False
            # The log was restarted meanwhile, without the lines that were read.
            self.skip, self.last, self.before = 0, 0, self.skipped
        second = time.replace(microsecond=0)
        if second == self.second:
            self.last += 1
        elif self.second is not None and second == self.second + timedelta(seconds=1):
            self.second, self.last, self.before = second, 1, self.last
        elif self.second is None or second > self.second:
            self.second, self.last, self.before = second, 1, 0
        elif second == self.since:
            self.before += 1
        self.first = self.first or time
        self.newest = time if self.newest is None else max(self.newest, time)
        return True


@dataclass
class Run:
    """One run of a container, from its start to its end. A container that is started again has another one."""

    pod: str
    container: str
    place: Place
    previous: bool = False
    # Set by the task that watches the pods, read by the task that reads the log.
    ended: bool = False
    resume: Resume = field(default_factory=Resume)
    masker: Masker = field(default_factory=Masker)
    levels: Levels = field(default_factory=Levels)


@dataclass
class Done:
    """Marks the end of a log."""

    run: Run


STAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)")


@dataclass
class StoredLog:
    """The complete log of a pod.

    Attributes:
        all_parts: All of its objects.
        parts: Those that are still to be read, each with how many of its first lines are left out.
        lines: The selected lines of the object before them that are still to be read.
    """

    pod: str
    source: Place
    all_parts: Sequence[Part]
    parts: deque[tuple[Part, int]] = field(default_factory=deque)
    levels: Levels = field(default_factory=Levels)
    lines: Iterator[LogLine] = field(default_factory=lambda: iter(()))

    def select(self, selection: Selection) -> None:
        """Find the objects that may have selected lines."""
        all_lines = sum(part.lines for part in self.all_parts)
        skip = 0 if selection.tail is None else max(0, all_lines - selection.tail)
        for part in self.all_parts:
            if skip >= part.lines or (selection.since is not None and part.last < selection.since):
                skip = max(0, skip - part.lines)
                continue
            if selection.until is not None and part.first > selection.until:
                return
            self.parts.append((part, skip))
            skip = 0


class Ahead:
    """Fetches objects, a few at once, in the order in which they are probably needed."""

    def __init__(self, tasks: Tasks[tuple[int, bytes]], fetch: Fetch, parts: Sequence[Part]) -> None:
        self._tasks, self._fetch, self._parts = tasks, fetch, parts
        self._places = {id(part): place for place, part in enumerate(parts)}
        self._started = 0
        self._ready: dict[int, bytes] = {}

    async def get(self, part: Part) -> bytes:
        """Return the data of an object, once."""
        place = self._places[id(part)]
        while self._started < min(place + FETCHES, len(self._parts)):
            self._tasks.start(self._hand_over(self._started))
            self._started += 1
        while place not in self._ready:
            async with aclosing(self._tasks.items()) as items:
                async for fetched, data in items:
                    self._ready[fetched] = data
                    if fetched == place:
                        break
        return self._ready.pop(place)

    async def _hand_over(self, place: int) -> None:
        await self._tasks.put((place, await self._fetch(self._parts[place].url)))


Item = list[LogLine] | Change | Done
Fetch = Callable[[str], Awaitable[bytes]]
Take = Callable[[Iterable[LogLine]], None]
Flush = Callable[[], Awaitable[None]]


class Reader:
    """Reads the logs of one job."""

    def __init__(self, cluster: Cluster, found: Found, selection: Selection) -> None:
        self.cluster = cluster
        self.ref, self.object = found.ref, found.object
        self.created = str(((found.object or {}).get("metadata") or {}).get("creationTimestamp", ""))
        self.status = found.status
        self.report_logs = ((found.report or {}).get("status") or {}).get("logs") or {}
        self.complete_logs = ((found.report or {}).get("status") or {}).get("completeLogs") or {}
        self.selection = selection
        self.hosts = Hosts.of(found)
        self.command = command_in(found.object)
        # Whether the log that ranks write to has lines whose rank is known, and others.
        self.tagged = self.untagged = False
        # Pods of this name are those of another job.
        self.replaced = found.replaced
        self.over = found.object is None or is_finished(found.object) or self.status.is_finished
        self.runs: dict[str, Run] = {}
        self.launchers: dict[str, int] = {}

    async def read(self) -> list[LogLine]:
        """Return what there is, in the order of time; of pods that are gone, what was kept."""
        self.over = True
        await self._find_launcher()
        self.selection = replace(self.selection, untagged=self.selection.worker is not None)
        lines = await self._read_complete()
        if lines is None:
            logs = await self._read_pods()
            if len(logs) == 1 and logs[0] and all(line.time is None for line in logs[0]):
                return logs[0]
            earliest = datetime.min.replace(tzinfo=timezone.utc)
            lines = list(heapq.merge(*logs, key=lambda line: line.time or earliest))
        if self.selection.untagged and self.tagged:
            return [line for line in lines if not is_untagged(line)]
        self._warn_of_tags(self.untagged and not self.tagged)
        return lines

    async def _find_launcher(self) -> None:
        """Find out whether the job has a launcher: TrainJobs of runtimes without MPI have none."""
        if self.ref.kind != TRAIN_JOB.kind:
            return
        status, job = self.status, self.object
        has = True
        if status.phase is not None:
            # Only jobs of MPI have an implementation.
            has = bool(status.mpi and status.mpi.implementation) or bool(status.attempts)
        elif job is not None:
            with suppress(PermissionDeniedError):
                runtime = await runtime_of(self.cluster, job)
                has = runtime is None or (runtime["spec"].get("mlPolicy") or {}).get("mpi") is not None
        self.selection = replace(self.selection, launcher=has)

    async def _read_pods(self) -> list[list[LogLine]]:
        """Return the lines of each pod; of those that are gone, what the report has kept."""
        pods, _ = await self.cluster.api.list(POD, self.ref.namespace, selector_of(self.ref))
        logs = []
        for pod in sorted(pods, key=lambda pod: (pod["metadata"]["creationTimestamp"], pod["metadata"]["name"])):
            for run in self.new_runs(pod):
                run.ended = True
                lines: list[LogLine] = []
                await self._follow(self.cluster.api.driver, run, lines.extend)
                logs.append(lines)
        if self.status.is_finished:
            logs.append(self.recall({pod["metadata"]["name"] for pod in pods}))
        return logs

    @property
    def _has_complete(self) -> bool:
        """Whether the complete logs of the job can be read from a bucket."""
        complete = self.complete_logs
        if not self.status.is_finished or not complete.get("index") or not complete.get("expires"):
            return False
        return moment(complete["expires"]) > self.cluster.api.driver.now()

    async def _read_complete(self) -> list[LogLine] | None:
        """Return the lines in the complete logs of a job that has ended; None if they cannot be read."""
        if not self._has_complete:
            return None
        try:
            return [line async for line in self._each_complete()]
        except (ConnectionLostError, DamagedLogsError) as error:
            self._give_up_complete(error)
            return None

    def _give_up_complete(self, error: Exception) -> None:
        """Warn that the complete logs are not what is read next, and do not try again."""
        text = f"{self.ref}: the complete logs cannot be read ({error}); these are the lines of pods and of the report"
        warnings.warn(text, stacklevel=2)
        self.tagged = self.untagged = False
        self.complete_logs = {}

    async def _follow_complete(self) -> AsyncGenerator[LogLine, None]:
        """Yield the lines in the complete logs as they are read; if none can be, those of pods and the report."""
        begun = False
        try:
            async with aclosing(self._each_complete()) as lines:
                async for line in lines:
                    begun = True
                    yield line
        except (ConnectionLostError, DamagedLogsError) as error:
            if begun:
                raise TrainingError(f"{self.ref}: the rest of the complete logs cannot be read: {error}") from error
            self._give_up_complete(error)
            for line in await self.read():
                yield line
            return
        self._warn_of_tags(self.untagged and not self.tagged)

    async def _each_complete(self) -> AsyncGenerator[LogLine, None]:
        """Yield the selected lines of the complete logs in the order of time.

        An object is read when its first line is the next one, so that few are in memory.
        """
        places = {pod.name: Place(pod.role, pod.index) for pod in self.status.pods}
        index = parse_index(await self._fetch(self.cluster.api.driver, self.complete_logs["index"], MOST_INDEX))
        logs = [StoredLog(pod, places.get(pod, Place("launcher")), parts) for pod, parts in index]
        logs = [log for log in logs if self.selection.reads(log.source)]
        for log in logs:
            log.select(self.selection)
        wanted = sorted((part for log in logs for part, _ in log.parts), key=lambda part: part.first)
        async with self.cluster.api.driver.tasks() as tasks:
            ahead = Ahead(tasks, lambda url: self._fetch(tasks.driver, url, MOST_PART_DATA), wanted)
            # The next line of each log, or None for its next object.
            heads: list[tuple[datetime, int, LogLine | None]]
            heads = [(log.parts[0][0].first, number, None) for number, log in enumerate(logs) if log.parts]
            heapq.heapify(heads)
            while heads:
                _, number, line = heads[0]
                log = logs[number]
                if line is not None:
                    yield line
                else:
                    part, skip = log.parts.popleft()
                    log.lines = self._selected(log, each_line(await ahead.get(part)), skip)
                following = next(log.lines, None)
                if following is not None:
                    heapq.heapreplace(heads, (following.time or part.first, number, following))
                elif log.parts:
                    heapq.heapreplace(heads, (log.parts[0][0].first, number, None))
                else:
                    heapq.heappop(heads)
        if missing := missing_in_complete(self.complete_logs):
            warnings.warn(f"{self.ref}: {missing}", stacklevel=2)

    async def _fetch(self, driver: Driver, url: str, most: int) -> bytes:
        """Return the object at a signed address; what fails for a moment is asked for again."""
        pauses = self.cluster.api.retry.pauses()
        for left in reversed(range(FETCH_TRIES)):
            try:
                response = await driver.fetch(url, most, FETCH_TIMEOUT)
            except RefusedError:
                raise
            except ConnectionLostError:
                if not left:
                    raise
            else:
                if response.status == 200:
                    return response.body
                if not left or (response.status < 500 and response.status != 429):
                    raise ConnectionLostError(f"the server answers with the status {response.status}")
            await driver.sleep(next(pauses))
        raise AssertionError("the last try returns or raises")

    def _selected(self, log: StoredLog, stored: Iterator[KeptLine], skip: int) -> Iterator[LogLine]:
        """Yield the selected lines of an object, without so many first ones."""
        for _, time, text in islice(stored, skip, None):
            line = self.hosts.read(log.source, log.pod, text, time)
            if not self._has_level(log.levels, line) or not self._is_within(time):
                continue
            self._note_rank(log.source, line)
            if self.selection.takes(log.source, line):
                yield line

    def _note_rank(self, source: Place, line: LogLine) -> None:
        """Take note of whether the rank of a line is known, if ranks write to this log."""
        if source.role == "launcher" or not self.selection.launcher:
            self.tagged = self.tagged or line.rank is not None
            self.untagged = self.untagged or line.rank is None

    def _warn_of_tags(self, is_unsure: bool) -> None:
        """Warn that it is unknown which lines are those of the wanted ranks or worker."""
        worker, ranks = self.selection.worker, self.selection.ranks
        if (worker is None and ranks is None) or not is_unsure or self.hosts.is_one or TAGS.search(self.command):
            return
        if not self.selection.launcher:
            if worker is None and self.hosts.slots != 1:
                text = f"no line of {self.ref} is tagged with its rank, so that none is selected"
                warnings.warn(f"{text}; worker_index selects the lines of a worker", stacklevel=2)
            return
        what = f"all lines of the launcher are taken as worker {worker}'s" if ranks is None else "none is selected"
        warnings.warn(
            f"no line of {self.ref} is tagged with its rank, so that {what}; to have lines tagged, use "
            "mpirun --tag-output (with Intel MPI and MPICH -prepend-rank) in the job's command",
            stacklevel=2,
        )

    def recall(self, there: set[str]) -> list[LogLine]:
        """Return the ends of the logs that the report has kept, but those of pods that still exist."""
        places = {pod.name: Place(pod.role, pod.index) for pod in self.status.pods}
        kept = self._kept()
        selection = self.selection
        if not there and all(line.time is None for line in kept):
            # Of the little that is left all is shown, unless some of it was asked for.
            selection = replace(selection, all_pods=selection.worker is None, untagged=False)
        levels: dict[str, Levels] = {}
        lines = []
        for pod, time, text in last_of(kept, selection.tail):
            source = places.get(pod, Place("launcher"))
            line = self.hosts.read(source, pod, text, time)
            if not self._has_level(levels.setdefault(pod, Levels()), line) or pod in there or not self._is_within(time):
                continue
            self._note_rank(source, line)
            if selection.reads(source) and selection.takes(source, line):
                lines.append(line)
        if lines and (missing := missing_in(self.report_logs)):
            warnings.warn(f"{self.ref}: {missing}", stacklevel=2)
        return lines

    def _kept(self) -> list[KeptLine]:
        """Return all lines in the report: those of pods whose logs it does not have come first, without times."""
        try:
            lines = unpack(self.report_logs)
        except DamagedLogsError as error:
            warnings.warn(f"{self.ref}: {error}", stacklevel=2)
            lines = []
        has = {line.pod for line in lines}
        tail = []
        for entry in self.status.failure.log_tail if self.status.failure else []:
            pod, _, text = entry.removeprefix("[").partition("]")
            if pod not in has:
                tail.append(KeptLine(pod, None, text.removeprefix(" ")))
        return tail + lines

    def _is_within(self, time: datetime | None) -> bool:
        """Return whether a time is one of those that are wanted; one that is unknown may be."""
        first, last = self.selection.since, self.selection.until
        return time is None or ((first is None or time >= first) and (last is None or time <= last))

    def _has_level(self, levels: Levels, line: LogLine) -> bool:
        """Return whether the next line of a log has the wanted level."""
        lowest = self.selection.level
        return lowest == NONE or levels.of(line.rank, line.text) >= lowest

    async def follow(self) -> AsyncGenerator[LogLine, None]:
        """Yield lines as they come, until the job has ended and all is read.

        Watches and readers run side by side and hand over what they find here, where all decisions are made.
        """
        await self._find_launcher()
        if self.over:
            # The lines of a worker are known only when all of the launcher's are.
            if self._has_complete and self.selection.worker is None:
                async with aclosing(self._follow_complete()) as lines:
                    async for line in lines:
                        yield line
                return
            for line in await self.read():
                yield line
            return
        # Which lines have tags is not known before they come.
        is_unsure = bool(self.command) and not TAGS.search(self.command)
        self.selection = replace(self.selection, untagged=is_unsure and self.selection.worker is not None)
        self._warn_of_tags(bool(self.command))
        again = f"follow again with {found_again(self.ref)}.get_logs(follow=True)"
        with detachable(f"{self.ref} keeps running", again):
            async with aclosing(self._follow_pods()) as lines:
                async for line in lines:
                    yield line

    async def _follow_pods(self) -> AsyncGenerator[LogLine, None]:
        async with self.cluster.api.driver.tasks() as tasks:
            cluster = self.cluster.through(tasks.driver)
            tasks.start(forward(tasks, watch(cluster.api, POD, self.ref.namespace, selector_of(self.ref))))
            tasks.start(forward(tasks, watch_reports(cluster, self.ref)))
            open_: set[int] = set()
            async with aclosing(tasks.items()) as items:
                async for item in items:
                    if isinstance(item, list):
                        for line in item:
                            yield line
                        continue
                    if isinstance(item, Done):
                        open_.discard(id(item.run))
                    elif isinstance(item, Change) and item.type != "SYNCED":
                        started = await self._note(cluster, item)
                        for run in started:
                            open_.add(id(run))
                            tasks.start(self._hand_over(tasks, run))
                    if self.over and not open_:
                        return

    async def _note(self, cluster: Cluster, change: Change) -> list[Run]:
        """Take note of a change of a pod or of the report, and return the runs that have begun."""
        item = change.object
        if item["kind"] == POD.kind:
            if change.type == "DELETED":
                self._end_runs(item["metadata"]["uid"])
                return []
            return self.new_runs(item)
        if self.over or not self.ref.is_meant(item) or not JobStatus.from_report(item).is_finished:
            return []
        # What has begun since the last that was heard of the pods.
        self.over = True
        pods, _ = await cluster.api.list(POD, self.ref.namespace, selector_of(self.ref))
        started = [run for pod in pods for run in self.new_runs(pod)]
        for uid in {key.partition("/")[0] for key in self.runs} - {pod["metadata"]["uid"] for pod in pods}:
            self._end_runs(uid)
        return started

    def _end_runs(self, uid: str) -> None:
        for key, run in self.runs.items():
            if key.startswith(f"{uid}/"):
                run.ended = True

    async def _hand_over(self, tasks: Tasks[Item], run: Run) -> None:
        """Read a run's log and hand its lines over."""
        lines: list[LogLine] = []

        def take(more: Iterable[LogLine]) -> None:
            lines.extend(more)

        async def flush() -> None:
            if lines:
                await tasks.put(lines.copy())
                lines.clear()

        await self._follow(tasks.driver, run, take, flush)
        await tasks.put(Done(run))

    def new_runs(self, pod: Json) -> list[Run]:
        """Return the runs of a pod's main container that were not seen before, and take note of those that ended."""
        place = self.place_of(pod)
        if place is None or not self.selection.reads(place):
            return []
        now, before, ended = runs_of(pod)
        started = []
        # If the next run has not started, the previous one shows what happened.
        for key, previous in ((now, False), (before if now is None else None, True)):
            if key is None:
                continue
            run = self.runs.get(key)
            if run is None:
                run = Run(pod["metadata"]["name"], main_container(pod), place, previous)
                run.resume.middle = self.selection.since is not None or self.selection.tail is not None
                run.masker = Masker.of(whole=not run.resume.middle)
                self.runs[key] = run
                started.append(run)
            run.ended = run.ended or previous or ended
        uid = pod["metadata"]["uid"]
        for key, run in self.runs.items():
            if key.startswith(f"{uid}/") and key != now:
                run.ended = True
                run.previous = key == before
        return started

    def place_of(self, pod: Json) -> Place | None:
        """Return which of the job's pods one is; None for one of another job of the same name."""
        meta = pod["metadata"]
        labels = meta.get("labels") or {}
        if self.replaced or str(meta["creationTimestamp"]) < self.created:
            return None
        if self.ref.kind == TRAIN_JOB.kind:
            role = labels.get("jobset.sigs.k8s.io/replicatedjob-name", "")
            index = labels.get("batch.kubernetes.io/job-completion-index") or "0"
            role = "worker" if role != "launcher" and not role.endswith("-initializer") else role
        else:
            role, index = labels.get("training.kubeflow.org/job-role", ""), meta["name"].rpartition("-")[2]
        if role == "launcher":
            return Place(role, self.launchers.setdefault(meta["uid"], len(self.launchers)))
        return Place(role, int(index)) if index.isdigit() else None

    async def _follow(self, driver: Driver, run: Run, take: Take, flush: Flush | None = None) -> None:
        """Read a run's log to its end, however often the connection breaks."""
        pauses, failures = self.cluster.api.retry.pauses(), 0
        while True:
            follow = not run.ended and not self.over
            before = run.resume.newest
            try:
                if await self._read_once(driver, run, follow, take, flush):
                    if not follow:
                        return
                else:
                    failures += 1
            except (JobNotFoundError, _LogGoneError, JobRefusedError):
                return
            except (ClusterUnreachableError, ConnectionLostError, APIError):
                failures += 1
            finally:
                if flush is not None:
                    await flush()
            if run.resume.newest != before:
                pauses, failures = self.cluster.api.retry.pauses(), 0
            if not follow and failures >= MOST_FAILURES:
                warnings.warn(f"the log of pod {run.pod} could not be read to its end", stacklevel=2)
                return
            if not (follow and (run.ended or self.over)):
                await driver.sleep(next(pauses))

    async def _read_once(self, driver: Driver, run: Run, follow: bool, take: Take, flush: Flush | None) -> bool:
        """Read a log from where it was left, and return whether it was read up to where the server has ended it."""
        resume, selection = run.resume, self.selection
        resume.again()
        query: dict[str, str | int | None] = {
            "container": run.container,
            "timestamps": "true",
            "follow": "true" if follow else None,
            "previous": "true" if run.previous else None,
        }
        since = resume.since or selection.since
        if since is not None:
            query["sinceTime"] = since.strftime("%Y-%m-%dT%H:%M:%SZ")
        if resume.since is None:
            query["tailLines"] = selection.tail
        request = Request("GET", f"{POD.path(self.ref.namespace, run.pod)}/log", query)
        async with opened(driver, request, SILENCE) as stream:
            if stream.status >= 400:
                body = b"".join([chunk async for chunk in stream.chunks()])
                # The API server answers with a Status, a kubelet with text.
                text = status_in(body).get("message") or body.decode(errors="replace")
                raise error_of(stream.status, {"message": text, "details": {"name": run.pod}}, request, "")
            try:
                async with aclosing(lines_of(stream.chunks(), LONGEST_LINE + CUT_MARGIN)) as lines:
                    async for raw in lines:
                        # A followed log that ends within a line was cut; it is read again.
                        if (raw.endswith(b"\n") or not follow) and not self._take(run, raw.rstrip(b"\r\n"), take):
                            return True
                        if flush is not None:
                            await flush()
            except SilenceError:
                return False
        return True

    def _take(self, run: Run, raw: bytes, take: Take) -> bool:
        """Take a line, and return whether any of the lines after it can be wanted."""
        stamp, _, text = raw.partition(b" ")
        time = parse_time(stamp.decode(errors="replace"))
        if time is None:
            if raw.startswith(LOG_GONE):
                raise _LogGoneError
            time, text = run.resume.newest, raw
        elif not run.resume.is_new(time) or (self.selection.since is not None and time < self.selection.since):
            return True
        elif self.selection.until is not None and time > self.selection.until:
            return False
        masked = run.masker.line(text.decode(errors="replace"))[:LONGEST_LINE]
        line = self.hosts.read(run.place, run.pod, masked, time)
        self._note_rank(run.place, line)
        if self._has_level(run.levels, line) and self.selection.takes(run.place, line):
            take([line])
        return True


def last_of(lines: Sequence[KeptLine], most: int | None) -> list[KeptLine]:
    """Return so many last lines of each pod; None returns all."""
    if most is None:
        return list(lines)
    count: dict[str, int] = {}
    last = []
    for line in reversed(lines):
        count[line.pod] = count.get(line.pod, 0) + 1
        if count[line.pod] <= most:
            last.append(line)
    return last[::-1]


def command_in(job: Json | None) -> str:
    """Return the command of a job's ranks as text; empty if it is unknown."""
    if job is None:
        return ""
    spec = job["spec"]
    if job["kind"] == TRAIN_JOB.kind:
        holder = spec.get("trainer") or {}
    else:
        template = (spec["mpiReplicaSpecs"].get("Launcher") or {}).get("template") or {}
        holder = ((template.get("spec") or {}).get("containers") or [{}])[0]
    return " ".join(map(str, [*(holder.get("command") or []), *(holder.get("args") or [])]))


class _LogGoneError(Exception):
    """The kubelet has removed the log."""


async def forward(tasks: Tasks[Item], watched: AsyncGenerator[Change, None]) -> None:
    """Hand over what a watch yields."""
    async with aclosing(watched) as changes:
        async for change in changes:
            await tasks.put(change)


def runs_of(pod: Json) -> tuple[str | None, str | None, bool]:
    """Return the keys of a main container's present run and of the one before, and whether the first has ended."""
    uid, phase = pod["metadata"]["uid"], (pod.get("status") or {}).get("phase")
    now = before = None
    ended = phase in ("Failed", "Succeeded")
    for status in (pod.get("status") or {}).get("containerStatuses") or []:
        if status["name"] != main_container(pod):
            continue
        state, restarts = status.get("state") or {}, status.get("restartCount", 0)
        terminated, last = state.get("terminated"), (status.get("lastState") or {}).get("terminated")
        if "running" in state:
            now = f"{uid}/{status.get('containerID') or restarts}"
        elif terminated and (terminated.get("containerID") or terminated.get("startedAt")):
            now, ended = f"{uid}/{terminated.get('containerID') or restarts}", True
        if last:
            # A container that waits to be started again has not been counted again.
            before = f"{uid}/{last.get('containerID') or restarts - (now is not None)}"
    return now, before, ended


def main_container(pod: Mapping[str, Json]) -> str:
    """Return the name of a pod's main container."""
    named = (pod["metadata"].get("annotations") or {}).get("kubectl.kubernetes.io/default-container")
    return str(named or pod["spec"]["containers"][0]["name"])


def parse_time(text: str) -> datetime | None:
    """Return a time as kubelets write it, with nanoseconds; None if it is none."""
    found = STAMP.fullmatch(text)
    if found is None:
        return None
    second = second_of(found[1], found[3])
    return second and second.replace(microsecond=int((found[2] or "0").ljust(6, "0")[:6]))


@lru_cache(maxsize=64)
def second_of(text: str, zone: str) -> datetime | None:
    """Return a whole second in UTC; the lines of a log share most of them. None if it is none."""
    try:
        return datetime.fromisoformat(text + ("+00:00" if zone == "Z" else zone)).astimezone(timezone.utc)
    except ValueError:
        return None


def problems_of(
    *,
    ranks: object = None,
    worker_index: object = None,
    all_pods: object = False,
    since: object = None,
    until: object = None,
    level: object = None,
    tail: object = None,
    pattern: object = None,
    follow: object = False,
) -> list[Problem]:
    """Return what is wrong with the arguments of ``get_logs``."""
    problems = []
    try:
        if ranks is not None:
            parse_ranks(ranks)  # type: ignore[arg-type] # what they are not is an error
    except ValueError as error:
        problems.append(Problem("ranks", str(error)))
    for name, value in (("worker_index", worker_index), ("tail", tail)):
        number = whole(value)
        if value is not None and (number is None or number < 0):
            problems.append(Problem(name, f"{value!r} is not allowed; use 0 or more"))
    if worker_index is not None and all_pods:
        problems.append(Problem("all_pods", "cannot be combined with worker_index; use one of them"))
    for name, value in (("since", since), ("until", until)):
        try:
            if value is not None and not isinstance(value, datetime):
                parse_duration(value)  # type: ignore[arg-type]
        except ValueError:
            text = f"{value!r} is not allowed; use seconds, text such as '10m', or a datetime"
            problems.append(Problem(name, text))
    if until is not None and follow:
        problems.append(Problem("until", "cannot be combined with follow; omit one of them"))
    try:
        if level is not None:
            parse_level(level)
    except ValueError as error:
        problems.append(Problem("level", str(error)))
    try:
        if pattern is not None:
            re.compile(pattern)  # type: ignore[call-overload]
    except (TypeError, re.error) as error:
        problems.append(Problem("pattern", f"{pattern!r} is not a regular expression: {error}"))
    return problems


def select(
    now: datetime,
    *,
    ranks: RankSet | None = None,
    worker_index: int | None = None,
    all_pods: bool = False,
    since: Since | None = None,
    until: Since | None = None,
    level: str | None = None,
    tail: int | None = None,
    pattern: str | None = None,
) -> Selection:
    """Return the selection of some arguments of ``get_logs``, which were checked."""
    begin, end = _moment(since, now), _moment(until, now)
    if begin is not None and end is not None and end < begin:
        raise InvalidJobError([Problem("until", f"{end:%Y-%m-%dT%H:%M:%SZ} is before since; use a later time")])
    return Selection(
        ranks=None if ranks is None else parse_ranks(ranks),
        worker=worker_index,
        all_pods=all_pods,
        pattern=None if pattern is None else re.compile(pattern),
        since=begin,
        until=end,
        level=NONE if level is None else parse_level(level),
        tail=tail,
    )


def _moment(time: Since | None, now: datetime) -> datetime | None:
    """Return a time, or how long ago it was, as a time."""
    if time is None or isinstance(time, datetime):
        return time and time.astimezone(timezone.utc)
    return now - timedelta(seconds=parse_duration(time))


def parse_ranks(ranks: RankSet) -> frozenset[int]:
    """Return ranks: a number, a list of numbers, or text such as ``0,4-7``.

    Example:
        >>> sorted(parse_ranks("0,4-7"))
        [0, 4, 5, 6, 7]
    """
    problem = ValueError(f"{ranks!r} is not allowed; use numbers from 0, such as 3, [0, 4] or '0,4-7'")
    if isinstance(ranks, str):
        found: set[int] = set()
        for part in ranks.split(","):
            bounds = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", part)
            if bounds is None or int(bounds[2] or bounds[1]) < int(bounds[1]):
                raise problem
            found.update(range(int(bounds[1]), int(bounds[2] or bounds[1]) + 1))
        return frozenset(found)
    try:
        numbers = [ranks] if isinstance(ranks, int) else list(ranks)
    except TypeError:
        raise problem from None
    if not numbers or any(whole(number) is None or number < 0 for number in numbers):
        raise problem
    return frozenset(numbers)
