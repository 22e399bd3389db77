import {Card, CardBody, CardTitle, DescriptionList, DescriptionListDescription, DescriptionListGroup, DescriptionListTerm, ExpandableSection, Label, LabelGroup, Progress} from '@patternfly/react-core';
import type {ReactElement, ReactNode} from 'react';
import {Link, useSearchParams} from 'react-router';
import type {JobKey} from '../../api/queries';
import type {Detail} from '../../api/types';
import {Age, Code, count, Elapsed} from '../../components/Common';
import {compareURL, jobURL} from '../../components/Watcher';
import {CheckCircleIcon, ExclamationCircleIcon, PendingIcon, UnknownIcon} from '../../lib/icons';
import {PhaseLabel} from '../../lib/phase';
import {moment, timeOfDay} from '../../lib/time';

function Entry({term, children}: {term: string; children: ReactNode}): ReactElement | null {
  if (children === undefined || children === null || children === '') return null;
  return (
    <DescriptionListGroup>
      <DescriptionListTerm>{term}</DescriptionListTerm>
      <DescriptionListDescription className="mpi-wrap">{children}</DescriptionListDescription>
    </DescriptionListGroup>
  );
}

/** The share of the work that is done: as the program printed it. */
function progressOf(detail: Detail): number | undefined {
  const text = detail.status?.training?.progress;
  if (!text) return undefined;
  const number = Number.parseFloat(text);
  if (Number.isNaN(number)) return undefined;
  return Math.min(100, text.includes('%') || number > 1 ? number : number * 100);
}

/** Links to what else is known of the time of a step: the lines of the log, the events, and the metrics. */
function AtThatTime({time, event}: {time: string; event: string}): ReactElement {
  const [params] = useSearchParams();
  const around = (seconds: number): string => new Date(Date.parse(time) + 1000 * seconds).toISOString();
  const to = (tab: string, values: Record<string, string>): {search: string} => {
    const uid = params.get('uid');
    return {search: `?${new URLSearchParams({...(uid ? {uid} : {}), tab, ...values}).toString()}`};
  };
  const range = {from: around(-60), to: around(60)};
  const links: [string, {search: string}][] = [
    ['Log', to('logs', range)],
    ['Events', to('events', range)],
    ['Metrics', to('metrics', {at: time})],
  ];
  return (
    <span className="mpi-at">
      {links.map(([text, target]) => (
        <Link key={text} to={target} aria-label={`${text} at ${event}, ${timeOfDay(time)}`}>
          {text}
        </Link>
      ))}
    </span>
  );
}

const results = {
  pass: {icon: <CheckCircleIcon color="var(--pf-t--global--icon--color--status--success--default)" />, text: 'yes'},
  fail: {icon: <ExclamationCircleIcon color="var(--pf-t--global--icon--color--status--danger--default)" />, text: 'no'},
  pending: {icon: <PendingIcon />, text: 'not yet'},
  unknown: {icon: <UnknownIcon />, text: 'known when it ends'},
};

