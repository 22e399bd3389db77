// Tests the checks of the build (vite.config.js), and what it has built.
import assert from 'node:assert/strict';
import {existsSync, readdirSync, readFileSync} from 'node:fs';
import {join} from 'node:path';
import {test} from 'node:test';
import {refuseDevelopment, refuseWarnings} from '../vite.config.js';

const app = new URL('../dist/app', import.meta.url).pathname;

test('no bundle contains the development build of react-router or React', {skip: existsSync(app) ? false : 'make dashboard builds the pages'}, () => {
  const files = readdirSync(app, {recursive: true}).filter((name) => name.endsWith('.js'));
  assert.ok(files.some((name) => name.startsWith('remote')) && files.some((name) => name.startsWith('assets')), files.join());
  for (const name of files) {
    const text = readFileSync(join(app, name), 'utf8');
    // Warnings that only the development builds give.
    assert.ok(!text.includes('You should not include both `HydrateFallback`'), `${name} has the development build of react-router`);
    assert.ok(!text.includes('Each child in a list should have a unique "key" prop'), `${name} has the development build of React`);
  }
});

test('a development build is refused', () => {
  const errors = (...ids) => {
    const found = [];
    refuseDevelopment.generateBundle.call({error: (text) => found.push(text)}, {}, {'a.js': {modules: Object.fromEntries(ids.map((id) => [id, {}]))}, 'a.css': {}});
    return found;
  };
  assert.deepEqual(errors('/development/web/node_modules/react-router/dist/production/index.mjs', '/web/node_modules/react/cjs/react.production.min.js'), []);
  assert.deepEqual(errors('/home/development/web/src/main.tsx', '\0/home/development/web/virtual.js'), []);
  assert.match(errors('/web/node_modules/react-router/dist/development/index.mjs')[0], /react-router\/dist\/development/);
  assert.match(errors('/web/node_modules/react/cjs/react.development.js')[0], /react\.development\.js/);
});

test('a build that warns fails', () => {
  const expected = "[IMPORT_IS_UNDEFINED] Import `use` will always be undefined because there is no matching export in '\0virtual:loadShare__react__loadShare__.js'\n node_modules/react-router/dist/production/chunk.mjs:2059";
  for (const [messages, fails] of [[[], false], [[expected], false], [[expected.replace('`use`', '`useJob`')], true], [['circular import'], true]]) {
    for (const name of ['warn', 'warnOnce']) {
      const plugin = refuseWarnings();
      const shown = [];
      const logger = {warn: (message) => shown.push(message), warnOnce: (message) => shown.push(message)};
      plugin.configResolved({logger});
      messages.forEach((message) => logger[name](message));
      assert.equal(shown.length, fails ? 1 : 0);
      if (fails) assert.throws(() => plugin.closeBundle(), /1 warning/);
      else plugin.closeBundle();
    }
  }
});
