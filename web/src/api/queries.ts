import {keepPreviousData, type QueryClient, useMutation, type UseMutationResult, useQuery, useQueryClient, type UseQueryResult} from '@tanstack/react-query';
import {useEffect} from 'react';
import {setStale} from '../lib/notices';
import {ApiError, apiURL, get, path} from './client';
import {openStream} from './stream';
import type {Changes, Choices, CloneForm, Comparison, Curves, Detail, Draft, Events, Glossary, Help, List, Manifest, Metrics, Templates, Me, Namespaces, Pods, Quotas, Row, RuntimeForm, RuntimeJobs, Runtimes, SpecRequest, Usage} from './types';
import {post} from './client';

export interface JobKey {
  namespace: string;
  kind: string;
  name: string;
  /** The UID of a deleted job. */
  uid?: string | undefined;
}

export const jobPath = (job: JobKey, ...rest: string[]): string => path('namespaces', job.namespace, 'jobs', job.kind.toLowerCase(), job.name, ...rest);

/** The path of a request that names the job by its UID, too: a deleted job may have a namesake. */
export const uidPath = (job: JobKey, ...rest: string[]): string => jobPath(job, ...rest) + (job.uid ? `?${new URLSearchParams({uid: job.uid}).toString()}` : '');

const uidParams = (job: JobKey): URLSearchParams | undefined => (job.uid ? new URLSearchParams({uid: job.uid}) : undefined);

export const useMe = (): UseQueryResult<Me> =>
  useQuery({queryKey: ['me'], queryFn: ({signal}) => get<Me>('me', undefined, signal), staleTime: 60_000, refetchOnWindowFocus: true});

export const useNamespaces = (): UseQueryResult<Namespaces> =>
  useQuery({queryKey: ['namespaces'], queryFn: ({signal}) => get<Namespaces>('namespaces', undefined, signal), staleTime: 30_000});

export function useJobs(params: URLSearchParams): UseQueryResult<List> {
  return useQuery({queryKey: ['jobs', params.toString()], queryFn: ({signal}) => get<List>('jobs', params, signal), placeholderData: keepPreviousData});
}

export const useJob = (job: JobKey): UseQueryResult<Detail> =>
  useQuery({queryKey: ['job', job, 'detail'], queryFn: ({signal}) => get<Detail>(jobPath(job), uidParams(job), signal)});

export const usePods = (job: JobKey): UseQueryResult<Pods> =>
  useQuery({queryKey: ['job', job, 'pods'], queryFn: ({signal}) => get<Pods>(jobPath(job, 'pods'), uidParams(job), signal), refetchInterval: 5000});

export const useEvents = (job: JobKey): UseQueryResult<Events> =>
  useQuery({queryKey: ['job', job, 'events'], queryFn: ({signal}) => get<Events>(jobPath(job, 'events'), uidParams(job), signal), refetchInterval: 5000});

export const useCurves = (job: JobKey, isLive: boolean): UseQueryResult<Curves> =>
  useQuery({queryKey: ['curves', job], queryFn: ({signal}) => get<Curves>(jobPath(job, 'curves'), uidParams(job), signal), refetchInterval: isLive ? 10_000 : false});

export const useMetrics = (job: JobKey, isLive: boolean): UseQueryResult<Metrics> =>
  useQuery({queryKey: ['metrics', job], queryFn: ({signal}) => get<Metrics>(jobPath(job, 'metrics'), uidParams(job), signal), refetchInterval: isLive ? 15_000 : false});

export const useTemplates = (namespace: string): UseQueryResult<Templates> =>
  useQuery({queryKey: ['templates', namespace], queryFn: ({signal}) => get<Templates>(path('namespaces', namespace, 'templates'), undefined, signal), enabled: namespace !== ''});

export const useGlossary = (): UseQueryResult<Glossary> =>
  useQuery({queryKey: ['glossary'], queryFn: ({signal}) => get<Glossary>('glossary', undefined, signal), staleTime: Infinity});

export const useHelp = (): UseQueryResult<Help> => useQuery({queryKey: ['help'], queryFn: ({signal}) => get<Help>('help', undefined, signal), staleTime: Infinity});

/** What the wizard shows of a job to clone it: read once, so that it does not change what the user has written. */
export const useCloneForm = (job: JobKey | undefined): UseQueryResult<CloneForm> =>
  useQuery({queryKey: ['form', job], queryFn: ({signal}) => get<CloneForm>(job ? jobPath(job, 'form') : '', undefined, signal), enabled: job !== undefined, staleTime: Infinity, gcTime: 0, retry: false});

export const useManifest = (job: JobKey): UseQueryResult<Manifest> =>
  useQuery({queryKey: ['job', job, 'yaml'], queryFn: ({signal}) => get<Manifest>(jobPath(job, 'yaml'), uidParams(job), signal)});

export const useChoices = (namespace: string): UseQueryResult<Choices> =>
  useQuery({queryKey: ['choices', namespace], queryFn: ({signal}) => get<Choices>(path('namespaces', namespace, 'options'), undefined, signal), enabled: namespace !== '', refetchInterval: 10_000});

export const useRuntimes = (namespace: string): UseQueryResult<Runtimes> =>
  useQuery({queryKey: ['runtimes', namespace], queryFn: ({signal}) => get<Runtimes>('runtimes', namespace ? new URLSearchParams({namespace}) : undefined, signal), refetchInterval: 3000});

