"""Jobs, lists and findings as notebooks show them. All text is escaped: names and messages are not ours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from openshift_ai_sdk.training.models import Finding, JobStatus, LogLine, TrainingPoint

# Colours that can be read on white and on black: notebooks do not tell which one they use.
COLOURS = {"Succeeded": "#368a2f", "Failed": "#df3a2d", "Running": "#2b7bdc"}
OTHER = "#777b80"


def badge(phase: object) -> str:
    """Return a phase as a coloured word."""
    word = str(phase) if phase is not None else "Unknown"
    return f'<b style="color:{COLOURS.get(word, OTHER)}">{escape(word)}</b>'


def state(of: JobStatus) -> str:
    """Return a phase with the rest of the status, such as the progress."""
    if of.phase is None:
        return escape(str(of))
    return badge(of.phase) + escape(str(of).removeprefix(str(of.phase)))


def workers(of: JobStatus) -> str:
    """Return how many workers are ready, or of a job that has ended how many there were; empty if unknown."""
    if of.workers is None:
        return ""
    if of.is_finished:
        return str(of.workers.wanted)
    return of.workers.summary or f"{of.workers.ready}/{of.workers.wanted}"


def table(rows: Iterable[Sequence[str]], header: Sequence[str] = ()) -> str:
    """Return a table of cells that are HTML already."""
    left = 'style="text-align:left;vertical-align:top"'
    head = "".join(f"<th {left}>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td {left}>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table>{f'<tr>{head}</tr>' if head else ''}{body}</table>"


def code(text: str) -> str:
    """Return code on lines of its own, broken where it is too long."""
    return f'<pre style="white-space:pre-wrap;overflow-wrap:anywhere;margin:0.2em 0">{escape(text)}</pre>'


def place_of(status: JobStatus) -> str:
    """Return where a job failed, in a sentence; empty if unknown."""
    failure = status.failure
    if failure is None or not failure.pod:
        return ""
    text = f"It began in pod {failure.pod}"
    text += f", with rank {failure.rank}" if failure.rank is not None else ""
    node = next((pod.node for pod in status.pods if pod.name == failure.pod and pod.node), None)
    text += f", on node {node}" if node else ""
    if failure.exit_code is not None:
        text += f"; it ended with code {failure.exit_code}"
        text += f", which is signal {failure.exit_code - 128}" if 128 < failure.exit_code < 192 else ""
    return text + "."


def finding(found: Finding, calls: Sequence[str | None] = ()) -> str:
    """Return a finding with its evidence and remedies, each with the call that applies it if there is one."""
    parts = [f"<p><b>{escape(found.code)}</b>: {escape(found.summary)}</p>"]
    if found.evidence:
        parts.append("<ul>" + "".join(f"<li>{escape(text)}</li>" for text in found.evidence) + "</ul>")
    items = []
    for number, remedy in enumerate(found.remedies):
        applied = (calls[number] if number < len(calls) else None) or remedy.action
        items.append(f"<li>{escape(remedy.text)}{code(applied) if applied else ''}</li>")
    if items:
        parts.append(f"<p>What to do:</p><ol>{''.join(items)}</ol>")
    return "".join(parts)


def where(namespace: str, cluster: str) -> str:
    """Return a namespace and a cluster as the end of a sentence; empty if both are unknown."""
    text = f" in the namespace <b>{escape(namespace)}</b>" if namespace else ""
    return text + (f" of {escape(cluster)}" if cluster else "")


def status(of: JobStatus, calls: Sequence[str | None] = ()) -> str:
    """Return a job's status: where it is, its phase, its workers, and what is wrong with it.

    Args:
        of: The status.
        calls: For each remedy of the cause the call that applies it, or None.
    """
    rows = [["Phase", state(of)]]
    if workers(of):
        rows.append(["Workers" if of.is_finished else "Workers ready", escape(workers(of))])
    if of.message and not (of.findings and of.findings[0].summary == of.message):
        rows.append(["Message", escape(of.message)])
    place = place_of(of)
    causes = "".join(finding(found, calls if number == 0 else ()) for number, found in enumerate(of.findings))
    return title(of) + table(rows) + (f"<p>{escape(place)}</p>" if place else "") + causes


def not_created(of: JobStatus) -> str:
    """Return a job that only Python knows."""
    return f"{title(of)}<p>The job is not created yet; call <code>create()</code>.</p>"


def title(of: JobStatus) -> str:
    """Return which job it is, and where."""
    return f"<p><b>{escape(of.job)}</b>{where(of.namespace, of.cluster)}</p>"


def jobs(all_of: Sequence[JobStatus]) -> str:
    """Return a list of jobs as a table; what all jobs have in common is written above it."""
    if not all_of:
        return "<p>There are no jobs.</p>"
    places = {(of.namespace, of.cluster) for of in all_of}
    clusters = {of.cluster for of in all_of}
    namespace, cluster = next(iter(places)) if len(places) == 1 else ("", clusters.pop() if len(clusters) == 1 else "")
    rows = [
        [
            *([] if namespace else [escape(of.namespace or "-")]),
            f'<span style="white-space:nowrap">{escape(of.name)}</span>',
            escape(of.kind),
            state(of),
            escape(workers(of) or "-"),
            escape(of.cause.summary if of.cause else of.message or "-"),
        ]
        for of in all_of
    ]
    header = [*([] if namespace else ["Namespace"]), "Name", "Kind", "Phase", "Workers", "Message"]
    count = "1 job" if len(all_of) == 1 else f"{len(all_of)} jobs"
    return f"<p>{count}{where(namespace, cluster)}</p>" + table(rows, header)


def error(kind: str, text: str) -> str:
    """Return an error: its kind, and its text as it is printed."""
    return f'<p><b style="color:{COLOURS["Failed"]}">{escape(kind)}</b></p>{code(text)}'


def history(points: Iterable[TrainingPoint]) -> str:
    """Return what a training has reported as a table, with the columns that have values."""
    rows = [
        [
            f"{point.time:%H:%M:%S}" if point.time else "",
            *("" if value is None else f"{value:g}" for value in (point.epoch, point.step, point.loss, point.accuracy)),
        ]
        for point in points
    ]
    if not rows:
        return "<p>The log reports no epoch, loss or accuracy.</p>"
    names = ["Time", "Epoch", "Step", "Loss", "Accuracy"]
    used = [column for column in range(len(names)) if any(row[column] for row in rows)]
    return table([[row[column] for column in used] for row in rows], [names[column] for column in used])


def logs(lines: Sequence[LogLine], most: int = 1000) -> str:
    """Return lines of logs, the last ones if they are many, in a box that can be scrolled."""
    left_out = len(lines) - most
    note = f"<p>The first {left_out} of {len(lines)} lines are not shown.</p>" if left_out > 0 else ""
    text = "\n".join(escape(line.text) for line in lines[-most:])
    return f'{note}<pre style="max-height:30em;overflow:auto">{text}</pre>' if lines else "<p>There are no lines.</p>"
