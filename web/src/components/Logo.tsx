import type {ReactElement} from 'react';

const corners = [8, 24].flatMap((x) => [8, 24].map((y) => ({x, y})));

/** Shows the mark of public/icon.svg. It is part of the page, so that no failed request leaves a broken image. */
export function Logo(): ReactElement {
  return (
    <svg viewBox="0 0 32 32" width="32" height="32" aria-hidden="true">
      <rect width="32" height="32" rx="7" fill="#004d99" />
      <path d="M8 8l16 16M24 8 8 24" stroke="#92c5f9" strokeWidth="2" />
      <circle cx="16" cy="16" r="4.5" fill="#fff" />
      {corners.map(({x, y}) => (
        <circle key={`${x}-${y}`} cx={x} cy={y} r="3" fill="#fff" />
      ))}
    </svg>
  );
}
