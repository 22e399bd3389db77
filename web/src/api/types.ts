// Generated from internal/dashboard/routes.go. Do not edit: go test ./internal/dashboard -run TestGenerated -update

export interface ActionResult {
  result: string;
  message: string;
}

export interface Attempt {
  id: string;
  kind: string;
  name: string;
  phase?: string;
  reason?: string;
  created: string;
  ended?: string;
  deleted?: boolean;
}

export interface Can {
  suspend: boolean;
  resume: boolean;
  cancel: boolean;
  delete: boolean;
  clone: boolean;
  logs: boolean;
}

export interface CancelRequest {
  uid?: string;
  graceSeconds?: number;
}

export interface Changes {
  rows: Row[];
  removed: string[];
  stale?: string;
}

export interface Chart {
  title: string;
  unit: string;
  lines: ChartLine[];
  aggregates: ChartLine[];
}

export interface ChartLine {
  name: string;
  samples: Sample[];
}

export interface Check {
  text: string;
  result: string;
}

export interface Choices {
  runtimes: Runtime[];
  queues: Queue[];
  quotas: Quota[];
  connections: Connection[];
  priorities: string[];
  images: string[];
  gpus: string[];
  recommended?: Recommendation;
  missing: string[];
}

export interface CloneForm {
  request: SpecRequest;
  kept: string[];
  note?: string;
}

export interface CloneRequest {
  name?: string;
  changes: string[];
  dryRun?: boolean;
}

export interface ComparedValue {
  name: string;
  a?: string;
  b?: string;
}

export interface Comparison {
  note?: string;
  sections: ComparisonSection[];
  diff?: string;
  commands: Snippet[];
}

export interface ComparisonSection {
  title: string;
  rows: ComparedValue[];
}

export interface Connection {
  name: string;
  displayName?: string;
  type?: string;
}

export interface CurvePoint {
  time?: string;
  step?: number;
  epoch?: number;
  loss?: number;
  accuracy?: number;
  figures?: Record<string, number>;
  notANumber?: boolean;
}

export interface Curves {
  points: CurvePoint[];
  skipped: number;
  reason?: string;
  note?: string;
}

export interface Detail {
  row: Row;
  headline: string;
  status: JobReportStatus | null;
  failure?: string;
  findings: Finding[];
  resources?: string;
  total?: string;
  ranks?: string;
  training?: string;
  used?: string;
  cost?: string;
  image?: string;
  command?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  can: Can;
  commands: Snippet[];
  attempts: Attempt[];
  checklist: Check[];
  terms: Term[];
  outputs: Output[];
  now: string;
}

export interface Draft {
  namespace?: string;
  kind?: string;
  name?: string;
  yaml?: string;
  diff?: string;
  words?: string[];
  commands?: Snippet[];
  warnings?: string[];
  cost?: string;
  requests?: Quantity[];
  problem?: Problem;
  created?: boolean;
}

export interface Event {
  time: string;
  warning: boolean;
  reason: string;
  object: string;
  message: string;
  count: number;
}

export interface Events {
  events: Event[];
}

export interface FailureCount {
  code: string;
  jobs: number;
  guide: boolean;
}

export interface FieldProblem {
  field: string;
  value?: string;
  reason: string;
}

export interface Finding {
  code: string;
  severity: string;
  summary: string;
  evidence: string[];
  affected: string[];
  remedies: Remedy[];
  guide: boolean;
}

export interface Glossary {
  terms: Term[];
}

export interface Help {
  topics: Topic[];
}

export interface JobReportStatus {
  phase?: string;
  reason?: string;
  message?: string;
  observedGeneration?: number;
  startTime?: string;
  runningTime?: string;
  completionTime?: string;
  phaseTimes?: ReportPhaseTime[];
  run?: ReportRun;
  mpi?: ReportMPIStatus;
  startup?: ReportStartup;
  workers?: ReportWorkersStatus;
  pods?: ReportPodStatus[];
  podsOmitted?: number;
  scheduling?: ReportSchedulingStatus;
  waited?: ReportWaited;
  findings?: ReportFinding[];
  failure?: ReportFailure;
  timeline?: ReportTimelineEntry[];
  consumption?: ReportConsumption;
  training?: ReportTraining;
}

export interface JobSpec {
  name: string;
  namespace?: string;
  runtime?: string;
  image?: string;
  command: string[];
  mpiFlags?: string[];
  workers: number;
  slots?: number;
  gpu?: number;
  gpuResource?: string;
  cpu?: string;
  memory?: string;
  implementation?: string;
  queue?: string;
  priority?: string;
  connections?: string[];
  env?: ({name: string; value?: string})[];
  labels?: Record<string, string>;
  runAsUser?: number;
  retries?: number;
  deadline?: number;
  suspend?: boolean;
  ttl?: number;
  rdma?: string;
  volumes?: Volume[];
  outputDir?: Volume;
  nodeSelector?: Record<string, string>;
  tolerations?: Toleration[];
  imagePullSecrets?: string[];
  serviceAccount?: string;
  workdir?: string;
  launcherCpu?: string;
  launcherMemory?: string;
  topology?: string;
  topologyPreferred?: boolean;
  gangTimeout?: number;
  gracePeriod?: number;
}

