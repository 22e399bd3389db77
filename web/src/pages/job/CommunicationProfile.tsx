import {Alert, Button, Card, CardBody, DescriptionList, DescriptionListDescription, DescriptionListGroup, DescriptionListTerm, EmptyState, EmptyStateActions, EmptyStateBody, EmptyStateFooter, Label} from '@patternfly/react-core';
import {Table, Tbody, Td, Th, Thead, Tr} from '@patternfly/react-table';
import type {ReactElement, ReactNode} from 'react';
import {Link} from 'react-router';
import type {Detail, ReportProfile} from '../../api/types';
import {count, Help, Scrolled} from '../../components/Common';
import {ChartLineIcon, CloneIcon} from '../../lib/icons';
import {moment} from '../../lib/time';
import {shareText, timeText, units} from '../../lib/units';

const bytes = (n: number): string => units['bytes']?.(n) ?? String(n);

/** The head of a column, with what its figures are. */
interface Column {
  title: string;
  about?: string;
}

/** A part of a whole in percent, with a bar. */
const Share = ({part, whole}: {part: number; whole: number}): ReactElement => (
  <span className="mpi-share">
    <span className="mpi-numbers">{shareText(part, whole)}</span>
    <span className="mpi-bar-track" aria-hidden="true">
      <span className="mpi-bar-asked" style={{inlineSize: `${whole > 0 ? Math.min(100, (100 * part) / whole) : 0}%`}} />
    </span>
  </span>
);

/** A table in a card, which scrolls on narrow screens. */
function Figures({title, columns, rows, children}: {title: string; columns: Column[]; rows: {key: string | number; cells: ReactNode[]}[]; children?: ReactNode}): ReactElement {
  return (
    <Card component="section" aria-label={title}>
      <CardBody className="mpi-stack">
        <h3 className="mpi-heading">{title}</h3>
        <Scrolled title={title}>
          <Table aria-label={title} variant="compact" gridBreakPoint="">
            <Thead>
              <Tr>
                {columns.map(({title: head, about}) => (
                  <Th key={head} modifier="nowrap" {...(about ? {info: {tooltip: about, ariaLabel: `About ${head}`}} : {})}>
                    {head}
                  </Th>
                ))}
              </Tr>
            </Thead>
            <Tbody>
              {rows.map(({key, cells}) => (
                <Tr key={key}>
                  {cells.map((cell, i) => (
                    <Td key={columns[i]?.title} className="mpi-numbers">{cell}</Td>
                  ))}
                </Tr>
              ))}
            </Tbody>
          </Table>
        </Scrolled>
        {children}
      </CardBody>
    </Card>
  );
}

function Calls({profile, openCalls}: {profile: ReportProfile; openCalls: number}): ReactElement | null {
  const calls = profile.calls ?? [];
  if (calls.length === 0 && openCalls === 0) return null;
  const open = {key: '', cells: ['in calls that have not returned', '–', timeText(openCalls), <Share key="share" part={openCalls} whole={profile.milliseconds} />, '–', '–']};
  return (
    <Figures
      title="Calls with the most time"
      columns={[
        {title: 'Call'},
        {title: 'Count'},
        {title: 'Time'},
        {title: 'Share', about: 'The share of the time of all ranks.'},
        {title: 'Mean time', about: 'The mean time of a call.'},
        {title: 'Data', about: 'What the ranks sent, or passed to a collective function. Functions that receive or wait have none.'},
      ]}
      rows={[...calls.map((call) => ({
        key: call.call,
        cells: [
          call.call,
          call.count.toLocaleString(),
          timeText(call.milliseconds),
          <Share key="share" part={call.milliseconds} whole={profile.milliseconds} />,
          timeText(call.milliseconds / Math.max(1, call.count)),
          call.bytes > 0 ? bytes(call.bytes) : '–',
        ],
      })), ...(openCalls > 0 ? [open] : [])]}
    />
  );
}

function MessageSizes({profile}: {profile: ReportProfile}): ReactElement | null {
  const all = profile.messageSizes ?? [];
  const total = all.reduce((sum, sizes) => sum + sizes.count, 0);
  if (total === 0) return null;
  const rows = all.map(({upToBytes, count: calls}, i) => ({name: upToBytes === undefined ? `over ${bytes(all[i - 1]?.upToBytes ?? 0)}` : `up to ${bytes(upToBytes)}`, calls}));
  return (
    <Figures
      title="Message sizes"
      columns={[{title: 'Message size'}, {title: 'Count', about: 'The number of calls that sent data of this size, or passed it to a collective function.'}, {title: 'Share'}]}
      rows={rows.filter(({calls}) => calls > 0).map(({name, calls}) => ({key: name, cells: [name, calls.toLocaleString(), <Share key="share" part={calls} whole={total} />]}))}
    />
  );
}

