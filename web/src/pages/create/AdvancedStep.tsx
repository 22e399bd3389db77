import {Content, FormGroup, FormSection, FormSelect, FormSelectOption, Switch, TextInput, Title} from '@patternfly/react-core';
import type {ReactElement} from 'react';
import {Help} from '../../components/Common';
import {Field, missingChoices, type StepProps} from './Field';
import type {JobForm} from './form';
import {Pairs, Texts, Volumes} from './Lists';

/** The fields of a form that are text. */
type TextKey = {[K in keyof JobForm]: JobForm[K] extends string ? K : never}[keyof JobForm];

/** One line of text or a number, with the errors of a setting. */
function Line({form, set, errorOf, field, setting = field, label, help, hint, number = false, mono = false}: Pick<StepProps, 'form' | 'set' | 'errorOf'> & {field: TextKey; setting?: string; label: string; help: string; hint?: string | undefined; number?: boolean; mono?: boolean}): ReactElement {
  const error = errorOf(setting);
  return (
    <Field id={field} label={label} error={error} help={help} hint={hint}>
      <TextInput id={field} type={number ? 'number' : 'text'} value={form[field]} onChange={(_, value) => set({[field]: value})} validated={error ? 'error' : 'default'} aria-describedby={`${field}-help`} className={mono ? 'mpi-mono' : ''} autoComplete="off" spellCheck={false} />
    </Field>
  );
}

export function AdvancedStep(props: StepProps): ReactElement {
  const {form, set} = props;
  return (
    <div className="mpi-stack">
      <Title headingLevel="h2">Advanced</Title>
      <Content component="p">
        Nothing here is required.
        {form.way === 'runtime' ? ' A TrainJob has no field for the size of its launcher: the runtime determines it.' : ''}
      </Content>
      <FormSection title="Queue" titleElement="h3">
        <QueueFields {...props} />
      </FormSection>
      <FormSection title="Data and memory" titleElement="h3">
        <DataFields {...props} />
      </FormSection>
      <FormSection title="Nodes" titleElement="h3">
        <NodeFields {...props} />
      </FormSection>
      <FormSection title="Failures and time" titleElement="h3">
        <TimeFields {...props} />
      </FormSection>
      <FormSection title="Program and pods" titleElement="h3">
        <PodFields {...props} />
      </FormSection>
      <Switch label="Create the job suspended, to start it later" isChecked={form.suspend} onChange={(_, suspend) => set({suspend})} />
    </div>
  );
}

function QueueFields({form, set, errorOf, choices}: StepProps): ReactElement {
  const runtime = choices?.runtimes.find(({name}) => name === form.runtime);
  // A TrainJob in a queue has the priority of the queue, any other job that of its pods.
  const isOfQueue = form.way === 'runtime' && form.queue !== '';
  const priorities = isOfQueue ? choices?.queuePriorities : choices?.priorities;
  const isPriorityTyped = choices?.missing.includes(isOfQueue ? 'priority classes of queues' : 'priority classes');
  return (
    <>
      <Field id="queue" label="Queue" error={errorOf('queue')} help="A LocalQueue of Kueue. The job waits there until all of its pods can run together." hint={choices?.queues.length === 0 ? 'This project has no queues. All pods of the job are scheduled together all the same.' : undefined}>
        <FormSelect id="queue" value={form.queue} onChange={(_, queue) => set({queue})} aria-describedby="queue-help">
          <FormSelectOption value="" label="None" />
          {(choices?.queues ?? []).map(({name, pending}) => (
            <FormSelectOption key={name} value={name} label={`${name} (${pending} waiting)`} />
          ))}
          {missingChoices([form.queue], choices?.queues).map((name) => (
            <FormSelectOption key={name} value={name} label={`${name} (not found)`} />
          ))}
        </FormSelect>
      </Field>
      <Field id="priority" label="Priority class" error={errorOf('priority')} help={`Jobs of higher priority are scheduled first, and may evict others.${isOfQueue ? ' In a queue, it is one of Kueue (WorkloadPriorityClass).' : ''}`} hint={isPriorityTyped ? 'You may not list them: enter a name, or leave it empty for the default.' : undefined}>
        {isPriorityTyped ? (
          <TextInput id="priority" value={form.priority} onChange={(_, priority) => set({priority})} aria-describedby="priority-help" autoComplete="off" spellCheck={false} />
        ) : (
          <FormSelect id="priority" value={form.priority} onChange={(_, priority) => set({priority})} aria-describedby="priority-help">
            <FormSelectOption value="" label="Default" />
            {[...new Set([...(priorities ?? []), form.priority])].filter(Boolean).map((name) => (
              <FormSelectOption key={name} value={name} label={name} />
            ))}
          </FormSelect>
        )}
      </Field>
      {form.way === 'image' || runtime?.mpi || form.gangMinutes ? <Line {...{form, set, errorOf}} field="gangMinutes" setting="gangTimeout" number label="Gang timeout in minutes" help="All pods are scheduled together. An attempt ends if not all of them are scheduled by then, so that the job does not hold a place in vain." hint={form.way === 'image' ? "Empty for the cluster's default." : "Empty for the runtime's, or the cluster's default. Without a queue, a job of which no pod has a node waits without a limit; set a deadline to end it."} /> : null}
    </>
  );
}

