import {
  Button,
  EmptyState,
  EmptyStateActions,
  EmptyStateBody,
  EmptyStateFooter,
  Label,
  MenuToggle,
  PageSection,
  Pagination,
  SearchInput,
  Select,
  SelectList,
  SelectOption,
  Switch,
  Toolbar,
  ToolbarContent,
  ToolbarFilter,
  ToolbarGroup,
  ToolbarItem,
  ToolbarToggleGroup,
} from '@patternfly/react-core';
import {Table, Tbody, Td, Th, Thead, Tr} from '@patternfly/react-table';
import {type ReactElement, useEffect, useMemo, useState} from 'react';
import {Link, useNavigate, useSearchParams} from 'react-router';
import {useJobs, useLive, useMe, useNamespaces} from '../api/queries';
import type {List, Row} from '../api/types';
import {Age, count, Elapsed, PageHead, Snippets} from '../components/Common';
import {Framework} from '../components/Framework';
import {ErrorState, Loading, Outdated} from '../components/States';
import {compareURL, jobURL} from '../components/Watcher';
import {CubesIcon, ExclamationCircleIcon, ExclamationTriangleIcon, FilterIcon, PlusCircleIcon, SearchIcon} from '../lib/icons';
import {phases, PhaseLabel} from '../lib/phase';

const filters = [
  {field: 'phase', title: 'Status'},
  {field: 'framework', title: 'Framework'},
  {field: 'namespace', title: 'Project'},
  {field: 'queue', title: 'Queue'},
  {field: 'user', title: 'Created by'},
] as const;

const columns: {title: string; sort?: string; className?: string}[] = [
  {title: 'Name', sort: 'name'},
  {title: 'Type', sort: 'kind'},
  {title: 'Status', sort: 'phase'},
  {title: 'Workers', sort: 'workers'},
  {title: 'GPUs', sort: 'gpus'},
  {title: 'Queue', sort: 'queue'},
  {title: 'Created', sort: 'created'},
  {title: 'Duration', sort: 'duration'},
];

const defaultSize = 20;

/** Returns the parameters of the API for those of the page. */
function apiParams(params: URLSearchParams): URLSearchParams {
  const api = new URLSearchParams(params);
  if (!api.has('size')) api.set('size', String(defaultSize));
  return api;
}

function FacetSelect({title, options, selected, onToggle}: {title: string; options: [string, number][]; selected: string[]; onToggle: (value: string) => void}): ReactElement {
  const [isOpen, setOpen] = useState(false);
  return (
    <Select
      className="mpi-menu"
      role="menu"
      isOpen={isOpen}
      onOpenChange={setOpen}
      onSelect={(_, value) => onToggle(String(value))}
      toggle={(ref) => (
        <MenuToggle ref={ref} onClick={() => setOpen(!isOpen)} isExpanded={isOpen} {...(selected.length > 0 ? {badge: <Label isCompact color="blue">{selected.length}</Label>} : {})}>
          {title}
        </MenuToggle>
      )}
      isScrollable
    >
      <SelectList aria-label={title}>
        {options.length === 0 ? <SelectOption isDisabled>None</SelectOption> : null}
        {options.map(([value, n]) => (
          <SelectOption key={value} value={value} hasCheckbox isSelected={selected.includes(value)} description={count(n, 'job')}>
            {phases[value]?.text ?? value}
          </SelectOption>
        ))}
      </SelectList>
    </Select>
  );
}

/** The reason in the status column: what is wrong, or what the job waits for. */
function Reason({row}: {row: Row}): ReactElement | null {
  if (row.severity === 'Error' || row.severity === 'Warning') {
    const Icon = row.severity === 'Error' ? ExclamationCircleIcon : ExclamationTriangleIcon;
    return (
      <div className="mpi-subtle mpi-reason">
        <Icon aria-hidden /> <span className="mpi-wrap">{row.reason}</span>
      </div>
    );
  }
  if (row.phase === 'Queued' && row.position) return <div className="mpi-subtle">Position {row.position}</div>;
  if (row.phase === 'Running' && row.progress?.includes(':')) return <div className="mpi-subtle mpi-wrap">{row.progress.replace(/^Running: /, '')}</div>;
  return null;
}

