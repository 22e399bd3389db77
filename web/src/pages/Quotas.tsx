import {Alert, Card, CardBody, CardTitle, EmptyState, EmptyStateBody, Label, PageSection, Title} from '@patternfly/react-core';
import {Table, Tbody, Td, Th, Thead, Tr} from '@patternfly/react-table';
import type {ReactElement} from 'react';
import {Link, useSearchParams} from 'react-router';
import {useLive, useMe, useQuotas} from '../api/queries';
import {Age, count, PageHead, Snippets} from '../components/Common';
import {ProjectSelect} from '../components/ProjectSelect';
import {QuotaBar, queueBars, quotaBars} from '../components/QuotaBar';
import {Loaded} from '../components/States';
import {jobURL} from '../components/Watcher';
import {CubesIcon} from '../lib/icons';

/** Who waits for what: queues with the jobs in them, and the quotas of projects. */
export function Quotas(): ReactElement {
  const [params, setParams] = useSearchParams();
  const project = params.get('namespace') ?? '';
  const quotas = useQuotas(project);
  const {data: me} = useMe();
  useLive(project ? {namespace: project} : {});
  return (
    <>
      <PageHead
        title="Queues and quotas"
        text="Who waits for what, and what is left."
        actions={<ProjectSelect value={project} onChange={(value) => setParams(value ? {namespace: value} : {}, {replace: true})} />}
      />
      <PageSection hasBodyWrapper={false} isFilled>
        <Loaded query={quotas} what="The queues and quotas cannot be shown">
          {(data) => {
            const limited = data.quotas.filter(({quotas: list}) => list.length > 0);
            return (
              <div className="mpi-stack">
                {data.missing.length > 0 ? <Alert isInline variant="info" title={`You may not read the ${data.missing.join(', ')}`} component="p" /> : null}
                <Title headingLevel="h2">Queues</Title>
                {data.queues.length === 0 ? (
                  <EmptyState icon={CubesIcon} titleText={data.kueue ? 'No queues' : 'The cluster has no Kueue'} headingLevel="h3" variant="sm">
                    <EmptyStateBody>{data.kueue ? 'Select another project, or ask an administrator for a LocalQueue.' : 'Without Kueue, jobs start as soon as all of their pods fit.'}</EmptyStateBody>
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
                            <p>{count(queue.running, 'job')} admitted, {queue.pending} waiting.</p>
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
                                    <Th>Since</Th>
                                  </Tr>
                                </Thead>
                                <Tbody>
                                  {queue.waiting.map((row) => (
                                    <Tr key={row.id}>
                                      <Td dataLabel="Position">{row.position ?? '–'}</Td>
                                      <Td dataLabel="Job"><Link to={jobURL(row)}>{row.name}</Link></Td>
                                      <Td dataLabel="Waits for">{count(row.workers, 'worker')}{row.gpus ? `, ${count(row.gpus, 'GPU')}` : ''}</Td>
                                      <Td dataLabel="Since"><Age at={row.created} /></Td>
                                    </Tr>
                                  ))}
                                </Tbody>
                              </Table>
                            ) : null}
                          </div>
                        </CardBody>
                      </Card>
                    ))}
                  </div>
                )}
                <Title headingLevel="h2">Quotas of projects</Title>
                {limited.length === 0 ? (
                  <p>No ResourceQuota limits {project ? 'this project' : 'the projects in which you see jobs'}.</p>
                ) : (
                  <div className="mpi-grid">
                    {limited.map(({namespace, quotas: list}) => (
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
                )}
              </div>
            );
          }}
        </Loaded>
        {me ? <Snippets items={[{title: 'Command line', language: 'sh', text: `${me.program} list ${project ? `-n ${project}` : '-A'} --phase Queued -o wide\nkubectl ${project ? `-n ${project} ` : ''}get localqueues,resourcequotas${project ? '' : ' -A'}`}]} title="The same on the command line" /> : null}
      </PageSection>
    </>
  );
}