function DataFields({form, set, errorOf, choices}: StepProps): ReactElement {
  const connections = [...(choices?.connections ?? []), ...missingChoices(form.connections, choices?.connections).map((name) => ({name, displayName: `${name} (not found)`}))];
  const output = form.outputDir;
  const connectionsHelp = 'Their keys become variables of every rank. The values are not shown here.';
  const known = (choices?.connections ?? []).map(({name}) => name).join(', ');
  return (
    <>
      {choices?.missing.includes('data connections') ? (
        <Texts id="connections" label="Data connections" noun="data connection" placeholder="training-data" help={`${connectionsHelp} You may not list the Secrets of this project: enter their names.${known ? ` Earlier jobs used ${known}.` : ''}`} items={form.connections} set={(names) => set({connections: names})} error={errorOf('connection')} />
      ) : (
        <FormGroup label="Data connections" role="group" fieldId="connections" labelHelp={<Help label="Data connections">{connectionsHelp}</Help>}>
          <div className="mpi-actions" id="connections">
            {connections.map(({name, displayName}) => (
              <Switch key={name} label={displayName ?? name} isChecked={form.connections.includes(name)} onChange={(_, on) => set({connections: on ? [...form.connections, name] : form.connections.filter((each) => each !== name)})} />
            ))}
            {choices && connections.length === 0 ? <span className="mpi-subtle">This project has no data connections.</span> : null}
          </div>
        </FormGroup>
      )}
      <Volumes id="volumes" label="Volumes" noun="volume" help="All pods mount them. A claim needs the access mode ReadWriteMany if the pods run on several nodes." items={form.volumes} set={(volumes) => set({volumes})} error={errorOf('volume')} />
      <div className="mpi-grid">
        <Field id="output-claim" label="Claim for results" error={errorOf('outputDir')} help="The job has a folder of its own on this claim. Its path is in the variable OUTPUT_DIR of every rank." hint="The name of a claim. Empty for none.">
          <TextInput id="output-claim" value={output.name} onChange={(_, name) => set({outputDir: {...output, name}})} validated={errorOf('outputDir') ? 'error' : 'default'} aria-describedby="output-claim-help" autoComplete="off" />
        </Field>
        <Field id="output-path" label="Path of results" help="Where all pods mount the folder for results." hint="Such as /results.">
          <TextInput id="output-path" value={output.path} onChange={(_, path) => set({outputDir: {...output, path}})} aria-describedby="output-path-help" autoComplete="off" />
        </Field>
        <Line {...{form, set, errorOf}} field="shm" label="Shared memory" help="The size of /dev/shm of each pod, which data loaders and NCCL use. It counts towards the memory of the pod." hint="Such as 8Gi. Empty for the node's default, often 64Mi." />
        {form.way === 'image' ? (
          <>
            <Line {...{form, set, errorOf}} field="launcherCpu" label="CPUs of the launcher" help="The launcher starts the ranks and runs none." hint="Empty for 100m." />
            <Line {...{form, set, errorOf}} field="launcherMemory" label="Memory of the launcher" help="A launcher that uses more than this is ended." hint="Empty for 128Mi, with a limit of 1Gi." />
          </>
        ) : null}
      </div>
    </>
  );
}

