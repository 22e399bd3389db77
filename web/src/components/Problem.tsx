import {Alert} from '@patternfly/react-core';
import type {ReactElement} from 'react';
import type {Problem} from '../api/types';

/** Says why a job cannot be created, with every reason. */
export function ProblemAlert({problem}: {problem: Problem | null | undefined}): ReactElement | null {
  if (!problem) return null;
  const reasons = problem.reasons ?? problem.fields?.map(({field, value, reason}) => [field, value, reason].filter(Boolean).join(' ')) ?? [];
  return (
    <Alert isInline variant="danger" title={problem.code === 'Exists' ? problem.message : 'The job cannot be created as it is'} component="p">
      {reasons.length > 0 ? (
        <ul className="mpi-words">
          {reasons.map((reason) => (
            <li key={reason} className="mpi-wrap">{reason}</li>
          ))}
        </ul>
      ) : problem.code === 'Exists' ? null : (
        <p className="mpi-wrap">{problem.message}</p>
      )}
    </Alert>
  );
}
