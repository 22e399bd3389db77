import {
  Alert,
  AlertActionLink,
  Breadcrumb,
  BreadcrumbItem,
  Button,
  Card,
  CardBody,
  CardHeader,
  CardTitle,
  Content,
  ExpandableSection,
  Form,
  FormGroup,
  FormHelperText,
  FormSelect,
  FormSelectOption,
  HelperText,
  HelperTextItem,
  Label,
  NumberInput,
  PageSection,
  Slider,
  Switch,
  TextArea,
  TextInput,
  Title,
  Wizard,
  WizardStep,
} from '@patternfly/react-core';
import {useMutation, useQueryClient} from '@tanstack/react-query';
import {type ReactElement, type ReactNode, useEffect, useState} from 'react';
import {Link, useNavigate, useSearchParams} from 'react-router';
import {errorText, path, post, remove} from '../api/client';
import {type JobKey, useChoices, useCloneForm, useCreate, useNamespaces, usePreview, useTemplates} from '../api/queries';
import type {ActionResult, Choices, CloneForm, Draft, JobSpec, SpecRequest, TemplateResult} from '../api/types';
import {Code, count, Help, PageHead, Snippets} from '../components/Common';
import {Diff} from '../components/Diff';
import {FrameworkMark} from '../components/Framework';
import {Markdown} from '../components/Markdown';
import {ProblemAlert} from '../components/Problem';
import {QuotaBar, queueBars, quotaBars} from '../components/QuotaBar';
import {Busy, Loaded} from '../components/States';
import {jobURL} from '../components/Watcher';
import {CubesIcon, ExclamationCircleIcon, FileCodeIcon, PlusCircleIcon, TrashIcon} from '../lib/icons';
import {notify} from '../lib/notices';
import {duration} from '../lib/time';

type Way = 'image' | 'runtime' | 'template' | 'yaml';

interface Draftable {
  way: Way;
  name: string;
  description: string;
  namespace: string;
  image: string;
  runtime: string;
  command: string;
  implementation: string;
  workers: number;
  slots: string;
  cpu: string;
  memory: string;
  gpu: number;
  gpuResource: string;
  env: {name: string; value: string}[];
  queue: string;
  priority: string;
  connections: string[];
  retries: number;
  hours: string;
  suspend: boolean;
  user: string;
  flags: string;
  gangMinutes: string;
  yaml: string;
  template: string;
  values: Record<string, string>;
}

const start: Draftable = {
  way: 'image',
  name: '',
  description: '',
  namespace: '',
  image: '',
  runtime: '',
  command: '',
  implementation: 'OpenMPI',
  workers: 4,
  slots: '',
  cpu: '2',
  memory: '4Gi',
  gpu: 0,
  gpuResource: 'nvidia.com/gpu',
  env: [],
  queue: '',
  priority: '',
  connections: [],
  retries: 0,
  hours: '',
  suspend: false,
  user: '',
  flags: '',
  gangMinutes: '',
  yaml: '',
  template: '',
  values: {},
};

/** The form that a job's clone starts from. */
function formOf({request, note}: CloneForm): Draftable {
  const {spec} = request;
  const common = {...start, name: spec.name, namespace: spec.namespace ?? ''};
  if (note) return {...common, way: 'yaml', yaml: request.yaml ?? ''};
  return {
    ...common,
    way: spec.runtime ? 'runtime' : 'image',
    description: request.description ?? '',
    image: spec.image ?? '',
    runtime: spec.runtime ?? '',
    command: request.commandLine ?? '',
    implementation: spec.implementation || start.implementation,
    workers: spec.workers,
    slots: spec.slots === undefined ? '' : String(spec.slots),
    cpu: spec.cpu ?? '',
    memory: spec.memory ?? '',
    gpu: spec.gpu ?? 0,
    gpuResource: spec.gpuResource ?? start.gpuResource,
    env: (spec.env ?? []).map(({name, value}) => ({name, value: value ?? ''})),
    queue: spec.queue ?? '',
    priority: spec.priority ?? '',
    connections: spec.connections ?? [],
    retries: spec.retries ?? 0,
    hours: request.deadlineSeconds ? String(request.deadlineSeconds / 3600) : '',
    user: spec.runAsUser === undefined ? '' : String(spec.runAsUser),
    flags: request.flagLine ?? '',
    gangMinutes: request.gangTimeoutSeconds ? String(request.gangTimeoutSeconds / 60) : '',
  };
}

/** Reads ?clone=KIND/NAME&namespace=NAMESPACE. */
function cloneOf(params: URLSearchParams): JobKey | undefined {
  const [kind, name] = (params.get('clone') ?? '').split('/');
  const namespace = params.get('namespace');
  return kind && name && namespace ? {namespace, kind, name} : undefined;
}

function requestOf(form: Draftable): SpecRequest {
  if (form.way === 'yaml') return {spec: {name: '', namespace: form.namespace, command: [], workers: 1}, yaml: form.yaml};
  if (form.way === 'template') return {spec: {name: form.name, namespace: form.namespace, command: [], workers: 1}, template: form.template || '-', values: form.values};
  const isRuntime = form.way === 'runtime';
  const spec: JobSpec = {
    name: form.name,
    namespace: form.namespace,
    image: form.image.trim(),
    command: [],
    workers: whole(String(form.workers)) ?? 1,
    gpu: form.gpu,
    gpuResource: form.gpuResource,
    cpu: form.cpu.trim(),
    memory: form.memory.trim(),
    queue: form.queue,
    priority: form.priority,
    connections: form.connections,
    env: form.env.filter(({name}) => name !== ''),
    suspend: form.suspend,
  };
  const [slots, user] = [whole(form.slots), whole(form.user)];
  if (slots !== undefined) spec.slots = slots;
  if (user !== undefined) spec.runAsUser = user;
  if (isRuntime) spec.runtime = form.runtime;
  else {
    spec.implementation = form.implementation;
    const retries = whole(String(form.retries));
    if (retries) spec.retries = retries;
  }
  const request: SpecRequest = {spec, commandLine: form.command, flagLine: form.flags, description: form.description, deadlineSeconds: Math.round(Number(form.hours || 0) * 3600)};
  if (!isRuntime && form.gangMinutes) request.gangTimeoutSeconds = Math.round(Number(form.gangMinutes) * 60);
  return request;
}

