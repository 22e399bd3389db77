import {Alert, Button, TextArea} from '@patternfly/react-core';
import {type ReactElement, type ReactNode, useRef} from 'react';
import type {FieldProblem} from '../api/types';
import {Field} from '../pages/create/Field';

/**
 * A text field for the YAML of a job. Problems of fields are listed below it, with a button that moves the cursor to the line. The Tab
 * key leaves the field.
 */
export function YamlEditor({id, label, text, set, problems, hint}: {id: string; label: string; text: string; set: (text: string) => void; problems: FieldProblem[]; hint?: ReactNode}): ReactElement {
  const area = useRef<HTMLTextAreaElement>(null);
  const show = (line: number): void => {
    const element = area.current;
    if (!element) return;
    const lines = element.value.split('\n');
    const from = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
    element.focus();
    element.setSelectionRange(from, from + (lines[line - 1]?.length ?? 0));
    element.scrollTop = (element.scrollHeight / lines.length) * (line - 1) - element.clientHeight / 2;
  };
  return (
    <>
      <Field id={id} label={label} required hint={hint}>
        <TextArea
          id={id}
          ref={area}
          value={text}
          onChange={(_, value) => set(value)}
          rows={20}
          wrap="off"
          className="mpi-mono mpi-editor"
          spellCheck={false}
          autoComplete="off"
          aria-describedby={`${id}-help ${id}-problems`}
          resizeOrientation="vertical"
          validated={problems.length > 0 ? 'error' : 'default'}
        />
      </Field>
      <div id={`${id}-problems`} aria-live="polite">
        {problems.length > 0 ? (
          <Alert isInline variant="danger" title="The job cannot be created as it is" component="p">
            <ul className="mpi-words">
              {problems.map(({field, value, reason, line}) => (
                <li key={`${field} ${reason}`} className="mpi-wrap">
                  {line ? (
                    <>
                      <Button variant="link" isInline onClick={() => show(line)} aria-label={`Go to line ${line}${field === 'yaml' ? '' : `, ${field}`}`}>
                        Line {line}
                      </Button>
                      {': '}
                    </>
                  ) : null}
                  {field && field !== 'yaml' ? <span className="mpi-mono">{field} </span> : null}
                  {value ? `${value} ` : ''}
                  {reason}
                </li>
              ))}
            </ul>
          </Alert>
        ) : null}
      </div>
    </>
  );
}
