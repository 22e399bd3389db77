import {
  Alert,
  Button,
  EmptyState,
  EmptyStateActions,
  EmptyStateBody,
  EmptyStateFooter,
  Form,
  FormGroup,
  FormHelperText,
  FormSelect,
  FormSelectOption,
  HelperText,
  HelperTextItem,
  Label,
  Modal,
  ModalBody,
  ModalFooter,
  ModalHeader,
  PageSection,
  ProgressStep,
  ProgressStepper,
  Switch,
  TextInput,
} from '@patternfly/react-core';
import {ExpandableRowContent, Table, Tbody, Td, Th, Thead, Tr} from '@patternfly/react-table';
import {useMutation, useQueryClient} from '@tanstack/react-query';
import {type ReactElement, useState} from 'react';
import {Link, useSearchParams} from 'react-router';
import {errorText, path, post, remove} from '../api/client';
import {useMe, useNamespaces, useRuntimeJobs, useRuntimes} from '../api/queries';
import type {ActionResult, Runtime, RuntimeTest, TestRequest} from '../api/types';
import {Age, PageHead, Snippets} from '../components/Common';
import {ProjectSelect} from '../components/ProjectSelect';
import {Loaded} from '../components/States';
import {jobURL} from '../components/Watcher';
import {BugIcon, CheckCircleIcon, CubesIcon, ExclamationCircleIcon, InProgressIcon, PencilAltIcon, PendingIcon, PlusCircleIcon, TrashIcon} from '../lib/icons';
import {notify} from '../lib/notices';
import {RuntimeDialog} from './runtimes/RuntimeDialog';

const checkNames: Record<string, string> = {ImagePull: 'Image pulled', Keys: 'Keys accepted', Connection: 'Workers connected', ProcessStart: 'Ranks started', RanksDistinct: 'Ranks on different workers', Communication: 'Messages exchanged'};
const checkLooks = {Pass: 'success', Fail: 'danger', Pending: 'pending', Skipped: 'info', Unknown: 'warning'} as const;

function TestLabel({test}: {test: RuntimeTest | undefined}): ReactElement {
  if (!test) return <span className="mpi-subtle">Never tested</span>;
  const looks = {
    Passed: {color: 'teal', icon: <CheckCircleIcon />},
    Failed: {color: 'red', icon: <ExclamationCircleIcon />},
    Running: {color: 'green', icon: <InProgressIcon />},
    Pending: {color: 'blue', icon: <PendingIcon />},
  } as const;
  const look = test.phase in looks ? looks[test.phase as keyof typeof looks] : looks.Pending;
  return (
    <Label color={look.color} icon={look.icon} isCompact>
      {test.phase}
    </Label>
  );
}

function TestResult({test}: {test: RuntimeTest}): ReactElement {
  return (
    <div className="mpi-stack">
      <p>
        <TestLabel test={test} /> <strong>{test.name}</strong> in {test.namespace}, <Age at={test.created} /> ago. {test.message}
      </p>
      {test.checks.length > 0 ? (
        <ProgressStepper aria-label={`Checks of ${test.name}`} isCenterAligned>
          {test.checks.map((check) => (
            <ProgressStep
              key={check.name}
              id={`${test.name}-${check.name}`}
              titleId={`${test.name}-${check.name}-title`}
              variant={check.result in checkLooks ? checkLooks[check.result] : 'pending'}
              aria-label={`${checkNames[check.name] ?? check.name}: ${check.result}`}
              description={check.milliseconds ? `${check.milliseconds} ms` : undefined}
            >
              {checkNames[check.name] ?? check.name}
            </ProgressStep>
          ))}
        </ProgressStepper>
      ) : null}
      {test.checks
        .filter((check) => check.name === 'Communication' && (check.result === 'Pass' || check.result === 'Skipped'))
        .map((check) => (
          <p key={check.name} className="mpi-wrap">{check.message}</p>
        ))}
      {test.checks
        .filter((check) => check.result === 'Fail')
        .map((check) => (
          <Alert key={check.name} isInline variant="danger" component="p" title={`${checkNames[check.name] ?? check.name}: ${check.message ?? check.finding ?? 'failed'}`}>
            {check.remedies ? (
              <ul className="mpi-words">
                {check.remedies.map((remedy) => (
                  <li key={remedy.text} className="mpi-wrap">{remedy.text}</li>
                ))}
              </ul>
            ) : null}
          </Alert>
        ))}
    </div>
  );
}

