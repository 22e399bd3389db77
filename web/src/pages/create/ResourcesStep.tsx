import {Alert, Button, Card, CardBody, CardTitle, FormGroup, FormSelect, FormSelectOption, NumberInput, Slider, TextInput, Title} from '@patternfly/react-core';
import type {ReactElement} from 'react';
import type {Choices, Draft} from '../../api/types';
import {count} from '../../components/Common';
import {ProblemAlert} from '../../components/Problem';
import {queueBars, QuotaBar, quotaBars} from '../../components/QuotaBar';
import {duration} from '../../lib/time';
import {Field, type StepProps} from './Field';
import type {JobForm} from './form';

const presets = [
  {title: 'Small', cpu: '1', memory: '2Gi', gpu: 0},
  {title: 'Medium', cpu: '4', memory: '16Gi', gpu: 0},
  {title: 'Large', cpu: '16', memory: '64Gi', gpu: 0},
  {title: '1 GPU', cpu: '8', memory: '64Gi', gpu: 1},
  {title: '4 GPUs', cpu: '32', memory: '256Gi', gpu: 4},
];

function QuotaPanel({form, choices, draft}: {form: JobForm; choices: Choices | undefined; draft: Draft | undefined}): ReactElement {
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
          {draft?.advice?.map((sentence) => <Alert key={sentence} isInline variant="info" title={sentence} component="p" />)}
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

export function ResourcesStep({form, set, errorOf, choices, draft}: StepProps & {draft: Draft | undefined}): ReactElement {
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
          {form.gpu > 0 ? (
            <Field id="gpuResource" label="GPU resource" error={errorOf('gpuResource')} help="The name under which the cluster's nodes offer GPUs.">
              <FormSelect id="gpuResource" value={form.gpuResource} onChange={(_, gpuResource) => set({gpuResource})}>
                {[...new Set([...(choices?.gpus ?? []), form.gpuResource])].map((name) => (
                  <FormSelectOption key={name} value={name} label={name} />
                ))}
              </FormSelect>
            </Field>
          ) : null}
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