export default function Overview({detail}: {job: JobKey; detail: Detail}): ReactElement {
  const {row, status} = detail;
  const done = progressOf(detail);
  const scheduling = status?.scheduling;
  const guide = detail.findings.find((finding) => finding.guide);
  return (
    <div className="mpi-stack">
      <div className="mpi-grid">
        <Card component="section">
          <CardTitle component="h2">Status</CardTitle>
          <CardBody>
            <DescriptionList isCompact orientation={{sm: 'horizontal'}}>
              <Entry term="Status">{status?.message ?? detail.headline}</Entry>
              <Entry term="Workers">{row.ended ? count(row.workers, 'worker') : `${row.ready} of ${row.workers} ready`}</Entry>
              <Entry term="Created">
                {moment(row.created)} (<Age at={row.created} /> ago){row.user ? ` by ${row.user}` : status?.run?.fieldManager ? ` (the user was not recorded; field manager: "${status.run.fieldManager}")` : ''}
              </Entry>
              <Entry term="Started">{row.running ? moment(row.running) : null}</Entry>
              <Entry term="Duration">{row.running ? <Elapsed from={row.running} to={row.ended} /> : null}</Entry>
              <Entry term="Estimated end">{row.ended ? null : status?.endEstimate?.message}</Entry>
              <Entry term="Training">{detail.training}</Entry>
              <Entry term="Queue">{row.queue ? `${row.queue}${row.position ? `, position ${row.position}` : ''}` : null}</Entry>
              <Entry term="Waits for">{row.ended ? null : scheduling?.message}</Entry>
              <Entry term="Estimate">{row.ended ? null : scheduling?.estimate?.message}</Entry>
              <Entry term="Links">
                {status?.links?.length
                  ? status.links
                      .filter(({url}) => /^https?:\/\//.test(url))
                      .map(({title, url}, i) => (
                        <span key={title}>
                          {i > 0 ? ', ' : ''}
                          <a href={url} target="_blank" rel="noopener noreferrer">
                            {title}
                          </a>
                        </span>
                      ))
                  : null}
              </Entry>
              <Entry term="Usual wait">{scheduling?.waitP50 !== undefined && !row.running ? `${scheduling.waitP50} s for half of comparable jobs, at most ${scheduling.waitP90 ?? scheduling.waitP50} s for nine of ten` : null}</Entry>
            </DescriptionList>
            {done !== undefined ? <Progress value={done} title="Progress, as the program printed it" aria-label="Progress" /> : null}
          </CardBody>
        </Card>
        <Card component="section">
          <CardTitle component="h2">Resources</CardTitle>
          <CardBody>
            <DescriptionList isCompact orientation={{sm: 'horizontal'}}>
              <Entry term="Ranks">{detail.ranks}</Entry>
              <Entry term="Each worker">{detail.resources}</Entry>
              <Entry term="All pods">{detail.total}</Entry>
              <Entry term="Reserved">{detail.reserved}</Entry>
              <Entry term="Used">{detail.used}</Entry>
              <Entry term="Profile">{detail.profile}</Entry>
              <Entry term="Cost">{detail.cost ? `${detail.cost} per hour` : null}</Entry>
              <Entry term="Image">{detail.image ? <span className="mpi-mono">{detail.image}</span> : null}</Entry>
              <Entry term="Runtime">{row.runtime}</Entry>
              <Entry term="Command">{detail.command ? <code className="mpi-mono">{detail.command}</code> : null}</Entry>
            </DescriptionList>
            {detail.labels && Object.keys(detail.labels).length > 0 ? (
              <LabelGroup categoryName="Labels" numLabels={6}>
                {Object.entries(detail.labels).map(([name, value]) => (
                  <Label key={name} variant="outline" isCompact>
                    {name}={value}
                  </Label>
                ))}
              </LabelGroup>
            ) : null}
          </CardBody>
        </Card>
        {detail.checklist.length > 0 ? (
          <Card component="section">
            <CardTitle component="h2">Start of the job</CardTitle>
            <CardBody>
              <ul className="mpi-checks">
                {detail.checklist.map((check) => {
                  const result = check.result in results ? results[check.result as keyof typeof results] : results.unknown;
                  return (
                    <li key={check.text}>
                      <span aria-hidden="true">{result.icon}</span>
                      <span>
                        {check.result === 'fail' && guide ? <Link to={`/help/${encodeURIComponent(guide.code)}`}>{check.text}</Link> : check.text}
                        <span className="pf-v6-screen-reader">: {result.text}</span>
                      </span>
                    </li>
                  );
                })}
              </ul>
            </CardBody>
          </Card>
        ) : null}
        {status?.timeline && status.timeline.length > 0 ? (
          <Card component="section">
            <CardTitle component="h2">Timeline</CardTitle>
            <CardBody>
              <ol className="mpi-timeline">
                {status.timeline.map((entry, i) => (
                  <li key={i} className={/fail|evict|kill|lost|exceed/i.test(entry.event) ? 'is-failed' : /succeed|running|admitted/i.test(entry.event) ? 'is-good' : ''}>
                    <strong>{entry.event}</strong>{' '}
                    <time className="mpi-subtle mpi-numbers" dateTime={entry.time} title={moment(entry.time)}>
                      {timeOfDay(entry.time)}
                    </time>
                    <AtThatTime time={entry.time} event={entry.event} />
                    {entry.detail ? <div className="mpi-wrap">{entry.detail}</div> : null}
                  </li>
                ))}
              </ol>
            </CardBody>
          </Card>
        ) : null}
        {detail.outputs.length > 0 ? (
          <Card component="section">
            <CardTitle component="h2">Results</CardTitle>
            <CardBody>
              <ul className="mpi-outputs">
                {detail.outputs.map((output) => (
                  <li key={`${output.title} ${output.where}`}>
                    <strong>{output.title}</strong> {output.named ? <Label isCompact color="green">Named by the job (OUTPUT_DIR)</Label> : <span className="mpi-subtle">The job can write to it</span>}
                    <div className="mpi-wrap">{output.where}</div>
                    <ExpandableSection toggleText={output.title.startsWith('Data') ? 'Commands that list it' : 'Commands that copy it'}>
                      <Code text={output.command} label={`Commands for ${output.title}`} />
                    </ExpandableSection>
                  </li>
                ))}
              </ul>
            </CardBody>
          </Card>
        ) : null}
        {detail.attempts.length > 1 ? (
          <Card component="section">
            <CardTitle component="h2">Attempts</CardTitle>
            <CardBody>
              <ul className="mpi-checks">
                {detail.attempts.slice(0, 12).map((attempt) => (
                  <li key={attempt.id}>
                    <PhaseLabel phase={attempt.phase} isCompact />
                    <span className="mpi-wrap">
                      {attempt.id === row.id ? <strong>{attempt.name} (this job)</strong> : <Link to={jobURL({...attempt, namespace: row.namespace, deleted: attempt.deleted ?? false})}>{attempt.name}</Link>}{' '}
                      <span className="mpi-subtle">
                        {attempt.reason} {moment(attempt.created)}
                        {attempt.deleted ? ', deleted' : ''}
                      </span>
                      {attempt.id !== row.id ? (
                        <>
                          {' '}
                          <Link to={compareURL(row.namespace, attempt, row)} aria-label={`Compare with ${attempt.name}`}>
                            Compare
                          </Link>
                        </>
                      ) : null}
                    </span>
                  </li>
                ))}
              </ul>
            </CardBody>
          </Card>
        ) : null}
      </div>
    </div>
  );
}
