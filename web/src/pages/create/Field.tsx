import {FormGroup, FormHelperText, HelperText, HelperTextItem} from '@patternfly/react-core';
import type {ReactElement, ReactNode} from 'react';
import type {Choices} from '../../api/types';
import {Help} from '../../components/Common';
import {ExclamationCircleIcon} from '../../lib/icons';
import type {JobForm} from './form';

/** A field with its label, its explanation and its error. */
export function Field({id, label, help, required = false, error, hint, children}: {id: string; label: string; help?: string; required?: boolean; error?: string | undefined; hint?: ReactNode; children: ReactNode}): ReactElement {
  return (
    <FormGroup label={label} fieldId={id} isRequired={required} labelHelp={help ? <Help label={label}>{help}</Help> : undefined}>
      {children}
      {error || hint ? (
        <FormHelperText>
          <HelperText id={`${id}-help`} isLiveRegion={error !== undefined}>
            {error ? (
              <HelperTextItem variant="error" icon={<ExclamationCircleIcon />}>
                {error}
              </HelperTextItem>
            ) : (
              <HelperTextItem>{hint}</HelperTextItem>
            )}
          </HelperText>
        </FormHelperText>
      ) : null}
    </FormGroup>
  );
}

export interface StepProps {
  form: JobForm;
  set: (change: Partial<JobForm>) => void;
  errorOf: (field: string) => string | undefined;
  choices: Choices | undefined;
}

/** The names that a list of choices does not have, such as of a queue that was deleted since. */
export const missingChoices = (names: string[], choices: {name: string}[] | undefined): string[] => names.filter((name) => name !== '' && !choices?.some((choice) => choice.name === name));
