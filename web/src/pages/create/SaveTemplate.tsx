import {Alert, Button, ExpandableSection, TextInput} from '@patternfly/react-core';
import {useMutation, useQueryClient} from '@tanstack/react-query';
import {type ReactElement, useState} from 'react';
import {errorText, path, post} from '../../api/client';
import type {SpecRequest, TemplateResult} from '../../api/types';
import {ProblemAlert} from '../../components/Problem';
import {notify} from '../../lib/notices';
import {Field} from './Field';

/** Saves the job of the wizard as a template of its project. */
export function SaveTemplate({request, namespace}: {request: SpecRequest; namespace: string}): ReactElement {
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
          <TextInput id="template-name" value={name} onChange={(_, value) => {
            if (!save.isPending) save.reset(); // the template that exists has the name of before
            setName(value);
          }} aria-describedby="template-name-help" autoComplete="off" />
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
