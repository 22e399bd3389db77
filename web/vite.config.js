import {readFileSync, readdirSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {gzipSync} from 'node:zlib';
import react from '@vitejs/plugin-react';
import {defineConfig} from 'vite';

const out = 'dist/app';

// Files are compressed once, and not by the server for each request.
const compress = {
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
};

export default defineConfig({
  // Relative to <base href>, which the server sets.
  base: './',
  plugins: [react(), compress],
  build: {
    outDir: out,
    emptyOutDir: true,
    // The policy of the pages allows neither inline scripts nor data URLs of fonts.
    assetsInlineLimit: 0,
    modulePreload: {polyfill: false},
    target: 'es2022',
  },
});
