import {Alert, ExpandableSection, Title} from '@patternfly/react-core';
import type {ReactElement} from 'react';
import {errorText} from '../../api/client';
import type {CloneForm, Draft} from '../../api/types';
import {Code, Snippets} from '../../components/Common';
import {Diff} from '../../components/Diff';
import {ProblemAlert} from '../../components/Problem';
import {Busy} from '../../components/States';
import {KeptFields} from './KeptFields';

export function ReviewStep({draft, isChecking, error, failure, save, clone}: {save: ReactElement | null; clone: CloneForm | undefined; draft: Draft | undefined; isChecking: boolean; error: unknown; failure: unknown}): ReactElement {
  return (
    <div className="mpi-stack">
      <Title headingLevel="h2">Review</Title>
      {failure ? <Alert isInline variant="danger" title={errorText(failure)} component="p" /> : null}
      {error ? <Alert isInline variant="danger" title={errorText(error)} component="p" /> : null}
      {!draft && isChecking ? <Busy what="The API server checks the job" /> : null}
      {draft ? (
        <>
          <ProblemAlert problem={draft.problem} />
          {draft.problem || isChecking ? null : <Alert isInline variant="success" title="The API server accepts this job" component="p">{draft.cost ? `It costs ${draft.cost} per hour.` : null}</Alert>}
          {draft.warnings?.map((warning) => <Alert key={warning} isInline variant="warning" title={warning} component="p" />)}
          {draft.words ? (
            <ul className="mpi-words">
              {draft.words.map((sentence) => (
                <li key={sentence} className="mpi-wrap">{sentence}</li>
              ))}
            </ul>
          ) : null}
          {draft.diff ? (
            <section aria-labelledby="review-diff" className="mpi-stack">
              <Title headingLevel="h3" id="review-diff">Differences from the original</Title>
              <Diff text={draft.diff} />
            </section>
          ) : null}
          {draft.diff !== undefined && clone ? <KeptFields fields={clone.kept} /> : null}
          {draft.yaml ? (
            <ExpandableSection toggleText="View YAML" className="mpi-yaml">
              <Code text={draft.yaml} label="YAML of the job" />
            </ExpandableSection>
          ) : null}
          {draft.commands ? <Snippets items={draft.commands} /> : null}
          {draft.problem ? null : save}
        </>
      ) : null}
    </div>
  );
}
