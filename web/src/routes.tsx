import {createBrowserRouter} from 'react-router';
import {App} from './App';
import {NotFound, RouteError} from './components/States';

/** Returns the routes under a base path. Pages are loaded when they are opened. */
export function createRouter(base: string, isEmbedded = false): ReturnType<typeof createBrowserRouter> {
  const basename = base.replace(/\/+$/, '') || '/';
  return createBrowserRouter(
    [
      {
        path: '/',
        element: <App isEmbedded={isEmbedded} />,
        errorElement: <RouteError />,
        hydrateFallbackElement: <></>,
        children: [
          {
            errorElement: <RouteError />,
            children: [
              {index: true, lazy: async () => ({Component: (await import('./pages/Jobs')).Jobs})},
              // A part that the form loads later could not be loaded again without losing the form.
              {path: 'create', lazy: async () => ({Component: (await Promise.all([import('./pages/Create'), import('./components/RenderedMarkdown')]))[0].Create})},
              {path: 'projects/:namespace/compare', lazy: async () => ({Component: (await import('./pages/Compare')).Compare})},
              {path: 'projects/:namespace/:kind/:name', lazy: async () => ({Component: (await import('./pages/Job')).Job})},
              {path: 'runtimes', lazy: async () => ({Component: (await import('./pages/Runtimes')).Runtimes})},
              {path: 'quotas', lazy: async () => ({Component: (await import('./pages/Quotas')).Quotas})},
              {path: 'usage', lazy: async () => ({Component: (await import('./pages/Usage')).Usage})},
              {path: 'glossary', lazy: async () => ({Component: (await import('./pages/Glossary')).Glossary})},
              {path: 'help', lazy: async () => ({Component: (await import('./pages/Help')).Help})},
              {path: 'help/:code', lazy: async () => ({Component: (await import('./pages/Help')).Help})},
              {path: '*', element: <NotFound />},
            ],
          },
        ],
      },
    ],
    {basename},
  );
}
