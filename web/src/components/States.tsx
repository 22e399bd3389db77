import {Alert, Button, EmptyState, EmptyStateActions, EmptyStateBody, EmptyStateFooter, Skeleton, Spinner} from '@patternfly/react-core';
import type {ReactElement, ReactNode} from 'react';
import {Link, useRouteError} from 'react-router';
import {ApiError, errorText} from '../api/client';
import {ExclamationCircleIcon, LockIcon, SearchIcon, UnlinkIcon} from '../lib/icons';
import {timeOfDay} from '../lib/time';

/** Says what could not be loaded, why, and what to do. */
export function ErrorState({error, what, retry, isSmall = false}: {error: unknown; what: string; retry?: () => void; isSmall?: boolean}): ReactElement {
  const status = error instanceof ApiError ? error.status : undefined;
  const similar = error instanceof ApiError ? error.problem.similar : undefined;
  const looks: {icon: typeof LockIcon; title: string} =
    status === 403
      ? {icon: LockIcon, title: 'You may not see this'}
      : status === 404 || status === 410
        ? {icon: SearchIcon, title: 'Not found'}
        : status === 0 || status === 503
          ? {icon: UnlinkIcon, title: 'No connection'}
          : {icon: ExclamationCircleIcon, title: what};
  return (
    <EmptyState icon={looks.icon} titleText={looks.title} headingLevel={isSmall ? 'h3' : 'h1'} status={status === 403 || status === 404 ? 'info' : 'danger'} variant={isSmall ? 'sm' : 'lg'}>
      <EmptyStateBody>
        <p>{looks.title === what ? '' : `${what}: `}{errorText(error)}</p>
        {similar && similar.length > 0 ? <p>Did you mean {similar.join(' or ')}?</p> : null}
        {status === 403 ? <p>Ask the administrator of the project for the role view or edit.</p> : null}
      </EmptyStateBody>
      {retry ? (
        <EmptyStateFooter>
          <EmptyStateActions>
            <Button variant="primary" onClick={retry}>Try again</Button>
          </EmptyStateActions>
        </EmptyStateFooter>
      ) : null}
    </EmptyState>
  );
}

/** A page that does not exist. */
export function NotFound(): ReactElement {
  return (
    <EmptyState icon={SearchIcon} titleText="This page does not exist" headingLevel="h1">
      <EmptyStateBody>The address may be mistyped or of an earlier version.</EmptyStateBody>
      <EmptyStateFooter>
        <Link to="/">Go to the training jobs</Link>
      </EmptyStateFooter>
    </EmptyState>
  );
}

/** A page that failed: a new version of the dashboard may have replaced its files. */
export function RouteError(): ReactElement {
  const error = useRouteError();
  return (
    <EmptyState icon={ExclamationCircleIcon} status="danger" titleText="This page cannot be shown" headingLevel="h1">
      <EmptyStateBody>
        <p>{errorText(error)}</p>
        <p>If the dashboard was updated meanwhile, load the page again.</p>
      </EmptyStateBody>
      <EmptyStateFooter>
        <Button onClick={() => location.reload()}>Load again</Button>
      </EmptyStateFooter>
    </EmptyState>
  );
}

/** Lines in place of text that loads. */
export function Loading({lines = 6, what = 'Loading'}: {lines?: number; what?: string}): ReactElement {
  return (
    <div className="mpi-loading" role="status">
      <span className="pf-v6-screen-reader">{what}</span>
      {Array.from({length: lines}, (_, i) => (
        <Skeleton key={i} width={`${95 - ((i * 13) % 40)}%`} />
      ))}
    </div>
  );
}

export const Busy = ({what}: {what: string}): ReactElement => (
  <span className="mpi-busy">
    <Spinner size="md" aria-label={what} /> {what}
  </span>
);

interface Query<T> {
  data: T | undefined;
  error: unknown;
  dataUpdatedAt?: number;
  refetch: () => unknown;
}

/** A warning above data that could not be loaded again. While the server is away, the banner of the page has it. */
export function Outdated({query: {data, error, dataUpdatedAt}}: {query: Query<unknown>}): ReactElement | null {
  const isAway = error instanceof ApiError && (error.status === 0 || error.status === 401 || error.status >= 502);
  if (!error || data === undefined || isAway) return null;
  return <Alert isInline variant="warning" component="p" title={dataUpdatedAt ? `Not updated since ${timeOfDay(new Date(dataUpdatedAt).toISOString())}: ${errorText(error)}` : errorText(error)} />;
}

/** Something that is shown with its loading and its error. */
export function Loaded<T>({query, what, children}: {query: Query<T>; what: string; children: (data: T) => ReactNode}): ReactElement {
  if (query.data !== undefined) {
    return (
      <>
        <Outdated query={query} />
        {children(query.data)}
      </>
    );
  }
  if (query.error) return <ErrorState error={query.error} what={what} retry={() => void query.refetch()} isSmall />;
  return <Loading />;
}