/** The largest number that the API takes. */
const largest = 2 ** 31 - 1;

const isWhole = (text: string): boolean => Number.isInteger(Number(text)) && Math.abs(Number(text)) <= largest;

/** Leaves out what the API cannot read as a number; the page names the field. */
const whole = (text: string): number | undefined => (text !== '' && isWhole(text) ? Number(text) : undefined);

const presets = [
  {title: 'Small', cpu: '1', memory: '2Gi', gpu: 0},
  {title: 'Medium', cpu: '4', memory: '16Gi', gpu: 0},
  {title: 'Large', cpu: '16', memory: '64Gi', gpu: 0},
  {title: '1 GPU', cpu: '8', memory: '64Gi', gpu: 1},
  {title: '4 GPUs', cpu: '32', memory: '256Gi', gpu: 4},
];

/** A field with its label, its explanation and its error. */
function Field({id, label, help, required = false, error, hint, children}: {id: string; label: string; help?: string; required?: boolean; error?: string | undefined; hint?: ReactNode; children: ReactNode}): ReactElement {
  return (
    <FormGroup label={label} fieldId={id} isRequired={required} labelHelp={help ? <Help label={label}>{help}</Help> : undefined}>
      {children}
      {error || hint ? (
        <FormHelperText>
          <HelperText id={`${id}-help`} isLiveRegion={error !== undefined}>
            {error ? (
              <HelperTextItem variant="error" icon={<ExclamationCircleIcon />}>
                {error}
              </HelperTextItem>
            ) : (
              <HelperTextItem>{hint}</HelperTextItem>
            )}
          </HelperText>
        </FormHelperText>
      ) : null}
    </FormGroup>
  );
}

/** The names that a list of choices does not have, such as of a queue that was deleted since. */
const missing = (names: string[], choices: {name: string}[] | undefined): string[] => names.filter((name) => name !== '' && !choices?.some((choice) => choice.name === name));

interface StepProps {
  form: Draftable;
  set: (change: Partial<Draftable>) => void;
  errorOf: (field: string) => string | undefined;
  choices: Choices | undefined;
}

/** Which kind of job fits a program. */
const guide: readonly (readonly [string, string])[] = [
  ['Your program calls MPI, or you start it with mpirun or horovodrun', 'MPIJob: the workers exchange data in every step, over the fastest network that they share.'],
  ['You start PyTorch with torchrun, as with DDP or FSDP', 'TrainJob with a runtime of PyTorch. A PyTorchJob of the Training Operator is its predecessor.'],
  ['TensorFlow with parameter servers or a TF_CONFIG', 'TFJob of the Training Operator, which this dashboard does not create. With Horovod, TensorFlow runs as an MPIJob.'],
  ['An administrator gave you the name of a runtime', 'TrainJob with that runtime: its image, MPI and limits are prepared.'],
  ['Ray or Spark start their own workers', 'RayJob or SparkApplication, which this dashboard does not create.'],
  ['The model and its data fit one GPU, and a run takes less than an hour', 'No distributed job yet: run it in your workbench.'],
];

function WayStep({form, set, choices, clone, original}: StepProps & {clone: CloneForm | undefined; original: JobKey | undefined}): ReactElement {
  const ways: {way: Way; icon: ReactElement; title: string; text: string; for: string}[] = [
    {way: 'image', icon: <FrameworkMark name="MPI" />, title: 'MPIJob', text: 'High-performance distributed training using MPI for tightly coupled workloads. You bring an image that contains an MPI.', for: 'Horovod, DeepSpeed on MPI, simulations, your own MPI program'},
    {way: 'runtime', icon: <FrameworkMark name="PyTorch" />, title: 'TrainJob with a runtime', text: 'An administrator has prepared image, MPI and limits as a runtime. You bring the program.', for: 'PyTorch (torchrun), DeepSpeed, MPI, as your cluster offers'},
    {way: 'template', icon: <CubesIcon />, title: 'Template', text: 'Your team has saved a job with parameters in the project. You fill in the parameters.', for: 'jobs that are run again and again, by several people'},
    {way: 'yaml', icon: <FileCodeIcon />, title: 'Import YAML', text: 'You have a job as YAML, from the command line, from Git or from a colleague.', for: 'MPIJob and TrainJob'},
  ];
  return (
    <div className="mpi-stack">
      <Title headingLevel="h2">What do you want to run?</Title>
      {clone?.note && original ? (
        <Alert isInline variant="warning" component="p" title={`The fields of the wizard cannot describe ${original.name}`}>
          {clone.note} The wizard starts with its YAML instead.
        </Alert>
      ) : null}
      {clone && !clone.note ? (
        <>
          <Alert isInline variant="info" component="p" title="The type of a clone is that of its original">
            {form.way === 'runtime' ? 'It is a TrainJob with a runtime.' : 'It is an MPIJob.'} The other types start a job of their own.
          </Alert>
          <Kept fields={clone.kept} />
        </>
      ) : null}
      <div className="mpi-cards" role="radiogroup" aria-label="Type of the job">
        {ways.map(({way, icon, title, text, for: what}) => (
          <Card key={way} id={`way-${way}`} isSelectable isSelected={form.way === way}>
            <CardHeader
              selectableActions={{selectableActionId: `way-input-${way}`, selectableActionAriaLabelledby: `way-title-${way}`, name: 'way', variant: 'single', isChecked: form.way === way, onChange: () => set({way})}}
            >
              <CardTitle id={`way-title-${way}`} component="h3">
                <span className="mpi-tile">
                  {icon}
                  {title}
                </span>
              </CardTitle>
            </CardHeader>
            <CardBody>
              <p>{text}</p>
              <p className="mpi-subtle">For {what}.</p>
            </CardBody>
          </Card>
        ))}
      </div>
      {form.way === 'runtime' && choices && choices.runtimes.length === 0 ? (
        <Alert isInline variant="warning" title="This project sees no runtimes" component="p">
          The cluster may have no Kubeflow Trainer. An MPIJob does not need it.
        </Alert>
      ) : null}
      <Card component="section" aria-labelledby="guide" isCompact className="mpi-guide">
        <CardTitle id="guide" component="h3">Which one do I need?</CardTitle>
        <CardBody>
          <dl>
            {guide.map(([need, use]) => (
              <div key={need}>
                <dt>{need}</dt>
                <dd>{use}</dd>
              </div>
            ))}
          </dl>
        </CardBody>
      </Card>
    </div>
  );
}