function JobRow({row, isSelected, onSelect, showNamespace}: {row: Row; isSelected: boolean; onSelect: (on: boolean) => void; showNamespace: boolean}): ReactElement {
  return (
    <Tr>
      <Td select={{rowIndex: 0, isSelected, onSelect: (_, on) => onSelect(on), props: {'aria-label': `Select ${row.name} to compare`}}} />
      <Td dataLabel="Name" className="mpi-name">
        <Link to={jobURL(row)}>{row.name}</Link>
        {row.deleted ? <Label isCompact color="grey">deleted</Label> : null}
        <div className="mpi-subtle">{showNamespace ? row.namespace : null}</div>
      </Td>
      <Td dataLabel="Type">
        <Framework name={row.framework} kind={row.kind} />
        <div className="mpi-subtle">{row.kind}</div>
      </Td>
      <Td dataLabel="Status">
        <PhaseLabel phase={row.phase} isCompact />
        <Reason row={row} />
      </Td>
      <Td dataLabel="Workers" className="mpi-numbers">
        {row.ended ? row.workers : `${row.ready}/${row.workers} ready`}
      </Td>
      <Td dataLabel="GPUs" className="mpi-numbers">
        {row.gpus > 0 ? row.gpus : <span aria-label="none">–</span>}
      </Td>
      <Td dataLabel="Queue">{row.queue ?? <span aria-label="none">–</span>}</Td>
      <Td dataLabel="Created" className="mpi-numbers">
        <Age at={row.created} />
      </Td>
      <Td dataLabel="Duration" className="mpi-numbers">
        <Elapsed from={row.running} to={row.ended} />
      </Td>
    </Tr>
  );
}

function command(program: string, params: URLSearchParams): string {
  const namespaces = params.getAll('namespace');
  const words = [program, 'list', namespaces.length === 1 ? `-n ${namespaces[0] ?? ''}` : '-A'];
  const chosen = params.getAll('phase');
  if (chosen.length > 0) words.push(`--phase ${chosen.join(',')}`);
  if (params.get('deleted') === 'true') words.push('--gone');
  return `${words.join(' ')} --watch`;
}