function TestDialog({runtime, project, close}: {runtime: Runtime; project: string; close: () => void}): ReactElement {
  const queries = useQueryClient();
  const {data: namespaces} = useNamespaces();
  const {data: me} = useMe();
  const creatable = (namespaces?.namespaces ?? []).filter(({canCreate}) => canCreate);
  const [namespace, setNamespace] = useState(runtime.namespace ?? project);
  const [isSmall, setSmall] = useState(true);
  const [image, setImage] = useState('');
  const request: TestRequest = {namespace, kind: runtime.kind, name: runtime.name, image, ...(isSmall ? {cpu: '200m', memory: '256Mi', gpu: '0'} : {})};
  const test = useMutation({
    mutationFn: () => post<ActionResult>('runtimetests', request),
    onSuccess: (result) => {
      notify({variant: 'info', title: result.message});
      void queries.invalidateQueries({queryKey: ['runtimes']});
      close();
    },
  });
  const command = `${me?.program ?? 'oc odh mpijob'} runtimes test ${runtime.name} -n ${namespace || 'PROJECT'}${isSmall ? ' --cpu 200m --memory 256Mi --gpu 0' : ''}${image ? ` --image ${image}` : ''}`;
  return (
    <Modal variant="medium" isOpen onClose={close} aria-labelledby="test-title">
      <ModalHeader title={`Test ${runtime.name}`} labelId="test-title" description="A small job, a launcher and two workers, runs in a project and is deleted afterwards. Each step of its start is reported." />
      <ModalBody>
        <Form
          onSubmit={(event) => {
            event.preventDefault();
            test.mutate();
          }}
        >
          <FormGroup label="Project" isRequired fieldId="test-namespace">
            <FormSelect id="test-namespace" value={namespace} onChange={(_, value) => setNamespace(value)} isDisabled={runtime.namespace !== undefined}>
              <FormSelectOption value="" label="Select a project" isPlaceholder />
              {(runtime.namespace ? [{name: runtime.namespace}] : creatable).map(({name}) => (
                <FormSelectOption key={name} value={name} label={name} />
              ))}
            </FormSelect>
          </FormGroup>
          <Switch label="Small pods without GPUs (200m CPUs, 256Mi of memory)" isChecked={isSmall} onChange={(_, on) => setSmall(on)} />
          <FormGroup label="Image" fieldId="test-image">
            <TextInput id="test-image" value={image} onChange={(_, value) => setImage(value)} aria-describedby="test-image-help" />
            <FormHelperText>
              <HelperText id="test-image-help">
                <HelperTextItem>Empty for the image of the runtime{runtime.image ? `: ${runtime.image}` : ''}.</HelperTextItem>
              </HelperText>
            </FormHelperText>
          </FormGroup>
          {test.error ? <Alert isInline variant="danger" title={errorText(test.error)} component="p" /> : null}
        </Form>
        <Snippets items={[{title: 'Command line', language: 'sh', text: command}]} title="The same on the command line" />
      </ModalBody>
      <ModalFooter>
        <Button onClick={() => test.mutate()} isDisabled={namespace === '' || test.isPending} isLoading={test.isPending}>
          Start test
        </Button>
        <Button variant="link" onClick={close}>
          Close
        </Button>
      </ModalFooter>
    </Modal>
  );
}

/** Asks whether to delete a runtime, with the jobs that use it. */
function DeleteDialog({runtime, close}: {runtime: Runtime; close: () => void}): ReactElement {
  const queries = useQueryClient();
  const used = useRuntimeJobs(runtime.name, runtime.namespace);
  const deletion = useMutation({
    mutationFn: () => remove<ActionResult>(path('runtimes', runtime.name), runtime.namespace ? new URLSearchParams({namespace: runtime.namespace}) : undefined),
    onSuccess: (result) => {
      notify({variant: 'success', title: result.message});
      void queries.invalidateQueries({queryKey: ['runtimes']});
      close();
    },
  });
  const {running = 0, waiting = 0, jobs = []} = used.data ?? {};
  const more = running + waiting - jobs.length;
  return (
    <Modal variant="small" isOpen onClose={close} aria-labelledby="delete-title" aria-describedby="delete-text">
      <ModalHeader title={`Delete ${runtime.name}?`} titleIconVariant="warning" labelId="delete-title" />
      <ModalBody>
        <div className="mpi-stack" id="delete-text">
          <p>New jobs can no longer use this runtime. Jobs that run continue. Jobs that wait or are suspended cannot start any more.</p>
          {used.data ? (
            <p>{running + waiting === 0 ? 'No job that you may see uses it.' : `Jobs that use it: ${[running > 0 ? `${running} running` : '', waiting > 0 ? `${waiting} waiting or suspended` : ''].filter(Boolean).join(', ')}`}</p>
          ) : (
            <p>{used.error ? `Its jobs cannot be listed: ${errorText(used.error)}` : 'Its jobs are being listed.'}</p>
          )}
          {jobs.length > 0 ? (
            <ul className="mpi-words">
              {jobs.map((job) => (
                <li key={job.id} className="mpi-wrap">
                  <Link to={jobURL(job)}>{job.namespace}/{job.name}</Link>, {job.phase || 'Unknown'}
                </li>
              ))}
              {more > 0 ? <li>and {more} more</li> : null}
            </ul>
          ) : null}
          {deletion.error ? <Alert isInline variant="danger" title={errorText(deletion.error)} component="p" /> : null}
        </div>
      </ModalBody>
      <ModalFooter>
        <Button variant="danger" isLoading={deletion.isPending} isDisabled={deletion.isPending} onClick={() => deletion.mutate()}>
          Delete runtime
        </Button>
        <Button variant="link" onClick={close}>
          Keep the runtime
        </Button>
      </ModalFooter>
    </Modal>
  );
}