export interface List {
  rows: Row[];
  total: number;
  visible: number;
  facets: Record<string, Record<string, number>>;
  cursor: string;
  stale?: string;
  noReports?: boolean;
}

export interface LogEvent {
  lines?: LogLine[];
  waiting: string[] | null;
  note?: string;
  done?: boolean;
  untagged?: number;
}

export interface LogLine {
  t?: string;
  p: string;
  w: string;
  r: number;
  l?: string;
  x: string;
}

export interface Login {
  token: string;
}

export interface Manifest {
  clean: string;
  full: string;
}

export interface Me {
  name: string;
  version: string;
  program: string;
  canLogOut: boolean;
  createAnywhere: boolean;
}

export interface Metrics {
  source?: string;
  charts: Chart[];
  reason?: string;
}

export interface Namespace {
  name: string;
  displayName?: string;
  canCreate: boolean;
}

export interface NamespaceQuotas {
  namespace: string;
  quotas: Quota[];
}

export interface Namespaces {
  namespaces: Namespace[];
  complete: boolean;
}

export interface Output {
  title: string;
  where: string;
  named?: boolean;
  command: string;
}

export interface Pod {
  role: string;
  index: number;
  name: string;
  node?: string;
  phase: string;
  ready: boolean;
  reason?: string;
  message?: string;
  restarts: number;
  exitCode?: number;
  ranks?: string;
  created?: string;
  ip?: string;
  image?: string;
  requests?: string;
  cpu?: number;
  memory?: number;
  cpuLimit?: number;
  memoryLimit?: number;
}

export interface Pods {
  pods: Pod[];
  omitted: number;
  noUsage?: string;
}

export interface Problem {
  code: string;
  message: string;
  fields?: FieldProblem[];
  reasons?: string[];
  similar?: string[];
}

export interface Quantity {
  resource: string;
  amount: number;
  text: string;
}

export interface Queue {
  namespace: string;
  name: string;
  clusterQueue: string;
  active: boolean;
  message?: string;
  pending: number;
  running: number;
  resources: QueueResource[];
  waiting: Row[];
  waitP50?: number;
  waitP90?: number;
  samples?: number;
}

export interface QueueResource {
  flavor: string;
  resource: string;
  nominal: number;
  used: number;
}

export interface Quota {
  name: string;
  resource: string;
  hard: number;
  used: number;
  hardText: string;
  usedText: string;
  shared?: boolean;
}

export interface Quotas {
  queues: Queue[];
  quotas: NamespaceQuotas[];
  kueue: boolean;
  missing: string[];
}

export interface Recommendation {
  job: string;
  image?: string;
  command?: string;
  workers: number;
  cpu?: string;
  memory?: string;
  gpu?: number;
  runtime?: string;
}

export interface Remedy {
  text: string;
  action?: string;
  applicable: boolean;
  changes?: string[];
  command?: string;
}

export interface ReportConsumption {
  until: string;
  cpuCoreSeconds: number;
  memoryGiBSeconds: number;
  gpuSeconds?: Record<string, number>;
}

export interface ReportFailure {
  code: string;
  pod?: string;
  rank?: number;
  exitCode?: number;
  logTail?: string[];
}

export interface ReportFieldChange {
  field: string;
  value: string;
}

export interface ReportFinding {
  code: string;
  severity: string;
  summary: string;
  evidence?: string[];
  pod?: string;
  rank?: number;
  exitCode?: number;
  affected?: string[];
  remedies?: ReportRemedy[];
}

export interface ReportMPIStatus {
  implementation?: string;
  slotsPerWorker?: number;
  ranks?: number;
  slotsExpected?: number;
  slotsFound?: number;
  connectMilliseconds?: number;
  initMilliseconds?: number;
}

export interface ReportPhaseTime {
  phase: string;
  since: string;
  seconds: number;
}

export interface ReportPodStatus {
  role: string;
  index: number;
  name: string;
  node?: string;
  phase?: string;
  ready?: boolean;
  reason?: string;
  restarts?: number;
  exitCode?: number;
  ranks?: string;
}

export interface ReportRemedy {
  text: string;
  action?: string;
  rerun?: boolean;
  changes?: ReportFieldChange[];
}

export interface ReportRun {
  image?: string;
  launcherImage?: string;
  command?: string;
  requests?: Record<string, Quantity>;
  limits?: Record<string, Quantity>;
  runtime?: string;
  creator?: string;
  attempts?: number;
  mpiVersions?: string[];
}

export interface ReportRuntimeCheck {
  name: string;
  result: string;
  message?: string;
  finding?: string;
  remedies?: ReportRemedy[];
  milliseconds?: number;
}