function BasicsStep({form, set, errorOf, namespaces, isClone}: StepProps & {isClone: boolean; namespaces: {name: string; displayName?: string; canCreate: boolean}[]}): ReactElement {
  return (
    <div className="mpi-stack">
      <Title headingLevel="h2">Basics</Title>
      {form.way === 'yaml' ? null : (
        <Field id="name" label="Name" required error={errorOf('name')} help="Lower-case letters, digits and -. The names of pods begin with it." hint="Such as resnet-horovod. It cannot be changed later.">
          <TextInput id="name" isRequired value={form.name} onChange={(_, name) => set({name})} validated={errorOf('name') ? 'error' : 'default'} aria-describedby="name-help" autoComplete="off" />
        </Field>
      )}
      <Field id="namespace" label="Project" required error={errorOf('namespace')} help="The data science project, a namespace, whose quota, queues and data connections the job uses." hint={isClone ? 'A clone runs in the project of its original.' : undefined}>
        <TextInput id="namespace" readOnlyVariant={isClone ? 'default' : undefined} list="namespaces" value={form.namespace} onChange={(_, namespace) => set({namespace, queue: '', connections: []})} validated={errorOf('namespace') ? 'error' : 'default'} aria-describedby="namespace-help" autoComplete="off" />
        <datalist id="namespaces">
          {namespaces.filter(({canCreate}) => canCreate).map(({name, displayName}) => (
            <option key={name} value={name}>{displayName ?? name}</option>
          ))}
        </datalist>
      </Field>
      {form.way === 'yaml' ? null : (
        <Field id="description" label="Description" hint="Optional. It is shown on the page of the job, as Markdown: **bold**, [text](https://…), lists, headings and code.">
          <TextArea id="description" value={form.description} onChange={(_, description) => set({description})} resizeOrientation="vertical" rows={4} aria-describedby="description-help" />
        </Field>
      )}
      {form.way !== 'yaml' && form.description.trim() !== '' ? (
        <Card component="section" isCompact aria-labelledby="description-preview">
          <CardTitle id="description-preview" component="h3">Preview of the description</CardTitle>
          <CardBody>
            <Markdown text={form.description} />
          </CardBody>
        </Card>
      ) : null}
    </div>
  );
}

function ProgramStep({form, set, errorOf, choices}: StepProps): ReactElement {
  const envError = errorOf('env');
  const runtime = choices?.runtimes.find(({name}) => name === form.runtime);
  return (
    <div className="mpi-stack">
      <Title headingLevel="h2">Image and command</Title>
      {choices?.recommended && form.image === '' && form.command === '' && form.way === 'image' && choices.recommended.image ? (
        <Alert
          isInline
          variant="info"
          component="p"
          title={`Your job ${choices.recommended.job} succeeded in this project`}
          actionLinks={
            <AlertActionLink
              component="button"
              type="button"
              onClick={() => {
                const past = choices.recommended;
                if (past) set({image: past.image ?? '', command: past.command ?? '', workers: past.workers || 4, cpu: past.cpu ?? form.cpu, memory: past.memory ?? form.memory, gpu: past.gpu ?? 0});
              }}
            >
              Start from its settings
            </AlertActionLink>
          }
        >
          {count(choices.recommended.workers, 'worker')}
          {choices.recommended.gpu ? ` with ${count(choices.recommended.gpu, 'GPU')} each` : ''}, image {choices.recommended.image}
        </Alert>
      ) : null}
      {form.way === 'runtime' ? (
        <Field id="runtime" label="Runtime" required error={errorOf('runtime')} help="A runtime has the image, the MPI and the limits that an administrator has set." hint={runtime ? [runtime.implementation ?? runtime.framework, runtime.image, runtime.maxWorkers ? `at most ${runtime.maxWorkers} workers` : '', runtime.maxGPUs ? `at most ${runtime.maxGPUs} GPUs per worker` : ''].filter(Boolean).join(' · ') : undefined}>
          <FormSelect id="runtime" value={form.runtime} onChange={(_, name) => set({runtime: name})} validated={errorOf('runtime') ? 'error' : 'default'} aria-describedby="runtime-help">
            <FormSelectOption value="" label="Select a runtime" isPlaceholder />
            {(choices?.runtimes ?? []).map(({name, kind, framework}) => (
              <FormSelectOption key={`${kind}/${name}`} value={name} label={framework ? `${name} (${framework})` : name} />
            ))}
            {missing([form.runtime], choices?.runtimes).map((name) => (
              <FormSelectOption key={name} value={name} label={`${name} (not found)`} />
            ))}
          </FormSelect>
        </Field>
      ) : null}
      <Field id="image" label="Image" required={form.way === 'image'} error={errorOf('image')} help="An image with your program and an MPI. Neither sshd nor root is needed in it." hint={`${form.way === 'runtime' ? 'Empty for the image of the runtime.' : 'Such as quay.io/my-team/train:1.2. A tag or a digest keeps runs comparable.'} Images of the jobs and runtimes of this project are suggested; registries cannot be listed without their credentials.`}>
        <TextInput id="image" list="images" value={form.image} onChange={(_, image) => set({image})} validated={errorOf('image') ? 'error' : 'default'} aria-describedby="image-help" autoComplete="off" />
        <datalist id="images">
          {(choices?.images ?? []).map((image) => (
            <option key={image} value={image} />
          ))}
        </datalist>
      </Field>
      <Field id="command" label="Command" required error={errorOf('command')} help="What each rank runs. mpirun is put before it with as many ranks as there are slots, unless the command starts ranks itself." hint="Such as python train.py --epochs 10, or mpirun -n 8 ./solver input.dat">
        <TextArea id="command" value={form.command} onChange={(_, command) => set({command})} validated={errorOf('command') ? 'error' : 'default'} aria-describedby="command-help" resizeOrientation="vertical" rows={3} className="mpi-mono" spellCheck={false} />
      </Field>
      {form.way === 'image' ? (
        <Field id="implementation" label="MPI in the image" error={errorOf('implementation')} help="The launcher needs to know how this MPI is told of its hosts.">
          <FormSelect id="implementation" value={form.implementation} onChange={(_, implementation) => set({implementation})}>
            <FormSelectOption value="OpenMPI" label="Open MPI (4 or 5)" />
            <FormSelectOption value="Intel" label="Intel MPI" />
            <FormSelectOption value="MPICH" label="MPICH" />
          </FormSelect>
        </Field>
      ) : null}
      <FormGroup label="Variables" role="group" fieldId="env" labelHelp={<Help label="Variables">Environment variables of every rank. For passwords and keys use a data connection.</Help>}>
        <div className="mpi-stack" id="env">
          {form.env.map((variable, i) => (
            <div className="mpi-pair" key={i}>
              <TextInput aria-label={`Name of variable ${i + 1}`} placeholder="NAME" value={variable.name} onChange={(_, name) => set({env: form.env.map((each, at) => (at === i ? {...each, name} : each))})} />
              <TextInput aria-label={`Value of variable ${i + 1}`} value={variable.value} onChange={(_, value) => set({env: form.env.map((each, at) => (at === i ? {...each, value} : each))})} />
              <Button variant="plain" icon={<TrashIcon />} aria-label={`Remove variable ${i + 1}`} onClick={() => set({env: form.env.filter((_, at) => at !== i)})} />
            </div>
          ))}
          <div>
            <Button variant="link" isInline icon={<PlusCircleIcon />} onClick={() => set({env: [...form.env, {name: '', value: ''}]})}>
              Add variable
            </Button>
          </div>
          {envError ? (
            <HelperText isLiveRegion>
              <HelperTextItem variant="error" icon={<ExclamationCircleIcon />}>
                {envError}
              </HelperTextItem>
            </HelperText>
          ) : null}
        </div>
      </FormGroup>
    </div>
  );
}

