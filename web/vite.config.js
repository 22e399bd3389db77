import {readFileSync, readdirSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {gzipSync} from 'node:zlib';
import react from '@vitejs/plugin-react';
import {defineConfig} from 'vite';

// Files are compressed once, and not by the server for each request.
export const compress = (out) => ({
  name: 'compress',
  apply: 'build',
  closeBundle() {
    const folder = join(out, 'assets');
    for (const name of readdirSync(folder)) {
      if (/\.(js|css|svg)$/.test(name)) {
        const file = join(folder, name);
        writeFileSync(`${file}.gz`, gzipSync(readFileSync(file), {level: 9}));
      }
    }
  },
});

/** The settings of a build into a folder. */
export const build = (outDir) => ({
  outDir,
  emptyOutDir: true,
  // The policy of the pages allows neither inline scripts nor data URLs of fonts.
  assetsInlineLimit: 0,
  modulePreload: {polyfill: false},
  target: 'es2022',
});

export default defineConfig({
  // Relative to <base href>, which the server sets.
  base: './',
  plugins: [react(), compress('dist/app')],
  build: build('dist/app'),
});
