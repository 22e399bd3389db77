import {Alert, Button, EmptyState, EmptyStateBody, FormSelect, FormSelectOption, PageSection, TextInput, Title, ToggleGroup, ToggleGroupItem} from '@patternfly/react-core';
import {Table, Tbody, Td, Th, Thead, Tr} from '@patternfly/react-table';
import type {FocusEvent, ReactElement} from 'react';
import {Link} from 'react-router';
import {errorText, get} from '../api/client';
import {useUsage} from '../api/queries';
import type {FailureCount, Usage as UsageData, UsageLine} from '../api/types';
import {count, PageHead, Snippets} from '../components/Common';
import {ProjectSelect} from '../components/ProjectSelect';
import {Loaded} from '../components/States';
import {jobURL} from '../components/Watcher';
import {CubesIcon, DownloadIcon} from '../lib/icons';
import {notify} from '../lib/notices';
import {useParameters} from '../lib/parameters';
import {save} from '../lib/save';

const hours = (n: number): string => n > 0 && n < 0.005 ? '< 0.01' : n.toLocaleString(undefined, {maximumFractionDigits: n < 10 ? 2 : 0});

/** The measured part of reserved hours; nothing if it is unknown. */
function Used({of}: {of: number | undefined}): ReactElement | null {
  return of === undefined ? null : <span className="mpi-subtle"> ({hours(of)} used)</span>;
}

