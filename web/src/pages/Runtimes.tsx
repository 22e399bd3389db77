import {
  Alert,
  Button,
  EmptyState,
  EmptyStateBody,
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
import {ApiError, errorText, path, post, put, remove} from '../api/client';
import {useMe, useNamespaces, useRuntimeJobs, useRuntimes} from '../api/queries';
import type {ActionResult, Runtime, RuntimeCopy, RuntimeSettings, RuntimeTest, TestRequest} from '../api/types';
import {Age, PageHead, Snippets} from '../components/Common';
import {ProjectSelect} from '../components/ProjectSelect';
import {Loaded} from '../components/States';
import {jobURL} from '../components/Watcher';
import {BugIcon, CheckCircleIcon, CubesIcon, ExclamationCircleIcon, InProgressIcon, PencilAltIcon, PendingIcon, PlusCircleIcon, TrashIcon} from '../lib/icons';
import {notify} from '../lib/notices';

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

interface RuntimeForm {
  from: string;
  name: string;
  image: string;
  slots: string;
  maxWorkers: string;
  maxGPUs: string;
}

const formOf = (runtime: Runtime, name: string): RuntimeForm => ({from: runtime.name, name, image: runtime.image ?? '', slots: runtime.slots ?? '', maxWorkers: runtime.maxWorkers ?? '', maxGPUs: runtime.maxGPUs ?? ''});

/** The fields of a form that are numbers. */
const amounts = ['slots', 'maxWorkers', 'maxGPUs'] as const;
const isAmount = (text: string): boolean => text === '' || (/^-?\d+$/.test(text) && Math.abs(Number(text)) < 2 ** 31);

function settingsOf(form: RuntimeForm): RuntimeSettings {
  const settings: RuntimeSettings = {image: form.image.trim()};
  for (const field of amounts) if (form[field] !== '') settings[field] = Number(form[field]);
  return settings;
}

/** Creates a runtime of the cluster from another, or changes one. */
function RuntimeDialog({runtimes, changed, close}: {runtimes: Runtime[]; changed: Runtime | undefined; close: () => void}): ReactElement {
  const queries = useQueryClient();
  const first = changed ?? runtimes[0];
  const [form, setForm] = useState<RuntimeForm>(first ? formOf(first, '') : {from: '', name: '', image: '', slots: '', maxWorkers: '', maxGPUs: ''});
  const save = useMutation({
    mutationFn: () => {
      const settings = settingsOf(form);
      return changed ? put<ActionResult>(path('runtimes', changed.name), settings) : post<ActionResult>('runtimes', {from: form.from, name: form.name, settings} satisfies RuntimeCopy);
    },
    onSuccess: (result) => {
      notify({variant: 'success', title: result.message});
      void queries.invalidateQueries({queryKey: ['runtimes']});
      close();
    },
  });
  const set = (change: Partial<RuntimeForm>): void => {
    setForm({...form, ...change});
    save.reset();
  };
  const refused = new Map((save.error instanceof ApiError ? (save.error.problem.fields ?? []) : []).map(({field, value, reason}) => [field, `${value ? `${value} ` : ''}${reason}`]));
  const errorOf = (field: keyof RuntimeForm): string | undefined =>
    refused.get(field) ?? (amounts.some((each) => each === field) && !isAmount(form[field]) ? `${form[field]} is not a whole number` : undefined);
  const isIncomplete = amounts.some((field) => !isAmount(form[field])) || (!changed && (form.name === '' || form.from === ''));
  const fields: {field: keyof RuntimeForm; label: string; hint: string}[] = [
    {field: 'image', label: 'Image', hint: 'Of the workers, and of the launcher if it has the same.'},
    {field: 'slots', label: 'Slots per worker', hint: 'Ranks on each worker, unless the job sets it.'},
    {field: 'maxWorkers', label: 'Workers of a job, at most', hint: 'Empty for no limit.'},
    {field: 'maxGPUs', label: 'GPUs of a worker, at most', hint: 'Empty for no limit.'},
  ];
  const text = ({field, label, hint, isRequired = false}: {field: keyof RuntimeForm; label: string; hint: string; isRequired?: boolean}): ReactElement => {
    const error = errorOf(field);
    return (
      <FormGroup key={field} label={label} fieldId={`runtime-${field}`} isRequired={isRequired}>
        <TextInput id={`runtime-${field}`} value={form[field]} isRequired={isRequired} autoComplete="off" validated={error ? 'error' : 'default'} aria-describedby={`runtime-${field}-help`} onChange={(_, value) => set({[field]: value})} />
        <FormHelperText>
          <HelperText id={`runtime-${field}-help`} isLiveRegion={error !== undefined}>
            {error ? <HelperTextItem variant="error" icon={<ExclamationCircleIcon />}>{error}</HelperTextItem> : <HelperTextItem>{hint}</HelperTextItem>}
          </HelperText>
        </FormHelperText>
      </FormGroup>
    );
  };
  return (
    <Modal variant="medium" isOpen onClose={close} aria-labelledby="runtime-title">
      <ModalHeader
        title={changed ? `Edit ${changed.name}` : 'Create runtime'}
        labelId="runtime-title"
        description={changed ? 'New jobs get the new settings. A job above a limit is refused when it is created.' : 'A new runtime of the cluster has all settings of an existing one but these.'}
      />
      <ModalBody>
        <Form
          id="runtime-form"
          onSubmit={(event) => {
            event.preventDefault();
            if (!isIncomplete) save.mutate();
          }}
        >
          {changed ? null : (
            <FormGroup label="Start from" isRequired fieldId="runtime-from">
              <FormSelect
                id="runtime-from"
                value={form.from}
                onChange={(_, name) => {
                  const chosen = runtimes.find((each) => each.name === name);
                  if (chosen) set(formOf(chosen, form.name));
                }}
              >
                {runtimes.map(({name}) => (
                  <FormSelectOption key={name} value={name} label={name} />
                ))}
              </FormSelect>
            </FormGroup>
          )}
          {changed ? null : text({field: 'name', label: 'Name', hint: 'Such as mpi-a100. It cannot be changed later.', isRequired: true})}
          {fields.map(text)}
          {save.error && refused.size === 0 ? <Alert isInline variant="danger" title={errorText(save.error)} component="p" /> : null}
        </Form>
      </ModalBody>
      <ModalFooter>
        <Button type="submit" form="runtime-form" isDisabled={isIncomplete || save.isPending} isLoading={save.isPending}>
          {changed ? 'Save runtime' : 'Create'}
        </Button>
        <Button variant="link" onClick={close}>
          Close
        </Button>
      </ModalFooter>
    </Modal>
  );
}

/** Asks whether to delete a runtime of the cluster, with the jobs that use it. */
function DeleteDialog({runtime, close}: {runtime: Runtime; close: () => void}): ReactElement {
  const queries = useQueryClient();
  const used = useRuntimeJobs(runtime.name);
  const deletion = useMutation({
    mutationFn: () => remove<ActionResult>(path('runtimes', runtime.name)),
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
  const ofCluster = (runtimes.data?.runtimes ?? []).filter(({mpi, namespace}) => mpi && namespace === undefined);
  const canDelete = runtimes.data?.canDelete ?? false;
  const canManage = (runtimes.data?.canManage ?? false) && ofCluster.length > 0;
  return (
    <>
      <PageHead
        title="Runtimes"
        text="Runtimes have the image, the MPI and the limits that an administrator has set for TrainJobs. A test starts a small job and reports each step."
        actions={
          <>
            <ProjectSelect value={project} onChange={(value) => setParams(value ? {namespace: value} : {}, {replace: true})} />
            {canManage ? <Button icon={<PlusCircleIcon />} onClick={() => setEdited(null)}>Create runtime</Button> : null}
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
                    : data.installed
                      ? 'An administrator creates runtimes as ClusterTrainingRuntimes; examples are in config/runtimes.'
                      : 'Runtimes belong to Kubeflow Trainer. MPIJobs need neither.'}
                </EmptyStateBody>
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
                          {[runtime.maxWorkers ? `${runtime.maxWorkers} workers` : '', runtime.maxGPUs ? `${runtime.maxGPUs} GPUs per worker` : '', runtime.nodeLabels ? `nodes with ${runtime.nodeLabels}` : ''].filter(Boolean).join(', ') || 'None'}
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
                            {canManage && runtime.mpi && runtime.namespace === undefined ? (
                              <Button variant="link" isInline icon={<PencilAltIcon />} onClick={() => setEdited(runtime)} aria-label={`Edit runtime ${runtime.name}`}>
                                Edit
                              </Button>
                            ) : null}
                            {canDelete && runtime.namespace === undefined && !runtime.deleting ? (
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
      {edited !== undefined ? <RuntimeDialog runtimes={ofCluster} changed={edited ?? undefined} close={() => setEdited(undefined)} /> : null}
      {deleted ? <DeleteDialog runtime={deleted} close={() => setDeleted(undefined)} /> : null}
      {tested ? <TestDialog runtime={tested} project={project} close={() => setTested(undefined)} /> : null}
    </>
  );
}