function QuotaPanel({form, choices, draft}: {form: Draftable; choices: Choices | undefined; draft: Draft | undefined}): ReactElement {
  const queue = choices?.queues.find(({name}) => name === form.queue);
  const bars = [...(queue ? queueBars(queue.resources, draft?.requests) : []), ...quotaBars(choices?.quotas ?? [], draft?.requests)];
  const sum = (name: string): string | undefined => draft?.requests?.find(({resource}) => resource === name)?.text;
  return (
    <Card component="section" aria-label="Quota" isCompact>
      <CardTitle component="h3">What the job asks for</CardTitle>
      <CardBody>
        <div className="mpi-stack">
          <p>
            {count(form.workers, 'worker')} and the launcher
            {draft?.requests ? `: ${[sum('cpu') ? `${sum('cpu') ?? ''} CPUs` : '', sum('memory') ? `${sum('memory') ?? ''} of memory` : '', sum(form.gpuResource) ? `${sum(form.gpuResource) ?? ''} GPUs` : ''].filter(Boolean).join(', ')}` : ''}.
            {draft?.cost ? ` It costs ${draft.cost} per hour.` : ''}
          </p>
          {bars.map((bar) => (
            <QuotaBar key={bar.key} bar={bar} />
          ))}
          {bars.length === 0 ? (
            <p className="mpi-subtle">
              {choices?.missing.includes('quotas') ? 'You may not read the quotas of this project. The API server checks them when you review.' : choices && choices.quotas.length === 0 && !queue ? 'No quota limits this project.' : 'No quota limits what this job requests.'}
            </p>
          ) : null}
          {queue?.samples ? (
            <p className="mpi-subtle">
              Estimated wait: {duration((queue.waitP50 ?? 0) * 1000)} for half of the past {count(queue.samples, 'job')} in this queue, at most {duration((queue.waitP90 ?? 0) * 1000)} for nine of ten.
            </p>
          ) : (
            <p className="mpi-subtle">{queue ? 'No past job waited in this queue, so that there is no estimate of the wait.' : draft && !draft.problem ? 'Without a queue, the job starts as soon as its pods fit.' : ''}</p>
          )}
          {queue ? <p className="mpi-subtle">{count(queue.pending, 'job')} wait in the queue {queue.name}, {queue.running} run.</p> : null}
          {draft?.problem && (draft.problem.code === 'Rejected' || draft.problem.code === 'Forbidden') ? <ProblemAlert problem={draft.problem} /> : null}
        </div>
      </CardBody>
    </Card>
  );
}

