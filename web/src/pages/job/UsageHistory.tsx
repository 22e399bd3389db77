import {Card, CardBody, DescriptionList, DescriptionListDescription, DescriptionListGroup, DescriptionListTerm, ToggleGroup, ToggleGroupItem} from '@patternfly/react-core';
import {Table, Tbody, Td, Th, Thead, Tr} from '@patternfly/react-table';
import type {ReactElement} from 'react';
import type {ReportUsage, ReportUsageMetric} from '../../api/types';
import {Chart, type Line} from '../../components/Chart';
import {Scrolled} from '../../components/Common';
import {useParameters} from '../../lib/parameters';
import {duration, moment, timeOfDay} from '../../lib/time';
import {units} from '../../lib/units';

interface Shown {
  title: string;
  unit: string;
  /** What a figure is multiplied by to be in the unit. */
  scale: number;
}

const metrics: Record<ReportUsageMetric['metric'], Shown> = {
  CPU: {title: 'CPU', unit: 'cores', scale: 0.001},
  Memory: {title: 'Memory', unit: 'bytes', scale: 1 << 20},
  GPU: {title: 'GPU', unit: 'GPUs', scale: 0.001},
  GPUMemory: {title: 'GPU memory', unit: 'bytes', scale: 1 << 20},
  Throttled: {title: 'Throttled by the CPU limit', unit: 'percent', scale: 0.1},
  Network: {title: 'Network', unit: 'bytes/s', scale: 1 << 10},
  IO: {title: 'Disk I/O', unit: 'bytes/s', scale: 1 << 10},
  MajorFaults: {title: 'Page faults that read from a disk', unit: '/min', scale: 1},
  CPUPressure: {title: 'CPU', unit: 'percent', scale: 0.1},
  MemoryPressure: {title: 'Memory', unit: 'percent', scale: 0.1},
  IOPressure: {title: 'I/O', unit: 'percent', scale: 0.1},
};

/** The charts, in their order, with what each draws. */
const charts: {title: string; of: ReportUsageMetric['metric'][]}[] = [
  {title: 'CPU, cores', of: ['CPU']},
  {title: 'Memory', of: ['Memory']},
  {title: 'GPU, GPUs', of: ['GPU']},
  {title: 'GPU memory', of: ['GPUMemory']},
  {title: 'Time throttled by the CPU limit', of: ['Throttled']},
  {title: 'Network', of: ['Network']},
  {title: 'Disk I/O', of: ['IO']},
  {title: 'Time in which processes waited for a resource', of: ['CPUPressure', 'MemoryPressure', 'IOPressure']},
  {title: 'Page faults that read from a disk', of: ['MajorFaults']},
];

const figure = ({metric}: ReportUsageMetric, value: number): string => (units[metrics[metric].unit] ?? String)(value * metrics[metric].scale);

/** Returns the line of a metric; its points begin at a time, and each is so many seconds long. */
function lineOf(metric: ReportUsageMetric, since: number, seconds: number): Line {
  const {title, scale} = metrics[metric.metric];
  // -1 is a time in which nothing was measured.
  return {name: title, points: (metric.points ?? []).flatMap((value, i) => (value < 0 ? [] : [{x: since + i * seconds, y: value * scale}]))};
}

/** Returns the limit as a line, unless it is so far from what was used that the chart would be flat. */
function limitOf(metric: ReportUsageMetric, {points}: Line): Line[] {
  const limit = (metric.limit ?? 0) * metrics[metric.metric].scale;
  const [first, last] = [points[0], points.at(-1)];
  if (!first || !last || limit <= 0 || limit > 4 * Math.max(...points.map(({y}) => y))) return [];
  return [{name: 'Limit', isLimit: true, points: [{x: first.x, y: limit}, {x: last.x, y: limit}]}];
}

