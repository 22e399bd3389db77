// Opens the pages in a host page (web/test/host), which loads them by module federation from the server that TestHostPage
// (internal/dashboard) starts.
import assert from 'node:assert/strict';
import {connection, expect, start} from './harness.mjs';

const {base, relay, close} = await connection(() => process.env.HOST_URL);
const {open, inspect, run} = await start({base, relay, tokens: {}, timeout: 60_000});

const journeys = {
  async 'a host page shows the pages under its path, with one React'() {
    const page = await open('', '/no/page');
    const scripts = new Set();
    page.on('response', (response) => {
      const path = new URL(response.url()).pathname;
      if (path.endsWith('.js')) scripts.add(path);
    });
    await page.goto(`${base}/`);
    await page.getByRole('heading', {level: 1, name: 'Host'}).waitFor();
    await page.getByRole('link', {name: 'Open the training jobs'}).click();
    await page.getByRole('heading', {level: 1, name: 'Training jobs'}).waitFor();
    await page.getByRole('link', {name: 'hosted-job', exact: true}).waitFor();
    await expect(page.locator('.pf-v6-c-masthead'), 'the host has its own header').toHaveCount(0);
    await inspect(page, 'host-jobs');
    // A link and a reload stay below the path of the host.
    await page.getByRole('link', {name: 'hosted-job', exact: true}).click();
    await page.getByRole('heading', {level: 1, name: /hosted-job/}).waitFor();
    await page.waitForURL(`${base}/training/projects/hosted/mpijob/hosted-job`);
    await page.reload();
    await page.getByRole('heading', {level: 1, name: /hosted-job/}).waitFor();
    await page.getByRole('link', {name: 'Runtimes', exact: true}).click();
    await page.waitForURL(`${base}/training/runtimes`);
    await page.getByRole('heading', {level: 1, name: 'Runtimes'}).waitFor();
    await page.getByRole('link', {name: 'Leave'}).click();
    await page.getByRole('heading', {level: 1, name: 'Host'}).waitFor();
    await page.getByRole('link', {name: 'Open the training jobs'}).click();
    await page.getByRole('link', {name: 'hosted-job', exact: true}).waitFor();

    // A link of the host to one of the pages opens it, from outside and while another one is shown.
    const title = (name) => page.getByRole('heading', {level: 1, name}).waitFor();
    await page.getByRole('link', {name: 'Open the usage'}).click();
    await title('Usage');
    await page.getByRole('link', {name: 'Open the job'}).click();
    await title(/hosted-job/);
    await page.getByRole('tab', {name: 'Events', selected: true}).waitFor();
    await page.goBack();
    await title('Usage');
    await page.goBack();
    await title('Training jobs');
    await page.goForward();
    await title('Usage');
    await page.getByRole('link', {name: 'Leave'}).click();
    await title('Host');
    await page.getByRole('link', {name: 'Open the job'}).click();
    await title(/hosted-job/);
    // The host follows a link of the pages, too: back from a page of the dashboard, and leaving.
    await page.getByRole('tab', {name: 'Logs'}).click();
    await page.waitForURL(/tab=logs/);
    await page.goBack();
    await page.getByRole('tab', {name: 'Events', selected: true}).waitFor();
    await page.goBack();
    await title('Host');
    assert.equal(new URL(page.url()).pathname, '/');
    await page.goForward();
    await title(/hosted-job/);

    const texts = new Map(await Promise.all([...scripts].map(async (path) => [path, await (await page.request.get(base + path)).text()])));
    assert.ok(texts.has('/dashboard/remote/remoteEntry.js'), 'the pages are loaded from the dashboard');
    // Each marker is only in the code of its package, and in each copy of it.
    for (const [name, marker] of [['react', /\.__SECRET_INTERNALS_DO_NOT_USE_OR_YOU_WILL_BE_FIRED\s*=\s*\w+\s*,\s*\w+\.act\s*=/], ['react-dom', /bundleType\s*:\s*0\s*,\s*version\s*:/], ['react-router', /__reactRouterVersion/], ['PatternFly', /OUIA-Generated-/]]) {
      const copies = [...texts].filter(([, text]) => marker.test(text)).map(([path]) => path);
      assert.equal(copies.length, 1, `copies of ${name}: ${copies}`);
      assert.ok(!copies[0].startsWith('/dashboard/'), `${name} is that of the host: ${copies}`);
    }
  },
};

const code = await run([journeys]);
close();
process.exit(code);
