import {ExpandableSection} from '@patternfly/react-core';
import type {ReactElement} from 'react';
import {count} from '../../components/Common';

/** Names the fields of the original that a clone keeps because the wizard does not show them. */
export function KeptFields({fields}: {fields: string[]}): ReactElement | null {
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
