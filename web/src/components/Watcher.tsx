import type {ReactElement} from 'react';
import {useLive} from '../api/queries';
import {notify, setWatched, useWatched} from '../lib/notices';
import type {Row} from '../api/types';

/** Notifies when a watched job ends: in the page, and by the browser if the user allowed it. */
function Watched({id}: {id: string}): ReactElement | null {
  useLive({
    id,
    onRow: (row: Row) => {
      if (!row.ended) return;
      setWatched(id, false);
      const failed = row.phase === 'Failed';
      const title = failed ? `${row.name} has failed` : `${row.name} has succeeded`;
      notify({
        variant: failed ? 'danger' : 'success',
        title,
        text: row.reason ?? '',
        to: jobURL(row),
        link: failed ? 'See why' : 'Open the job',
      });
      if ('Notification' in window && Notification.permission === 'granted') {
        new Notification(title, {body: `${row.namespace}${row.reason ? ` · ${row.reason}` : ''}`, tag: id});
      }
    },
  });
  return null;
}

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

export function Watcher(): ReactElement {
  // Few are watched at once in this page; the others are noticed when their pages are open.
  return (
    <>
      {useWatched()
        .slice(-2)
        .map((id) => (
          <Watched key={id} id={id} />
        ))}
    </>
  );
}