/** The list of every training job that the user may see. The filters are in the URL. */
export function Jobs(): ReactElement {
  const [params, setParams] = useSearchParams();
  const api = useMemo(() => apiParams(params), [params]);
  const jobs = useJobs(api);
  const {data: me} = useMe();
  const {data: namespaces} = useNamespaces();
  const navigate = useNavigate();
  const [selected, setSelected] = useState<Row[]>([]);
  const single = params.getAll('namespace').length === 1 ? params.get('namespace') ?? undefined : undefined;
  useLive(single ? {namespace: single} : {});

  const change = (edit: (next: URLSearchParams) => void, keepPage = false): void =>
    setParams(
      (current) => {
        const next = new URLSearchParams(current);
        if (!keepPage) next.delete('page');
        edit(next);
        return next;
      },
      {replace: true},
    );
  const toggle = (field: string) => (value: string) =>
    change((next) => {
      const values = next.getAll(field);
      next.delete(field);
      for (const each of values.includes(value) ? values.filter((other) => other !== value) : [...values, value]) next.append(field, each);
    });

  const [text, setText] = useState(params.get('q') ?? '');
  const wanted = params.get('q') ?? '';
  useEffect(() => setText(wanted), [wanted]);
  const sort = params.get('sort') ?? '-created';
  const list: List | undefined = jobs.data;
  const isFiltered = ['q', ...filters.map(({field}) => field)].some((field) => params.has(field));
  const page = Number(params.get('page') ?? 1);
  const size = Number(params.get('size') ?? defaultSize);
  // Without the right to list namespaces, there may be others to type in: the wizard says whether the user may create jobs there.
  const mayCreate = me?.createAnywhere === true || namespaces?.complete === false || namespaces?.namespaces.some((namespace) => namespace.canCreate) === true;
  const create = (
    <Button icon={<PlusCircleIcon />} onClick={() => void navigate(single ? `/create?namespace=${encodeURIComponent(single)}` : '/create')} isAriaDisabled={namespaces !== undefined && !mayCreate}>
      Create training job
    </Button>
  );
  const sortOf = (column: string, i: number) => ({
    sortBy: {index: columns.findIndex((c) => c.sort === sort.replace('-', '')), direction: sort.startsWith('-') ? ('desc' as const) : ('asc' as const)},
    columnIndex: i,
    onSort: () => change((next) => next.set('sort', sort === column ? `-${column}` : column)),
  });
  const pagination = (isBottom: boolean): ReactElement => (
    <Pagination
      itemCount={list?.total ?? 0}
      page={page}
      perPage={size}
      perPageOptions={[20, 50, 100, 500].map((value) => ({title: String(value), value}))}
      onSetPage={(_, value) => change((next) => next.set('page', String(value)), true)}
      onPerPageSelect={(_, value) => change((next) => next.set('size', String(value)))}
      variant={isBottom ? 'bottom' : 'top'}
      isCompact={!isBottom}
      titles={{paginationAriaLabel: isBottom ? 'Pages, below the list' : 'Pages, above the list'}}
      widgetId={isBottom ? 'pages-bottom' : 'pages-top'}
    />
  );

  return (
    <>
      <PageHead
        title="Training jobs"
        text="Every distributed training job that you may see: MPI, PyTorch and other frameworks."
        actions={
          <>
            {selected.length === 2 ? (
              <Button
                variant="secondary"
                onClick={() => {
                  const [a, b] = selected;
                  if (a && b) void navigate(compareURL(a.namespace, a, b));
                }}
                isAriaDisabled={selected[0]?.namespace !== selected[1]?.namespace}
              >
                Compare
              </Button>
            ) : null}
            {create}
          </>
        }
      />
      <PageSection hasBodyWrapper={false} isFilled>
        {jobs.error && !list ? (
          <ErrorState error={jobs.error} what="The jobs cannot be listed" retry={() => void jobs.refetch()} />
        ) : (
          <>
            <Toolbar clearAllFilters={() => setParams({}, {replace: true})} clearFiltersButtonText="Clear filters" collapseListedFiltersBreakpoint="md">
              <ToolbarContent>
                <ToolbarItem>
                  <SearchInput
                    aria-label="Search by name, project or reason"
                    placeholder="Search"
                    value={text}
                    onChange={(_, value) => {
                      setText(value);
                      change((next) => (value ? next.set('q', value) : next.delete('q')));
                    }}
                    onClear={() => {
                      setText('');
                      change((next) => next.delete('q'));
                    }}
                  />
                </ToolbarItem>
                <ToolbarItem variant="pagination" align={{default: 'alignEnd'}}>
                  {pagination(false)}
                </ToolbarItem>
              </ToolbarContent>
              <ToolbarContent>
                <ToolbarToggleGroup toggleIcon={<FilterIcon />} breakpoint="lg" aria-label="Filters">
                  <ToolbarGroup variant="filter-group">
                    {filters.map(({field, title}) => {
                      const known = Object.entries(list?.facets[field] ?? {}).sort(([a], [b]) => a.localeCompare(b));
                      const values = params.getAll(field);
                      const options = [...known, ...values.filter((value) => !known.some(([name]) => name === value)).map((value): [string, number] => [value, 0])];
                      return (
                        <ToolbarFilter
                          key={field}
                          categoryName={title}
                          labels={values.map((value) => ({key: value, node: phases[value]?.text ?? value}))}
                          deleteLabel={(_, label) => toggle(field)(typeof label === 'string' ? label : label.key)}
                          deleteLabelGroup={() => change((next) => next.delete(field))}
                        >
                          <FacetSelect title={title} options={options} selected={values} onToggle={toggle(field)} />
                        </ToolbarFilter>
                      );
                    })}
                  </ToolbarGroup>
                  <ToolbarItem alignSelf="center">
                    <Switch label="Deleted jobs" isChecked={params.get('deleted') === 'true'} onChange={(_, on) => change((next) => (on ? next.set('deleted', 'true') : next.delete('deleted')))} />
                  </ToolbarItem>
                </ToolbarToggleGroup>
              </ToolbarContent>
            </Toolbar>
            <Outdated query={jobs} />
            {list?.noReports ? <p className="mpi-subtle">In some projects you may see jobs but not their reports, so that the status is less detailed there.</p> : null}
            {!list ? (
              <Loading lines={10} what="Loading the jobs" />
            ) : list.rows.length === 0 ? (
              <Nothing isFiltered={isFiltered} total={list.total} create={mayCreate ? create : null} clear={() => setParams({}, {replace: true})} />
            ) : (
              <Table aria-label="Training jobs" variant="compact" className="mpi-jobs" gridBreakPoint="grid-lg" aria-busy={jobs.isPlaceholderData}>
                <Thead>
                  <Tr>
                    <Th screenReaderText="Select" />
                    {columns.map(({title, sort: column}, i) => (
                      <Th key={title} modifier="nowrap" {...(column ? {sort: sortOf(column, i)} : {})}>
                        {title}
                      </Th>
                    ))}
                  </Tr>
                </Thead>
                <Tbody>
                  {list.rows.map((row) => (
                    <JobRow
                      key={row.id}
                      row={row}
                      showNamespace={!single}
                      isSelected={selected.some((other) => other.id === row.id)}
                      onSelect={(on) => setSelected((current) => (on ? [...current.slice(-1), row] : current.filter((other) => other.id !== row.id)))}
                    />
                  ))}
                </Tbody>
              </Table>
            )}
            {list && list.total > size ? pagination(true) : null}
            {me ? (
              <Snippets
                items={[
                  {title: 'Command line', language: 'sh', text: command(me.program, params)},
                  {title: 'Python', language: 'python', text: `from openshift_ai_sdk.training import TrainingClient\n\nfor job in TrainingClient(${single ? `namespace=${JSON.stringify(single)}` : ''}).list_jobs():\n    print(job.name, job.get_status().phase)`},
                ]}
              />
            ) : null}
          </>
        )}
      </PageSection>
    </>
  );
}

function Nothing({isFiltered, total, create, clear}: {isFiltered: boolean; total: number; create: ReactElement | null; clear: () => void}): ReactElement {
  if (isFiltered || total > 0) {
    return (
      <EmptyState icon={SearchIcon} titleText="No job matches" headingLevel="h2" variant="sm">
        <EmptyStateBody>Change or clear the filters to see more jobs.</EmptyStateBody>
        <EmptyStateFooter>
          <EmptyStateActions>
            <Button variant="link" onClick={clear}>
              Clear filters
            </Button>
          </EmptyStateActions>
        </EmptyStateFooter>
      </EmptyState>
    );
  }
  return (
    <EmptyState icon={CubesIcon} titleText="No training jobs yet" headingLevel="h2">
      <EmptyStateBody>
        {create
          ? 'A training job runs your program on several workers at once. The wizard needs an image and a command, and proposes the rest.'
          : 'There are no jobs in the projects that you may see. You may not create jobs; ask the administrator of a project for the role edit.'}
      </EmptyStateBody>
      {create ? (
        <EmptyStateFooter>
          <EmptyStateActions>{create}</EmptyStateActions>
        </EmptyStateFooter>
      ) : null}
    </EmptyState>
  );
}
