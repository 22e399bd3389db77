import type {ReactElement} from 'react';
import type {Detail, ReportPhase} from '../../api/types';
import {CheckIcon} from '../../lib/icons';
import {lookOf} from '../../lib/phase';
import {duration, moment, useNow} from '../../lib/time';

/** Shows the phases that a job has passed, the one it is in, and the ones that follow, with the time in each. */
export function PhaseLine({detail}: {detail: Detail}): ReactElement | null {
  const now = useNow();
  const status = detail.status;
  if (!status?.phase) return null;
  const times = new Map((status.phaseTimes ?? []).map((entry) => [entry.phase, entry]));
  const current = status.phase;
  const isOver = status.completionTime !== undefined;
  const visited = [...times.keys()].filter((phase) => phase !== 'Succeeded' && phase !== 'Failed');
  const order: ReportPhase[] = ['Pending', 'Queued', 'GangScheduling', 'Initializing', 'Running'];
  const shown = order.filter((phase) => times.has(phase) || phase === current || phase === 'Pending' || (!isOver && (phase === 'Initializing' || phase === 'Running')));
  if (times.has('Suspended') || current === 'Suspended') {
    const at = visited.indexOf('Suspended');
    const before = visited[at - 1];
    const after = before ? shown.indexOf(before) : -1;
    shown.splice(after + 1, 0, 'Suspended');
  }
  shown.push(current === 'Failed' ? 'Failed' : 'Succeeded');
  const reached = shown.indexOf(current);
  return (
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <div className="mpi-phases" role="region" aria-label="Phases of the job" tabIndex={0}>
      <ol>
        {shown.map((phase, i) => {
          const look = lookOf(phase);
          const time = times.get(phase);
          const isNow = phase === current;
          const isDone = i < reached && (times.has(phase) || phase === 'Pending');
          const seconds = time ? time.seconds + (isNow && !isOver ? (now - Date.parse(time.since)) / 1000 : 0) : 0;
          const text = isNow && isOver ? (status.completionTime ? moment(status.completionTime) : '') : time && (seconds >= 1 || isNow) ? duration(seconds * 1000) : isDone ? '< 1s' : '';
          const classes = [isDone || (isNow && phase === 'Succeeded') ? 'is-done' : '', isNow && phase !== 'Succeeded' ? 'is-now' : '', isNow && phase === 'Failed' ? 'is-failed' : ''];
          return (
            <li key={phase} className={classes.join(' ')} aria-current={isNow ? 'step' : undefined} title={look.meaning}>
              <span className="mpi-dot" aria-hidden="true">
                {isDone ? <CheckIcon /> : look.icon}
              </span>
              <span className="mpi-phase-name">
                {look.text}
                <span className="pf-v6-screen-reader">{isNow ? ', current' : isDone ? ', done' : ', not reached'}</span>
              </span>
              <span className="mpi-phase-time">{text}</span>
            </li>
          );
        })}
      </ol>
    </div>
  );
}