function NodeFields({form, set, errorOf}: StepProps): ReactElement {
  return (
    <>
      <Pairs id="node-selector" label="Node labels" noun="node label" help="All pods run on nodes with these labels." items={form.nodeSelector} set={(nodeSelector) => set({nodeSelector})} error={errorOf('nodeSelector')} />
      <Texts id="tolerations" label="Tolerations" noun="toleration" placeholder="nvidia.com/gpu" help="Taints of nodes that all pods tolerate: KEY, KEY=VALUE, KEY:EFFECT or KEY=VALUE:EFFECT." items={form.tolerations} set={(tolerations) => set({tolerations})} error={errorOf('toleration')} />
      <Line {...{form, set, errorOf}} field="topology" label="Topology" mono help="The key of a node label. All pods run on nodes with the same value, such as in one zone or rack." hint="Such as topology.kubernetes.io/zone. Empty for any nodes." />
      {form.topology ? <Switch label="Run elsewhere if the pods do not fit one domain" isChecked={form.topologyPreferred} onChange={(_, topologyPreferred) => set({topologyPreferred})} /> : null}
      <Field id="rdma" label="RDMA" error={errorOf('rdma')} help="What happens if no node offers the RDMA that the pods request.">
        <FormSelect id="rdma" value={form.rdma} onChange={(_, rdma) => set({rdma})}>
          <FormSelectOption value="" label="Default: run over TCP without it" />
          <FormSelectOption value="optional" label="Optional: run over TCP without it" />
          <FormSelectOption value="required" label="Required: wait for it" />
        </FormSelect>
      </Field>
      <div>
        <Switch label="Wait for quota" isChecked={form.waitForQuota} onChange={(_, waitForQuota) => set({waitForQuota})} />
        <Help label="Wait for quota">The job waits if the quotas of the project have no room for it now. Without this, it is refused. A job in a queue always waits.</Help>
      </div>
    </>
  );
}

function TimeFields({form, set, errorOf}: StepProps): ReactElement {
  return (
    <div className="mpi-grid">
      <Line {...{form, set, errorOf}} field="hours" setting="deadline" number label="Time limit in hours" help="The job is ended after this time." hint="Empty for no limit." />
      <Line {...{form, set, errorOf}} field="retries" number label="Retries" help="How often a failed job is tried again. Workers that failed are replaced; with a runtime, all pods." hint={form.way === 'runtime' ? "Empty for the runtime's number." : 'Empty for none.'} />
      <Line {...{form, set, errorOf}} field="graceSeconds" setting="gracePeriod" number label="Grace period in seconds" help="The time that programs have to write a checkpoint and end after SIGTERM." hint="Empty for 30 s." />
      <Line {...{form, set, errorOf}} field="ttlHours" setting="ttl" number label="Delete after hours" help="The time from the end of the job until it is deleted. Its report is kept." hint="Empty to keep the job." />
    </div>
  );
}

function PodFields({form, set, errorOf, choices}: StepProps): ReactElement {
  const runtime = choices?.runtimes.find(({name}) => name === form.runtime);
  const isMPI = form.way === 'image' || runtime?.mpi;
  return (
    <>
      {isMPI ? <Line {...{form, set, errorOf}} field="flags" setting="mpiFlags" mono label="MPI flags" help="More flags of the mpirun that is added to your command. A command that starts ranks itself has its own." hint={form.way === 'image' && form.implementation === 'OpenMPI' ? 'Such as --bind-to core --map-by socket, or --mca btl_tcp_if_include eth0.' : 'Such as -genv I_MPI_DEBUG 5, or -bind-to core.'} /> : null}
      <div className="mpi-grid">
        <Line {...{form, set, errorOf}} field="workdir" label="Working folder" help="Where the program starts. With a runtime it requires MPI." hint="Such as /app. Empty for the folder of the image." />
        <Line {...{form, set, errorOf}} field="user" setting="runAsUser" number label="User ID" help="The number of the user that the program runs as. A project that only admits restricted pods requires one if the image runs as root; OpenShift sets it itself." hint={form.way === 'runtime' ? 'Empty for the user of the runtime.' : 'Empty for the user of the image.'} />
        <Line {...{form, set, errorOf}} field="serviceAccount" label="Service account" help="The ServiceAccount of the pods, which programs need only if they call the API server." hint="Empty for none." />
      </div>
      {isMPI || form.profile ? (
        <div>
          <Switch label="Profile communication" isChecked={form.profile} onChange={(_, profile) => set({profile})} />
          <Help label="Profile communication">Counts and times the calls of MPI in each rank. The tab Metrics of the job then shows where the time goes. Each call takes up to 100 ns longer.</Help>
        </div>
      ) : null}
      <Texts id="pull-secrets" label="Pull secrets" noun="pull secret" placeholder="my-registry" help="Secrets with the credentials of the image's registry." items={form.pullSecrets} set={(pullSecrets) => set({pullSecrets})} error={errorOf('imagePullSecret')} />
      <Pairs id="labels" label="Labels" noun="label" help="Labels of the job, such as for the costs of a team." items={form.labels} set={(labels) => set({labels})} error={errorOf('label')} />
    </>
  );
}
