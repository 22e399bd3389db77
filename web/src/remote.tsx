import './app.css';
import {QueryClientProvider} from '@tanstack/react-query';
import {type ReactElement, useContext, useEffect, useState} from 'react';
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
  // A link of the host changes the address without an event that the own router receives. The location of the host is only a
  // sign: it may lack a base path, and it does not know where the pages have gone since.
  const ofHost = useContext(LocationContext) as {location: unknown} | null;
  useEffect(() => {
    const base = path.replace(/\/+$/, '');
    const {pathname, search, hash} = window.location;
    const shown = router.state.navigation.location ?? router.state.location;
    if ((pathname !== base && !pathname.startsWith(`${base}/`)) || pathname + search + hash === shown.pathname + shown.search + shown.hash) return;
    void router.navigate({pathname: pathname.slice(base.length) || '/', search, hash}, {replace: true});
  }, [ofHost?.location, path, router]);
  return (
    // The routes have a router of their own, also below the router of a host.
    <LocationContext.Provider value={null as never}>
      <QueryClientProvider client={cache}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </LocationContext.Provider>
  );
}
