import {Alert, Button, Card, CardBody, CardTitle, DescriptionList, DescriptionListDescription, DescriptionListGroup, DescriptionListTerm, EmptyState, EmptyStateBody, Label} from '@patternfly/react-core';
import {type KeyboardEvent, type ReactElement, useRef, useState} from 'react';
import {type JobKey, usePods} from '../../api/queries';
import type {Detail, Pod} from '../../api/types';
import {count} from '../../components/Common';
import {Loaded} from '../../components/States';
import {CubesIcon, ServerIcon} from '../../lib/icons';
import {useParameters} from '../../lib/parameters';
import {PodLabel, podLookIn} from '../../lib/phase';

const placeOf = (pod: Pod): string => (pod.role === 'launcher' ? (pod.index > 0 ? `launcher#${pod.index + 1}` : 'launcher') : `worker-${pod.index}`);

/** Returns pods by node; pods without a node come last. */
function byNode(pods: Pod[]): [string, Pod[]][] {
  const nodes = new Map<string, Pod[]>();
  for (const pod of pods) nodes.set(pod.node ?? '', [...(nodes.get(pod.node ?? '') ?? []), pod]);
  return [...nodes].sort(([a], [b]) => (a === '' ? 1 : b === '' ? -1 : a.localeCompare(b)));
}

/** The launcher and the workers, grouped by node. Arrow keys move between pods. */
export default function Topology({job, detail}: {job: JobKey; detail: Detail}): ReactElement {
  const pods = usePods(job);
  return (
    <Loaded query={pods} what="The pods cannot be shown">
      {(data) =>
        data.pods.length === 0 ? (
          <EmptyState icon={CubesIcon} titleText="No pods" headingLevel="h2" variant="sm">
            <EmptyStateBody>{detail.row.progress ?? 'The job has no pods yet.'}</EmptyStateBody>
          </EmptyState>
        ) : (
          <Grid pods={data.pods} detail={detail} omitted={data.omitted} />
        )
      }
    </Loaded>
  );
}

function Grid({pods, detail, omitted}: {pods: Pod[]; detail: Detail; omitted: number}): ReactElement {
  const [selected, setSelected] = useState('');
  const box = useRef<HTMLDivElement>(null);
  const nodes = byNode(pods);
  const current = pods.find((pod) => pod.name === selected);
  const counts = new Map<string, number>();
  for (const pod of pods) {
    const {text} = podLookIn(pod, detail);
    counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  const move = (event: KeyboardEvent): void => {
    const steps: Record<string, number> = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1};
    const step = steps[event.key];
    const all = [...(box.current?.querySelectorAll<HTMLButtonElement>('.mpi-cell') ?? [])];
    if (step === undefined && event.key !== 'Home' && event.key !== 'End') return;
    event.preventDefault();
    const at = all.indexOf(document.activeElement as HTMLButtonElement);
    const to = event.key === 'Home' ? 0 : event.key === 'End' ? all.length - 1 : Math.max(0, Math.min(all.length - 1, at + (step ?? 0)));
    all[to]?.focus();
  };
  const first = pods[0]?.name;
  return (
    <div className="mpi-stack">
      <p>
        {count(pods.length, 'pod')} on {count(nodes.filter(([name]) => name).length, 'node')}: {[...counts].map(([text, n]) => `${n} ${/^[A-Z][a-z ]+$/.test(text) ? text.toLowerCase() : text}`).join(', ')}.
        {detail.ranks ? ` ${detail.ranks}.` : ''} {omitted > 0 ? `${omitted} more pods are not listed.` : ''}
      </p>
      {/* The arrow keys are a convenience: each pod is a button. */}
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-element-interactions */}
      <div className="mpi-nodes" ref={box} onKeyDown={move} role="group" aria-label="Pods by node">
        {nodes.map(([node, members]) => (
          <section className="mpi-node" key={node} aria-label={node || 'Without a node'}>
            <h3>
              <ServerIcon aria-hidden="true" /> {node || 'Not on a node yet'} <Label isCompact>{members.length}</Label>
            </h3>
            <div className="mpi-cells">
              {members.map((pod) => {
                const look = podLookIn(pod, detail);
                return (
                  <button
                    key={pod.name}
                    type="button"
                    className={`mpi-cell is-${look.color}`}
                    aria-pressed={pod.name === selected}
                    tabIndex={pod.name === (current?.name ?? first) ? 0 : -1}
                    onClick={() => setSelected(pod.name === selected ? '' : pod.name)}
                  >
                    <strong>
                      {look.icon} {placeOf(pod)}
                    </strong>
                    <span className="mpi-subtle">
                      {look.text}
                      {pod.ranks ? ` · ranks ${pod.ranks}` : ''}
                      {pod.restarts > 0 ? ` · ${count(pod.restarts, 'restart')}` : ''}
                    </span>
                  </button>
                );
              })}
            </div>
          </section>
        ))}
      </div>
      {current ? <PodCard pod={current} detail={detail} /> : <p className="mpi-subtle">Select a pod for its details. The tab Pods shows the same as a table.</p>}
    </div>
  );
}