/** Mean, 95th percentile, maximum and limit of a metric. */
function FiguresOfOne({title, metric}: {title: string; metric: ReportUsageMetric}): ReactElement {
  const figures: [string, number][] = [['Mean', metric.mean], ['95th percentile', metric.p95], ['Maximum', metric.max], ...(metric.limit ? [['Limit', metric.limit] satisfies [string, number]] : [])];
  return (
    <DescriptionList isCompact aria-label={title} className="mpi-figures">
      {figures.map(([term, value]) => (
        <DescriptionListGroup key={term}>
          <DescriptionListTerm>{term}</DescriptionListTerm>
          <DescriptionListDescription className="mpi-numbers">{figure(metric, value)}</DescriptionListDescription>
        </DescriptionListGroup>
      ))}
    </DescriptionList>
  );
}

/** Mean, 95th percentile, maximum and limit of metrics, each in a row with its name. */
function Figures({title, first, rows}: {title: string; first: string; rows: {name: string; metric: ReportUsageMetric}[]}): ReactElement {
  const hasLimit = rows.some(({metric}) => metric.limit);
  return (
    <Table aria-label={title} variant="compact" gridBreakPoint="">
      <Thead>
        <Tr>
          <Th modifier="nowrap">{first}</Th>
          {['Mean', '95 %', 'Maximum', ...(hasLimit ? ['Limit'] : [])].map((head) => <Th key={head} modifier="nowrap" {...(head === '95 %' ? {info: {tooltip: 'The value that was not exceeded for 95 % of the time.', ariaLabel: 'About 95 %'}} : {})}>{head}</Th>)}
        </Tr>
      </Thead>
      <Tbody>
        {rows.map(({name, metric}) => (
          <Tr key={name}>
            <Td modifier="nowrap">{name}</Td>
            <Td className="mpi-numbers">{figure(metric, metric.mean)}</Td>
            <Td className="mpi-numbers">{figure(metric, metric.p95)}</Td>
            <Td className="mpi-numbers">{figure(metric, metric.max)}</Td>
            {hasLimit ? <Td className="mpi-numbers">{metric.limit ? figure(metric, metric.limit) : 'none'}</Td> : null}
          </Tr>
        ))}
      </Tbody>
    </Table>
  );
}

function PerPod({usage}: {usage: ReportUsage}): ReactElement | null {
  const {params, refine} = useParameters();
  const pods = usage.perPod ?? [];
  const names = (Object.keys(metrics) as ReportUsageMetric['metric'][]).filter((name) => pods.some((pod) => pod.metrics?.some(({metric}) => metric === name)));
  const selected = names.find((name) => name === params.get('metric')) ?? names[0];
  if (!selected) return null;
  const titleOf = (name: ReportUsageMetric['metric']): string => (name.endsWith('Pressure') ? `Waiting for ${metrics[name].title}` : metrics[name].title);
  const rows = pods.flatMap(({pod, metrics: all}) => (all ?? []).filter(({metric}) => metric === selected).map((metric) => ({name: pod, metric})));
  const more = usage.pods - pods.length;
  return (
    <Card component="section" aria-labelledby="per-pod-title">
      <CardBody className="mpi-stack">
        <h3 id="per-pod-title" className="mpi-heading">Use by pod</h3>
        {names.length > 1 ? (
          <ToggleGroup aria-label="Metric of the pods" className="mpi-toggles">
            {names.map((name) => <ToggleGroupItem key={name} text={titleOf(name)} isSelected={name === selected} onChange={() => refine({metric: name === names[0] ? '' : name})} />)}
          </ToggleGroup>
        ) : null}
        <Scrolled title="Use by pod">
          <Figures title={`${titleOf(selected)} by pod`} first="Pod" rows={rows} />
        </Scrolled>
        {more > 0 ? <p className="mpi-subtle">{more === 1 ? 'One more pod is' : `${more} more pods are`} not listed: {more === 1 ? 'it differs' : 'they differ'} less from the others.</p> : null}
      </CardBody>
    </Card>
  );
}

