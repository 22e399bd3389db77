import {
  Alert,
  Breadcrumb,
  BreadcrumbItem,
  Button,
  Dropdown,
  DropdownItem,
  DropdownList,
  Label,
  MenuToggle,
  Modal,
  ModalBody,
  ModalFooter,
  ModalHeader,
  PageSection,
  Tab,
  TabContent,
  Tabs,
  TabTitleText,
} from '@patternfly/react-core';
import {useMutation, useQueryClient} from '@tanstack/react-query';
import {lazy, type ReactElement, Suspense, useState} from 'react';
import {Link, useNavigate, useParams} from 'react-router';
import {errorText, get, post, remove} from '../api/client';
import {isMissing, jobPath, type JobKey, uidPath, useJob, useLive} from '../api/queries';
import type {ActionResult, Detail, Manifest} from '../api/types';
import {Age, Elapsed, PageHead, Snippets} from '../components/Common';
import {Framework} from '../components/Framework';
import {Markdown} from '../components/Markdown';
import {ErrorState, Loading, Outdated} from '../components/States';
import {BanIcon, BellIcon, CloneIcon, DownloadIcon, EllipsisVIcon, ListIcon, PauseIcon, PlayIcon, TrashIcon} from '../lib/icons';
import {notify, setWatched, useWatched} from '../lib/notices';
import {useParameters} from '../lib/parameters';
import {phases, PhaseLabel} from '../lib/phase';
import {save} from '../lib/save';
import {CloneDialog} from './job/CloneDialog';
import type {EditedJob} from './job/ConfigurationTab';
import {Diagnosis} from './job/Diagnosis';
import {PhaseLine} from './job/PhaseLine';

const Overview = lazy(() => import('./job/Overview'));
const Topology = lazy(() => import('./job/Topology'));
const PodsTab = lazy(() => import('./job/PodsTab'));
const LogsTab = lazy(() => import('./job/LogsTab'));
const MetricsTab = lazy(() => import('./job/MetricsTab'));
const TrainingTab = lazy(() => import('./job/TrainingTab'));
const EventsTab = lazy(() => import('./job/EventsTab'));
const ConfigurationTab = lazy(() => import('./job/ConfigurationTab'));

interface TabProps {
  job: JobKey;
  detail: Detail;
  /** What the user writes in the tab Configuration, which is kept while other tabs are open. */
  edited: EditedJob | undefined;
  setEdited: (edited: EditedJob | undefined) => void;
  /** Opens the dialog that clones the job with changes. */
  openClone: (changes: string[]) => void;
}

const tabs: {key: string; title: string; content: (props: TabProps) => ReactElement}[] = [
  {key: 'overview', title: 'Overview', content: (props) => <Overview {...props} />},
  {key: 'topology', title: 'Topology', content: (props) => <Topology {...props} />},
  {key: 'pods', title: 'Pods', content: (props) => <PodsTab {...props} />},
  {key: 'logs', title: 'Logs', content: (props) => <LogsTab {...props} />},
  {key: 'metrics', title: 'Metrics', content: (props) => <MetricsTab {...props} />},
  {key: 'training', title: 'Training', content: (props) => <TrainingTab {...props} />},
  {key: 'events', title: 'Events', content: (props) => <EventsTab {...props} />},
  {key: 'configuration', title: 'Configuration', content: (props) => <ConfigurationTab {...props} />},
];

