import {Alert, Card, CardBody, EmptyState, EmptyStateBody} from '@patternfly/react-core';
import {type ReactElement, useEffect, useState} from 'react';
import {type JobKey, useMetrics} from '../../api/queries';
import type {Chart as ChartData, Detail, Metrics} from '../../api/types';
import {Chart} from '../../components/Chart';
import {Loaded} from '../../components/States';
import {ChartLineIcon} from '../../lib/icons';
import {timeOfDay} from '../../lib/time';

const units: Record<string, (n: number) => string> = {
  cores: (n) => n.toLocaleString(undefined, {maximumFractionDigits: 2}),
  percent: (n) => `${n.toLocaleString(undefined, {maximumFractionDigits: 0})} %`,
  bytes: (n) => bytes(n),
  'bytes/s': (n) => `${bytes(n)}/s`,
};

function bytes(n: number): string {
  const names = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  const power = Math.min(names.length - 1, n < 1 ? 0 : Math.floor(Math.log2(n) / 10));
  return `${(n / 1024 ** power).toLocaleString(undefined, {maximumFractionDigits: 1})} ${names[power] ?? ''}`;
}

/** Adds the samples of a response to those that were shown before: the metrics API only has the present ones. */
function merge(before: ChartData[], now: ChartData[]): ChartData[] {
  return now.map((chart) => ({
    ...chart,
    lines: chart.lines.map((line) => {
      const old = before.find(({title}) => title === chart.title)?.lines.find(({name}) => name === line.name)?.samples ?? [];
      const last = old.at(-1)?.t ?? 0;
      return {...line, samples: [...old, ...line.samples.filter(({t}) => t > last)].slice(-360)};
    }),
  }));
}

function Charts({metrics}: {metrics: Metrics}): ReactElement {
  const [kept, setKept] = useState<ChartData[]>([]);
  useEffect(() => {
    if (metrics.source === 'metrics.k8s.io') setKept((before) => merge(before, metrics.charts));
  }, [metrics]);
  const charts = metrics.source === 'Prometheus' ? metrics.charts : merge(kept, metrics.charts);
  if (charts.length === 0) {
    return (
      <EmptyState titleText="No metrics" headingLevel="h2" icon={ChartLineIcon} variant="sm">
        <EmptyStateBody>{metrics.reason ?? 'Prometheus has no samples of the pods of this job.'}</EmptyStateBody>
      </EmptyState>
    );
  }
  return (
    <div className="mpi-stack">
      {metrics.reason ? <Alert isInline variant="info" component="p" title={metrics.reason} /> : null}
      <div className="mpi-grid">
        {charts.map((chart) => (
          <Card key={chart.title} component="section" aria-label={chart.title}>
            <CardBody>
              <Chart
                title={chart.unit === 'cores' ? `${chart.title}, cores` : chart.title}
                lines={chart.lines.map(({name, samples}) => ({name, points: samples.map(({t, v}) => ({x: t, y: v}))}))}
                xTitle="Time"
                formatX={(seconds) => timeOfDay(new Date(seconds * 1000).toISOString())}
                formatY={units[chart.unit] ?? String}
                isFromZero
              />
            </CardBody>
          </Card>
        ))}
      </div>
      <p className="mpi-subtle">Source: {metrics.source}</p>
    </div>
  );
}

/** What the pods of the job use, over time. */
export default function MetricsTab({job, detail}: {job: JobKey; detail: Detail}): ReactElement {
  const metrics = useMetrics(job, detail.row.ended === undefined);
  return (
    <Loaded query={metrics} what="The metrics cannot be shown">
      {(data) => <Charts metrics={data} />}
    </Loaded>
  );
}