function ResourcesStep({form, set, errorOf, choices, draft}: StepProps & {draft: Draft | undefined}): ReactElement {
  const slots = form.slots === '' ? Math.max(1, form.gpu) : Number(form.slots);
  return (
    <div className="mpi-two">
      <div className="mpi-stack">
        <Title headingLevel="h2">Workers and resources</Title>
        <Field id="workers" label="Workers" required error={errorOf('workers')} help="Pods that run the ranks of your program. The launcher, which starts them, is added." hint={`${count(slots * form.workers, 'rank')} in all, ${slots} on each worker.`}>
          <div className="mpi-workers">
            <Slider value={form.workers} min={1} max={64} onChange={(_, value) => set({workers: Math.round(value)})} aria-label="Workers" hasTooltipOverThumb showBoundaries={false} />
            <NumberInput id="workers" value={form.workers} min={1} max={1024} inputAriaLabel="Number of workers" minusBtnAriaLabel="One worker less" plusBtnAriaLabel="One worker more" onMinus={() => set({workers: Math.max(1, form.workers - 1)})} onPlus={() => set({workers: form.workers + 1})} onChange={(event) => set({workers: Number((event.target as HTMLInputElement).value)})} widthChars={4} />
          </div>
        </Field>
        <FormGroup label="Hardware of each worker" role="group" fieldId="presets">
          <div className="mpi-actions" id="presets">
            {presets.map(({title, ...values}) => {
              const isOn = values.cpu === form.cpu && values.memory === form.memory && values.gpu === form.gpu;
              return (
                <Button key={title} variant={isOn ? 'primary' : 'tertiary'} size="sm" aria-pressed={isOn} onClick={() => set(values)}>
                  {title}
                </Button>
              );
            })}
          </div>
        </FormGroup>
        <div className="mpi-grid">
          <Field id="cpu" label="CPUs per worker" error={errorOf('cpu')} help="Cores, such as 8, or thousandths, such as 500m." hint="Such as 8 or 8000m.">
            <TextInput id="cpu" value={form.cpu} onChange={(_, cpu) => set({cpu})} validated={errorOf('cpu') ? 'error' : 'default'} aria-describedby="cpu-help" />
          </Field>
          <Field id="memory" label="Memory per worker" error={errorOf('memory')} help="A worker that uses more than this is ended." hint="Such as 32Gi.">
            <TextInput id="memory" value={form.memory} onChange={(_, memory) => set({memory})} validated={errorOf('memory') ? 'error' : 'default'} aria-describedby="memory-help" />
          </Field>
          <Field id="gpu" label="GPUs per worker" error={errorOf('gpu')} help="Each rank usually drives one GPU." hint={choices && choices.gpus.length > 0 ? `The cluster has ${choices.gpus.join(', ')}.` : undefined}>
            <FormSelect id="gpu" value={form.gpu} onChange={(_, value) => set({gpu: Number(value)})} aria-describedby="gpu-help">
              {[...new Set([0, 1, 2, 4, 8, form.gpu])].sort((a, b) => a - b).map((n) => (
                <FormSelectOption key={n} value={n} label={n === 0 ? 'None' : String(n)} />
              ))}
            </FormSelect>
          </Field>
          <Field id="slots" label="Slots per worker" error={errorOf('slots')} help="Places for ranks on each worker." hint="Empty for one per GPU, or 1.">
            <TextInput id="slots" type="number" value={form.slots} onChange={(_, value) => set({slots: value})} validated={errorOf('slots') ? 'error' : 'default'} aria-describedby="slots-help" />
          </Field>
        </div>
        {form.gpu > 0 && form.slots !== '' && Number(form.slots) !== form.gpu ? (
          <Alert isInline variant="warning" component="p" title={`${form.slots} ranks share ${count(form.gpu, 'GPU')} on each worker`}>
            Usually each rank drives one GPU of its own. Leave slots empty for that.
          </Alert>
        ) : null}
      </div>
      <QuotaPanel form={form} choices={choices} draft={draft} />
    </div>
  );
}

function AdvancedStep({form, set, errorOf, choices}: StepProps): ReactElement {
  const runtime = choices?.runtimes.find(({name}) => name === form.runtime);
  const connections = [...(choices?.connections ?? []), ...missing(form.connections, choices?.connections).map((name) => ({name, displayName: `${name} (not found)`}))];
  return (
    <div className="mpi-stack">
      <Title headingLevel="h2">Advanced</Title>
      <Content component="p">Nothing here is required.</Content>
      <Field id="queue" label="Queue" error={errorOf('queue')} help="A LocalQueue of Kueue. The job waits there until all of its pods can run together." hint={choices?.queues.length === 0 ? 'This project has no queues. All pods of the job are scheduled together all the same.' : undefined}>
        <FormSelect id="queue" value={form.queue} onChange={(_, queue) => set({queue})} aria-describedby="queue-help">
          <FormSelectOption value="" label="None" />
          {(choices?.queues ?? []).map(({name, pending}) => (
            <FormSelectOption key={name} value={name} label={`${name} (${pending} waiting)`} />
          ))}
          {missing([form.queue], choices?.queues).map((name) => (
            <FormSelectOption key={name} value={name} label={`${name} (not found)`} />
          ))}
        </FormSelect>
      </Field>
      <Field id="priority" label="Priority class" error={errorOf('priority')} help="Jobs of higher priority are scheduled first, and may evict others.">
        <FormSelect id="priority" value={form.priority} onChange={(_, priority) => set({priority})} aria-describedby="priority-help">
          <FormSelectOption value="" label="Default" />
          {[...new Set([...(choices?.priorities ?? []), form.priority])].filter(Boolean).map((name) => (
            <FormSelectOption key={name} value={name} label={name} />
          ))}
        </FormSelect>
      </Field>
      <FormGroup label="Data connections" role="group" fieldId="connections" labelHelp={<Help label="Data connections">Their keys become variables of every rank. The values are not shown here.</Help>}>
        <div className="mpi-actions" id="connections">
          {connections.map(({name, displayName}) => (
            <Switch key={name} label={displayName ?? name} isChecked={form.connections.includes(name)} onChange={(_, on) => set({connections: on ? [...form.connections, name] : form.connections.filter((each) => each !== name)})} />
          ))}
          {choices && connections.length === 0 ? <span className="mpi-subtle">{choices.missing.includes('data connections') ? 'You may not list the Secrets of this project.' : 'This project has no data connections.'}</span> : null}
        </div>
      </FormGroup>
      {form.way === 'image' || runtime?.mpi ? (
        <Field id="flags" label="MPI flags" error={errorOf('mpiFlags')} help="More flags of the mpirun that is added to your command. A command that starts ranks itself has its own." hint={form.way === 'image' && form.implementation === 'OpenMPI' ? 'Such as --bind-to core --map-by socket, or --mca btl_tcp_if_include eth0.' : 'Such as -genv I_MPI_DEBUG 5, or -bind-to core.'}>
          <TextInput id="flags" value={form.flags} onChange={(_, flags) => set({flags})} validated={errorOf('mpiFlags') ? 'error' : 'default'} aria-describedby="flags-help" className="mpi-mono" autoComplete="off" spellCheck={false} />
        </Field>
      ) : null}
      {form.way === 'image' ? (
        <Field id="gang" label="Gang timeout in minutes" error={errorOf('gangTimeout')} help="All pods are scheduled together. An attempt ends if not all of them are scheduled by then, so that the job does not hold a place in vain." hint="Empty for the cluster's default.">
          <TextInput id="gang" type="number" value={form.gangMinutes} onChange={(_, gangMinutes) => set({gangMinutes})} validated={errorOf('gangTimeout') ? 'error' : 'default'} aria-describedby="gang-help" />
        </Field>
      ) : null}
      <Field id="hours" label="Time limit in hours" error={errorOf('deadline')} help="The job is ended after this time." hint="Empty for no limit.">
        <TextInput id="hours" type="number" value={form.hours} onChange={(_, hours) => set({hours})} aria-describedby="hours-help" />
      </Field>
      {form.way === 'image' ? (
        <Field id="retries" label="Retries" error={errorOf('retries')} help="How often a failed job is tried again. Workers that failed are replaced; with a runtime, all pods.">
          <NumberInput id="retries" value={form.retries} min={0} max={20} inputAriaLabel="Retries" minusBtnAriaLabel="One retry less" plusBtnAriaLabel="One retry more" onMinus={() => set({retries: Math.max(0, form.retries - 1)})} onPlus={() => set({retries: form.retries + 1})} onChange={(event) => set({retries: Number((event.target as HTMLInputElement).value)})} widthChars={3} />
        </Field>
      ) : null}
      {form.way === 'image' ? (
        <Field id="user" label="User ID" error={errorOf('runAsUser')} help="The number of the user that the program runs as. A project that only admits restricted pods requires one if the image runs as root; OpenShift sets it itself." hint="Empty for the user of the image.">
          <TextInput id="user" type="number" value={form.user} onChange={(_, user) => set({user})} validated={errorOf('runAsUser') ? 'error' : 'default'} aria-describedby="user-help" />
        </Field>
      ) : null}
      <Switch label="Create the job suspended, to start it later" isChecked={form.suspend} onChange={(_, suspend) => set({suspend})} />
    </div>
  );
}

