import {type ReactElement, useEffect, useState} from 'react';
import {apiURL, get} from '../api/client';
import {openStream} from '../api/stream';
import type {Changes, List, Row} from '../api/types';
import {isWatched, notify, setWatched, useWatched} from '../lib/notices';

/** Returns the URL of a job's page. A job with a UID is shown also if another job has its name now. */
export function jobURL(row: {namespace: string; kind: string; name: string; uid?: string | undefined; id?: string; deleted?: boolean}): string {
  const uid = row.uid ?? (row.deleted ? row.id : undefined);
  return `/projects/${encodeURIComponent(row.namespace)}/${row.kind.toLowerCase()}/${encodeURIComponent(row.name)}${uid ? `?uid=${uid}` : ''}`;
}

/** Returns the URL of a comparison of two jobs of a project. */
export function compareURL(namespace: string, a: {kind: string; name: string; id: string}, b: {kind: string; name: string; id: string}): string {
  const of = ({kind, name}: {kind: string; name: string}): string => `${kind.toLowerCase()}/${name}`;
  return `/projects/${encodeURIComponent(namespace)}/compare?${new URLSearchParams({a: of(a), b: of(b), aUID: a.id, bUID: b.id}).toString()}`;
}

/** The jobs whose end the browser has shown. */
const shown = new Set<string>();

/** Notifies when a watched job has ended: by the browser if the user allowed it, and in the page that the user sees. */
function tell(row: Row): void {
  if (!row.ended || !isWatched(row.id)) return;
  const failed = row.phase === 'Failed';
  const title = failed ? `${row.name} has failed` : `${row.name} has succeeded`;
  if (!shown.has(row.id) && 'Notification' in window && Notification.permission === 'granted') {
    shown.add(row.id);
    new Notification(title, {body: `${row.namespace}${row.reason ? ` · ${row.reason}` : ''}`, tag: row.id});
  }
  if (document.hidden) return;
  setWatched(row.id, false);
  notify({
    variant: failed ? 'danger' : 'success',
    title,
    text: row.reason ?? '',
    to: jobURL(row),
    link: failed ? 'See why' : 'Open the job',
  });
}

/** Returns whether this tab keeps its stream while it is hidden: one tab of all, because browsers open few connections. */
function useKeeper(): boolean {
  const [isKeeper, setKeeper] = useState(false);
  useEffect(() => {
    if (!('locks' in navigator)) return undefined;
    const waiting = new AbortController();
    let release: (() => void) | undefined;
    const hold = (): Promise<void> =>
      new Promise((resolve) => {
        release = resolve;
        setKeeper(true);
      });
    navigator.locks.request('mpijob-watcher', {signal: waiting.signal}, hold).catch(() => undefined);
    return () => {
      waiting.abort();
      release?.();
    };
  }, []);
  return isKeeper;
}

/** Notifies when watched jobs end, also those that ended while no page was open. */
export function Watcher(): ReactElement | null {
  const ids = useWatched().join(',');
  const isKeeper = useKeeper();
  useEffect(() => {
    if (ids === '') return undefined;
    const read = (): void => {
      if (document.hidden && !isKeeper) return;
      get<List>('jobs', new URLSearchParams({id: ids, deleted: 'true', size: '500'})).then(({rows}) => rows.forEach(tell), () => undefined);
    };
    const stop = openStream({
      keepWhileHidden: isKeeper,
      url: () => apiURL('jobs/stream', new URLSearchParams({id: ids})),
      onEvent: ({name, data}) => {
        if (name === 'reset') read();
        else (JSON.parse(data) as Changes).rows.forEach(tell);
      },
    });
    document.addEventListener('visibilitychange', read);
    return () => {
      stop();
      document.removeEventListener('visibilitychange', read);
    };
  }, [ids, isKeeper]);
  return null;
}
