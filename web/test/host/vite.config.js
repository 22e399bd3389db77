import {federation} from '@module-federation/vite';
import react from '@vitejs/plugin-react';
import {defineConfig} from 'vite';
import {build} from '../../vite.config.js';
import {shared} from '../../vite.remote.config.js';

export default defineConfig({
  root: import.meta.dirname,
  plugins: [
    react(),
    federation({name: 'host', remotes: {trainingJobs: {type: 'module', name: 'trainingJobs', entry: '/dashboard/remote/remoteEntry.js'}}, shared, dts: false}),
  ],
  build: build(process.env.HOST_FILES),
});