export interface ReportSchedulingStatus {
  backend?: string;
  queue?: string;
  position?: number;
  positionScope?: string;
  since?: string;
  waitedSeconds?: number;
  waitP50?: number;
  waitP90?: number;
  samples?: number;
  placed?: number;
  wanted?: number;
  nodesFit?: number;
  nodesNeeded?: number;
  nodesTotal?: number;
  podsFit?: number;
  attempts?: number;
  evictedAt?: string;
  nextTry?: string;
  message?: string;
  observedAt?: string;
}

export interface ReportStartup {
  since: string;
  milliseconds: number;
  steps?: ReportStartupStep[];
}

export interface ReportStartupStep {
  name: string;
  milliseconds: number;
  medianMilliseconds?: number;
  pod?: string;
  node?: string;
}

export interface ReportTimelineEntry {
  time: string;
  event: string;
  detail?: string;
}

export interface ReportTraining {
  epoch?: string;
  step?: string;
  loss?: string;
  accuracy?: string;
  progress?: string;
  at: string;
}

export interface ReportWaited {
  backend: string;
  queue?: string;
  pods: number;
  seconds: number;
  until: string;
}

export interface ReportWorkersStatus {
  summary?: string;
  wanted: number;
  ready: number;
  running: number;
  succeeded: number;
  failed: number;
}

export interface Row {
  id: string;
  kind: string;
  namespace: string;
  name: string;
  framework?: string;
  runtime?: string;
  phase?: string;
  reason?: string;
  progress?: string;
  severity?: string;
  workers: number;
  ready: number;
  gpus: number;
  queue?: string;
  position?: number;
  user?: string;
  created: string;
  running?: string;
  ended?: string;
  deleted?: boolean;
  suspended?: boolean;
}

export interface Runtime {
  kind: string;
  namespace?: string;
  name: string;
  framework?: string;
  mpi: boolean;
  implementation?: string;
  slots?: string;
  image?: string;
  maxWorkers?: string;
  maxGPUs?: string;
  nodeLabels?: string;
  deleting?: boolean;
  errors: string[];
  tests: RuntimeTest[];
}

export interface RuntimeCopy {
  from: string;
  name: string;
  settings: RuntimeSettings;
}

export interface RuntimeJobs {
  running: number;
  waiting: number;
  jobs: Row[];
}

export interface RuntimeSettings {
  image?: string;
  slots?: number;
  maxWorkers?: number;
  maxGPUs?: number;
}

export interface RuntimeTest {
  namespace: string;
  name: string;
  phase: string;
  message?: string;
  created: string;
  checks: ReportRuntimeCheck[];
}

export interface Runtimes {
  runtimes: Runtime[];
  installed: boolean;
  canManage: boolean;
  canDelete: boolean;
  missing: string[];
}

export interface Sample {
  t: number;
  v: number;
}

export interface Snippet {
  title: string;
  language: string;
  text: string;
}

export interface SpecRequest {
  spec: JobSpec;
  commandLine?: string;
  flagLine?: string;
  description?: string;
  deadlineSeconds?: number;
  gangTimeoutSeconds?: number;
  original?: string;
  yaml?: string;
  template?: string;
  values?: Record<string, string>;
  dryRun?: boolean;
}

export interface Step {
  text: string;
  command?: string;
  setting?: string;
}

export interface Template {
  name: string;
  description?: string;
  kind?: string;
  created: string;
  parameters: TemplateParameter[];
  error?: string;
}

export interface TemplateParameter {
  name: string;
  default?: string;
  required: boolean;
}

export interface TemplateRequest {
  name: string;
  description?: string;
  job: SpecRequest;
  replace?: boolean;
}

export interface TemplateResult {
  message?: string;
  problem?: Problem;
}

export interface Templates {
  templates: Template[];
}

export interface Term {
  name: string;
  meaning: string;
}

export interface TestRequest {
  namespace: string;
  kind: string;
  name: string;
  image?: string;
  cpu?: string;
  memory?: string;
  gpu?: string;
  queue?: string;
}

export interface Toleration {
  key?: string;
  operator?: string;
  value?: string;
  effect?: string;
  tolerationSeconds?: number;
}

export interface Topic {
  code: string;
  phase: string;
  meaning: string;
  steps: Step[];
}

export interface Usage {
  lines: UsageLine[];
  failures: FailureCount[];
  unpriced: string[];
  missing: string[];
  commands: Snippet[];
}

export interface UsageLine {
  namespace?: string;
  job?: string;
  kind?: string;
  phase?: string;
  createdBy?: string;
  jobs: number;
  coreHours: number;
  gibHours: number;
  deviceHours?: Record<string, number>;
  gpuHours: number;
  cost?: number;
  currency?: string;
}

export interface Volume {
  source: string;
  name?: string;
  size?: string;
  path: string;
  subPath?: string;
  readOnly?: boolean;
}
