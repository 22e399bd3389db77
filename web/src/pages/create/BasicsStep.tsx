import {Card, CardBody, CardTitle, TextArea, TextInput, Title} from '@patternfly/react-core';
import type {ReactElement} from 'react';
import {Markdown} from '../../components/Markdown';
import {Field, type StepProps} from './Field';

export function BasicsStep({form, set, errorOf, namespaces, isClone}: StepProps & {isClone: boolean; namespaces: {name: string; displayName?: string; canCreate: boolean}[]}): ReactElement {
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
