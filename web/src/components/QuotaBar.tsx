import {Label} from '@patternfly/react-core';
import type {ReactElement} from 'react';
import {ExclamationTriangleIcon} from '../lib/icons';
import type {Quantity, Quota, QueueResource} from '../api/types';

export interface Bar {
  key: string;
  title: string;
  hard: number;
  used: number;
  asked: number;
  /** The unit of the numbers. */
  format: (n: number) => string;
}

const gi = (n: number): string => `${(n / 2 ** 30).toLocaleString(undefined, {maximumFractionDigits: 1})} GiB`;
const plain = (n: number): string => n.toLocaleString(undefined, {maximumFractionDigits: 2});

export const formatOf = (resource: string): ((n: number) => string) => (resource.endsWith('memory') || resource.endsWith('storage') ? gi : plain);

/** Returns a resource in words. */
export function titleOf(resource: string): string {
  const name = resource.replace(/^(requests|limits)\./, '');
  const words: Record<string, string> = {cpu: 'CPUs', memory: 'Memory', pods: 'Pods', 'nvidia.com/gpu': 'GPUs', 'amd.com/gpu': 'AMD GPUs'};
  return `${words[name] ?? name}${resource.startsWith('limits.') ? ' (limits)' : ''}`;
}

/** Returns the bars of quotas that a job asks something of; of all quotas without a job. */
export function quotaBars(quotas: Quota[], requests: Quantity[] | undefined): Bar[] {
  return quotas
    .map((quota) => {
      const name = quota.resource.replace(/^(requests|limits)\./, '');
      const asked = requests?.find((each) => each.resource === name)?.amount ?? 0;
      return {key: `${quota.name}/${quota.resource}`, title: `${titleOf(quota.resource)}${quota.shared ? `, shared by several projects (${quota.name.replace(/ \(ClusterResourceQuota\)$/, '')})` : ''}`, hard: quota.hard, used: quota.used, asked, format: formatOf(name)};
    })
    .filter((bar) => requests === undefined || bar.asked > 0);
}

export const queueBars = (resources: QueueResource[], requests: Quantity[] | undefined): Bar[] =>
  resources
    .map((entry) => ({
      key: `${entry.flavor}/${entry.resource}`,
      title: `${titleOf(entry.resource)}, ${entry.flavor}`,
      hard: entry.nominal,
      used: entry.used,
      asked: requests?.find((each) => each.resource === entry.resource)?.amount ?? 0,
      format: formatOf(entry.resource),
    }))
    .filter((bar) => requests === undefined || bar.asked > 0);

/** The share of a quota from which on it is nearly full. */
export const nearlyFull = 0.9;

/** Returns which share of a quota is used. */
export const shareOf = (bar: Bar): number => (bar.hard > 0 ? bar.used / bar.hard : bar.used > 0 ? 1 : 0);

/** Shows how much of a quota is used, and how much a job asks for. */
export function QuotaBar({bar}: {bar: Bar}): ReactElement {
  const free = Math.max(0, bar.hard - bar.used);
  const isOver = bar.asked > free;
  const share = (n: number): string => `${bar.hard > 0 ? Math.min(100, (100 * n) / bar.hard) : 0}%`;
  const text = bar.asked > 0 ? `${bar.format(bar.asked)} requested, ${bar.format(free)} of ${bar.format(bar.hard)} free` : `${bar.format(bar.used)} of ${bar.format(bar.hard)} used`;
  return (
    <div className="mpi-bar">
      <div className="mpi-bar-head">
        <strong>{bar.title}</strong>
        <span className="mpi-numbers">
          {text}
          {isOver ? <strong> · {bar.format(bar.asked - free)} too much</strong> : null}
          {bar.asked === 0 && shareOf(bar) >= nearlyFull ? (
            <>
              {' '}
              <Label isCompact color="orange" icon={<ExclamationTriangleIcon />}>
                {shareOf(bar) >= 1 ? 'full' : `${Math.floor(100 * shareOf(bar))} %`}
              </Label>
            </>
          ) : null}
        </span>
      </div>
      <div className="mpi-bar-track" role="img" aria-label={`${bar.title}: ${text}`}>
        <span className="mpi-bar-used" style={{inlineSize: share(bar.used)}} />
        <span className={isOver ? 'mpi-bar-over' : 'mpi-bar-asked'} style={{inlineSize: isOver ? share(free) : share(bar.asked)}} />
      </div>
    </div>
  );
}
