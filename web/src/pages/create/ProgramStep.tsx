import {Alert, AlertActionLink, FormSelect, FormSelectOption, TextArea, TextInput, Title} from '@patternfly/react-core';
import type {ReactElement} from 'react';
import {count} from '../../components/Common';
import {Field, missingChoices, type StepProps} from './Field';
import {Pairs} from './Lists';

export function ProgramStep({form, set, errorOf, choices}: StepProps): ReactElement {
  // A job gets the runtime of the project if the cluster has one of the same name.
  const runtimes = (choices?.runtimes ?? []).filter(({name, namespace}, _, all) => namespace || !all.some((other) => other.name === name && other.namespace));
  const runtime = runtimes.find(({name}) => name === form.runtime);
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
        <Field id="runtime" label="Runtime" required error={errorOf('runtime')} help="A runtime has the image, the MPI and the limits that an administrator has set." hint={runtime ? [runtime.implementation ?? runtime.framework, runtime.image, runtime.minWorkers ? `at least ${runtime.minWorkers} workers` : '', runtime.maxWorkers ? `at most ${runtime.maxWorkers} workers` : '', runtime.maxGPUs ? `at most ${runtime.maxGPUs} GPUs per worker` : ''].filter(Boolean).join(' · ') : undefined}>
          <FormSelect id="runtime" value={form.runtime} onChange={(_, name) => set({runtime: name})} validated={errorOf('runtime') ? 'error' : 'default'} aria-describedby="runtime-help">
            <FormSelectOption value="" label="Select a runtime" isPlaceholder />
            {runtimes.map(({name, kind, framework}) => (
              <FormSelectOption key={`${kind}/${name}`} value={name} label={framework ? `${name} (${framework})` : name} />
            ))}
            {missingChoices([form.runtime], choices?.runtimes).map((name) => (
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
        <Field id="implementation" label="MPI in the image" error={errorOf('implementation')} help="Each MPI reads the list of its hosts in its own way, so the launcher must know which one it is.">
          <FormSelect id="implementation" value={form.implementation} onChange={(_, implementation) => set({implementation})}>
            <FormSelectOption value="OpenMPI" label="Open MPI (4 or 5)" />
            <FormSelectOption value="Intel" label="Intel MPI" />
            <FormSelectOption value="MPICH" label="MPICH" />
          </FormSelect>
        </Field>
      ) : null}
      <Pairs id="env" label="Variables" noun="variable" help="Environment variables of every rank. For passwords and keys use a data connection." items={form.env} set={(env) => set({env})} error={errorOf('env')} />
    </div>
  );
}
