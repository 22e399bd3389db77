import {Alert, Button, FormSelect, FormSelectOption, TextInput, Title} from '@patternfly/react-core';
import {useMutation, useQueryClient} from '@tanstack/react-query';
import type {ReactElement} from 'react';
import {errorText, path, remove} from '../../api/client';
import {useTemplates} from '../../api/queries';
import type {ActionResult} from '../../api/types';
import {Loaded} from '../../components/States';
import {TrashIcon} from '../../lib/icons';
import {notify} from '../../lib/notices';
import {Field, type StepProps} from './Field';
import type {JobForm} from './form';

export function TemplateStep({form, set, problems, touched}: {form: JobForm; set: StepProps['set']; problems: ReadonlyMap<string, string>; touched: ReadonlySet<string>}): ReactElement {
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