function TemplateStep({form, set, problems, touched}: {form: Draftable; set: StepProps['set']; problems: ReadonlyMap<string, string>; touched: ReadonlySet<string>}): ReactElement {
  const templates = useTemplates(form.namespace);
  const queries = useQueryClient();
  const chosen = templates.data?.templates.find(({name}) => name === form.template);
  const deletion = useMutation({
    mutationFn: (name: string) => remove<ActionResult>(path('namespaces', form.namespace, 'templates', name)),
    onSuccess: (result) => {
      notify({variant: 'success', title: result.message});
      set({template: '', values: {}});
      void queries.invalidateQueries({queryKey: ['templates']});
    },
    onError: (error) => notify({variant: 'danger', title: 'The template was not deleted', text: errorText(error)}),
  });
  return (
    <div className="mpi-stack">
      <Title headingLevel="h2">Template</Title>
      <Loaded query={form.namespace === '' ? {data: {templates: []}, error: undefined, refetch: () => undefined} : templates} what="The templates cannot be listed">
        {(data) =>
          data.templates.length === 0 ? (
            <Alert isInline variant="info" component="p" title="This project has no templates">
              The last step of this wizard saves a job as a template. Templates of the command line and of the SDK are listed here too.
            </Alert>
          ) : (
            <Field id="template" label="Template" required hint={chosen ? [chosen.kind, chosen.description].filter(Boolean).join(': ') : 'Templates are shared by all users of the project.'} error={chosen?.error}>
              <FormSelect id="template" value={form.template} onChange={(_, template) => set({template, values: {}})} aria-describedby="template-help">
                <FormSelectOption value="" label="Select a template" isPlaceholder />
                {data.templates.map(({name}) => (
                  <FormSelectOption key={name} value={name} label={name} />
                ))}
              </FormSelect>
            </Field>
          )
        }
      </Loaded>
      {chosen?.parameters.map(({name, default: value, required}) => {
        const error = touched.has(`value-${name}`) ? problems.get(name) : undefined;
        return (
          <Field key={name} id={`value-${name}`} label={name} required={required} error={error} hint={required ? undefined : `${value ?? 'Empty'} if you enter nothing.`}>
            <TextInput
              id={`value-${name}`}
              value={form.values[name] ?? ''}
              placeholder={value ?? ''}
              validated={error ? 'error' : 'default'}
              aria-describedby={`value-${name}-help`}
              autoComplete="off"
              onChange={(_, text) => {
                const others = Object.entries(form.values).filter(([key]) => key !== name);
                set({values: Object.fromEntries(text === '' ? others : [...others, [name, text]])});
              }}
            />
          </Field>
        );
      })}
      {chosen ? (
        <div>
          <Button variant="link" isInline isDanger icon={<TrashIcon />} isLoading={deletion.isPending} onClick={() => deletion.mutate(chosen.name)}>
            Delete template {chosen.name}
          </Button>
        </div>
      ) : null}
    </div>
  );
}

/** Saves the job of the wizard as a template of its project. */
function SaveTemplate({request, namespace}: {request: SpecRequest; namespace: string}): ReactElement {
  const [name, setName] = useState('');
  const [description, setDescription] = useState('');
  const queries = useQueryClient();
  const save = useMutation({
    mutationFn: (replace: boolean) => post<TemplateResult>(path('namespaces', namespace, 'templates'), {name, description, job: request, replace}),
    onSuccess: (result) => {
      if (!result.message) return;
      notify({variant: 'success', title: result.message});
      void queries.invalidateQueries({queryKey: ['templates']});
    },
  });
  const problem = save.data?.problem;
  return (
    <ExpandableSection toggleText="Save as a template">
      <div className="mpi-stack">
        <p className="mpi-subtle">All users of the project {namespace} can use and change it, here, on the command line and in Python.</p>
        <Field id="template-name" label="Name of the template" required hint="Such as resnet-nightly.">
          <TextInput id="template-name" value={name} onChange={(_, value) => setName(value)} aria-describedby="template-name-help" autoComplete="off" />
        </Field>
        <Field id="template-description" label="Description of the template">
          <TextInput id="template-description" value={description} onChange={(_, value) => setDescription(value)} autoComplete="off" />
        </Field>
        <ProblemAlert problem={problem} />
        {save.error ? <Alert isInline variant="danger" component="p" title={errorText(save.error)} /> : null}
        <div className="mpi-actions">
          <Button variant="secondary" isDisabled={name === ''} isLoading={save.isPending} onClick={() => save.mutate(false)}>Save template</Button>
          {problem?.code === 'Exists' ? <Button variant="secondary" isDanger isLoading={save.isPending} onClick={() => save.mutate(true)}>Replace it</Button> : null}
        </div>
      </div>
    </ExpandableSection>
  );
}

