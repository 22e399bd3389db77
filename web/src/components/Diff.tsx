import type {ReactElement} from 'react';

/** Shows a unified diff. Signs say what the colors say. */
export function Diff({text}: {text: string}): ReactElement {
  return (
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <pre className="mpi-diff" tabIndex={0} role="region" aria-label="Differences">
      {text
        .trimEnd()
        .split('\n')
        .filter((line) => !line.startsWith('---') && !line.startsWith('+++'))
        .map((line, i) => (
          <span key={i} className={line.startsWith('+') ? 'is-added' : line.startsWith('-') ? 'is-removed' : line.startsWith('@@') ? 'is-place' : ''}>
            {line}
          </span>
        ))}
    </pre>
  );
}
