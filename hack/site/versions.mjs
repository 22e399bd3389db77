// Builds two versions of the site and opens them from a server in Chromium: the root leads to the latest, its selector to the other, and
// pages with the selector keep axe's rules.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {mkdtempSync, readFileSync, rmSync} from 'node:fs';
import {createServer} from 'node:http';
import {createRequire} from 'node:module';
import {tmpdir} from 'node:os';
import {extname, join, normalize} from 'node:path';
import {fileURLToPath} from 'node:url';

const require = createRequire(new URL('../../web/package.json', import.meta.url));
const {chromium} = require('playwright');
const axe = require.resolve('axe-core/axe.min.js');
const build = fileURLToPath(new URL('versions.sh', import.meta.url));
const types = {'.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.json': 'application/json', '.svg': 'image/svg+xml', '.png': 'image/png'};

const scratch = mkdtempSync(join(tmpdir(), 'docs-'));
const folder = join(scratch, 'versions');
const server = createServer((request, response) => {
  let path = normalize(decodeURIComponent(new URL(request.url, 'http://localhost').pathname));
  if (path.endsWith('/')) path += 'index.html';
  try {
    const body = readFileSync(join(folder, path));
    response.writeHead(200, {'content-type': types[extname(path)] ?? 'application/octet-stream'}).end(body);
  } catch {
    response.writeHead(404).end();
  }
});
let browser;
try {
  for (const version of ['v0.1.0', 'v0.2.0']) execFileSync(build, [version], {env: {...process.env, FOLDER: folder}, stdio: ['ignore', 'ignore', 'inherit']});
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  browser = await chromium.launch({executablePath: process.env.CHROMIUM, args: ['--no-sandbox', '--disable-dev-shm-usage']});
  const page = await browser.newPage({viewport: {width: 390, height: 844}});
  page.setDefaultTimeout(60_000);
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  await page.waitForURL('**/v0.2.0/**');
  const versions = page.locator('.md-version__link');
  await versions.nth(1).waitFor({state: 'attached'});
  assert.deepEqual((await versions.allTextContents()).map((text) => text.trim().split(/\s/)[0]), ['v0.2.0', 'v0.1.0']);
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390);
  await page.addScriptTag({path: axe});
  const {violations} = await page.evaluate(() => window.axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']}));
  assert.deepEqual(violations.map(({id, nodes}) => `${id}: ${nodes[0].target}`), []);
  const link = page.locator('a[href="https://github.com/opendatahub-io/mpijob/blob/v0.2.0/CONTRIBUTING.md"]');
  assert.ok(await link.count(), 'links to sources name the version');
  // The list opens over the button.
  await page.locator('.md-version__current').hover({force: true});
  await versions.nth(1).click();
  await page.waitForURL('**/v0.1.0/**');
  console.log('docs: two versions are served, and the selector leads from one to the other');
} finally {
  await browser?.close();
  server.close();
  rmSync(scratch, {recursive: true});
}
