"""HTML of notebooks: tables, code, findings and log lines. All text is escaped: names and messages are not ours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from openshift_ai_sdk.training._generated.jobreport import Finding

# Colours that can be read on white and on black: notebooks do not tell which one they use.
COLOURS = {"Succeeded": "#368a2f", "Failed": "#df3a2d", "Running": "#2b7bdc"}
OTHER = "#777b80"


def badge(phase: object) -> str:
    """Return a phase as a coloured word."""
    word = str(phase) if phase is not None else "Unknown"
    return f'<b style="color:{COLOURS.get(word, OTHER)}">{escape(word)}</b>'


def table(rows: Iterable[Sequence[str]], header: Sequence[str] = ()) -> str:
    """Return a table of cells that are HTML already."""
    left = 'style="text-align:left;vertical-align:top"'
    head = "".join(f"<th {left}>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td {left}>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table>{f'<tr>{head}</tr>' if head else ''}{body}</table>"


def code(text: str) -> str:
    """Return code on lines of its own, broken where it is too long."""
    return f'<pre style="white-space:pre-wrap;overflow-wrap:anywhere;margin:0.2em 0">{escape(text)}</pre>'


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


def link(url: str, text: str) -> str:
    """Return a link to a web page in a tab of its own; of another scheme, such as javascript, only the text."""
    if not url.startswith(("https://", "http://")):
        return escape(text)
    return f'<a href="{escape(url)}" target="_blank" rel="noopener noreferrer">{escape(text)}</a>'


def where(namespace: str, cluster: str) -> str:
    """Return a namespace and a cluster as the end of a sentence; empty if both are unknown."""
    text = f" in the namespace <b>{escape(namespace)}</b>" if namespace else ""
    return text + (f" of {escape(cluster)}" if cluster else "")


def error(kind: str, text: str) -> str:
    """Return an error: its kind, and its text as it is printed."""
    return f'<p><b style="color:{COLOURS["Failed"]}">{escape(kind)}</b></p>{code(text)}'


def logs(lines: Sequence[str], most: int = 1000) -> str:
    """Return lines of logs, the last ones if they are many, in a box that can be scrolled."""
    left_out = len(lines) - most
    note = f"<p>The first {left_out} of {len(lines)} lines are not shown.</p>" if left_out > 0 else ""
    text = "\n".join(escape(line) for line in lines[-most:])
    return f'{note}<pre style="max-height:30em;overflow:auto">{text}</pre>' if lines else "<p>There are no lines.</p>"
