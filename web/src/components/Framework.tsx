import type {ReactElement} from 'react';

// Marks of our own, so that no trademark is shipped.
const marks: Record<string, ReactElement> = {
  MPI: (
    <>
      <path d="M10 10 4 4M10 10l6-6M10 10l-6 6M10 10l6 6" stroke="currentColor" strokeWidth="1.4" />
      <circle cx="10" cy="10" r="3" fill="currentColor" />
      {[4, 16].flatMap((x) => [4, 16].map((y) => <circle key={`${x}-${y}`} cx={x} cy={y} r="2" fill="currentColor" />))}
    </>
  ),
  PyTorch: <path d="M10 2c3 4 6 6 6 10a6 6 0 1 1-12 0c0-2.500 1.500-4.500 3-6 0 2 1 3 2 3 1.500 0 2-1.500 1-7Z" fill="currentColor" />,
};

const other = (
  <>
    <rect x="3" y="3" width="6" height="6" rx="1" fill="currentColor" />
    <rect x="11" y="3" width="6" height="6" rx="1" fill="currentColor" opacity="0.6" />
    <rect x="3" y="11" width="6" height="6" rx="1" fill="currentColor" opacity="0.6" />
    <rect x="11" y="11" width="6" height="6" rx="1" fill="currentColor" />
  </>
);

/** The mark of a framework, beside its name. */
export function FrameworkMark({name}: {name: string | undefined}): ReactElement {
  return (
    <svg viewBox="0 0 20 20" className="mpi-mark" aria-hidden="true">
      {marks[name ?? ''] ?? other}
    </svg>
  );
}

/** Shows a framework by its mark and name. */
export function Framework({name, kind}: {name: string | undefined; kind: string}): ReactElement {
  return (
    <span className="mpi-framework" title={kind}>
      <FrameworkMark name={name} />
      {name ?? kind}
    </span>
  );
}