export const useRuntimeJobs = (name: string, namespace: string | undefined): UseQueryResult<RuntimeJobs> =>
  useQuery({queryKey: ['runtimes', namespace, name, 'jobs'], queryFn: ({signal}) => get<RuntimeJobs>(path('runtimes', name, 'jobs'), namespace ? new URLSearchParams({namespace}) : undefined, signal)});

/** What a new runtime can start from. */
export const useRuntimeForm = (enabled: boolean): UseQueryResult<RuntimeForm> => useQuery({queryKey: ['runtime-form'], queryFn: ({signal}) => get<RuntimeForm>('runtimes/form', undefined, signal), enabled, staleTime: 60_000});

export const useQuotas = (namespace: string): UseQueryResult<Quotas> =>
  useQuery({queryKey: ['quotas', namespace], queryFn: ({signal}) => get<Quotas>('quotas', namespace ? new URLSearchParams({namespace}) : undefined, signal), refetchInterval: 5000});

export const useUsage = (params: URLSearchParams): UseQueryResult<Usage> =>
  useQuery({queryKey: ['usage', params.toString()], queryFn: ({signal}) => get<Usage>('usage', params, signal), placeholderData: keepPreviousData});

export const useCompare = (namespace: string, a: JobKey, b: JobKey): UseQueryResult<Comparison> =>
  useQuery({
    queryKey: ['compare', namespace, a, b],
    queryFn: ({signal}) => {
      const params = new URLSearchParams([a, b].map(({kind, name}) => ['job', `${kind}/${name}`]));
      for (const {uid} of a.uid && b.uid ? [a, b] : []) params.append('uid', uid ?? '');
      return get<Comparison>(path('namespaces', namespace, 'compare'), params, signal);
    },
  });

/** Checks or creates a job. */
export const useCreate = (): UseMutationResult<Draft, Error, SpecRequest> => useMutation({mutationFn: (request: SpecRequest) => post<Draft>('jobs', request)});

/** Returns the check of a job as it is being written; it waits until the user pauses. */
export function usePreview(request: SpecRequest, enabled: boolean): UseQueryResult<Draft> {
  const key = JSON.stringify(request);
  return useQuery({
    queryKey: ['preview', key],
    enabled,
    placeholderData: keepPreviousData,
    staleTime: 10_000,
    queryFn: async ({signal}) => {
      await new Promise((resolve) => setTimeout(resolve, 300));
      signal.throwIfAborted();
      return post<Draft>('jobs', {...request, dryRun: true}, signal);
    },
  });
}

/** Writes changed rows into the pages of the list that show them. */
function patch(queries: QueryClient, changes: Changes): void {
  const byID = new Map<string, Row>(changes.rows.map((row) => [row.id, row]));
  queries.setQueriesData<List>({queryKey: ['jobs']}, (list) => {
    if (!list?.rows.some((row) => byID.has(row.id))) return list;
    return {...list, rows: list.rows.map((row) => byID.get(row.id) ?? row)};
  });
}

/**
 * Keeps pages up to date: changed rows are shown at once, and pages whose rows, order or numbers may have changed are loaded
 * again, at most once a second. With an ID, only that job is watched.
 */
export function useLive({namespace, id}: {namespace?: string; id?: string}): void {
  const queries = useQueryClient();
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let last = 0;
    const reload = (): void => {
      if (timer !== undefined) return;
      timer = setTimeout(
        () => {
          timer = undefined;
          last = Date.now();
          void queries.invalidateQueries({queryKey: id ? ['job'] : ['jobs']});
        },
        Math.max(50, 1000 - (Date.now() - last)),
      );
    };
    let first = true;
    let outages = 0;
    const stop = openStream({
      url: () => {
        const params = new URLSearchParams();
        if (namespace) params.set('namespace', namespace);
        if (id) params.set('id', id);
        const cursor = first ? queries.getQueriesData<List>({queryKey: ['jobs']}).find(([, list]) => list)?.[1]?.cursor : undefined;
        if (cursor) params.set('cursor', cursor);
        return apiURL('jobs/stream', params);
      },
      onEvent: ({name, data}) => {
        first = false;
        if (name === 'reset') {
          reload();
          return;
        }
        const changes = JSON.parse(data) as Changes;
        setStale(changes.stale ?? '');
        patch(queries, changes);
        if (changes.rows.length + changes.removed.length > 0) reload();
      },
      onState: (state, problem) => {
        if (state === 'open') {
          // The server sends at once why the rows may be out of date.
          setStale('');
          if (outages > 0) void queries.invalidateQueries();
          outages = 0;
        } else if (state === 'waiting' && problem?.code === 'Busy') {
          outages++;
          setStale(`This page does not follow changes: ${problem.message}.`);
        } else if (state === 'waiting' && ++outages > 1) {
          setStale(`The ${problem?.code === 'Unavailable' ? 'API server' : 'dashboard'} does not answer. What you see is as it was last known, and continues by itself. Your jobs are not affected.`);
        } else if (state === 'ended' && problem?.code === 'Unauthorized') {
          void queries.invalidateQueries({queryKey: ['me']});
        }
      },
    });
    return () => {
      stop();
      clearTimeout(timer);
      setStale('');
    };
  }, [queries, namespace, id]);
}

export const isMissing = (error: unknown): boolean => error instanceof ApiError && (error.status === 404 || error.status === 410);