function YamlStep({form, set, errorOf}: StepProps): ReactElement {
  return (
    <div className="mpi-stack">
      <Title headingLevel="h2">YAML</Title>
      <Field id="yaml" label="Job as YAML or JSON" required error={errorOf('yaml')} hint="One MPIJob (kubeflow.org/v2beta1) or TrainJob (trainer.kubeflow.org/v1alpha1).">
        <TextArea id="yaml" value={form.yaml} onChange={(_, yaml) => set({yaml})} rows={20} className="mpi-mono" spellCheck={false} aria-describedby="yaml-help" resizeOrientation="vertical" validated={errorOf('yaml') ? 'error' : 'default'} />
      </Field>
      <div>
        <label htmlFor="yaml-file" className="mpi-subtle">Or from a file, at most 1 MiB: </label>
        <input
          id="yaml-file"
          type="file"
          accept=".yaml,.yml,.json"
          onChange={(event) => {
            const file = event.target.files?.[0];
            if (!file) return;
            if (file.size > 1 << 20) notify({variant: 'danger', title: `${file.name} is larger than 1 MiB`});
            else void file.text().then((yaml) => set({yaml}));
          }}
        />
      </div>
    </div>
  );
}

/** Names the fields of the original that a clone keeps because the wizard does not show them. */
function Kept({fields}: {fields: string[]}): ReactElement | null {
  if (fields.length === 0) return null;
  return (
    <ExpandableSection toggleText={`${count(fields.length, 'field')} of the original that the wizard does not show ${fields.length === 1 ? 'is' : 'are'} kept`}>
      <ul className="mpi-words">
        {fields.map((field) => (
          <li key={field} className="mpi-wrap mpi-mono">{field}</li>
        ))}
      </ul>
    </ExpandableSection>
  );
}

function ReviewStep({draft, isChecking, error, failure, save, clone}: {save: ReactElement | null; clone: CloneForm | undefined; draft: Draft | undefined; isChecking: boolean; error: unknown; failure: unknown}): ReactElement {
  return (
    <div className="mpi-stack">
      <Title headingLevel="h2">Review</Title>
      {failure ? <Alert isInline variant="danger" title={errorText(failure)} component="p" /> : null}
      {error ? <Alert isInline variant="danger" title={errorText(error)} component="p" /> : null}
      {!draft && isChecking ? <Busy what="The API server checks the job" /> : null}
      {draft ? (
        <>
          <ProblemAlert problem={draft.problem} />
          {draft.problem || isChecking ? null : <Alert isInline variant="success" title="The API server accepts this job" component="p">{draft.cost ? `It costs ${draft.cost} per hour.` : null}</Alert>}
          {draft.warnings?.map((warning) => <Alert key={warning} isInline variant="warning" title={warning} component="p" />)}
          {draft.words ? (
            <ul className="mpi-words">
              {draft.words.map((sentence) => (
                <li key={sentence} className="mpi-wrap">{sentence}</li>
              ))}
            </ul>
          ) : null}
          {draft.diff ? (
            <section aria-labelledby="review-diff" className="mpi-stack">
              <Title headingLevel="h3" id="review-diff">Differences from the original</Title>
              <Diff text={draft.diff} />
            </section>
          ) : null}
          {draft.diff !== undefined && clone ? <Kept fields={clone.kept} /> : null}
          {draft.yaml ? (
            <ExpandableSection toggleText="View YAML" className="mpi-yaml">
              <Code text={draft.yaml} label="YAML of the job" />
            </ExpandableSection>
          ) : null}
          {draft.commands ? <Snippets items={draft.commands} /> : null}
          {draft.problem ? null : save}
        </>
      ) : null}
    </div>
  );
}

/** The inputs of fields that have other names in errors. */
const inputs: Record<string, string> = {deadline: 'hours', runAsUser: 'user', mpiFlags: 'flags', gangTimeout: 'gangMinutes'};

/** The fields of each step, as errors name them. */
const stepFields = {
  basics: ['name', 'namespace'],
  program: ['image', 'command', 'runtime', 'implementation', 'env'],
  resources: ['workers', 'cpu', 'memory', 'gpu', 'slots'],
  yaml: ['yaml'],
};

/** The wizard that creates a job. Nobody has to see YAML. */
export function Create(): ReactElement {
  const [params] = useSearchParams();
  const original = cloneOf(params);
  const clone = useCloneForm(original);
  if (!original) return <CreateWizard key="new" initial={{...start, namespace: params.get('namespace') ?? ''}} />;
  if (clone.data) return <CreateWizard key={jobURL(original)} initial={formOf(clone.data)} original={original} clone={clone.data} />;
  return (
    <PageSection hasBodyWrapper={false}>
      <Loaded query={clone} what={`The job ${original.name} cannot be cloned`}>
        {() => <Busy what="The job is read" />}
      </Loaded>
    </PageSection>
  );
}

