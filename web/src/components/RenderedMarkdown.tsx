import {Content} from '@patternfly/react-core';
import type {Root} from 'hast';
import {type ReactElement, useMemo} from 'react';
import ReactMarkdown, {type Components} from 'react-markdown';
import {visitParents} from 'unist-util-visit-parents';

/** The deepest list or quote. Deeper ones come from texts that are made to overflow a stack. */
const deepest = 40;

/** What an entity such as &#x202e; may not write: it would change what other text looks like. */
const unprintable = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

const clean = () => (tree: Root): void =>
  visitParents(tree, (node, ancestors) => {
    if (ancestors.length > deepest) throw new Error(`the text has more than ${deepest} levels`);
    if ('value' in node) node.value = node.value.replace(unprintable, '');
  });

/** Only addresses that a browser opens in a tab of its own; others, such as javascript:, are dropped. */
const webAddress = (url: string): string => (/^https?:\/\//i.test(url) ? url : '');

// The page has a heading of its own. Images of other sites would tell them who reads the page, and its policy forbids them.
const components: Components = {
  h1: ({children}) => <h2>{children}</h2>,
  h2: ({children}) => <h3>{children}</h3>,
  h3: ({children}) => <h4>{children}</h4>,
  h4: ({children}) => <h5>{children}</h5>,
  h5: ({children}) => <h6>{children}</h6>,
  img: ({alt}) => <>{alt?.replace(unprintable, '')}</>,
  a: ({href, children}) =>
    href ? (
      <a href={href} target="_blank" rel="noopener noreferrer nofollow">
        {children}
      </a>
    ) : (
      <>{children}</>
    ),
};

/** Shows Markdown without HTML of its own, images and links to anything but web pages; plain if it is too deep. */
export default function RenderedMarkdown({text, plain}: {text: string; plain: ReactElement}): ReactElement {
  const content = useMemo(() => {
    try {
      return ReactMarkdown({children: text, components, rehypePlugins: [clean], urlTransform: webAddress});
    } catch {
      return undefined;
    }
  }, [text]);
  return content === undefined ? plain : <Content className="mpi-description">{content}</Content>;
}
