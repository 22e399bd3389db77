import type {CloneForm, JobSpec, SpecRequest} from '../../api/types';

export interface Pair {
  name: string;
  value: string;
}

/** A volume of all pods; size is that of memory and scratch, and name that of all others. */
export interface VolumeForm {
  source: string;
  name: string;
  size: string;
  path: string;
  subPath: string;
  readOnly: boolean;
}

/** The fields of jobs are those that the table of settings (internal/jobs/settings.go) names; a test compares both. */
export type Way = 'image' | 'runtime' | 'template' | 'yaml';

export interface JobForm {
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
  env: Pair[];
  queue: string;
  priority: string;
  connections: string[];
  retries: string;
  hours: string;
  ttlHours: string;
  graceSeconds: string;
  suspend: boolean;
  user: string;
  flags: string;
  gangMinutes: string;
  labels: Pair[];
  workdir: string;
  shm: string;
  launcherCpu: string;
  launcherMemory: string;
  volumes: VolumeForm[];
  outputDir: {name: string; path: string; subPath: string};
  nodeSelector: Pair[];
  tolerations: string[];
  topology: string;
  topologyPreferred: boolean;
  rdma: string;
  profile: boolean;
  waitForQuota: boolean;
  pullSecrets: string[];
  serviceAccount: string;
  yaml: string;
  template: string;
  values: Record<string, string>;
}

export const emptyForm: JobForm = {
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
  retries: '',
  hours: '',
  ttlHours: '',
  graceSeconds: '',
  suspend: false,
  user: '',
  flags: '',
  gangMinutes: '',
  labels: [],
  workdir: '',
  shm: '',
  launcherCpu: '',
  launcherMemory: '',
  volumes: [],
  outputDir: {name: '', path: '', subPath: ''},
  nodeSelector: [],
  tolerations: [],
  topology: '',
  topologyPreferred: false,
  rdma: '',
  profile: false,
  waitForQuota: false,
  pullSecrets: [],
  serviceAccount: '',
  yaml: '',
  template: '',
  values: {},
};

const pairsOf = (values: Record<string, string> | undefined): Pair[] => Object.entries(values ?? {}).map(([name, value]) => ({name, value}));

const valuesOf = (pairs: Pair[]): Record<string, string> => Object.fromEntries(pairs.filter(({name}) => name !== '').map(({name, value}) => [name, value]));

const textOf = (value: number | undefined): string => (value === undefined ? '' : String(value));

/** The form that a job's clone starts from. */
export function formOf({request, note}: CloneForm): JobForm {
  const {spec} = request;
  const common = {...emptyForm, name: spec.name, namespace: spec.namespace ?? ''};
  if (note) return {...common, way: 'yaml', yaml: request.yaml ?? ''};
  return {
    ...common,
    way: spec.runtime ? 'runtime' : 'image',
    description: request.description ?? '',
    image: spec.image ?? '',
    runtime: spec.runtime ?? '',
    command: request.commandLine ?? '',
    implementation: spec.implementation || emptyForm.implementation,
    workers: spec.workers,
    slots: textOf(spec.slots),
    cpu: spec.cpu ?? '',
    memory: spec.memory ?? '',
    gpu: spec.gpu ?? 0,
    gpuResource: spec.gpuResource ?? emptyForm.gpuResource,
    env: (spec.env ?? []).map(({name, value}) => ({name, value: value ?? ''})),
    queue: spec.queue ?? '',
    priority: spec.priority ?? '',
    connections: spec.connections ?? [],
    retries: textOf(spec.retries),
    hours: request.deadlineSeconds ? String(request.deadlineSeconds / 3600) : '',
    ttlHours: request.ttlSeconds === undefined ? '' : String(request.ttlSeconds / 3600),
    graceSeconds: textOf(request.gracePeriodSeconds),
    user: textOf(spec.runAsUser),
    flags: request.flagLine ?? '',
    gangMinutes: request.gangTimeoutSeconds ? String(request.gangTimeoutSeconds / 60) : '',
    labels: pairsOf(spec.labels),
    workdir: spec.workdir ?? '',
    shm: request.shm ?? '',
    launcherCpu: spec.launcherCpu ?? '',
    launcherMemory: spec.launcherMemory ?? '',
    volumes: (spec.volumes ?? []).map(({source, name = '', size = '', path, subPath = '', readOnly = false}) => ({source, name, size, path, subPath, readOnly})),
    outputDir: {name: spec.outputDir?.name ?? '', path: spec.outputDir?.path ?? '', subPath: spec.outputDir?.subPath ?? ''},
    nodeSelector: pairsOf(spec.nodeSelector),
    tolerations: request.tolerations ?? [],
    topology: spec.topology ?? '',
    topologyPreferred: spec.topologyPreferred ?? false,
    rdma: spec.rdma ?? '',
    profile: spec.profile ?? false,
    waitForQuota: spec.waitForQuota ?? false,
    pullSecrets: spec.imagePullSecrets ?? [],
    serviceAccount: spec.serviceAccount ?? '',
  };
}

