import {Alert, Button, FormSelect, FormSelectOption, Switch, TextInput} from '@patternfly/react-core';
import {useVirtualizer} from '@tanstack/react-virtual';
import {type ReactElement, useEffect, useMemo, useRef, useState} from 'react';
import {apiURL} from '../../api/client';
import {jobPath, type JobKey} from '../../api/queries';
import {openStream, type StreamState} from '../../api/stream';
import type {Detail, LogEvent, LogLine, Problem} from '../../api/types';
import {DownloadIcon, ExternalLinkAltIcon, PauseIcon, PlayIcon} from '../../lib/icons';
import {useParameters} from '../../lib/parameters';
import {fromLocalInput, timeOfDay, toLocalInput} from '../../lib/time';

/** How many lines a page keeps. Older lines are dropped; a download has all. */
const maxLines = 200_000;

/** Lines outside of React: thousands come each second, and are shown once per frame. */
class Lines {
  private all: LogLine[] = [];
  dropped = 0;
  add(lines: LogLine[]): void {
    for (const line of lines) this.all.push(line);
    if (this.all.length > maxLines * 1.1) {
      const old = this.all.length - maxLines;
      this.dropped += old;
      this.all = this.all.slice(old);
    }
  }
  get length(): number {
    return this.all.length;
  }
  at(i: number): LogLine | undefined {
    return this.all[i];
  }
}

const fields = ['pod', 'ranks', 'level', 'grep', 'since', 'from', 'to', 'previous'] as const;

/** Returns the parameters of the API for those of the page. */
function logParams(params: URLSearchParams, uid: string | undefined): URLSearchParams {
  const api = new URLSearchParams();
  const pod = params.get('pod') ?? '';
  if (pod === 'launcher') api.set('launcher', 'true');
  else if (pod === 'workers') api.set('workers', '0-100000');
  else if (pod.startsWith('worker-')) api.set('workers', pod.slice(7));
  for (const field of fields.slice(1)) {
    const value = params.get(field);
    if (value) api.set(field, value);
  }
  if (uid) api.set('uid', uid);
  return api;
}

const levels = [
  ['', 'All levels'],
  ['debug', 'Debug and above'],
  ['info', 'Info and above'],
  ['warning', 'Warnings and errors'],
  ['error', 'Errors'],
];
const times = [
  ['', 'From the start'],
  ['5m', 'Last 5 minutes'],
  ['1h', 'Last hour'],
  ['24h', 'Last 24 hours'],
  ['custom', 'Custom range'],
];

function color(place: string): string {
  let hash = 0;
  for (const char of place) hash = (hash * 31 + char.charCodeAt(0)) >>> 0;
  return `mpi-t${hash % 8}`;
}

function Line({line, showTime}: {line: LogLine; showTime: boolean}): ReactElement {
  return (
    <>
      {showTime && line.t ? <span className="mpi-log-time">{timeOfDay(line.t)} </span> : null}
      <span className={`mpi-log-tag ${color(line.w)}`}>
        [{line.w}
        {line.r >= 0 ? ` r${line.r}` : ''}]
      </span>{' '}
      {line.x}
    </>
  );
}

/** A moment to enter. It is applied after a pause, so that parts of it can be typed. */
function TimeInput({id, iso, isInvalid, apply}: {id: string; iso: string; isInvalid: boolean; apply: (iso: string) => void}): ReactElement {
  const [text, setText] = useState(toLocalInput(iso));
  const [applied, setApplied] = useState(iso);
  if (iso !== applied) {
    setApplied(iso);
    if (fromLocalInput(text) !== iso) setText(toLocalInput(iso));
  }
  useEffect(() => {
    const next = fromLocalInput(text);
    if (next === fromLocalInput(toLocalInput(applied))) return undefined;
    const timer = setTimeout(() => apply(next), 500);
    return () => clearTimeout(timer);
  });
  return <TextInput id={id} type="datetime-local" step={1} value={text} onChange={(_, value) => setText(value)} validated={isInvalid ? 'error' : 'default'} />;
}