/** Returns what is wrong with a pod: how it ended, what its status reports, and the findings about it. */
function problemsOf(pod: Pod, detail: Detail): string[] {
  const found = detail.findings.filter(({severity, affected}) => severity !== 'Info' && affected.includes(pod.name)).map(({summary}) => summary);
  const isEnded = pod.exitCode !== undefined && pod.exitCode !== 0;
  const status = [isEnded ? `Exit code ${pod.exitCode}${pod.reason ? ` (${pod.reason})` : ''}.` : pod.message && pod.reason ? `${pod.reason}:` : '', pod.message ?? ''].filter(Boolean).join(' ');
  return [...found, ...(status ? [status] : [])];
}

function PodCard({pod, detail}: {pod: Pod; detail: Detail}): ReactElement {
  const {open} = useParameters();
  const problems = problemsOf(pod, detail);
  const entries: [string, string | number | undefined][] = [
    ['Pod', pod.name],
    ['Node', pod.node],
    ['Address', pod.ip],
    ['Ranks', pod.ranks],
    ['Restarts', pod.restarts],
    ['Exit code', pod.exitCode],
    ['Requests', pod.requests],
    ['Image', pod.image],
  ];
  return (
    <Card component="section" aria-label={`Details of ${placeOf(pod)}`}>
      <CardTitle component="h3">
        {placeOf(pod)} <PodLabel pod={pod} detail={detail} />
      </CardTitle>
      <CardBody className="mpi-stack">
        {problems.length > 0 ? (
          <Alert isInline variant={podLookIn(pod, detail).color === 'red' ? 'danger' : 'warning'} title={problems[0] ?? ''} component="p" className="mpi-wrap">
            {problems.slice(1).map((text) => (
              <p key={text}>{text}</p>
            ))}
          </Alert>
        ) : null}
        <DescriptionList isHorizontal isCompact columnModifier={{default: '1Col', lg: '2Col'}}>
          {entries
            .filter(([, value]) => value !== undefined && value !== '')
            .map(([term, value]) => (
              <DescriptionListGroup key={term}>
                <DescriptionListTerm>{term}</DescriptionListTerm>
                <DescriptionListDescription className="mpi-wrap">{value}</DescriptionListDescription>
              </DescriptionListGroup>
            ))}
        </DescriptionList>
        <div className="mpi-actions">
          <Button variant="secondary" onClick={() => open({tab: 'logs', pod: placeOf(pod).replace(/#.*/, '')})}>
            Show its log
          </Button>
          <Button variant="secondary" onClick={() => open({tab: 'events', object: `pod/${pod.name}`})}>
            Show its events
          </Button>
        </div>
      </CardBody>
    </Card>
  );
}
