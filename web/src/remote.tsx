import './app.css';
import {QueryClientProvider} from '@tanstack/react-query';
import {type ReactElement, useEffect, useState} from 'react';
import {RouterProvider, UNSAFE_LocationContext as LocationContext} from 'react-router';
import {createCache} from './api/cache';
import {setBaseURL} from './lib/base';
import {createRouter} from './routes';

interface Props {
  /** The path of the host page under which all routes are. */
  path: string;
  /** The path under which the host serves the dashboard's API. */
  server: string;
}

/**
 * The pages of the dashboard inside of another page, without header: a host loads them by module federation. The host has
 * PatternFly's base styles and sets the theme.
 */
export default function TrainingJobs({path, server}: Props): ReactElement {
  const [{cache, router}] = useState(() => {
    setBaseURL(server);
    return {cache: createCache(), router: createRouter(path, true)};
  });
  useEffect(() => () => router.dispose(), [router]);
  return (
    // The routes have a router of their own, also below the router of a host.
    <LocationContext.Provider value={null as never}>
      <QueryClientProvider client={cache}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </LocationContext.Provider>
  );
}
