import {Alert, Card, CardBody, CardTitle, DescriptionList, DescriptionListDescription, DescriptionListGroup, DescriptionListTerm, EmptyState, EmptyStateBody, ToggleGroup, ToggleGroupItem} from '@patternfly/react-core';
import {type ReactElement, type ReactNode, useEffect, useState} from 'react';
import {Link, useSearchParams} from 'react-router';
import {type JobKey, useMetrics} from '../../api/queries';
import type {Chart as ChartData, ChartLine, Detail, Metrics} from '../../api/types';
import {Chart, type Line} from '../../components/Chart';
import {Loaded} from '../../components/States';
import {ChartLineIcon} from '../../lib/icons';
import {useParameters} from '../../lib/parameters';
import {timeOfDay} from '../../lib/time';
import {units} from '../../lib/units';
import {CommunicationProfile, NoProfile} from './CommunicationProfile';
import {TrainingFigures} from './TrainingFigures';
import {UsageHistory} from './UsageHistory';

/** Adds the samples of a response to those that were shown before: the metrics API only has the present ones. */
function merge(before: ChartData[], now: ChartData[]): ChartData[] {
  const append = (old: ChartLine[] | undefined, lines: ChartLine[]): ChartLine[] =>
    lines.map((line) => {
      const samples = old?.find(({name}) => name === line.name)?.samples ?? [];
      const last = samples.at(-1)?.t ?? 0;
      return {...line, samples: [...samples, ...line.samples.filter(({t}) => t > last)].slice(-360)};
    });
  return now.map((chart) => {
    const old = before.find(({title}) => title === chart.title);
    return {...chart, lines: append(old?.lines, chart.lines), aggregates: append(old?.aggregates, chart.aggregates)};
  });
}

const isMean = ({name}: ChartLine): boolean => name === 'Mean';

/** Returns the lines to show: each pod with the mean of all, or all pods together, by their sum if they have one. */
function linesOf(chart: ChartData, isTogether: boolean): Line[] {
  const line = (isAggregate: boolean) => ({name, samples}: ChartLine): Line => ({name, isAggregate, points: samples.map(({t, v}) => ({x: t, y: v}))});
  const all = chart.aggregates;
  if (!isTogether || all.length === 0) return [...all.filter(isMean), ...chart.lines].map((each) => line(isMean(each))(each));
  return (all.some((each) => !isMean(each)) ? all.filter((each) => !isMean(each)) : all).map(line(true));
}

function Charts({metrics, detail}: {metrics: Metrics; detail: Detail}): ReactElement {
  const [kept, setKept] = useState<ChartData[]>([]);
  const {params, refine} = useParameters();
  const isTogether = params.get('pods') === 'all';
  const at = Date.parse(params.get('at') ?? '');
  useEffect(() => {
    if (metrics.source === 'metrics.k8s.io') setKept((before) => merge(before, metrics.charts));
  }, [metrics]);
  const charts = metrics.source === 'Prometheus' ? metrics.charts : merge(kept, metrics.charts);
  if (charts.length === 0) {
    const reason = metrics.reason ?? 'Prometheus has no samples of the pods of this job.';
    if (detail.status?.usage) return <p className="mpi-subtle">No charts of single pods: {reason}</p>;
    return (
      <EmptyState titleText="No metrics" headingLevel="h2" icon={ChartLineIcon} variant="sm">
        <EmptyStateBody>
          <p>{detail.noUsage}</p>
          <p>{reason}</p>
        </EmptyStateBody>
      </EmptyState>
    );
  }
  return (
    <section className="mpi-stack" aria-labelledby="live-title">
      <h2 id="live-title" className="mpi-heading">{metrics.source === 'Prometheus' ? 'Usage of each pod' : 'Usage now'}</h2>
      {!detail.status?.usage && detail.noUsage ? <p className="mpi-subtle">{detail.noUsage}</p> : null}
      {metrics.reason ? <Alert isInline variant="info" component="p" title={metrics.reason} /> : null}
      {charts.some(({aggregates}) => aggregates.length > 0) ? (
        <ToggleGroup aria-label="Lines of the charts">
          {(['', 'all'] as const).map((value) => (
            <ToggleGroupItem
              key={value}
              text={value ? 'All pods together' : 'Each pod and the mean'}
              isSelected={isTogether === (value === 'all')}
              onChange={() => refine({pods: value})}
            />
          ))}
        </ToggleGroup>
      ) : null}
      <div className="mpi-grid">
        {charts.map((chart) => (
          <Card key={chart.title} component="section" aria-label={chart.title}>
            <CardBody>
              <Chart
                title={`${chart.title}${chart.unit === 'cores' ? ', cores' : ''}${isTogether && chart.aggregates.length > 0 ? `, ${chart.aggregates.some((each) => !isMean(each)) ? 'sum' : 'mean'} of all pods` : ''}`}
                lines={linesOf(chart, isTogether)}
                mark={Number.isNaN(at) ? undefined : at / 1000}
                xTitle="Time"
                formatX={(seconds) => timeOfDay(new Date(seconds * 1000).toISOString())}
                formatY={units[chart.unit] ?? String}
                isTime
                isBinary={chart.unit.startsWith('bytes')}
                isFromZero
              />
            </CardBody>
          </Card>
        ))}
      </div>
      <p className="mpi-subtle">Source: {metrics.source}</p>
    </section>
  );
}