/** Shows what the user wrote about the job, with a bar to scroll a long text. */
const Description = ({text}: {text: string}): ReactElement => (
  <>
    {/* A region that scrolls is reached by the keyboard. */}
    {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
    <div tabIndex={0} role="region" aria-label="Description" className="mpi-described">
      <Markdown text={text} />
    </div>
  </>
);

/** The phase and for how long the job has been in it, or when it ended and how long it ran. */
function Headline({detail: {row, status, headline}}: {detail: Detail}): ReactElement {
  const since = status?.phaseTimes?.find(({phase}) => phase === row.phase)?.since;
  if (row.ended) {
    return (
      <>
        Ended <Age at={row.ended} /> ago, {row.running ? <>ran for <Elapsed from={row.running} to={row.ended} /></> : 'never ran'}
      </>
    );
  }
  if (!since) return <>{headline}</>;
  return (
    <>
      {phases[row.phase ?? '']?.text ?? row.phase} for <Age at={since} />
    </>
  );
}

function Actions({job, detail, openClone}: {job: JobKey; detail: Detail; openClone: () => void}): ReactElement {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const {open} = useParameters();
  const [isOpen, setOpen] = useState(false);
  const [asking, setAsking] = useState<'cancel' | 'delete' | undefined>();
  const isWatched = useWatched().includes(detail.row.id);
  const {can, row} = detail;
  const act = useMutation({
    mutationFn: (verb: 'suspend' | 'resume') => post<ActionResult>(jobPath(job, verb), {}),
    onSuccess: (result) => {
      notify({variant: 'success', title: result.message});
      void queries.invalidateQueries({queryKey: ['job']});
    },
    onError: (error) => notify({variant: 'danger', title: 'The job was not changed', text: errorText(error)}),
  });
  const deletion = useMutation({
    mutationFn: () => remove<ActionResult>(jobPath(job), new URLSearchParams({uid: row.id})),
    onSuccess: (result) => {
      notify({variant: 'success', title: result.message});
      setAsking(undefined);
      void navigate('/');
    },
  });
  const cancellation = useMutation({
    mutationFn: () => post<ActionResult>(jobPath(job, 'cancel'), {uid: row.id}),
    onSuccess: (result) => {
      notify({variant: 'success', title: result.message});
      setAsking(undefined);
      void queries.invalidateQueries({queryKey: ['job']});
      // The page stays, and shows the report of this job.
      void navigate(`?uid=${row.id}`, {replace: true});
    },
  });
  const isCancelling = asking === 'cancel';
  const question = isCancelling ? cancellation : deletion;
  const watch = (): void => {
    setWatched(row.id, !isWatched);
    if (!isWatched && 'Notification' in window && Notification.permission === 'default') void Notification.requestPermission();
  };
  const download = async (): Promise<void> => {
    try {
      save(`${row.name}.yaml`, (await get<Manifest>(uidPath(job, 'yaml'))).clean);
    } catch (error) {
      notify({variant: 'danger', title: 'The YAML cannot be read', text: errorText(error)});
    }
  };
  const isOver = row.ended !== undefined;
  const canWatch = !isOver && !row.deleted;
  return (
    <>
      {can.suspend ? (
        <Button variant="secondary" icon={<PauseIcon />} isLoading={act.isPending} onClick={() => act.mutate('suspend')}>
          Suspend
        </Button>
      ) : null}
      {can.resume ? (
        <Button variant="secondary" icon={<PlayIcon />} isLoading={act.isPending} onClick={() => act.mutate('resume')}>
          Resume
        </Button>
      ) : null}
      {can.cancel ? (
        <Button variant="secondary" isDanger icon={<BanIcon />} onClick={() => setAsking('cancel')}>
          Cancel job
        </Button>
      ) : null}
      {can.clone ? (
        <Button variant={row.phase === 'Failed' ? 'primary' : 'secondary'} icon={<CloneIcon />} onClick={openClone}>
          Clone and modify
        </Button>
      ) : null}
      <Button variant="secondary" icon={<ListIcon />} onClick={() => open({tab: 'logs'})}>
        View logs
      </Button>
      {row.deleted && !detail.status?.specification?.manifest ? null : (
        <Button variant="secondary" icon={<DownloadIcon />} onClick={() => void download()}>
          Download configuration
        </Button>
      )}
      {canWatch || can.delete ? <Dropdown
        isOpen={isOpen}
        onOpenChange={setOpen}
        onSelect={() => setOpen(false)}
        popperProps={{position: 'end'}}
        toggle={(ref) => (
          <MenuToggle ref={ref} variant="plain" isExpanded={isOpen} onClick={() => setOpen(!isOpen)} aria-label="Actions" icon={<EllipsisVIcon />} />
        )}
      >
        <DropdownList>
          {canWatch ? (
            <DropdownItem key="watch" icon={<BellIcon />} onClick={watch}>
              {isWatched ? 'Do not notify when it ends' : 'Notify when it ends'}
            </DropdownItem>
          ) : null}
          {can.delete ? (
            <DropdownItem key="delete" icon={<TrashIcon />} isDanger onClick={() => setAsking('delete')}>
              Delete job
            </DropdownItem>
          ) : null}
        </DropdownList>
      </Dropdown> : null}
      <Modal variant="small" isOpen={asking !== undefined} onClose={() => setAsking(undefined)} aria-labelledby="delete-title" aria-describedby="delete-text">
        <ModalHeader title={isCancelling ? `Cancel ${row.name}?` : `Delete ${row.name}?`} titleIconVariant="warning" labelId="delete-title" />
        <ModalBody id="delete-text">
          {isCancelling
            ? 'Its programs are asked to end (SIGTERM) and then ended, and its pods are deleted with their logs. Results that the program has not stored are lost. '
            : `The job and its pods are deleted at once, with their logs.${isOver ? '' : ' It has not ended: to end it, cancel it.'} `}
          The report with the cause and the timeline is kept and stays in the list, with Deleted jobs.
          {isCancelling && can.suspend ? ' To stop the job and continue it later, suspend it instead.' : ''}
          {question.error ? <Alert isInline variant="danger" title={errorText(question.error)} component="p" /> : null}
        </ModalBody>
        <ModalFooter>
          <Button variant="danger" isLoading={question.isPending} onClick={() => question.mutate()}>
            {isCancelling ? 'Cancel job' : 'Delete job'}
          </Button>
          <Button variant="link" onClick={() => setAsking(undefined)}>
            Keep the job
          </Button>
        </ModalFooter>
      </Modal>
    </>
  );
}

/** The page of a job. */
export function Job(): ReactElement {
  const {namespace = '', kind = '', name = ''} = useParams();
  const {params, open} = useParameters();
  const job: JobKey = {namespace, kind, name, uid: params.get('uid') ?? undefined};
  const query = useJob(job);
  const detail = query.data;
  const [clone, setClone] = useState<{changes: string[]; isAgain?: boolean} | undefined>();
  const [edited, setEdited] = useState<{id: string; job: EditedJob | undefined} | undefined>();
  useLive({namespace, id: detail?.row.id ?? 'unknown'});
  const crumbs = (
    <PageSection hasBodyWrapper={false} type="breadcrumb">
      <Breadcrumb>
        <BreadcrumbItem>
          <Link to="/">Training jobs</Link>
        </BreadcrumbItem>
        <BreadcrumbItem>
          <Link to={`/?namespace=${encodeURIComponent(namespace)}`}>{namespace}</Link>
        </BreadcrumbItem>
        <BreadcrumbItem isActive>{name}</BreadcrumbItem>
      </Breadcrumb>
    </PageSection>
  );
  if (!detail) {
    return (
      <>
        {crumbs}
        {query.error ? <ErrorState error={query.error} what={`The job ${name} cannot be shown`} retry={() => void query.refetch()} /> : <Loading lines={8} what="Loading the job" />}
      </>
    );
  }
  const active = tabs.some(({key}) => key === params.get('tab')) ? (params.get('tab') ?? 'overview') : 'overview';
  const {row} = detail;
  return (
    <>
      {crumbs}
      <PageHead
        title={name}
        heading={
          <span className="mpi-inline">
            {name}
            <Label variant="outline">
              <Framework name={row.framework} kind={row.kind} />
            </Label>
            <Label variant="outline">{row.kind}</Label>
            <PhaseLabel phase={row.phase} />
          </span>
        }
        text={<Headline detail={detail} />}
        actions={<Actions job={job} detail={detail} openClone={() => setClone({changes: []})} />}
      >
        {detail.annotations?.['openshift.io/description'] ? <Description text={detail.annotations['openshift.io/description']} /> : null}
        {query.error && isMissing(query.error) ? (
          <Alert isInline variant="info" title="The job was deleted while this page was open" component="p">
            What you see is as it was last known. Its report is in the list, with Deleted jobs.
          </Alert>
        ) : (
          <Outdated query={query} />
        )}
        {row.deleted ? <Alert isInline variant="info" title="This job is deleted. Its report is kept and shown here." component="p">
          {detail.status?.specification?.masked ? 'Secrets in its configuration are masked: a clone asks for them.' : null}
          {detail.status?.specification?.omitted ? `It cannot be cloned: ${detail.status.specification.omitted}.` : null}
        </Alert> : null}
        <PhaseLine detail={detail} />
      </PageHead>
      {detail.findings.length > 0 || row.phase === 'Failed' ? (
        <PageSection hasBodyWrapper={false}>
          <Diagnosis detail={detail} onApply={(changes) => setClone({changes, isAgain: changes.length === 0})} />
        </PageSection>
      ) : null}
      <PageSection hasBodyWrapper={false} type="tabs">
        <Tabs
          activeKey={active}
          onSelect={(_, key) => open({tab: String(key)})}
          aria-label="Parts of the job"
          usePageInsets
        >
          {tabs
            .filter(({key}) => key !== 'configuration' || !row.deleted || detail.status?.specification?.manifest)
            .map(({key, title}) => (
              <Tab key={key} eventKey={key} title={<TabTitleText>{title}</TabTitleText>} tabContentId={`tab-${key}`} />
            ))}
        </Tabs>
      </PageSection>
      <PageSection hasBodyWrapper={false} isFilled>
        {tabs.map(({key, title, content}) => (
          <TabContent key={key} id={`tab-${key}`} eventKey={key} activeKey={active} hidden={key !== active} aria-label={title}>
            {/* A tab is of one job: another that gets its name begins anew. */}
            {key === active ? <Suspense key={row.id} fallback={<Loading what={`Loading ${title}`} />}>{content({job: {...job, uid: row.id}, detail, openClone: (changes) => setClone({changes}), edited: edited?.id === row.id ? edited.job : undefined, setEdited: (written) => setEdited({id: row.id, job: written})})}</Suspense> : null}
          </TabContent>
        ))}
        <Snippets items={detail.commands} />
      </PageSection>
      {clone ? <CloneDialog job={job} detail={detail} {...clone} close={() => setClone(undefined)} /> : null}
    </>
  );
}
