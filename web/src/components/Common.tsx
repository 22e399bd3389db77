import {Button, ClipboardCopyButton, CodeBlock, CodeBlockAction, CodeBlockCode, ExpandableSection, PageSection, Content, Tab, Tabs, TabTitleText, Title, Tooltip} from '@patternfly/react-core';
import {type ReactElement, type ReactNode, useEffect, useId, useState} from 'react';
import type {Snippet} from '../api/types';
import {OutlinedQuestionCircleIcon} from '../lib/icons';
import {duration, moment, useNow} from '../lib/time';

/** The head of a page: its title, what it shows, and its actions. */
export function PageHead({title, text, actions, children, heading}: {title: string; text?: ReactNode; actions?: ReactNode; children?: ReactNode; heading?: ReactNode}): ReactElement {
  useEffect(() => {
    document.title = `${title} · Distributed training`;
  }, [title]);
  return (
    <PageSection hasBodyWrapper={false} className="mpi-head">
      <div className="mpi-head-row">
        <div>
          <Title headingLevel="h1" size="2xl" className="mpi-title">
            {heading ?? title}
          </Title>
          {text ? <Content component="p" className="mpi-subtitle">{text}</Content> : null}
        </div>
        {actions ? <div className="mpi-actions">{actions}</div> : null}
      </div>
      {children}
    </PageSection>
  );
}

/** How long ago a moment was. */
export function Age({at}: {at: string}): ReactElement {
  const now = useNow();
  return (
    <time dateTime={at} title={moment(at)}>
      {duration(now - Date.parse(at))}
    </time>
  );
}

/** How long something took, or has taken so far. */
export function Elapsed({from, to}: {from: string | undefined; to: string | undefined}): ReactElement {
  const now = useNow();
  if (!from) return <span aria-label="Has not run">–</span>;
  return <span title={`From ${moment(from)}${to ? ` to ${moment(to)}` : ''}`}>{duration((to ? Date.parse(to) : now) - Date.parse(from))}</span>;
}

/** A block of text to copy. */
export function Code({text, label, className}: {text: string; label: string; className?: string}): ReactElement {
  const id = useId();
  const [copied, setCopied] = useState(false);
  return (
    <CodeBlock
      className={className ?? ''}
      actions={
        <CodeBlockAction>
          <ClipboardCopyButton
            id={`${id}-copy`}
            aria-label={`Copy ${label}`}
            variant="plain"
            exitDelay={copied ? 1500 : 600}
            onClick={() => {
              void navigator.clipboard.writeText(text);
              setCopied(true);
            }}
            onTooltipHidden={() => setCopied(false)}
          >
            {copied ? 'Copied' : 'Copy'}
          </ClipboardCopyButton>
        </CodeBlockAction>
      }
    >
      {/* A region that scrolls is reached by the keyboard. */}
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <div tabIndex={0} role="region" aria-label={label} className="mpi-code">
        <CodeBlockCode id={id}>{text}</CodeBlockCode>
      </div>
    </CodeBlock>
  );
}

/** The commands and the lines of Python that do what a page shows. */
export function Snippets({items, isOpen = false, title = 'The same on the command line and in Python'}: {items: Snippet[]; isOpen?: boolean; title?: string}): ReactElement | null {
  const [open, setOpen] = useState(isOpen);
  const [active, setActive] = useState(0);
  if (items.length === 0) return null;
  const shown = items[Math.min(active, items.length - 1)];
  return (
    <ExpandableSection toggleText={title} isExpanded={open} onToggle={(_, value) => setOpen(value)} className="mpi-snippets">
      {items.length > 1 ? (
        <Tabs activeKey={active} onSelect={(_, key) => setActive(Number(key))} aria-label="Language" isSubtab>
          {items.map((item, i) => (
            <Tab key={item.title} eventKey={i} title={<TabTitleText>{item.title}</TabTitleText>} />
          ))}
        </Tabs>
      ) : null}
      {shown ? <Code text={shown.text} label={shown.title} /> : null}
    </ExpandableSection>
  );
}

/** A question mark that explains a field. */
export function Help({label, children}: {label: string; children: string}): ReactElement {
  return (
    <Tooltip content={children}>
      <Button variant="plain" hasNoPadding aria-label={`${label}: ${children}`} icon={<OutlinedQuestionCircleIcon />} className="mpi-help" />
    </Tooltip>
  );
}

/** A table that scrolls on narrow screens. */
export const Scrolled = ({title, children}: {title: string; children: ReactNode}): ReactElement => (
  <>
    {/* A region that scrolls is reached by the keyboard. */}
    {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
    <div className="mpi-scroll" tabIndex={0} role="region" aria-label={title}>
      {children}
    </div>
  </>
);

/** A number with its noun. */
export const count = (n: number, noun: string): string => `${n.toLocaleString()} ${noun}${n === 1 ? '' : 's'}`;