/** What is known about the communication of the ranks from outside: MPI reports no figures of its own. */
function Communication({detail, metrics}: {detail: Detail; metrics: Metrics}): ReactElement | null {
  const mpi = detail.status?.mpi;
  const [params] = useSearchParams();
  if (!mpi?.implementation) return null;
  const search = new URLSearchParams(params);
  search.set('tab', 'training');
  const seconds = (milliseconds: number | undefined): string => (milliseconds ? `${(milliseconds / 1000).toLocaleString(undefined, {maximumFractionDigits: 2})} s` : 'not measured');
  const hasCharts = metrics.charts.some(({unit}) => unit === 'bytes/s');
  const entries: [string, ReactNode][] = [
    ['Connecting to all workers', seconds(mpi.connectMilliseconds)],
    ['Starting the ranks', seconds(mpi.initMilliseconds)],
    ['Bandwidth', !hasCharts ? 'Unknown: this requires the network charts of Prometheus' : 'The network charts: all that the pods send and receive by TCP, data from storage included'],
    ['Message rate', !hasCharts ? 'Unknown: this requires the packet charts of Prometheus' : 'Roughly the packet charts: a large message takes several packets, and small ones can share one'],
    [
      'Latency',
      <>
        Only known if the program prints it, such as <code>latency_us=1.8</code>. The tab <Link to={{search: search.toString()}}>Training</Link> then shows it
      </>,
    ],
  ];
  return (
    <Card component="section">
      <CardTitle component="h2">MPI communication</CardTitle>
      <CardBody className="mpi-stack">
        <DescriptionList isCompact orientation={{sm: 'horizontal'}}>
          {entries.map(([term, value]) => (
            <DescriptionListGroup key={term}>
              <DescriptionListTerm>{term}</DescriptionListTerm>
              <DescriptionListDescription className="mpi-wrap">{value}</DescriptionListDescription>
            </DescriptionListGroup>
          ))}
        </DescriptionList>
        <p className="mpi-subtle">MPI libraries export no metrics; a communication profile counts and times their calls. RDMA and shared memory are not part of the network charts.</p>
      </CardBody>
    </Card>
  );
}

/** What the pods of the job used, over time. */
export default function MetricsTab({job, detail, openClone}: {job: JobKey; detail: Detail; openClone: (changes: string[]) => void}): ReactElement {
  const isRunning = detail.row.ended === undefined;
  const metrics = useMetrics(job, isRunning);
  const usage = detail.status?.usage;
  const curves = detail.status?.curves;
  const profile = detail.status?.profile;
  return (
    <div className="mpi-stack">
      {curves?.figures?.length ? <TrainingFigures curves={curves} /> : null}
      {usage ? <UsageHistory usage={usage} isRunning={isRunning} /> : null}
      {profile ? <CommunicationProfile profile={profile} detail={detail} isRunning={isRunning} /> : null}
      <Loaded query={metrics} what="The metrics cannot be shown">
        {(data) => (
          <>
            <Charts metrics={data} detail={detail} />
            <Communication detail={detail} metrics={data} />
          </>
        )}
      </Loaded>
      {detail.noProfile ? <NoProfile detail={detail} reason={detail.noProfile} onApply={openClone} /> : null}
    </div>
  );
}
