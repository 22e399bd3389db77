import {Alert, Card, CardBody, CardTitle, EmptyState, EmptyStateBody, Label, PageSection, Switch, Title} from '@patternfly/react-core';
import {Table, Tbody, Td, Th, Thead, Tr} from '@patternfly/react-table';
import type {ReactElement} from 'react';
import {Link} from 'react-router';
import {useLive, useMe, useQuotas} from '../api/queries';
import {Age, count, PageHead, Snippets} from '../components/Common';
import {ProjectSelect} from '../components/ProjectSelect';
import {nearlyFull, QuotaBar, queueBars, quotaBars, shareOf} from '../components/QuotaBar';
import {Loaded} from '../components/States';
import {jobURL} from '../components/Watcher';
import {CubesIcon} from '../lib/icons';
import {useParameters} from '../lib/parameters';
import {duration} from '../lib/time';

/** Who waits for what: queues with the jobs in them, and the quotas of projects. */
export function Quotas(): ReactElement {
  const {params, refine} = useParameters();
  const project = params.get('namespace') ?? '';
  const quotas = useQuotas(project);
  const {data: me} = useMe();
  const isShared = quotas.data?.quotas.some(({quotas: list}) => list.some(({shared}) => shared)) ?? false;
  useLive(project ? {namespace: project} : {});
  return (
    <>
      <PageHead
        title="Queues and quotas"
        text="Who waits for what, and what is left."
        actions={<ProjectSelect value={project} onChange={(value) => refine({namespace: value})} />}
      />
      <PageSection hasBodyWrapper={false} isFilled>
        <Loaded query={quotas} what="The queues and quotas cannot be shown">
          {(data) => {
            const limited = data.quotas
              .filter(({quotas: list}) => list.length > 0)
              .map((each) => ({...each, share: Math.max(...quotaBars(each.quotas, undefined).map(shareOf))}))
              .sort((a, b) => b.share - a.share || a.namespace.localeCompare(b.namespace));
            const nearly = limited.filter(({share}) => share >= nearlyFull).length;
            const shown = params.get('full') ? limited.filter(({share}) => share >= nearlyFull) : limited;
            return (
              <div className="mpi-stack">
                {data.missing.length > 0 ? <Alert isInline variant="info" title={`You may not read the ${data.missing.join(', ')}`} component="p" /> : null}
                <Title headingLevel="h2">Queues</Title>
                {data.queues.length === 0 && !data.kueue ? (
                  <p>The cluster has no Kueue: jobs start as soon as all of their pods fit.</p>
                ) : data.queues.length === 0 ? (
                  <EmptyState icon={CubesIcon} titleText="No queues" headingLevel="h3" variant="sm">
                    <EmptyStateBody>Select another project, or ask an administrator for a LocalQueue.</EmptyStateBody>
                  </EmptyState>
                ) : (
                  <div className="mpi-grid">
                    {data.queues.map((queue) => (
                      <Card key={`${queue.namespace}/${queue.name}`} component="section" aria-label={`Queue ${queue.name}`}>
                        <CardTitle component="h3">
                          {queue.name} <span className="mpi-subtle">{queue.namespace}, ClusterQueue {queue.clusterQueue}</span> {queue.active ? null : <Label color="red" isCompact>stopped</Label>}
                        </CardTitle>
                        <CardBody>
                          <div className="mpi-stack">
                            {queue.message ? <p>{queue.message}</p> : null}
                            <p>
                              {count(queue.running, 'job')} admitted, {queue.pending} waiting.
                              {queue.samples ? ` Of ${count(queue.samples, 'past job')}, half waited at most ${duration(1000 * (queue.waitP50 ?? 0))}, and nine of ten at most ${duration(1000 * (queue.waitP90 ?? 0))}.` : ''}
                            </p>
                            {queueBars(queue.resources, undefined).map((bar) => (
                              <QuotaBar key={bar.key} bar={bar} />
                            ))}
                            {queue.waiting.length > 0 ? (
                              <Table aria-label={`Jobs waiting in ${queue.name}`} variant="compact" borders={false}>
                                <Thead>
                                  <Tr>
                                    <Th>Position</Th>
                                    <Th>Job</Th>
                                    <Th>Waits for</Th>
                                    <Th>Reason</Th>
                                    <Th>Since</Th>
                                  </Tr>
                                </Thead>
                                <Tbody>
                                  {queue.waiting.map((row) => (
                                    <Tr key={row.id}>
                                      <Td dataLabel="Position">{row.position ?? '–'}</Td>
                                      <Td dataLabel="Job"><Link to={jobURL(row)}>{row.name}</Link></Td>
                                      <Td dataLabel="Waits for">{count(row.workers, 'worker')}{row.gpus ? `, ${count(row.gpus, 'GPU')}` : ''}</Td>
                                      <Td dataLabel="Reason" className="mpi-wrap">{row.progress ?? row.reason ?? '–'}</Td>
                                      <Td dataLabel="Since"><Age at={row.created} /></Td>
                                    </Tr>
                                  ))}
                                </Tbody>
                              </Table>
                            ) : null}
                            {queue.waitingOmitted ? (
                              <p>
                                <Link to={`/?${new URLSearchParams({namespace: queue.namespace, queue: queue.name, sort: 'queue'}).toString()}`}>{queue.waitingOmitted.toLocaleString()} more jobs wait in {queue.name}</Link>
                              </p>
                            ) : null}
                          </div>
                        </CardBody>
                      </Card>
                    ))}
                  </div>
                )}
                <Title headingLevel="h2">Quotas of projects</Title>
                {limited.length === 0 ? (
                  <p>No quota limits {project ? 'this project' : 'the projects in which you see jobs'}.</p>
                ) : (
                  <>
                  {limited.length > 1 ? (
                    <div className="mpi-actions mpi-filters">
                      <span>
                        {nearly} of {count(limited.length, 'project')} {nearly === 1 ? 'has' : 'have'} used at least {Math.round(100 * nearlyFull)} % of a quota.
                      </span>
                      <Switch label="Only these" isChecked={params.has('full')} onChange={(_, on) => refine({full: on ? 'true' : ''})} />
                    </div>
                  ) : null}
                  <div className="mpi-grid">
                    {shown.map(({namespace, quotas: list}) => (
                      <Card key={namespace} component="section" aria-label={`Quotas of ${namespace}`}>
                        <CardTitle component="h3">{namespace}</CardTitle>
                        <CardBody>
                          <div className="mpi-stack">
                            {quotaBars(list, undefined).map((bar) => (
                              <QuotaBar key={bar.key} bar={bar} />
                            ))}
                          </div>
                        </CardBody>
                      </Card>
                    ))}
                  </div>
                  </>
                )}
              </div>
            );
          }}
        </Loaded>
        {me ? <Snippets items={[{title: 'Command line', language: 'sh', text: `${me.program} list ${project ? `-n ${project}` : '-A'} --phase Queued -o wide\nkubectl ${project ? `-n ${project} ` : ''}get localqueues,resourcequotas${project ? '' : ' -A'}${isShared ? `\nkubectl ${project ? `-n ${project} get applied` : 'get '}clusterresourcequotas` : ''}`}]} title="The same on the command line" /> : null}
      </PageSection>
    </>
  );
}