function CreateWizard({initial, original, clone}: {initial: Draftable; original?: JobKey; clone?: CloneForm}): ReactElement {
  const navigate = useNavigate();
  const {data: namespaces} = useNamespaces();
  const [form, setForm] = useState<Draftable>(initial);
  // A project in the URL is checked at once: the user may have no right to create jobs there.
  const [touched, setTouched] = useState<ReadonlySet<string>>(new Set(initial.namespace ? ['namespace'] : []));
  const creatable = namespaces?.namespaces.filter(({canCreate}) => canCreate) ?? [];
  const namespace = form.namespace === '' && !touched.has('namespace') && creatable.length === 1 ? (creatable[0]?.name ?? '') : form.namespace;
  const current = {...form, namespace};
  const {data: choices} = useChoices(creatable.some(({name}) => name === namespace) || namespaces?.complete === false ? namespace : '');
  const request: SpecRequest = {...requestOf(current), ...(clone?.request.original && current.way === initial.way ? {original: clone.request.original} : {})};
  const preview = usePreview(request, true);
  const creation = useCreate();
  const draft = preview.data;
  const set = (change: Partial<Draftable>): void => {
    setForm({...current, ...change});
    setTouched(new Set([...touched, ...Object.keys(change), ...Object.keys(change.values ?? {}).map((name) => `value-${name}`)]));
  };
  const problems = new Map((draft?.problem?.fields ?? []).map(({field, value, reason}) => [field, `${value ? `${value} ` : ''}${reason}`]));
  for (const [field, text] of [['workers', String(current.workers)], ['slots', current.slots], ['runAsUser', current.user], ['retries', String(current.retries)]] as const) {
    if (text !== '' && !isWhole(text)) problems.set(field, `${text} is not a whole number of at most ${largest}`);
  }
  // YAML is one field.
  for (const field of ['metadata.name', 'metadata.namespace']) {
    const problem = problems.get(field);
    if (problem && !problems.has('yaml')) problems.set('yaml', `${field} ${problem}`);
  }
  // The API server takes any printable character but =.
  const noName = current.env.find(({name}) => name !== '' && !/^[ -<>-~]+$/.test(name));
  if (noName) problems.set('env', `${noName.name} is not the name of a variable; use letters, digits and _`);
  if (current.way === 'runtime' && current.runtime === '') problems.set('runtime', 'is required; select a runtime');
  if (namespace && namespaces?.complete && !namespaces.namespaces.some(({name}) => name === namespace)) problems.set('namespace', `${namespace} does not exist`);
  else if (namespaces?.namespaces.some(({name}) => name === namespace) && !creatable.some(({name}) => name === namespace)) problems.set('namespace', `You may not create jobs in ${namespace}. Ask its administrator for the role edit.`);
  const errorOf = (field: string): string | undefined => (touched.has(inputs[field] ?? field) ? problems.get(field) : undefined);
  const isBlocked = (step: keyof typeof stepFields): boolean => stepFields[step].some((field) => problems.has(field));
  const props = {form: current, set, errorOf, choices};
  const create = (): void =>
    creation.mutate(request, {
      onSuccess: (result) => {
        if (!result.created) return;
        const url = jobURL({namespace: result.namespace ?? '', kind: result.kind ?? '', name: result.name ?? ''});
        notify({variant: 'success', title: `${result.name ?? 'The job'} is created`, to: url, link: 'Open the job'});
        void navigate(url);
      },
    });
  const shownDraft = creation.data?.problem && !preview.isFetching ? creation.data : draft;
  const isYaml = current.way === 'yaml';
  const isTemplate = current.way === 'template';
  const isForm = !isYaml && !isTemplate;
  useEffect(() => {
    // PatternFly names the list of steps on narrow screens "Wizard toggle"; its name is the step that it shows.
    document.querySelector('.pf-v6-c-wizard__toggle')?.removeAttribute('aria-label');
  });
  const body = (content: ReactElement): ReactElement => (
    <Form className="mpi-form is-wide" onSubmit={(event) => event.preventDefault()}>
      {content}
    </Form>
  );
  return (
    <>
      <PageSection hasBodyWrapper={false} type="breadcrumb">
        <Breadcrumb>
          <BreadcrumbItem>
            <Link to="/">Training jobs</Link>
          </BreadcrumbItem>
          {original ? (
            <BreadcrumbItem>
              <Link to={jobURL(original)}>{original.name}</Link>
            </BreadcrumbItem>
          ) : null}
          <BreadcrumbItem isActive>{original ? 'Clone' : 'Create'}</BreadcrumbItem>
        </Breadcrumb>
      </PageSection>
      <PageHead title={original ? `Clone ${original.name}` : 'Create training job'} text={original ? 'All values are those of the job. Change what you want; the original stays as it is.' : 'The wizard proposes what you do not know. Everything is checked by the cluster before it is created.'} />
      <PageSection hasBodyWrapper={false} isFilled className="mpi-wizard">
        <Wizard navAriaLabel="Steps" onClose={() => void navigate('/')} onSave={create} isVisitRequired={false}>
          <WizardStep name="Type" id="type">
            {body(<WayStep {...props} clone={clone} original={original} />)}
          </WizardStep>
          <WizardStep name="Basics" id="basics" footer={{isNextDisabled: isBlocked('basics') && !isYaml || (isYaml && problems.has('namespace') && namespace !== '')}}>
            {body(<BasicsStep {...props} namespaces={namespaces?.namespaces ?? []} isClone={original !== undefined} />)}
          </WizardStep>
          {/* Steps that do not apply are left out: PatternFly counts hidden steps in the number of a step. */}
          {isYaml ? (
            <WizardStep name="YAML" id="yaml-step" footer={{isNextDisabled: current.yaml.trim() === '' || isBlocked('yaml')}}>
              {body(<YamlStep {...props} />)}
            </WizardStep>
          ) : null}
          {isTemplate ? (
            <WizardStep name="Template" id="template-step" footer={{isNextDisabled: current.template === '' || (draft?.problem?.fields ?? []).length > 0 || preview.isFetching}}>
              {body(<TemplateStep form={current} set={set} problems={problems} touched={touched} />)}
            </WizardStep>
          ) : null}
          {isForm ? (
            <WizardStep name="Image and command" id="program" footer={{isNextDisabled: isBlocked('program')}}>
              {body(<ProgramStep {...props} />)}
            </WizardStep>
          ) : null}
          {isForm ? (
            <WizardStep name="Workers and resources" id="resources" footer={{isNextDisabled: isBlocked('resources')}}>
              {body(<ResourcesStep {...props} draft={draft} />)}
            </WizardStep>
          ) : null}
          {isForm ? (
            <WizardStep name={<>Advanced <Label isCompact>optional</Label></>} id="advanced">
              {body(<AdvancedStep {...props} />)}
            </WizardStep>
          ) : null}
          <WizardStep
            name="Review"
            id="review"
            footer={{nextButtonText: 'Create job', isNextDisabled: draft === undefined || draft.problem !== undefined || preview.isFetching || creation.isPending, nextButtonProps: {isLoading: creation.isPending}}}
          >
            <ReviewStep clone={clone} draft={shownDraft} isChecking={preview.isFetching} error={preview.error} failure={creation.error} save={isTemplate ? null : <SaveTemplate request={request} namespace={shownDraft?.namespace ?? namespace} />} />
          </WizardStep>
        </Wizard>
      </PageSection>
    </>
  );
}
