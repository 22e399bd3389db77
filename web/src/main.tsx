import '@patternfly/react-core/dist/styles/base.css';
import './app.css';
import {QueryClientProvider} from '@tanstack/react-query';
import {StrictMode} from 'react';
import {createRoot} from 'react-dom/client';
import {RouterProvider} from 'react-router/dom';
import {createCache} from './api/cache';
import {reloadMissingParts} from './api/reload';
import {startTheme} from './lib/theme';
import {createRouter} from './routes';

startTheme();
reloadMissingParts();

const root = document.getElementById('root');
if (root) {
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={createCache()}>
        <RouterProvider router={createRouter(new URL(document.baseURI).pathname)} />
      </QueryClientProvider>
    </StrictMode>,
  );
}