/** The limits of the number of workers of a job. */
const workersOf = ({minWorkers, maxWorkers}: Runtime): string => (minWorkers ? `${minWorkers}${maxWorkers ? ` to ${maxWorkers}` : ' or more'} workers` : maxWorkers ? `${maxWorkers} workers` : '');

/** The runtimes of Kubeflow Trainer, their limits and their tests. */
export function Runtimes(): ReactElement {
  const [params, setParams] = useSearchParams();
  const project = params.get('namespace') ?? '';
  const runtimes = useRuntimes(project);
  const {data: me} = useMe();
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const [tested, setTested] = useState<Runtime | undefined>();
  // The runtime that is changed; null for one that is created.
  const [edited, setEdited] = useState<Runtime | null | undefined>();
  const [deleted, setDeleted] = useState<Runtime | undefined>();
  const none = {create: false, update: false, delete: false};
  const {cluster = none, project: ofProject = none} = runtimes.data ?? {};
  const rightsFor = ({namespace}: Runtime): typeof none => (namespace === undefined ? cluster : namespace === project ? ofProject : none);
  const canCreate = cluster.create || ofProject.create;
  const create = (
    <Button icon={<PlusCircleIcon />} onClick={() => setEdited(null)}>
      Create runtime
    </Button>
  );
  return (
    <>
      <PageHead
        title="Runtimes"
        text="Runtimes have the image, the MPI and the limits that an administrator has set for TrainJobs. A test starts a small job and reports each step."
        actions={
          <>
            <ProjectSelect value={project} onChange={(value) => setParams(value ? {namespace: value} : {}, {replace: true})} />
            {canCreate && (runtimes.data?.runtimes.length ?? 0) > 0 ? create : null}
          </>
        }
      />
      <PageSection hasBodyWrapper={false} isFilled>
        <Loaded query={runtimes} what="The runtimes cannot be listed">
          {(data) =>
            data.runtimes.length === 0 ? (
              <EmptyState icon={CubesIcon} titleText={data.installed ? 'No runtimes' : 'The cluster has no Kubeflow Trainer'} headingLevel="h2">
                <EmptyStateBody>
                  {data.missing.includes('runtimes')
                    ? 'You may not list the runtimes of the cluster. Select a project to see those of the project.'
                    : !data.installed
                      ? 'Runtimes belong to Kubeflow Trainer. MPIJobs need neither.'
                      : canCreate
                        ? 'TrainJobs need a runtime. Create one from those that are shipped with the operator, with your image.'
                        : project
                          ? `TrainJobs need a runtime. You may not create one: this requires the role admin in ${project}, or the right to create ClusterTrainingRuntimes. MPIJobs need no runtime.`
                          : 'TrainJobs need a runtime. Administrators of the cluster create it for all projects. If you are the administrator of a project, select the project. MPIJobs need no runtime.'}
                </EmptyStateBody>
                {canCreate ? (
                  <EmptyStateFooter>
                    <EmptyStateActions>{create}</EmptyStateActions>
                  </EmptyStateFooter>
                ) : null}
              </EmptyState>
            ) : (
              <Table aria-label="Runtimes" gridBreakPoint="grid-lg">
                <Thead>
                  <Tr>
                    <Th screenReaderText="Details" />
                    {['Name', 'Framework', 'Limits', 'Image', 'Last test'].map((title) => (
                      <Th key={title} modifier="nowrap">{title}</Th>
                    ))}
                    <Th screenReaderText="Actions" />
                  </Tr>
                </Thead>
                {data.runtimes.map((runtime, i) => {
                  const key = `${runtime.kind}/${runtime.namespace ?? ''}/${runtime.name}`;
                  const isOpen = open.has(key);
                  const latest = runtime.tests[0];
                  return (
                    <Tbody key={key} isExpanded={isOpen}>
                      <Tr>
                        <Td
                          expand={{
                            rowIndex: i,
                            isExpanded: isOpen,
                            expandId: 'runtime',
                            onToggle: () => {
                              const next = new Set(open);
                              if (!next.delete(key)) next.add(key);
                              setOpen(next);
                            },
                          }}
                        />
                        <Td dataLabel="Name" className="mpi-name">
                          {runtime.name}
                          <div className="mpi-subtle">{runtime.namespace ?? 'of the cluster'}</div>
                          {runtime.errors.length > 0 ? <Label color="red" isCompact icon={<ExclamationCircleIcon />}>invalid</Label> : null}
                          {runtime.deleting ? <Label color="orange" isCompact icon={<TrashIcon />}>being deleted</Label> : null}
                        </Td>
                        <Td dataLabel="Framework">
                          {runtime.framework ?? '–'}
                          <div className="mpi-subtle">{runtime.implementation}</div>
                        </Td>
                        <Td dataLabel="Limits" className="mpi-wrap">
                          {[workersOf(runtime), runtime.maxGPUs ? `${runtime.maxGPUs} GPUs per worker` : '', runtime.nodeLabels ? `nodes with ${runtime.nodeLabels}` : ''].filter(Boolean).join(', ') || 'None'}
                        </Td>
                        <Td dataLabel="Image" className="mpi-wrap mpi-mono">{runtime.image ?? '–'}</Td>
                        <Td dataLabel="Last test">
                          <TestLabel test={latest} />
                          {latest ? (
                            <div className="mpi-subtle">
                              <Age at={latest.created} /> ago
                            </div>
                          ) : null}
                        </Td>
                        <Td isActionCell>
                          <div className="mpi-actions mpi-row-actions">
                            {runtime.mpi ? (
                              <Button variant="secondary" size="sm" icon={<BugIcon />} onClick={() => setTested(runtime)} aria-label={`Test runtime ${runtime.name}`}>
                                Test runtime
                              </Button>
                            ) : null}
                            {rightsFor(runtime).update && runtime.mpi ? (
                              <Button variant="link" isInline icon={<PencilAltIcon />} onClick={() => setEdited(runtime)} aria-label={`Edit runtime ${runtime.name}`}>
                                Edit
                              </Button>
                            ) : null}
                            {rightsFor(runtime).delete && !runtime.deleting ? (
                              <Button variant="link" isInline isDanger icon={<TrashIcon />} onClick={() => setDeleted(runtime)} aria-label={`Delete runtime ${runtime.name}`}>
                                Delete
                              </Button>
                            ) : null}
                          </div>
                        </Td>
                      </Tr>
                      <Tr isExpanded={isOpen}>
                        <Td colSpan={7} noPadding={false}>
                          <ExpandableRowContent>
                            <div className="mpi-stack">
                              {runtime.errors.map((error) => <Alert key={error} isInline variant="danger" title={error} component="p" />)}
                              {runtime.mpi ? <p>{runtime.slots} {runtime.slots === '1' ? 'slot' : 'slots'} per worker unless the job sets it.</p> : <p>This is not a runtime for MPI; the dashboard lists its jobs.</p>}
                              {runtime.tests.length === 0 ? <p className="mpi-subtle">No test is kept. Tests are kept for a day.</p> : runtime.tests.slice(0, 5).map((test) => <TestResult key={test.namespace + test.name} test={test} />)}
                            </div>
                          </ExpandableRowContent>
                        </Td>
                      </Tr>
                    </Tbody>
                  );
                })}
              </Table>
            )
          }
        </Loaded>
        {me ? <Snippets items={[{title: 'Command line', language: 'sh', text: `${me.program} runtimes list${project ? ` -n ${project}` : ''}`}]} title="The same on the command line" /> : null}
      </PageSection>
      {edited !== undefined ? <RuntimeDialog runtimes={(runtimes.data?.runtimes ?? []).filter(({mpi}) => mpi)} changed={edited ?? undefined} canCreate={{cluster: cluster.create, project: ofProject.create ? project : ''}} close={() => setEdited(undefined)} /> : null}
      {deleted ? <DeleteDialog runtime={deleted} close={() => setDeleted(undefined)} /> : null}
      {tested ? <TestDialog runtime={tested} project={project} close={() => setTested(undefined)} /> : null}
    </>
  );
}