/** The logs of all pods at once, as they come. */
export default function LogsTab({job, detail}: {job: JobKey; detail: Detail}): ReactElement {
  const {params, refine} = useParameters();
  const isOver = detail.row.ended !== undefined || (detail.row.deleted ?? false);
  const query = useMemo(() => logParams(params, job.uid), [params, job.uid]);
  const queryText = query.toString();
  const [lines, setLines] = useState(() => new Lines());
  const [length, setLength] = useState(0);
  const [state, setState] = useState<StreamState>('connecting');
  const [problem, setProblem] = useState<Problem | undefined>();
  const [waiting, setWaiting] = useState<string[]>([]);
  const [note, setNote] = useState('');
  const [untagged, setUntagged] = useState(0);
  const [isPaused, setPaused] = useState(false);
  const [showTime, setShowTime] = useState(true);
  const box = useRef<HTMLDivElement>(null);
  const isFollowing = useRef(true);
  const isAutomatic = useRef(false);
  const [grep, setGrep] = useState(params.get('grep') ?? '');
  const [ranks, setRanks] = useState(params.get('ranks') ?? '');


  const isCustom = params.has('from') || params.has('to');
  const setTime = (value: string): void =>
    refine(value === 'custom' ? {since: '', from: new Date(detail.row.running ?? detail.row.created).toISOString(), to: ''} : {since: value, from: '', to: ''});

  // A pause while typing applies a filter.
  useEffect(() => {
    const timer = setTimeout(() => {
      if (grep !== (params.get('grep') ?? '')) refine({grep});
      if (ranks !== (params.get('ranks') ?? '')) refine({ranks});
    }, 500);
    return () => clearTimeout(timer);
  });

  useEffect(() => {
    const store = new Lines();
    setLines(store);
    setLength(0);
    setProblem(undefined);
    setNote('');
    setWaiting([]);
    setUntagged(0);
    let frame = 0;
    let done = false;
    const follow = !isOver && !query.has('previous') && !query.has('to');
    const stop = openStream({
      url: () => {
        const all = new URLSearchParams(queryText);
        if (follow) all.set('follow', 'true');
        return apiURL(jobPath(job, 'logs'), all);
      },
      isDone: () => done,
      onEvent: ({data}) => {
        const event = JSON.parse(data) as LogEvent;
        if (event.lines) {
          store.add(event.lines);
          frame ||= requestAnimationFrame(() => {
            frame = 0;
            setLength(store.length);
          });
        }
        if (event.waiting) setWaiting(event.waiting);
        if (event.note) setNote(event.note);
        if (event.done) {
          done = true;
          setUntagged(event.untagged ?? 0);
        }
      },
      onState: (next, why) => {
        setState(next);
        if (why || next === 'open') setProblem(why);
      },
    });
    return () => {
      stop();
      cancelAnimationFrame(frame);
    };
    // The key of the job is made anew for each render; the end of the job ends the stream by itself.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [job.namespace, job.kind, job.name, queryText]);

  const virtual = useVirtualizer({count: length, getScrollElement: () => box.current, estimateSize: () => 20, overscan: 30});
  useEffect(() => {
    if (isFollowing.current && !isPaused && length > 0 && box.current) {
      isAutomatic.current = true;
      box.current.scrollTop = box.current.scrollHeight;
    }
  }, [length, isPaused]);
  const scrolled = (): void => {
    const element = box.current;
    if (!element) return;
    if (isAutomatic.current) {
      isAutomatic.current = false;
      return;
    }
    isFollowing.current = element.scrollHeight - element.scrollTop - element.clientHeight < 40;
    setPaused(!isFollowing.current && !isOver);
  };

  const pod = params.get('pod') ?? '';
  const workers = [...new Set([...Array.from({length: Math.min(detail.row.workers, 256)}, (_, i) => `worker-${i}`), ...(pod.startsWith('worker-') ? [pod] : [])])];
  const downloads = [
    ['true', 'Download'],
    ['json', 'Download as JSON'],
  ].map(([form, label]) => {
    const all = new URLSearchParams(queryText);
    all.set('download', form ?? '');
    return {label, url: apiURL(jobPath(job, 'logs'), all)};
  });
  const stateText = {connecting: 'Connecting', open: isOver ? 'Reading' : 'Live', waiting: 'The connection is lost; it is opened again', ended: 'Ended'}[state];
  const fieldProblem = (field: string): string | undefined => problem?.fields?.find((each) => each.field === field)?.reason;
  return (
    <div>
      <div className="mpi-logbar" role="search" aria-label="Filter the log">
        <label htmlFor="log-pod">
          Pod
          <FormSelect id="log-pod" value={pod} onChange={(_, value) => refine({pod: value})}>
            <FormSelectOption value="" label="All pods" />
            <FormSelectOption value="launcher" label="Launcher" />
            <FormSelectOption value="workers" label="All workers" />
            {workers.map((name) => (
              <FormSelectOption key={name} value={name} label={name.replace('worker-', 'Worker ')} />
            ))}
          </FormSelect>
        </label>
        <label htmlFor="log-ranks">
          Ranks
          <TextInput id="log-ranks" placeholder="0,4-7" value={ranks} onChange={(_, value) => setRanks(value)} validated={fieldProblem('ranks') ? 'error' : 'default'} />
        </label>
        <label htmlFor="log-level">
          Level
          <FormSelect id="log-level" value={params.get('level') ?? ''} onChange={(_, value) => refine({level: value})}>
            {levels.map(([value, label]) => (
              <FormSelectOption key={value} value={value} label={label ?? ''} />
            ))}
          </FormSelect>
        </label>
        <label htmlFor="log-since">
          Time
          <FormSelect id="log-since" value={isCustom ? 'custom' : (params.get('since') ?? '')} onChange={(_, value) => setTime(value)}>
            {times.map(([value, label]) => (
              <FormSelectOption key={value} value={value} label={label ?? ''} />
            ))}
          </FormSelect>
        </label>
        {isCustom ? (
          <div className="mpi-range">
            {(['from', 'to'] as const).map((name) => (
              <label key={name} htmlFor={`log-${name}`} className="is-time">
                {name === 'from' ? 'From' : 'To'}
                <TimeInput
                  id={`log-${name}`}
                  iso={params.get(name) ?? ''}
                  isInvalid={fieldProblem(name) !== undefined}
                  apply={(iso) => {
                    // Without both, the range would no longer be a custom one while it is typed.
                    if (iso || params.has(name === 'from' ? 'to' : 'from')) refine({[name]: iso});
                  }}
                />
              </label>
            ))}
          </div>
        ) : null}
        <label htmlFor="log-grep" className="is-wide">
          Search (regular expression)
          <TextInput id="log-grep" type="search" placeholder="loss=\S+" value={grep} onChange={(_, value) => setGrep(value)} validated={fieldProblem('grep') ? 'error' : 'default'} />
        </label>
      </div>
      {problem ? <Alert isInline variant="danger" title={problem.fields?.map(({field, reason}) => (field ? `${field}: ${reason}` : reason)).join('; ') ?? problem.message} component="p" /> : null}
      {note ? <Alert isInline isPlain variant="info" title={note} component="p" /> : null}
      {waiting.length > 0 ? (
        <p className="mpi-subtle mpi-wrap" role="status">
          Waiting for {waiting.slice(0, 5).join('; ')}
          {waiting.length > 5 ? ` and ${waiting.length - 5} more` : ''}
        </p>
      ) : null}
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <div className="mpi-log" ref={box} onScroll={scrolled} tabIndex={0} role="log" aria-label={`Log of ${job.name}`} aria-live="off">
        <div className="mpi-log-lines" style={{height: virtual.getTotalSize()}}>
          {virtual.getVirtualItems().map((item) => {
            const line = lines.at(item.index);
            return line ? (
              <div key={item.key} className={`mpi-log-line is-${line.l ?? 'none'}`} style={{transform: `translateY(${item.start}px)`}}>
                <Line line={line} showTime={showTime} />
              </div>
            ) : null;
          })}
        </div>
        {length === 0 && state !== 'connecting' ? (
          <p className="mpi-log-line">
            {state === 'ended' || isOver
              ? untagged > 0
                ? `No line is tagged with these ranks (${untagged} lines are untagged). Let mpirun tag them: --tag-output for Open MPI, -prepend-rank for Intel MPI and MPICH.`
                : 'No lines.'
              : 'No lines yet.'}
          </p>
        ) : null}
      </div>
      <div className="mpi-log-foot">
        <span role="status" className="mpi-subtle">
          {stateText}: {length.toLocaleString()} lines{lines.dropped > 0 ? `, ${lines.dropped.toLocaleString()} older lines are only in the download` : ''}
        </span>
        <span className="mpi-actions">
          <Switch label="Times" isChecked={showTime} onChange={(_, on) => setShowTime(on)} />
          <Switch label="Earlier runs" isChecked={params.get('previous') === 'true'} onChange={(_, on) => refine({previous: on ? 'true' : ''})} />
          {isOver ? null : (
            <Button
              variant="secondary"
              size="sm"
              icon={isPaused ? <PlayIcon /> : <PauseIcon />}
              onClick={() => {
                isFollowing.current = isPaused;
                setPaused(!isPaused);
              }}
            >
              {isPaused ? 'Scroll with new lines' : 'Stop scrolling'}
            </Button>
          )}
          {detail.status?.logsLink ? (
            <Button
              variant="secondary"
              size="sm"
              icon={<ExternalLinkAltIcon />}
              component="a"
              href={detail.status.logsLink}
              target="_blank"
              rel="noopener noreferrer"
            >
              All logs
            </Button>
          ) : null}
          {downloads.map(({label, url}) => (
            <Button key={label} variant="secondary" size="sm" icon={<DownloadIcon />} component="a" href={url} download>
              {label}
            </Button>
          ))}
        </span>
      </div>
    </div>
  );
}
