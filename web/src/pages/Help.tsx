import {Breadcrumb, BreadcrumbItem, Card, CardBody, CardTitle, EmptyState, EmptyStateBody, PageSection, SearchInput, Title} from '@patternfly/react-core';
import {type ReactElement, useState} from 'react';
import {Link, useParams} from 'react-router';
import {useHelp} from '../api/queries';
import type {Step as StepType, Topic as TopicType} from '../api/types';
import {Code, PageHead} from '../components/Common';
import {Loaded} from '../components/States';
import {SearchIcon} from '../lib/icons';
import {phases} from '../lib/phase';

function Step({step}: {step: StepType}): ReactElement {
  return (
    <li>
      <div className="mpi-wrap">
        {step.text} {step.setting ? <code className="mpi-mono">{step.setting}</code> : null}
      </div>
      {step.command ? <Code text={step.command} label={`Command: ${step.text}`} /> : null}
    </li>
  );
}

/** What a code means and what to do, in general: the page of a job has the names and figures. */
function Topic({topic}: {topic: TopicType}): ReactElement {
  return (
    <div className="mpi-stack mpi-form">
      <p className="mpi-cause">{topic.meaning}</p>
      <Card component="section">
        <CardTitle component="h2">How to see it</CardTitle>
        <CardBody className="mpi-stack">
          <p>
            The page of a job shows the code with its evidence, in the phase {phases[topic.phase]?.text ?? topic.phase} or later. The command line shows the same:
          </p>
          <Code text={`kubectl odh mpijob explain JOB -n NAMESPACE`} label="Command that explains a job" />
        </CardBody>
      </Card>
      <Card component="section">
        <CardTitle component="h2">What to do, the most likely first</CardTitle>
        <CardBody>
          <ol className="mpi-remedies">
            {topic.steps.map((step) => (
              <Step key={step.text} step={step} />
            ))}
          </ol>
        </CardBody>
      </Card>
    </div>
  );
}

/** Returns the text in which a search looks for its words: OutOfMemory is found by out of memory, too. */
const textOf = (topic: TopicType): string =>
  [topic.code, topic.code.replace(/([a-z])([A-Z])/g, '$1 $2'), topic.meaning, ...topic.steps.map(({text}) => text)].join(' ').toLowerCase();

/** The problems of jobs by phase, and for each what it means and what to do. It needs no access to the internet. */
export function Help(): ReactElement {
  const {code} = useParams();
  const help = useHelp();
  const [search, setSearch] = useState('');
  return (
    <>
      {code ? (
        <PageSection hasBodyWrapper={false} type="breadcrumb">
          <Breadcrumb>
            <BreadcrumbItem>
              <Link to="/help">Troubleshooting</Link>
            </BreadcrumbItem>
            <BreadcrumbItem isActive>{code}</BreadcrumbItem>
          </Breadcrumb>
        </PageSection>
      ) : null}
      <PageHead title={code ?? 'Troubleshooting'} {...(code ? {} : {text: 'What can be wrong with a job, by the phase in which it occurs, and what to do.'})} />
      <PageSection hasBodyWrapper={false} isFilled>
        <Loaded query={help} what="The help cannot be shown">
          {({topics}) => {
            if (code) {
              const topic = topics.find((each) => each.code.toLowerCase() === code.toLowerCase());
              return topic ? (
                <Topic topic={topic} />
              ) : (
                <EmptyState icon={SearchIcon} titleText="No such problem" headingLevel="h2">
                  <EmptyStateBody>
                    No problem of jobs has this code. <Link to="/help">See all problems</Link>
                  </EmptyStateBody>
                </EmptyState>
              );
            }
            const wanted = search.toLowerCase().split(/\s+/);
            const shown = topics.filter((topic) => wanted.every((word) => textOf(topic).includes(word)));
            const order = [...new Set(topics.map(({phase}) => phase))].sort((a, b) => Object.keys(phases).indexOf(a) - Object.keys(phases).indexOf(b));
            return (
              <div className="mpi-stack mpi-form">
                <SearchInput aria-label="Search the problems" placeholder="Search, for example: memory" value={search} onChange={(_, value) => setSearch(value)} onClear={() => setSearch('')} />
                <p role="status" className="mpi-subtle">
                  {shown.length === 0 ? 'No problem matches.' : `${shown.length} of ${topics.length} problems`}
                </p>
                {order
                  .map((phase) => ({phase, of: shown.filter((topic) => topic.phase === phase)}))
                  .filter(({of}) => of.length > 0)
                  .map(({phase, of}) => (
                    <section key={phase} aria-label={phases[phase]?.text ?? phase}>
                      <Title headingLevel="h2">{phases[phase]?.text ?? phase}</Title>
                      <ul className="mpi-topics">
                        {of.map((topic) => (
                          <li key={topic.code}>
                            <Link to={`/help/${encodeURIComponent(topic.code)}`}>{topic.code}</Link>
                            <div className="mpi-wrap">{topic.meaning}</div>
                          </li>
                        ))}
                      </ul>
                    </section>
                  ))}
              </div>
            );
          }}
        </Loaded>
      </PageSection>
    </>
  );
}
