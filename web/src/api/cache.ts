import {QueryCache, QueryClient} from '@tanstack/react-query';
import {ApiError} from './client';

/** Returns the cache of what the server returned. */
export function createCache(): QueryClient {
  const queries = new QueryClient({
    queryCache: new QueryCache({
      onError: (error, query) => {
        if (error instanceof ApiError && error.status === 401 && query.queryKey[0] !== 'me') void queries.invalidateQueries({queryKey: ['me']});
      },
    }),
    defaultOptions: {
      queries: {
        staleTime: 5000,
        // What is on the page stays there while the server is away; it is asked again until it answers.
        retry: (count, error) => error instanceof ApiError && (error.status === 0 || error.status >= 502) && count < 3,
        retryDelay: (count) => Math.min(500 * 2 ** count, 4000),
      },
      mutations: {retry: false},
    },
  });
  return queries;
}
