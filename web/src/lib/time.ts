import {useSyncExternalStore} from 'react';

const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;
let now = Date.now();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(() => {
    now = Date.now();
    for (const each of listeners) each();
  }, 1000);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

/** Returns the time, renewed each second by one timer for all. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => now);
}

/** Returns a duration in at most two units, such as 3h 12m, as kubectl does. */
export function duration(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const units: [number, string][] = [
    [86400, 'd'],
    [3600, 'h'],
    [60, 'm'],
    [1, 's'],
  ];
  const first = units.findIndex(([size]) => seconds >= size);
  if (first < 0) return '0s';
  let rest = seconds;
  const parts: string[] = [];
  for (const [size, unit] of units.slice(first, first + 2)) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0) parts.push(`${count}${unit}`);
  }
  return parts.join(' ');
}

const format = new Intl.DateTimeFormat(undefined, {dateStyle: 'medium', timeStyle: 'medium'});

/** Returns a moment in the user's language and time zone. */
export const moment = (iso: string): string => format.format(new Date(iso));

const clock = new Intl.DateTimeFormat(undefined, {hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false});

const shortClock = new Intl.DateTimeFormat(undefined, {hour: '2-digit', minute: '2-digit', hour12: false});
const shortDay = new Intl.DateTimeFormat(undefined, {day: 'numeric', month: 'short'});

/** Returns the time of day of a moment, with its day if that is not today. */
export function timeOfDay(iso: string): string {
  const at = new Date(iso);
  return at.toDateString() === new Date().toDateString() ? clock.format(at) : `${shortDay.format(at)} ${clock.format(at)}`;
}

/** Returns the format of marks of a time axis, in seconds since 1970: as short as tells them apart. */
export function timeLabel(marks: number[]): (seconds: number) => string {
  const at = (seconds: number): Date => new Date(seconds * 1000);
  if (marks.every((seconds) => seconds % 86400 === (marks[0] ?? 0) % 86400)) return (seconds) => shortDay.format(at(seconds));
  if ((marks.at(-1) ?? 0) - (marks[0] ?? 0) >= 86400) return (seconds) => `${shortDay.format(at(seconds))} ${shortClock.format(at(seconds))}`;
  return marks.every((seconds) => seconds % 60 === 0) ? (seconds) => shortClock.format(at(seconds)) : (seconds) => clock.format(at(seconds));
}

/** Returns a moment as an input of type datetime-local has it; empty if it is none. */
export function toLocalInput(iso: string | null): string {
  const at = new Date(iso ?? '');
  if (Number.isNaN(at.getTime())) return '';
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 19).replace(/:00$/, '');
}

/** Returns the moment that an input of type datetime-local has; empty if it is none. */
export function fromLocalInput(text: string): string {
  const at = new Date(text);
  return Number.isNaN(at.getTime()) ? '' : at.toISOString();
}
