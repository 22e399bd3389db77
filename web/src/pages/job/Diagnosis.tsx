import {Button, Card, CardBody, CardHeader, CardTitle, DescriptionList, DescriptionListDescription, DescriptionListGroup, DescriptionListTerm, ExpandableSection, Label, Title} from '@patternfly/react-core';
import {type ReactElement, useState} from 'react';
import {Link} from 'react-router';
import type {Detail, Finding, Remedy} from '../../api/types';
import {Code} from '../../components/Common';
import {ExclamationCircleIcon, ExclamationTriangleIcon, InfoCircleIcon, RedoIcon, WrenchIcon} from '../../lib/icons';
import {useParameters} from '../../lib/parameters';

const severities = {
  Error: {icon: ExclamationCircleIcon, className: 'is-error', color: 'red'},
  Warning: {icon: ExclamationTriangleIcon, className: 'is-warning', color: 'orange'},
  Info: {icon: InfoCircleIcon, className: 'is-info', color: 'blue'},
} as const;

const lookOf = (severity: string): (typeof severities)[keyof typeof severities] => (severity in severities ? severities[severity as keyof typeof severities] : severities.Info);

function RemedyItem({remedy, canClone, onApply}: {remedy: Remedy; canClone: boolean; onApply: (changes: string[]) => void}): ReactElement {
  return (
    <li>
      <div>
        <div className="mpi-wrap">{remedy.text}</div>
        {remedy.action && !remedy.command && !remedy.applicable ? <code className="mpi-mono">{remedy.action}</code> : null}
      </div>
      <div>
        {remedy.applicable && canClone ? (
          <Button variant="secondary" size="sm" icon={<WrenchIcon />} onClick={() => onApply(remedy.changes ?? [])}>
            {(remedy.changes ?? []).length > 0 ? 'Clone with this change' : 'Run it again'}
          </Button>
        ) : null}
        {remedy.command ? (
          <ExpandableSection toggleText="As a command" displaySize="default">
            <Code text={remedy.command} label="Command of the remedy" />
          </ExpandableSection>
        ) : null}
      </div>
    </li>
  );
}

/** Says why a job has failed or does not progress, what that is known from, and what to do. */
export function Diagnosis({detail, onApply}: {detail: Detail; onApply: (changes: string[]) => void}): ReactElement {
  const {open} = useParameters();
  const [known, ...others] = detail.findings;
  const [showAll, setShowAll] = useState(false);
  const deleted = !known && detail.status?.reason === 'JobDeleted';
  const unexplained: Finding = {
    code: deleted ? 'Deleted' : 'Unknown',
    severity: deleted ? 'Info' : 'Error',
    summary: detail.status?.message ?? 'The job has failed. No cause is recorded: the operator has not reported on it.',
    evidence: [],
    affected: [],
    remedies: [],
    guide: !deleted,
  };
  const first = known ?? unexplained;
  const look = lookOf(first.severity);
  const Icon = look.icon;
  return (
    <Card className={`mpi-diagnosis ${look.className}`} component="section" aria-labelledby="diagnosis">
      <CardHeader>
        <CardTitle component="h2" id="diagnosis">
          <span className="mpi-inline">
            {deleted ? 'Why it ended' : detail.row.phase === 'Failed' ? 'Why it failed' : detail.row.phase === 'Running' || detail.row.phase === 'Succeeded' ? 'What needs attention' : 'Why it waits'}{' '}
            <Label color={look.color} icon={<Icon />}>{first.code}</Label>
          </span>
        </CardTitle>
      </CardHeader>
      <CardBody>
        <div className="mpi-stack">
          <div>
            <p className="mpi-cause">{first.summary}</p>
            {detail.failure ? <p className="mpi-subtle mpi-wrap">{detail.failure}</p> : null}
            {first.affected.length > 0 ? <p className="mpi-subtle mpi-wrap">Affected: {first.affected.join(', ')}</p> : null}
            <div className="mpi-actions mpi-links">
              <Button variant="link" isInline onClick={() => open({tab: 'logs', level: 'warning'})}>
                See the log lines
              </Button>
              {first.guide ? <Link to={`/help/${encodeURIComponent(first.code)}`}>Guide to {first.code}</Link> : null}
            </div>
          </div>
          {first.remedies.length > 0 ? (
            <div>
              <Title headingLevel="h3" size="md">What to do, the most likely first</Title>
              <ol className="mpi-remedies">
                {first.remedies.map((remedy) => (
                  <RemedyItem key={remedy.text} remedy={remedy} canClone={detail.can.clone} onApply={onApply} />
                ))}
              </ol>
            </div>
          ) : null}
          {detail.row.phase === 'Failed' && detail.can.clone && !first.remedies.some(({applicable}) => applicable) ? (
            <div className="mpi-actions mpi-filters">
              <Button variant="secondary" icon={<RedoIcon />} onClick={() => onApply([])}>
                Run it again
              </Button>
              <span className="mpi-subtle">As it is, under a new name: useful once the cause is corrected outside of the job.</span>
            </div>
          ) : null}
          {first.evidence.length > 0 ? (
            <ExpandableSection toggleText={`Evidence (${first.evidence.length})`}>
              <ul className="mpi-evidence">
                {first.evidence.map((line, i) => (
                  <li key={i}>
                    <code>{line}</code>
                  </li>
                ))}
              </ul>
            </ExpandableSection>
          ) : null}
          {detail.terms.length > 0 ? (
            <ExpandableSection toggleText={`Terms explained (${detail.terms.length})`}>
              <DescriptionList isCompact isHorizontal>
                {detail.terms.map(({name, meaning}) => (
                  <DescriptionListGroup key={name}>
                    <DescriptionListTerm>{name}</DescriptionListTerm>
                    <DescriptionListDescription>{meaning}</DescriptionListDescription>
                  </DescriptionListGroup>
                ))}
              </DescriptionList>
            </ExpandableSection>
          ) : null}
          {others.length > 0 ? (
            <ExpandableSection toggleText={`Other findings (${others.length})`} isExpanded={showAll} onToggle={(_, value) => setShowAll(value)}>
              {others.map((finding) => (
                <Other key={finding.code + finding.summary} finding={finding} />
              ))}
            </ExpandableSection>
          ) : null}
        </div>
      </CardBody>
    </Card>
  );
}

function Other({finding}: {finding: Finding}): ReactElement {
  const look = lookOf(finding.severity);
  const Icon = look.icon;
  return (
    <p className="mpi-wrap">
      <Label color={look.color} icon={<Icon />} isCompact>{finding.code}</Label> {finding.summary}{' '}
      {finding.guide ? <Link to={`/help/${encodeURIComponent(finding.code)}`}>Guide to {finding.code}</Link> : null}
    </p>
  );
}
