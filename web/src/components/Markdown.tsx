import {lazy, type ReactElement, Suspense} from 'react';

const Rendered = lazy(() => import('./RenderedMarkdown'));

/** Longer texts are shown as they are: the parser takes time that grows with the square of some texts. */
const longest = 4000;

/** Shows a text of a user as Markdown; as it is until the parser is loaded, and if it is too long or too deep for it. */
export function Markdown({text}: {text: string}): ReactElement {
  const plain = <p className="mpi-description mpi-plain">{text}</p>;
  if (text.length > longest) return plain;
  return (
    <Suspense fallback={plain}>
      <Rendered text={text} plain={plain} />
    </Suspense>
  );
}
