import {federation} from '@module-federation/vite';
import react from '@vitejs/plugin-react';
import {defineConfig} from 'vite';
import {build, compress, production, refuseDevelopment, refuseWarnings} from './vite.config.js';

/** What a host page and the pages share; there is one of each, and that of the host if it has a suitable version. */
export const shared = Object.fromEntries(
  ['react', 'react-dom', 'react-router', '@patternfly/react-core', '@patternfly/react-table'].map((name) => [name, {singleton: true}]),
);

// The pages as a module that a host page loads (remoteEntry.js).
export default defineConfig({
  base: './',
  publicDir: false,
  plugins: [production, react(), federation({name: 'trainingJobs', filename: 'remoteEntry.js', exposes: {'./App': './src/remote.tsx'}, shared, dts: false}), refuseDevelopment, refuseWarnings(), compress('dist/app/remote')],
  build: {...build('dist/app/remote'), rolldownOptions: {input: 'src/remote.tsx'}},
});
