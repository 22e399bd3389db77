import {Button, Progress, ProgressMeasureLocation} from '@patternfly/react-core';
import {Table, Tbody, Td, Th, Thead, Tr} from '@patternfly/react-table';
import type {ReactElement} from 'react';
import {type JobKey, usePods} from '../../api/queries';
import type {Detail, Pod} from '../../api/types';
import {Age} from '../../components/Common';
import {Loaded} from '../../components/States';
import {useParameters} from '../../lib/parameters';
import {PodLabel} from '../../lib/phase';

const gib = (bytes: number): string => (bytes >= 1 << 30 ? `${(bytes / (1 << 30)).toFixed(1)} GiB` : `${Math.round(bytes / (1 << 20))} MiB`);

function Usage({pod}: {pod: Pod}): ReactElement {
  if (pod.cpu === undefined || pod.memory === undefined) return <span aria-label="unknown">–</span>;
  const cpu = `${pod.cpu.toFixed(2)}${pod.cpuLimit ? ` of ${pod.cpuLimit}` : ''} CPUs`;
  const memory = `${gib(pod.memory)}${pod.memoryLimit ? ` of ${gib(pod.memoryLimit)}` : ''}`;
  return (
    <>
      {pod.cpuLimit ? <Progress aria-label={`CPU of ${pod.name}`} value={Math.min(100, (100 * pod.cpu) / pod.cpuLimit)} label={cpu} measureLocation={ProgressMeasureLocation.outside} size="sm" /> : <div>{cpu}</div>}
      {pod.memoryLimit ? (
        <Progress aria-label={`Memory of ${pod.name}`} value={Math.min(100, (100 * pod.memory) / pod.memoryLimit)} label={memory} measureLocation={ProgressMeasureLocation.outside} size="sm" />
      ) : (
        <div>{memory}</div>
      )}
    </>
  );
}

/** The launcher, and under it the workers. */
export default function PodsTab({job, detail}: {job: JobKey; detail: Detail}): ReactElement {
  const pods = usePods(job);
  const {open} = useParameters();
  return (
    <Loaded query={pods} what="The pods cannot be shown">
      {(data) => (
        <>
          {data.noUsage ? <p className="mpi-subtle">{data.noUsage}</p> : null}
          <Table aria-label="Pods of the job" variant="compact" gridBreakPoint="grid-lg">
            <Thead>
              <Tr>
                {['Pod', 'Status', 'Node', 'Ranks', 'Restarts', 'Age'].map((title) => (
                  <Th key={title} modifier={title === 'Pod' || title === 'Status' ? 'wrap' : 'nowrap'}>{title}</Th>
                ))}
                {data.noUsage ? null : <Th>Usage</Th>}
                <Th screenReaderText="Log and events" />
              </Tr>
            </Thead>
            <Tbody>
              {data.pods.map((pod) => (
                <Tr key={pod.name}>
                  <Td dataLabel="Pod" className="mpi-wrap">
                    {pod.role === 'worker' ? <span aria-hidden="true">└ </span> : null}
                    <strong>{pod.role === 'launcher' ? 'Launcher' : `Worker ${pod.index}`}</strong>
                    <div className="mpi-subtle">{pod.name}</div>
                  </Td>
                  <Td dataLabel="Status">
                    <PodLabel pod={pod} detail={detail} />
                    {pod.exitCode !== undefined && pod.exitCode !== 0 ? <div className="mpi-subtle">Exit code {pod.exitCode}</div> : null}
                    {pod.message ? <div className="mpi-subtle mpi-wrap">{pod.message}</div> : null}
                  </Td>
                  <Td dataLabel="Node">{pod.node ?? '–'}</Td>
                  <Td dataLabel="Ranks">{pod.ranks ?? '–'}</Td>
                  <Td dataLabel="Restarts">{pod.restarts}</Td>
                  <Td dataLabel="Age" className="mpi-numbers">{pod.created ? <Age at={pod.created} /> : '–'}</Td>
                  {data.noUsage ? null : (
                    <Td dataLabel="Usage">
                      <Usage pod={pod} />
                    </Td>
                  )}
                  <Td isActionCell>
                    <Button variant="link" size="sm" onClick={() => open({tab: 'logs', pod: pod.role === 'launcher' ? 'launcher' : `worker-${pod.index}`})} aria-label={`Log of ${pod.name}`}>
                      Log
                    </Button>
                    <Button variant="link" size="sm" onClick={() => open({tab: 'events', object: `pod/${pod.name}`})} aria-label={`Events of ${pod.name}`}>
                      Events
                    </Button>
                  </Td>
                </Tr>
              ))}
            </Tbody>
          </Table>
          {data.pods.length === 0 ? <p>The job has no pods.</p> : null}
          {data.omitted > 0 ? <p>{data.omitted} more pods are not listed in the report.</p> : null}
        </>
      )}
    </Loaded>
  );
}
