import {FormSelect, FormSelectOption} from '@patternfly/react-core';
import type {ReactElement} from 'react';
import {useNamespaces} from '../api/queries';

/** Selects a project, or all. */
export function ProjectSelect({value, onChange}: {value: string; onChange: (value: string) => void}): ReactElement {
  const {data} = useNamespaces();
  const names = data?.namespaces ?? [];
  return (
    <FormSelect aria-label="Project" value={value} onChange={(_, next) => onChange(next)} className="mpi-project">
      <FormSelectOption value="" label="All projects" />
      {value && !names.some(({name}) => name === value) ? <FormSelectOption value={value} label={value} /> : null}
      {names.map(({name, displayName}) => (
        <FormSelectOption key={name} value={name} label={displayName ?? name} />
      ))}
    </FormSelect>
  );
}
