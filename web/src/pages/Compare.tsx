import {Breadcrumb, BreadcrumbItem, Card, CardBody, CardTitle, PageSection, Switch} from '@patternfly/react-core';
import {Table, Tbody, Td, Th, Thead, Tr} from '@patternfly/react-table';
import {type ReactElement, useState} from 'react';
import {Link, useParams, useSearchParams} from 'react-router';
import {type JobKey, useCompare, useCurves} from '../api/queries';
import {Chart} from '../components/Chart';
import {PageHead, Snippets} from '../components/Common';
import {Loaded} from '../components/States';
import {jobURL} from '../components/Watcher';

/** Returns the names of both jobs. If they are the same, the order of the jobs is added. */
const namesOf = ([a, b]: [JobKey, JobKey]): [string, string] => (a.name === b.name && a.kind === b.kind ? [`${a.name} (first)`, `${b.name} (second)`] : [a.name, b.name]);

/** The loss and the accuracy of both jobs in the same charts; nothing if neither printed any. */
function Curves({jobs}: {jobs: [JobKey, JobKey]}): ReactElement | null {
  const curves = [useCurves(jobs[0], false), useCurves(jobs[1], false)];
  const points = curves.map(({data}) => data?.points ?? []);
  const hasSteps = points.every((all) => all.every(({step}) => step !== undefined));
  const charts = (['loss', 'accuracy'] as const)
    .map((figure) => ({
      title: figure === 'loss' ? 'Loss' : 'Accuracy',
      lines: points
        .map((all, i) => ({name: namesOf(jobs)[i] ?? '', points: all.flatMap((point, n) => (point[figure] === undefined ? [] : [{x: hasSteps ? (point.step ?? 0) : n + 1, y: point[figure]}]))}))
        .filter((line) => line.points.length > 0),
    }))
    .filter(({lines}) => lines.length > 0);
  if (charts.length === 0) return null;
  return (
    <Card component="section">
      <CardTitle component="h2">Training</CardTitle>
      <CardBody>
        <div className="mpi-grid">
          {charts.map(({title, lines}) => (
            <Chart key={title} title={title} lines={lines} xTitle={hasSteps ? 'Step' : 'Line'} formatX={figureText} formatY={figureText} />
          ))}
        </div>
      </CardBody>
    </Card>
  );
}

const figureText = (n: number): string => n.toLocaleString(undefined, {maximumFractionDigits: 4});

/** Two jobs side by side: how they ran, what was found, what they used, and their fields. */
export function Compare(): ReactElement {
  const {namespace = ''} = useParams();
  const [params] = useSearchParams();
  const keyOf = (side: 'a' | 'b'): JobKey => {
    const [kind = '', name = ''] = (params.get(side) ?? '').split('/');
    return {namespace, kind, name, uid: params.get(`${side}UID`) ?? undefined};
  };
  const jobs: [JobKey, JobKey] = [keyOf('a'), keyOf('b')];
  const [a, b] = namesOf(jobs);
  const comparison = useCompare(namespace, ...jobs);
  const [onlyDifferent, setOnlyDifferent] = useState(false);
  const link = (i: 0 | 1): ReactElement => <Link to={jobURL(jobs[i])}>{i === 0 ? a : b}</Link>;
  return (
    <>
      <PageSection hasBodyWrapper={false} type="breadcrumb">
        <Breadcrumb>
          <BreadcrumbItem>
            <Link to="/">Training jobs</Link>
          </BreadcrumbItem>
          <BreadcrumbItem isActive>Compare</BreadcrumbItem>
        </Breadcrumb>
      </PageSection>
      <PageHead title={`Compare ${a} and ${b}`} text={`In project ${namespace}`} actions={<Switch label="Only differences" isChecked={onlyDifferent} onChange={(_, on) => setOnlyDifferent(on)} />} />
      <PageSection hasBodyWrapper={false} isFilled>
        <Loaded query={comparison} what="The jobs cannot be compared">
          {(data) => (
            <div className="mpi-stack">
              {data.note ? <p>{data.note}</p> : null}
              {data.sections.map((section) => {
                const rows = section.rows.filter((row) => !onlyDifferent || row.a !== row.b);
                return rows.length === 0 ? null : (
                  <Card key={section.title} component="section">
                    <CardTitle component="h2">{section.title}</CardTitle>
                    <CardBody>
                      <Table aria-label={section.title} variant="compact" gridBreakPoint="grid-md">
                        <Thead>
                          <Tr>
                            <Th>Property</Th>
                            <Th>{link(0)}</Th>
                            <Th>{link(1)}</Th>
                          </Tr>
                        </Thead>
                        <Tbody>
                          {rows.map((row) => (
                            <Tr key={row.name} className={row.a === row.b ? '' : 'is-different'}>
                              <Td dataLabel="Property" className="mpi-wrap">{row.name}</Td>
                              <Td dataLabel={a} className="mpi-wrap">{row.a || '–'}</Td>
                              <Td dataLabel={b} className="mpi-wrap">{row.a === row.b ? row.b || '–' : <strong>{row.b || '–'}</strong>}</Td>
                            </Tr>
                          ))}
                        </Tbody>
                      </Table>
                    </CardBody>
                  </Card>
                );
              })}
              <Curves jobs={jobs} />
              <Snippets items={data.commands} title="The same on the command line" />
            </div>
          )}
        </Loaded>
      </PageSection>
    </>
  );
}