function PerRank({profile}: {profile: ReportProfile}): ReactElement | null {
  const ranks = profile.perRank ?? [];
  if (ranks.length === 0) return null;
  const more = profile.ranks - ranks.length;
  const late = profile.lateRank;
  const first = ranks.find(({rank}) => rank === late?.rank);
  // As agentapi.LateRank.In of the operator.
  const isLate = ({rank, milliseconds, communicationMilliseconds: inMPI}: (typeof ranks)[number]) =>
    late !== undefined && (rank === late.rank || (first !== undefined && inMPI >= first.communicationMilliseconds
      && inMPI - first.communicationMilliseconds < Math.floor(late.waitedMilliseconds / 4) && milliseconds >= 0.9 * first.milliseconds));
  return (
    <Figures
      title="Time by rank"
      columns={[{title: 'Rank'}, {title: 'Time', about: 'Between MPI_Init and MPI_Finalize.'}, {title: 'In MPI'}, {title: 'Share', about: 'The share of the rank’s time in functions of MPI.'}]}
      rows={ranks.map(({rank, milliseconds, communicationMilliseconds}) => ({
        key: rank,
        cells: [
          isLate({rank, milliseconds, communicationMilliseconds}) ? <>{rank} <Label isCompact color="orange">late</Label></> : rank,
          timeText(milliseconds),
          timeText(communicationMilliseconds),
          <Share key="share" part={communicationMilliseconds} whole={milliseconds} />,
        ],
      }))}
    >
      {more > 0 ? <p className="mpi-subtle">{more === 1 ? 'One more rank is' : `${more} more ranks are`} not listed: {more === 1 ? 'it differs' : 'they differ'} less from the others.</p> : null}
    </Figures>
  );
}

/** Where the time of the job's ranks went. */
export function CommunicationProfile({profile, detail, isRunning}: {profile: ReportProfile; detail: Detail; isRunning: boolean}): ReactElement {
  const {lateRank, runs} = detail;
  const figures: {term: string; value: string; about?: string}[] = [
    {term: 'Ranks', value: profile.ranks.toLocaleString()},
    {
      term: 'Time in MPI',
      value: `${profile.communicationPercent} %`,
      about: `${timeText(profile.communicationMilliseconds)} of ${timeText(profile.milliseconds)} of all ranks together, in functions for messages, collective operations, waits and one-sided communication.`,
    },
    {term: 'Imbalance', value: `${profile.imbalancePercent} %`, about: 'How much less the mean rank computes than the one that computes most: with 33 %, a third less.'},
  ];
  return (
    <section className="mpi-stack" aria-labelledby="profile-title">
      <div>
        <h2 id="profile-title" className="mpi-heading">Communication profile</h2>
        <p className="mpi-subtle">
          Where the time of {count(profile.ranks, 'rank')} went between MPI_Init and MPI_Finalize, until {moment(profile.until)}.{isRunning ? ' The report is updated every minute, and after 20 minutes whenever the job has run a twentieth longer.' : ''}
          {runs && profile.since ? <> It is the latest of {runs} of MPI’s launcher, and began {moment(profile.since)}.</> : null}
        </p>
      </div>
      <Card component="section" aria-label="Time in MPI">
        <CardBody className="mpi-stack">
          <DescriptionList isCompact className="mpi-figures" aria-label="Communication profile: figures">
            {figures.map(({term, value, about}) => (
              <DescriptionListGroup key={term}>
                <DescriptionListTerm>
                  {term} {about ? <Help label={term}>{about}</Help> : null}
                </DescriptionListTerm>
                <DescriptionListDescription className="mpi-numbers">{value}</DescriptionListDescription>
              </DescriptionListGroup>
            ))}
          </DescriptionList>
          {lateRank ? <Alert isInline variant="info" component="p" title={lateRank} /> : null}
        </CardBody>
      </Card>
      <Calls profile={profile} openCalls={detail.openCalls ?? 0} />
      <div className="mpi-grid is-top">
        <PerRank profile={profile} />
        <MessageSizes profile={profile} />
      </div>
    </section>
  );
}

/** Why the job has no communication profile, and how to get one. */
export function NoProfile({detail, reason, onApply}: {detail: Detail; reason: string; onApply: (changes: string[]) => void}): ReactElement {
  const change = detail.profileChange;
  const code = 'ProfileMissing';
  return (
    <EmptyState titleText="No communication profile" headingLevel="h2" icon={ChartLineIcon} variant="sm">
      <EmptyStateBody>
        <p>{reason}</p>
        {change ? <p>In the wizard, it is Profile communication, in the step Advanced.</p> : null}
        {detail.findings.some((finding) => finding.code === code && finding.guide) ? <Link to={`/help/${code}`}>Guide to {code}</Link> : null}
      </EmptyStateBody>
      {change && detail.can.clone ? (
        <EmptyStateFooter>
          <EmptyStateActions>
            <Button variant="link" icon={<CloneIcon />} onClick={() => onApply([change])}>
              Clone with a profile
            </Button>
          </EmptyStateActions>
        </EmptyStateFooter>
      ) : null}
    </EmptyState>
  );
}
