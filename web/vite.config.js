import {readFileSync, readdirSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {gzipSync} from 'node:zlib';
import react from '@vitejs/plugin-react';
import {defineConfig} from 'vite';

// Files are compressed once, and not by the server for each request.
export const compress = (out) => ({
  name: 'compress',
  apply: 'build',
  writeBundle() {
    const folder = join(out, 'assets');
    for (const name of readdirSync(folder)) {
      if (/\.(js|css|svg)$/.test(name)) {
        const file = join(folder, name);
        writeFileSync(`${file}.gz`, gzipSync(readFileSync(file), {level: 9}));
      }
    }
  },
});

/** The package react-router exports its development build under every condition; this takes the other one beside it. */
export const production = {
  name: 'production',
  enforce: 'pre',
  apply: 'build',
  async resolveId(source, importer, options) {
    if (!/^react-router(\/|$)/.test(source)) return null;
    const found = await this.resolve(source, importer, {...options, skipSelf: true});
    if (!found?.id.includes('/react-router/dist/development/')) return found;
    return {...found, id: found.id.replace('/dist/development/', '/dist/production/')};
  },
};

/** Fails a build that contains the development build of a package. */
export const refuseDevelopment = {
  name: 'refuse-development',
  apply: 'build',
  generateBundle(_, bundle) {
    const found = Object.values(bundle).flatMap((chunk) => Object.keys(chunk.modules ?? {}))
      // A folder above the clone may have any name.
      .filter((id) => id.includes('/node_modules/') && /[/.]development[/.]/.test(id.replace(/.*\/node_modules\//, '')));
    if (found.length > 0) this.error(`a development build is in the bundle: ${[...new Set(found)].join(', ')}`);
  },
};

/** react-router asks whether React has these functions of React 19, and does without them. */
const isExpected = (message) => /IMPORT_IS_UNDEFINED.*Import `(use|useOptimistic)` .*loadShare__react__.*\/react-router\/dist\//s.test(message);

/** Returns a plugin that fails a build that warns. */
export const refuseWarnings = () => {
  let count = 0;
  return {
    name: 'refuse-warnings',
    apply: 'build',
    configResolved({logger}) {
      for (const name of ['warn', 'warnOnce']) {
        const print = logger[name];
        logger[name] = (message, options) => {
          if (isExpected(message)) return;
          count++;
          print.call(logger, message, options);
        };
      }
    },
    closeBundle() {
      if (count > 0) throw new Error(`${count} ${count === 1 ? 'warning' : 'warnings'} (above); a build must not warn`);
    },
  };
};

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
  plugins: [production, react(), refuseDevelopment, refuseWarnings(), compress('dist/app')],
  build: build('dist/app'),
});
