import {EmptyState, EmptyStateBody, FormSelect, FormSelectOption, PageSection, ToggleGroup, ToggleGroupItem} from '@patternfly/react-core';
import {Table, Tbody, Td, Th, Thead, Tr} from '@patternfly/react-table';
import type {ReactElement} from 'react';
import {Link, useSearchParams} from 'react-router';
import {useUsage} from '../api/queries';
import {PageHead, Snippets} from '../components/Common';
import {ProjectSelect} from '../components/ProjectSelect';
import {Loaded} from '../components/States';
import {jobURL} from '../components/Watcher';
import {CubesIcon} from '../lib/icons';

const hours = (n: number): string => n.toLocaleString(undefined, {maximumFractionDigits: n < 10 ? 2 : 0});

const groupings = [
  ['job', 'By job'],
  ['namespace', 'By project'],
  ['user', 'By user'],
] as const;

/** What jobs have held, and what that costs. */
export function Usage(): ReactElement {
  const [params, setParams] = useSearchParams();
  const by = params.get('by') ?? 'namespace';
  const since = params.get('since') ?? '30d';
  const api = new URLSearchParams({by, since});
  const project = params.get('namespace') ?? '';
  if (project) api.set('namespace', project);
  const usage = useUsage(api);
  const set = (name: string, value: string): void =>
    setParams(
      (current) => {
        const next = new URLSearchParams(current);
        if (value) next.set(name, value);
        else next.delete(name);
        return next;
      },
      {replace: true},
    );
  return (
    <>
      <PageHead
        title="Usage"
        text="The resources that jobs have requested, multiplied by the time that they held them. Deleted jobs count while their reports are kept."
        actions={
          <>
            <ProjectSelect value={project} onChange={(value) => set('namespace', value)} />
            <FormSelect aria-label="Period" value={since} onChange={(_, value) => set('since', value)} className="mpi-project">
              <FormSelectOption value="24h" label="Last day" />
              <FormSelectOption value="7d" label="Last 7 days" />
              <FormSelectOption value="30d" label="Last 30 days" />
            </FormSelect>
            <ToggleGroup aria-label="Sum up">
              {groupings.map(([value, text]) => (
                <ToggleGroupItem key={value} text={text} isSelected={by === value} onChange={() => set('by', value)} />
              ))}
            </ToggleGroup>
          </>
        }
      />
      <PageSection hasBodyWrapper={false} isFilled>
        <Loaded query={usage} what="The usage cannot be shown">
          {(data) => {
            const hasCost = data.lines.some(({cost}) => cost !== undefined);
            const most = Math.max(...data.lines.map(({gpuHours, coreHours}) => gpuHours || coreHours), 0);
            const title = by === 'user' ? 'User' : by === 'namespace' ? 'Project' : 'Job';
            return data.lines.length === 0 ? (
              <EmptyState icon={CubesIcon} titleText="No usage in this period" headingLevel="h2">
                <EmptyStateBody>Usage is counted while the pods of jobs hold resources.</EmptyStateBody>
              </EmptyState>
            ) : (
              <>
                <Table aria-label="Usage" variant="compact" gridBreakPoint="grid-md">
                  <Thead>
                    <Tr>
                      <Th>{title}</Th>
                      {by === 'job' ? <Th>Project</Th> : <Th>Jobs</Th>}
                      <Th>GPU hours</Th>
                      <Th>Core hours</Th>
                      <Th>Memory, GiB hours</Th>
                      {hasCost ? <Th>Cost</Th> : null}
                      <Th screenReaderText="Share" />
                    </Tr>
                  </Thead>
                  <Tbody>
                    {data.lines.map((line, i) => {
                      const name = by === 'user' ? line.createdBy || 'unknown' : by === 'namespace' ? (line.namespace ?? '') : (line.job ?? '');
                      return (
                        <Tr key={`${name}/${i}`}>
                          <Td dataLabel={title} className="mpi-name">{by === 'job' && line.kind && line.namespace ? <Link to={jobURL({namespace: line.namespace, kind: line.kind, name})}>{name}</Link> : name}</Td>
                          <Td dataLabel={by === 'job' ? 'Project' : 'Jobs'}>{by === 'job' ? line.namespace : line.jobs}</Td>
                          <Td dataLabel="GPU hours" className="mpi-numbers">{hours(line.gpuHours)}</Td>
                          <Td dataLabel="Core hours" className="mpi-numbers">{hours(line.coreHours)}</Td>
                          <Td dataLabel="Memory, GiB hours" className="mpi-numbers">{hours(line.gibHours)}</Td>
                          {hasCost ? <Td dataLabel="Cost" className="mpi-numbers">{line.cost === undefined ? '–' : `${line.cost.toFixed(2)} ${line.currency ?? ''}`}</Td> : null}
                          <Td>
                            <div className="mpi-bar-track" aria-hidden="true">
                              <span className="mpi-bar-asked" style={{inlineSize: `${most > 0 ? (100 * (line.gpuHours || line.coreHours)) / most : 0}%`}} />
                            </div>
                          </Td>
                        </Tr>
                      );
                    })}
                  </Tbody>
                </Table>
                {data.unpriced.length > 0 ? <p className="mpi-subtle">Without a price: {data.unpriced.join(', ')}.</p> : null}
                {data.missing.length > 0 ? <p className="mpi-subtle">You may not list: {data.missing.join(', ')}.</p> : null}
                <Snippets items={data.commands} title="The same on the command line" />
              </>
            );
          }}
        </Loaded>
      </PageSection>
    </>
  );
}