/** Whether a volume has a size and no name. */
export const isSized = (source: string): boolean => source === 'memory' || source === 'scratch';

export function requestOf(form: JobForm): SpecRequest {
  if (form.way === 'yaml') return {spec: {name: '', namespace: form.namespace, command: [], workers: 1}, yaml: form.yaml};
  if (form.way === 'template') return {spec: {name: form.name, namespace: form.namespace, command: [], workers: 1}, template: form.template || '-', values: form.values, description: form.description};
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
    connections: form.connections.map((name) => name.trim()).filter(Boolean),
    env: form.env.filter(({name}) => name !== ''),
    suspend: form.suspend,
    labels: valuesOf(form.labels),
    nodeSelector: valuesOf(form.nodeSelector),
    volumes: form.volumes.map((volume) => ({...volume, ...(isSized(volume.source) ? {name: ''} : {size: ''})})),
    imagePullSecrets: form.pullSecrets.filter(Boolean),
    serviceAccount: form.serviceAccount.trim(),
    workdir: form.workdir.trim(),
    topology: form.topology.trim(),
    topologyPreferred: form.topology !== '' && form.topologyPreferred,
    rdma: form.rdma,
    profile: form.profile,
    waitForQuota: form.waitForQuota,
  };
  if (form.outputDir.name || form.outputDir.path) spec.outputDir = {source: 'claim', ...form.outputDir};
  const [slots, user, retries] = [whole(form.slots), whole(form.user), whole(form.retries)];
  if (slots !== undefined) spec.slots = slots;
  if (user !== undefined) spec.runAsUser = user;
  if (retries !== undefined) spec.retries = retries;
  const request: SpecRequest = {spec, commandLine: form.command, flagLine: form.flags, description: form.description, deadlineSeconds: Math.round(Number(form.hours || 0) * 3600)};
  if (form.ttlHours) request.ttlSeconds = Math.round(Number(form.ttlHours) * 3600);
  if (form.graceSeconds) request.gracePeriodSeconds = Math.round(Number(form.graceSeconds));
  request.shm = form.shm.trim();
  request.tolerations = form.tolerations.map((taint) => taint.trim()).filter(Boolean);
  // A TrainJob has no field for these.
  if (isRuntime) spec.runtime = form.runtime;
  else {
    spec.implementation = form.implementation;
    spec.launcherCpu = form.launcherCpu.trim();
    spec.launcherMemory = form.launcherMemory.trim();
  }
  if (form.gangMinutes) request.gangTimeoutSeconds = Math.round(Number(form.gangMinutes) * 60);
  return request;
}

/** The largest number that the API takes. */
export const largest = 2 ** 31 - 1;

export const isWhole = (text: string): boolean => Number.isInteger(Number(text)) && Math.abs(Number(text)) <= largest;

/** Leaves out what the API cannot read as a number; the page names the field. */
export const whole = (text: string): number | undefined => (text !== '' && isWhole(text) ? Number(text) : undefined);
