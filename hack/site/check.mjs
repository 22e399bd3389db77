// Opens the built site from its files in Chromium: pages load nothing from elsewhere, fit a phone, are found by the search, and keep axe's
// rules of WCAG 2.1 A and AA in light and dark. SCREENSHOTS is a folder for pictures of the first page.
import assert from 'node:assert/strict';
import {mkdirSync, readdirSync} from 'node:fs';
import {createRequire} from 'node:module';
import {join} from 'node:path';
import {fileURLToPath, pathToFileURL} from 'node:url';

const {CHROMIUM: program, SCREENSHOTS: pictures = ''} = process.env;
const require = createRequire(new URL('../../web/package.json', import.meta.url));
const {chromium} = require('playwright');
const axe = require.resolve('axe-core/axe.min.js');
const site = fileURLToPath(new URL('../../dist/site', import.meta.url));
const address = (page) => pathToFileURL(join(site, page)).href;

const pages = readdirSync(site, {recursive: true}).filter((name) => name.endsWith('.html') && name !== '404.html').sort();
assert.ok(pages.length > 60, `the site has ${pages.length} pages`);
// One page of each form: tables, code, pictures, long generated ones.
const inspected = ['index.html', 'tutorials/first-job-cli.html', 'tutorials/first-job-dashboard.html', 'how-to/tuning.html', 'runbooks.html', 'metrics.html', 'install.html'];
const screens = [{name: 'phone', width: 390, height: 844}, {name: 'wide', width: 1440, height: 900}];

const browser = await chromium.launch({executablePath: program, args: ['--no-sandbox', '--disable-dev-shm-usage', '--allow-file-access-from-files']});
const problems = [];
for (const screen of screens) {
  for (const colorScheme of ['light', 'dark']) {
    const context = await browser.newContext({viewport: screen, colorScheme, offline: true});
    const page = await context.newPage();
    let at = '';
    page.on('request', (request) => {
      if (!/^(file|data|blob):/.test(request.url())) problems.push(`${at}: loads ${request.url()}`);
    });
    page.on('pageerror', (error) => problems.push(`${at}: ${error.message}`));
    const all = screen.name === 'phone' && colorScheme === 'light';
    for (const name of all ? pages : inspected) {
      at = `${name} (${screen.name}, ${colorScheme})`;
      await page.goto(address(name), {waitUntil: 'load'});
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      if (width > screen.width) problems.push(`${at}: is ${width} pixels wide`);
      if (!inspected.includes(name)) continue;
      await page.addScriptTag({path: axe});
      const {violations} = await page.evaluate(() => window.axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']}));
      for (const {id, nodes} of violations) problems.push(`${at}: ${id}: ${nodes.length} times, first ${nodes[0].target.join(' ')}: ${nodes[0].failureSummary.split('\n')[1] ?? ''}`);
    }
    if (pictures) {
      mkdirSync(pictures, {recursive: true});
      await page.goto(address('index.html'), {waitUntil: 'load'});
      await page.screenshot({path: join(pictures, `site-${screen.name}-${colorScheme}.png`)});
    }
    await context.close();
  }
}

const page = await browser.newPage();
await page.goto(address('index.html'), {waitUntil: 'load'});
await page.locator('input[name=query]').fill('ttlSecondsAfterFinished');
await page.locator('.md-search-result__item').first().waitFor({timeout: 30_000});
await browser.close();
assert.deepEqual(problems, []);
console.log(`docs: ${pages.length} pages are in order on a phone, ${inspected.length} on all screens; the search works from files`);