function PerRank({usage}: {usage: ReportUsage}): ReactElement | null {
  const ranks = usage.perRank ?? [];
  if (ranks.length === 0) return null;
  return (
    <Card component="section" aria-labelledby="per-rank-title">
      <CardBody className="mpi-stack">
        <h3 id="per-rank-title" className="mpi-heading">Use by rank</h3>
        <Scrolled title="Use by rank">
          <Table aria-label="Use by rank" variant="compact" gridBreakPoint="">
            <Thead>
              <Tr>
                <Th>Rank</Th>
                <Th modifier="wrap">CPU, mean in cores</Th>
                <Th modifier="wrap">Memory, maximum</Th>
              </Tr>
            </Thead>
            <Tbody>
              {ranks.map(({rank, cpuMillicores, memoryMiB}) => (
                <Tr key={rank}>
                  <Td>{rank}</Td>
                  <Td className="mpi-numbers">{units['cores']?.(cpuMillicores / 1000)}</Td>
                  <Td className="mpi-numbers">{units['bytes']?.(memoryMiB * (1 << 20))}</Td>
                </Tr>
              ))}
            </Tbody>
          </Table>
        </Scrolled>
        {ranks.length === 32 ? <p className="mpi-subtle">At most 32 ranks are listed: those that differ most from the others.</p> : null}
      </CardBody>
    </Card>
  );
}

/** What the pods of the job used over time, as its report keeps it. */
export function UsageHistory({usage, isRunning}: {usage: ReportUsage; isRunning: boolean}): ReactElement {
  const since = Date.parse(usage.pointsSince) / 1000;
  const find = (name: ReportUsageMetric['metric']): ReportUsageMetric | undefined => usage.metrics?.find(({metric}) => metric === name);
  const shown = charts
    .map(({title, of}) => ({title, all: of.map(find).filter((metric) => metric !== undefined)}))
    .filter(({all}) => all.length > 0);
  return (
    <section className="mpi-stack" aria-labelledby="history-title">
      <div>
        <h2 id="history-title" className="mpi-heading">Use over time</h2>
        <p className="mpi-subtle">
          {usage.pods === 1 ? 'One pod' : `The sum of ${usage.pods} pods, and the mean of shares of time`}, from {moment(usage.since)} to {moment(usage.until)} ({duration(Date.parse(usage.until) - Date.parse(usage.since))}). A
          point is the mean of {duration(1000 * usage.pointSeconds)}.{isRunning ? ' The report is updated every minute, and after 20 minutes whenever the job has run a twentieth longer.' : ''}
        </p>
      </div>
      <div className="mpi-grid">
        {shown.map(({title, all}) => {
          const lines = all.map((metric) => lineOf(metric, since, usage.pointSeconds));
          const [first, line] = [all[0], lines[0]];
          return (
            <Card key={title} component="section" aria-label={title}>
              <CardBody>
                <Chart
                  title={title}
                  lines={first && line && all.length === 1 ? [...lines, ...limitOf(first, line)] : lines}
                  xTitle="Time"
                  formatX={(seconds) => timeOfDay(new Date(seconds * 1000).toISOString())}
                  formatY={units[metrics[all[0]?.metric ?? 'CPU'].unit] ?? String}
                  isTime
                  isBinary={metrics[all[0]?.metric ?? 'CPU'].unit.startsWith('bytes')}
                  isFromZero
                  gap={1.5 * usage.pointSeconds}
                />
                {first && all.length === 1 ? (
                  <FiguresOfOne title={`${title}: figures`} metric={first} />
                ) : (
                  <Scrolled title={`${title}: figures`}>
                    <Figures title={`${title}: figures`} first="Resource" rows={all.map((metric) => ({name: metrics[metric.metric].title, metric}))} />
                  </Scrolled>
                )}
              </CardBody>
            </Card>
          );
        })}
      </div>
      <PerPod usage={usage} />
      <PerRank usage={usage} />
    </section>
  );
}
