import '@patternfly/react-core/dist/styles/base.css';
import './app.css';
import {QueryCache, QueryClient, QueryClientProvider} from '@tanstack/react-query';
import {StrictMode} from 'react';
import {createRoot} from 'react-dom/client';
import {RouterProvider} from 'react-router/dom';
import {ApiError} from './api/client';
import {reloadMissingParts} from './api/reload';
import {startTheme} from './lib/theme';
import {createRouter} from './routes';

startTheme();
reloadMissingParts();

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

const root = document.getElementById('root');
if (root) {
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        <RouterProvider router={createRouter()} />
      </QueryClientProvider>
    </StrictMode>,
  );
}