/** Returns lines as CSV, for accounting. A text that a spreadsheet would take for a formula gets an apostrophe. */
export function csvOf(lines: UsageLine[]): string {
  const cell = (value: string | number | undefined): string => {
    if (typeof value === 'number') return String(value);
    const text = value ?? '';
    return `"${(/^[=+\-@\t\r]/.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
  };
  const rows = lines.map((line) =>
    [line.namespace, line.kind, line.job, line.createdBy, line.queue, line.jobs, line.gpuHours, line.coreHours, line.gibHours, line.measured ?? 0, line.usedGpuHours, line.usedCoreHours, line.usedGibHours, line.cost, line.currency, line.label].map(cell).join(','),
  );
  return ['project,kind,job,user,queue,jobs,gpu_hours,core_hours,memory_gib_hours,measured,used_gpu_hours,used_core_hours,used_memory_gib_hours,cost,currency,label', ...rows].join('\r\n') + '\r\n';
}

/** The causes for which jobs failed, the most frequent first. */
function Failures({failures, project}: {failures: FailureCount[]; project: string}): ReactElement | null {
  if (failures.length === 0) return null;
  const all = failures.reduce((total, {jobs}) => total + jobs, 0);
  return (
    <section aria-labelledby="failures" className="mpi-section">
      <Title headingLevel="h2" id="failures">
        Why jobs failed
      </Title>
      <p className="mpi-subtle">{count(all, 'job')} failed in this period.</p>
      <Table aria-labelledby="failures" variant="compact" gridBreakPoint="grid-md">
        <Thead>
          <Tr>
            <Th>Cause</Th>
            <Th>Jobs</Th>
            <Th>Share</Th>
            <Th screenReaderText="Links" />
          </Tr>
        </Thead>
        <Tbody>
          {failures.map(({code, jobs, guide}) => (
            <Tr key={code}>
              <Td dataLabel="Cause" className="mpi-name">{code || 'unknown'}</Td>
              <Td dataLabel="Jobs" className="mpi-numbers">
                <Link to={`/?${new URLSearchParams({phase: 'Failed', deleted: 'true', ...(code ? {q: code} : {}), ...(project ? {namespace: project} : {})}).toString()}`} aria-label={`${count(jobs, 'job')} that failed with ${code || 'an unknown cause'}`}>
                  {jobs}
                </Link>
              </Td>
              <Td dataLabel="Share" className="mpi-numbers">{Math.round((100 * jobs) / all)} %</Td>
              <Td>{guide ? <Link to={`/help/${encodeURIComponent(code)}`}>Guide to {code}</Link> : null}</Td>
            </Tr>
          ))}
        </Tbody>
      </Table>
    </section>
  );
}

const groupings = [
  ['job', 'By job'],
  ['namespace', 'By project'],
  ['user', 'By user'],
  ['queue', 'By queue'],
  ['label', 'By label'],
] as const;

/** Returns what jobs are summed up by, and the key of the label if it is one, which may not be named yet. */
function groupOf(parameter: string): {by: string; label: string} {
  return parameter.startsWith('label=') ? {by: 'label', label: parameter.slice('label='.length)} : {by: parameter, label: ''};
}

/** The key of the label that jobs are summed up by. It applies when the user leaves the field or presses Enter. */
function LabelField({value, onChange}: {value: string; onChange: (key: string) => void}): ReactElement {
  return (
    <TextInput
      aria-label="Key of the label"
      placeholder="team"
      className="mpi-project"
      defaultValue={value}
      onBlur={({currentTarget}: FocusEvent<HTMLInputElement>) => onChange(currentTarget.value.trim())}
      onKeyDown={({key, currentTarget}) => {
        if (key === 'Enter') onChange(currentTarget.value.trim());
      }}
    />
  );
}

/** Returns the limits of a period: a duration before now, or a calendar month in the user's time zone. */
export function limitsOf(period: string, now: Date): Record<string, string> {
  const month = (offset: number): string => new Date(now.getFullYear(), now.getMonth() + offset, 1).toISOString();
  switch (period) {
    case 'month':
      return {since: month(0)};
    case 'last-month':
      return {since: month(-1), until: month(0)};
    default:
      return {since: period};
  }
}

/** What jobs have reserved, and what that costs. */
export function Usage(): ReactElement {
  const {params, refine} = useParameters();
  const {by, label} = groupOf(params.get('by') ?? 'namespace');
  const isUnnamed = by === 'label' && !label;
  const since = params.get('since') ?? '30d';
  const api = new URLSearchParams({by: isUnnamed ? 'namespace' : label ? `label=${label}` : by, ...limitsOf(since, new Date())});
  const project = params.get('namespace') ?? '';
  if (project) api.set('namespace', project);
  const usage = useUsage(api);
  const download = async ({lines, omitted}: UsageData): Promise<void> => {
    try {
      save('usage.csv', csvOf(omitted > 0 ? (await get<UsageData>('usage', new URLSearchParams([...api, ['all', 'true']]))).lines : lines));
    } catch (error) {
      notify({variant: 'danger', title: 'The usage cannot be read', text: errorText(error)});
    }
  };
  return (
    <>
      <PageHead
        title="Usage"
        text="The resources that jobs have reserved in the period: their requests, multiplied by the time that they held them, used or not. Deleted jobs count: what they reserved is kept when their reports are deleted."
        actions={
          <>
            <ProjectSelect value={project} onChange={(value) => refine({namespace: value})} />
            <FormSelect aria-label="Period" value={since} onChange={(_, value) => refine({since: value})} className="mpi-project">
              <FormSelectOption value="24h" label="Last day" />
              <FormSelectOption value="7d" label="Last 7 days" />
              <FormSelectOption value="30d" label="Last 30 days" />
              <FormSelectOption value="month" label="This month" />
              <FormSelectOption value="last-month" label="Last month" />
            </FormSelect>
            <ToggleGroup aria-label="Sum up">
              {groupings.map(([value, text]) => (
                <ToggleGroupItem key={value} text={text} isSelected={by === value} onChange={() => refine({by: value})} />
              ))}
            </ToggleGroup>
            {by === 'label' ? <LabelField key={label} value={label} onChange={(key) => refine({by: key ? `label=${key}` : 'label'})} /> : null}
          </>
        }
      />
      <PageSection hasBodyWrapper={false} isFilled>
        <Loaded query={usage} what="The usage cannot be shown">
          {(data) => {
            if (isUnnamed) {
              return (
                <EmptyState icon={CubesIcon} titleText="Enter the key of a label" headingLevel="h2">
                  <EmptyStateBody>Jobs are summed up by the value of this label, such as team.</EmptyStateBody>
                </EmptyState>
              );
            }
            const costs = Object.entries(data.total.costs);
            const hasCost = costs.length > 0;
            const most = Math.max(...data.lines.map(({gpuHours, coreHours}) => gpuHours || coreHours), 0);
            const title = by === 'user' ? 'User' : by === 'queue' ? 'Queue' : by === 'namespace' ? 'Project' : by === 'label' ? label : 'Job';
            const incomplete = data.incompleteUntil ? (
              <Alert variant="warning" isInline title={`The sums are incomplete up to ${new Date(data.incompleteUntil).toLocaleString()}`}>
                Reports of jobs that ended by then were deleted. Administrators who may list ConfigMaps in mpijob-system see their sums.
              </Alert>
            ) : null;
            return data.lines.length === 0 ? (
              <>
                {incomplete}
                <EmptyState icon={CubesIcon} titleText="No usage in this period" headingLevel="h2">
                  <EmptyStateBody>Usage is counted while the pods of jobs hold resources.</EmptyStateBody>
                </EmptyState>
                <Failures failures={data.failures} project={project} />
              </>
            ) : (
              <>
                {incomplete}
                <Table aria-label="Usage" variant="compact" gridBreakPoint="grid-md">
                  <Thead>
                    <Tr>
                      <Th>{title}</Th>
                      {by === 'job' ? <Th>Project</Th> : <Th>Jobs</Th>}
                      <Th>GPU hours</Th>
                      <Th>Core hours</Th>
                      <Th modifier="wrap">Memory, GiB hours</Th>
                      {hasCost ? <Th>Cost</Th> : null}
                      <Th screenReaderText="Share" />
                    </Tr>
                  </Thead>
                  <Tbody>
                    {data.lines.map((line, i) => {
                      const name = by === 'user' ? line.createdBy || 'unknown' : by === 'queue' ? line.queue ? `${line.namespace}/${line.queue}` : `${line.namespace}, no queue` : by === 'namespace' ? (line.namespace ?? '') : by === 'label' ? line.label || 'no label' : (line.job ?? '');
                      return (
                        <Tr key={`${name}/${i}`}>
                          <Td dataLabel={title} className="mpi-name">{by === 'job' && line.kind && line.namespace ? <Link to={jobURL({namespace: line.namespace, kind: line.kind, name, uid: line.uid})}>{name}</Link> : name}</Td>
                          <Td dataLabel={by === 'job' ? 'Project' : 'Jobs'}>{by === 'job' ? line.namespace : line.jobs}</Td>
                          <Td dataLabel="GPU hours" className="mpi-numbers">{hours(line.gpuHours)}<Used of={line.usedGpuHours} /></Td>
                          <Td dataLabel="Core hours" className="mpi-numbers">{hours(line.coreHours)}<Used of={line.usedCoreHours} /></Td>
                          <Td dataLabel="Memory, GiB hours" className="mpi-numbers">{hours(line.gibHours)}<Used of={line.usedGibHours} /></Td>
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
                  {data.lines.length > 1 ? (
                    <Tbody>
                      <Tr className="mpi-total">
                        <Td dataLabel={title}>
                          <strong>All</strong>
                        </Td>
                        <Td dataLabel={by === 'job' ? 'Project' : 'Jobs'}>{by === 'job' ? '' : data.total.jobs}</Td>
                        <Td dataLabel="GPU hours" className="mpi-numbers">{hours(data.total.gpuHours)}<Used of={data.total.usedGpuHours} /></Td>
                        <Td dataLabel="Core hours" className="mpi-numbers">{hours(data.total.coreHours)}<Used of={data.total.usedCoreHours} /></Td>
                        <Td dataLabel="Memory, GiB hours" className="mpi-numbers">{hours(data.total.gibHours)}<Used of={data.total.usedGibHours} /></Td>
                        {hasCost ? <Td dataLabel="Cost" className="mpi-numbers">{costs.map(([currency, amount]) => `${amount.toFixed(2)} ${currency}`).join(', ')}</Td> : null}
                        <Td />
                      </Tr>
                    </Tbody>
                  ) : null}
                </Table>
                {data.omitted > 0 ? <p className="mpi-subtle">The first {data.lines.length.toLocaleString()} lines are shown. The sum and the CSV file include {data.omitted.toLocaleString()} more.</p> : null}
                <div className="mpi-actions">
                  <Button variant="secondary" size="sm" icon={<DownloadIcon />} onClick={() => void download(data)}>
                    Download as CSV
                  </Button>
                </div>
                {data.deleted > 0 ? <p className="mpi-subtle">The sums include {count(data.deleted, 'job')} whose reports were deleted, by UTC day, without measured hours and prices of nodes.</p> : null}
                {data.total.measured > 0 && data.total.measured < data.total.jobs ? <p className="mpi-subtle">The used hours are those of {count(data.total.measured, 'job')}; nothing was measured of the others.</p> : null}
                {data.unpriced.length > 0 ? <p className="mpi-subtle">Without a price: {data.unpriced.join(', ')}.</p> : null}
                {data.estimated > 0 ? <p className="mpi-subtle">The part in this period is estimated for {count(data.estimated, 'job')} with a report of an earlier version.</p> : null}
                {data.missing.length > 0 ? <p className="mpi-subtle">These cannot be read, and are missing: {data.missing.join(', ')}.</p> : null}
                <Failures failures={data.failures} project={project} />
                <Snippets items={data.commands} title="The same on the command line" />
              </>
            );
          }}
        </Loaded>
      </PageSection>
    </>
  );
}
