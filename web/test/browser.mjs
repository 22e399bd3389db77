// Runs journeys through the pages in a real browser, against the server that TestPages (internal/dashboard) starts with its
// data.
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {connection, expect, start, tabTo} from './harness.mjs';

const {DASHBOARD_URL: server, DASHBOARD_TOKENS: tokensJSON, API_CONTROL: control} = process.env;
const tokens = JSON.parse(tokensJSON);
const {base, relay, cut, close} = await connection(() => server);
const {open, logIn, inspect, run} = await start({base, relay, tokens, timeout: 60_000});

/** Sends a request with the login of a page; its response must be good. */
async function request(page, method, path, data) {
  const response = await page.request.fetch(`${base}/api/v1/${path}`, {method, ...(data ? {data} : {})});
  assert.equal(response.status(), 200, await response.text());
}

const journeys = {
  async 'log in with a wrong token, then with a right one'() {
    const page = await open('');
    await page.getByRole('heading', {level: 1}).waitFor();
    await page.getByLabel('Token', {exact: false}).first().fill('wrong');
    await page.getByRole('button', {name: 'Log in'}).click();
    await page.getByText('does not accept this token').waitFor();
    await inspect(page, 'login');
    await logIn(page, 'user');
    const cookies = await page.context().cookies();
    assert.ok(cookies.every((cookie) => cookie.httpOnly && cookie.secure && cookie.sameSite === 'Strict'), 'the cookie is protected');
    assert.equal(await page.evaluate((token) => document.cookie.includes(token) || JSON.stringify(localStorage).includes(token) || location.href.includes(token), tokens.user), false, 'no script reads the token');
    const logOut = async () => {
      await page.getByRole('button', {name: /^User/}).click();
      await page.getByRole('menuitem', {name: 'Log out'}).click();
    };
    await page.route(/api\/v1\/logout/, (route) => route.fulfill({status: 503, json: {code: 'Unavailable', message: 'not now'}}), {times: 1});
    await logOut();
    await page.getByText('You are still logged in').waitFor();
    await logOut();
    await page.getByRole('heading', {level: 1, name: /Log in/}).waitFor();
  },

  async 'find a job in the list'() {
    const page = await open('user');
    await page.getByRole('link', {name: 'bert-large', exact: true}).waitFor();
    await inspect(page, 'jobs');
    await page.reload();
    await page.getByRole('link', {name: 'bert-large', exact: true}).waitFor();
    await page.locator('.pf-v6-c-toolbar').getByRole('button', {name: 'Status'}).click();
    await page.getByRole('checkbox', {name: /Failed/}).click();
    await page.waitForURL(/phase=Failed/);
    await page.keyboard.press('Escape');
    await page.getByRole('link', {name: 'bert-large', exact: true}).waitFor({state: 'detached'});
    await page.getByLabel('Search by name, project or reason').fill('no such job');
    await page.getByText('No job matches').waitFor();
    await inspect(page, 'jobs-none');
    await page.getByRole('button', {name: 'Clear filters'}).last().click();
    await page.getByRole('link', {name: 'bert-large', exact: true}).waitFor();
    await expect(page.getByText('other-team-job'), 'jobs of others are not shown').toHaveCount(0);
    const user = 'system:serviceaccount:ml-platform-experiments:nightly-training-pipeline';
    await page.goto(`${base}/?user=${user}`);
    await page.getByRole('link', {name: 'resnet-horovod', exact: true}).waitFor();
    await page.locator('.pf-v6-c-toolbar').getByRole('button', {name: 'Created by 1'}).click();
    const cut = () => page.locator('.pf-v6-c-menu__item-text').evaluateAll((texts) => texts.filter((text) => text.scrollWidth > text.clientWidth + 1).map((text) => text.textContent));
    await page.getByRole('checkbox', {name: new RegExp(user)}).waitFor();
    await expect.poll(cut, 'the menu shows the names of users whole').toEqual([]);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'the menu is not wider than the page');
    await page.keyboard.press('Escape');
    await page.route(/api\/v1\/me$/, async (route) => route.fulfill({json: {...(await (await route.fetch()).json()), name: user}}));
    await page.goto(`${base}/projects/ml-team/mpijob/resnet-horovod`);
    await page.getByText(`by ${user}`).waitFor();
    await expect(page.locator('.mpi-user')).toHaveAttribute('title', user);
    await page.getByRole('button', {name: `User ${user}`}).click();
    await page.getByRole('menuitem', {name: user}).waitFor();
    await expect.poll(cut, 'the menu shows the whole name of the user').toEqual([]);
  },

  async 'a failed job says why, and its clone applies the remedy'() {
    const page = await open('user', '/projects/ml-team/mpijob/resnet-horovod');
    await page.getByRole('heading', {name: /Why it failed/}).waitFor();
    await page.locator('.mpi-cause').waitFor();
    await inspect(page, 'job-failed');
    await page.getByRole('button', {name: 'Clone with this change'}).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText(/memory: 8Gi/).waitFor();
    await inspect(page, 'clone');
    await dialog.getByRole('button', {name: 'Create clone'}).click();
    await page.waitForURL(/resnet-horovod-2/);
    await page.getByRole('heading', {level: 1, name: /resnet-horovod-2/}).waitFor();
  },

  async 'a failed job without a change that helps is run again, and its code is explained'() {
    const page = await open('user', '/projects/ml-team/mpijob/crash');
    await page.getByRole('heading', {name: /Why it failed/}).waitFor();
    await page.getByRole('button', {name: /^Commands that copy it/}).click();
    await page.getByText('kubectl -n ml-team cp crash-results:/results/crash crash-results').waitFor();
    await inspect(page, 'job-crashed');
    await page.getByRole('link', {name: 'Guide to ApplicationFailed'}).click();
    await page.waitForURL(/help\/ApplicationFailed$/);
    await page.getByRole('heading', {level: 1, name: 'ApplicationFailed'}).waitFor();
    await page.getByText('The program failed.').waitFor();
    await page.getByText('kubectl -n NAMESPACE logs LAUNCHER-POD').first().waitFor();
    await inspect(page, 'help-topic');
    await page.getByRole('link', {name: 'Troubleshooting'}).last().click();
    await page.getByRole('textbox', {name: 'Search the problems'}).fill('out of memory');
    await page.getByRole('link', {name: 'OutOfMemory', exact: true}).waitFor();
    await page.getByRole('link', {name: 'RootRefused'}).waitFor({state: 'detached'});
    await page.getByRole('textbox', {name: 'Search the problems'}).fill('no such problem');
    await page.getByText('No problem matches.').waitFor();
    await page.getByRole('textbox', {name: 'Search the problems'}).fill('');
    await inspect(page, 'help');
    await page.goto(`${base}/help/NoSuchCode`);
    await page.getByText('No problem of jobs has this code.').waitFor();
    await inspect(page, 'help-unknown');
    await page.goto(`${base}/projects/ml-team/mpijob/crash`);
    await tabTo(page, page.getByRole('button', {name: 'Run it again'}));
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog');
    await dialog.getByText('Run crash again').waitFor();
    await dialog.getByRole('region', {name: 'Differences'}).waitFor();
    await dialog.getByRole('button', {name: 'Run again'}).and(page.locator(':enabled')).waitFor();
    await inspect(page, 'run-again');
    await tabTo(page, dialog.getByRole('button', {name: 'Run again'}));
    await page.keyboard.press('Enter');
    await page.waitForURL(/crash-2/);
    await page.getByRole('heading', {level: 1, name: /crash-2/}).waitFor();
  },

  async 'a step of the timeline leads to its logs and events, and a pod to its events'() {
    const page = await open('user', '/projects/ml-team/mpijob/crash');
    await page.getByRole('heading', {name: 'Timeline'}).waitFor();
    await tabTo(page, page.getByRole('link', {name: /^Log at Failed/}));
    await page.keyboard.press('Enter');
    await page.waitForURL(/tab=logs&from=.*&to=/);
    await expect(page.locator('#log-since')).toHaveValue('custom');
    await expect(page.locator('#log-from')).toHaveValue(/^\d{4}-\d\d-\d\dT\d\d:\d\d/);
    await inspect(page, 'job-logs-range');
    // Until a time before the start: the server names the field.
    await page.locator('#log-to').fill('2020-01-01T00:00:00');
    await page.getByText('to: is before the start of the range').waitFor();
    await page.locator('#log-to').fill('2099-01-01T00:00:00');
    await page.getByText('to: is before the start of the range').waitFor({state: 'detached'});
    await page.locator('#log-since').selectOption('1h');
    await page.waitForURL((url) => url.searchParams.get('since') === '1h' && !url.searchParams.has('from') && !url.searchParams.has('to'));
    await page.getByRole('tab', {name: 'Overview'}).click();
    await page.getByRole('link', {name: /^Events at Created/}).click();
    await page.getByRole('button', {name: 'Show the events of all times'}).waitFor();
    await page.goto(`${base}/projects/ml-team/mpijob/bert-large?tab=pods`);
    await tabTo(page, page.getByRole('button', {name: 'Events of bert-large-worker-2'}));
    await page.keyboard.press('Enter');
    await page.getByText('Back-off pulling image').waitFor();
    await expect(page.getByText('PodsStarting'), 'only events of the pod').toHaveCount(0);
    await inspect(page, 'job-events-of-pod');
    await page.getByLabel('Object of the events').selectOption('');
    await page.getByText('PodsStarting').waitFor();
    await page.goto(`${base}/projects/ml-team/mpijob/bert-large?tab=events&object=pod/none`);
    await page.getByText('No event matches').waitFor();
    await page.getByRole('button', {name: /^Show all \d+ events/}).click();
    await page.getByText('PodsStarting').waitFor();
  },

  async 'the topology shows the error of a pod'() {
    const page = await open('user', '/projects/ml-team/mpijob/crash?tab=topology');
    await page.getByRole('button', {name: /^worker-1/}).click();
    const card = page.getByRole('region', {name: 'Details of worker-1'});
    await card.getByText('The program failed in rank 2 with exit code 3: the batch is empty.').waitFor();
    await card.getByText('Exit code 3 (Error).').waitFor();
    // The code of the finding, also where a pod itself only ended.
    await card.getByText('ApplicationFailed', {exact: true}).waitFor();
    await page.getByText('3 pods on 1 node: 2 failed, 1 ApplicationFailed.').waitFor();
    await inspect(page, 'job-topology-error');
    await card.getByRole('button', {name: 'Show its events'}).click();
    await page.waitForURL(/tab=events&object=pod%2Fcrash-worker-1/);
    await page.goBack();
    await page.getByRole('button', {name: /^worker-1/}).click();
    await card.waitFor();
    await page.route(/crash\/pods/, async (route) => {
      const found = await (await route.fetch()).json();
      await route.fulfill({json: {...found, pods: found.pods.map((pod) => ({...pod, name: `${pod.name}-again`}))}});
    });
    await card.waitFor({state: 'detached'});
    await expect(page.locator('.mpi-cell[tabindex="0"]'), 'the keyboard reaches the pods after the selected one was replaced').toHaveCount(1);
    await page.unrouteAll({behavior: 'wait'});
  },

  async 'metrics of each pod, and of all together'() {
    const page = await open('user', '/projects/ml-team/mpijob/bert-large');
    const now = Math.floor(Date.now() / 1000);
    const line = (name, ...values) => ({name, samples: values.map((v, i) => ({t: now - 60 + 15 * i, v}))});
    await page.route(/bert-large\/metrics/, (route) =>
      route.fulfill({
        json: {
          source: 'Prometheus',
          charts: [
            {title: 'CPU', unit: 'cores', lines: [line('bert-large-worker-0', 1, 2, 3), line('bert-large-worker-1', 3, 4, 5)], aggregates: [line('Mean', 2, 3, 4), line('Sum', 4, 6, 8)]},
            {title: 'GPU utilization', unit: 'percent', lines: [line('bert-large-worker-0', 50), line('bert-large-worker-1', 100)], aggregates: [line('Mean', 75)]},
          ],
        },
      }),
    );
    await page.getByRole('tab', {name: 'Metrics'}).click();
    const live = page.getByRole('region', {name: 'Usage of each pod'});
    await live.getByRole('heading', {name: 'CPU, cores'}).waitFor();
    await live.getByRole('slider', {name: /^CPU/}).press('End');
    await page.getByText(/Mean 4, bert-large-worker-0 3, bert-large-worker-1 5/).waitFor();
    await page.getByText('Unknown: this requires the network charts of Prometheus').waitFor();
    await inspect(page, 'job-metrics');
    await tabTo(page, page.getByRole('button', {name: 'All pods together'}));
    await page.keyboard.press('Enter');
    await page.getByRole('heading', {name: 'CPU, cores, sum of all pods'}).waitFor();
    await page.getByRole('heading', {name: 'GPU utilization, mean of all pods'}).waitFor();
    await live.getByRole('slider', {name: /^CPU/}).press('End');
    await page.locator('.mpi-chart figcaption', {hasText: 'CPU'}).getByText(/: 8$/).waitFor();
    await inspect(page, 'job-metrics-together');
    // The charts of a large job.
    const pods = Array.from({length: 500}, (_, i) => ({name: `bert-large-worker-${i}`, samples: Array.from({length: 300}, (_, t) => ({t: now - 3600 + 12 * t, v: i + t}))}));
    await page.unrouteAll({behavior: 'wait'});
    await page.route(/bert-large\/metrics/, (route) => route.fulfill({json: {source: 'Prometheus', charts: [{title: 'CPU', unit: 'cores', lines: pods, aggregates: [line('Mean', 2, 3, 4)]}]}}));
    await page.goto(`${base}/projects/ml-team/mpijob/bert-large?tab=metrics`);
    await live.getByRole('heading', {name: 'CPU, cores'}).waitFor();
    await live.getByRole('button', {name: 'CPU, cores as a table'}).click();
    await page.getByText('The first 50 of 501 lines.').waitFor();
    await expect(live.getByRole('grid', {name: 'CPU, cores'}).getByRole('columnheader')).toHaveCount(51);
    await page.unrouteAll({behavior: 'wait'});
  },

  async 'use over time of running, finished and deleted jobs'() {
    const page = await open('user', '/projects/ml-team/mpijob/bert-large?tab=metrics');
    const history = page.getByRole('region', {name: 'Use over time'});
    await history.getByText(/^The sum of 4 pods.* A point is the mean of 2m 40s. The report is updated every minute, and after 20 minutes whenever the job has run a twentieth longer\.$/).waitFor();
    await history.getByRole('slider', {name: /^CPU, cores by Time/}).press('End');
    await history.getByText(/CPU 1\d\.\d+, Limit 16$/).waitFor();
    await history.getByText(/^Mean\s*12.4\s*95th percentile\s*14\s*Maximum\s*15.6\s*Limit\s*16$/).waitFor();
    await history.getByRole('slider', {name: /^Time in which processes waited/}).press('Home');
    await history.getByText(/CPU 0 %, I\/O 0 %$/).waitFor();
    await history.getByRole('button', {name: 'Memory', exact: true}).click();
    await page.waitForURL(/metric=Memory/);
    await history.getByRole('grid', {name: 'Memory by pod'}).getByRole('row', {name: 'bert-large-worker-3 9.1 GiB 10.7 GiB 11.6 GiB 16 GiB'}).waitFor();
    await history.getByRole('grid', {name: 'Use by rank'}).getByRole('row', {name: '7 1.54 5.1 GiB'}).waitFor();
    const figures = page.getByRole('region', {name: 'Training figures'});
    await figures.getByRole('slider', {name: /^Loss by Step/}).press('End');
    await figures.getByText(/^Step 40,000: 0\.\d+$/).waitFor();
    await figures.getByRole('slider', {name: /^Accuracy by Epoch/}).press('Home');
    await figures.getByText('Epoch 1: 0.3').waitFor();
    await figures.getByRole('slider', {name: /^Samples per second by Time/}).waitFor();
    await inspect(page, 'job-usage');

    // Where the time of the ranks went.
    const profile = page.getByRole('region', {name: 'Communication profile'});
    await profile.getByText(/^Where the time of 8 ranks went between MPI_Init and MPI_Finalize, until /).waitFor();
    await profile.getByText(/ It is the latest of 2 runs of MPI’s launcher, and began /).waitFor();
    await profile.getByText('The others may wait for rank 5: they were in MPI for 2400 s more.').waitFor();
    await expect(profile.getByRole('grid', {name: 'Calls with the most time'}).getByRole('row', {name: /^MPI_/})).toHaveText([/^MPI_Allreduce3,296,0006\.0 h27\.1 %6\.58 ms/, /^MPI_Bcast/, /^MPI_Waitall/, /^MPI_Barrier41,200990 ms0\.0 %24 µs–$/]);
    await profile.getByRole('row', {name: 'in calls that have not returned – 3,000 s 3.8 %'}).waitFor();
    await profile.getByRole('grid', {name: 'Time by rank'}).getByRole('row', {name: '5 late 2.8 h 830 s 8.3 %'}).waitFor();
    await expect(profile.getByRole('grid', {name: 'Message sizes'}).getByRole('row', {name: / B|iB/})).toHaveText([/^up to 64 B41,2001\.1 %/, /^up to 16 KiB370,80010\.0 %/, /^over 4 MiB3,296,00088\.9 %/]);
    await profile.scrollIntoViewIfNeeded();
    await inspect(page, 'job-profile');
    await history.getByRole('button', {name: 'Memory as a table'}).click();
    await expect(history.getByRole('grid', {name: 'Memory', exact: true}).getByRole('row'), 'a row for each point that was measured, and a head').toHaveCount(62);

    // The overview has both, by their names.
    const value = (term) => page.locator('dt', {hasText: new RegExp(`^${term}$`)}).locator('..').locator('dd');
    await page.goto(`${base}/projects/ml-team/mpijob/bert-large`);
    await expect(value('Reserved')).toHaveText(/^88\.89 core hours, .* \(requests multiplied by time\)$/);
    await expect(value('Used')).toHaveText(/^CPU .* on average, .* \(measured\)$/);
    await expect(value('Profile')).toHaveText(/^33 % of the time in MPI, most of it in MPI_Allreduce; imbalance 23 %; the others may wait for rank 5/);

    // A short job has few points; a deleted one has its report.
    await page.goto(`${base}/projects/ml-team/mpijob/pi?tab=metrics`);
    await history.getByText(/^One pod, from .* \(40s\)\. A point is the mean of 10s\.$/).waitFor();
    await page.getByRole('heading', {name: 'What needs attention ProfileMissing'}).waitFor();
    const missing = page.locator('.pf-v6-c-empty-state', {hasText: 'No communication profile'});
    await missing.getByText(/No rank has counted its calls: the program is statically linked/).waitFor();
    await missing.getByRole('link', {name: 'Guide to ProfileMissing'}).waitFor();
    await expect(missing.getByRole('button'), 'a job that asks for a profile is not cloned with one').toHaveCount(0);
    await page.goto(`${base}/projects/ml-team/mpijob/deleted-job?tab=metrics`);
    await history.getByText(/^The sum of 2 pods/).waitFor();
    await page.getByText(/^No charts of single pods: /).waitFor();
    await figures.getByText('It is not a number, first at step 32,400.').waitFor();

    await page.goto(`${base}/projects/ml-team/mpijob/typo?tab=metrics`);
    await page.getByText('The usage over time is reported a minute after the ranks have started.').waitFor();
    await page.goto(`${base}/projects/ml-team/mpijob/crash?tab=metrics`);
    await page.getByText(/^The job has no usage over time: its pods had no agent/).waitFor();
    await missing.getByText(/^The job has no communication profile: create it with --profile, or/).waitFor();
    await inspect(page, 'job-usage-none');
    await missing.getByRole('button', {name: 'Clone with a profile'}).click();
    await page.getByRole('dialog').getByText('+    mpi.opendatahub.io/profile: "true"').waitFor();
  },

  async 'every part of a job'() {
    const page = await open('user', '/projects/ml-team/mpijob/bert-large');
    await page.getByRole('heading', {level: 1, name: /bert-large/}).waitFor();
    await page.getByText('4 of 4 ready').waitFor();
    await page.getByText(/^4 workers: 32 CPUs, 256 GiB of memory, 8 GPUs$/).waitFor();
    const links = page.locator('dt', {hasText: /^Links$/}).locator('..').getByRole('link');
    await expect(links).toHaveText(['MLflow', 'TensorBoard']);
    assert.deepEqual(await links.evaluateAll((all) => all.map((link) => [link.href, link.rel])), [
      ['https://mlflow.example.com/#/experiments/7', 'noopener noreferrer'],
      ['https://tensorboard.example.com/?run=bert-large', 'noopener noreferrer'],
    ]);
    await inspect(page, 'job-overview');
    const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', {name: 'Download configuration'}).click()]);
    assert.equal(file.suggestedFilename(), 'bert-large.yaml');
    await page.getByRole('button', {name: 'View logs'}).click();
    await page.waitForURL(/tab=logs/);
    await page.getByRole('tab', {name: 'Topology'}).click();
    await page.getByRole('button', {name: /^launcher/}).click();
    await inspect(page, 'job-topology');
    await page.getByRole('button', {name: /^launcher/}).press('ArrowRight');
    await expect(page.locator(':focus'), 'arrow keys move between pods').toHaveText(/worker-0/);
    for (const [tab, text] of [['Pods', 'bert-large-worker-3'], ['Events', 'PodsStarting'], ['Configuration', 'mpiReplicaSpecs']]) {
      await page.getByRole('tab', {name: tab, exact: true}).click();
      await page.getByText(text).first().waitFor();
      await inspect(page, `job-${tab.toLowerCase()}`);
    }
    await page.goto(`${base}/projects/ml-team/mpijob/deleted-job?tab=logs`);
    await page.getByText('CUDA out of memory').first().waitFor();
    assert.equal(await page.evaluate(() => window.hacked), undefined, 'log lines run no script');
    await inspect(page, 'job-logs');
    const [lines] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', {name: 'Download as JSON'}).click()]);
    assert.equal(lines.suggestedFilename(), 'ml-team-deleted-job.jsonl');
    const records = readFileSync(await lines.path(), 'utf8').trim().split('\n').map((line) => JSON.parse(line));
    assert.ok(records.some(({level, text}) => level === 'error' && text.includes('CUDA out of memory')), JSON.stringify(records));
    await page.getByLabel('Level').selectOption('Debug and above');
    await page.waitForURL(/level=debug/);
    await page.getByText('CUDA out of memory').first().waitFor();
    await page.goto(`${base}/projects/ml-team/mpijob/bert-large?tab=logs&pod=worker-300`);
    await expect(page.locator('#log-pod'), 'a worker beyond the list is selected').toHaveValue('worker-300');
    await page.goto(`${base}/projects/ml-team/mpijob/bert-lage`);
    await page.getByText('Did you mean bert-large?', {exact: true}).waitFor();
    await inspect(page, 'job-missing');
  },

  async 'the first job, by the wizard and with the keyboard only'() {
    const page = await open('user');
    await page.getByRole('button', {name: 'Create training job'}).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', {name: 'What do you want to run?'}).waitFor();
    await inspect(page, 'create-type');
    const next = async () => {
      // Longer steps are scrolled to their end.
      await page.setViewportSize({width: 1280, height: 500});
      await page.getByRole('button', {name: 'Next'}).focus();
      await page.waitForFunction(() => document.activeElement?.hasAttribute('disabled') === false);
      await page.keyboard.press('Enter');
    };
    const opens = async (name) => {
      await page.getByRole('heading', {name}).waitFor();
      await page
        .waitForFunction((text) => {
          const heading = document.activeElement;
          if (heading?.tagName !== 'H2' || !heading.textContent.startsWith(text)) return false;
          const {top, bottom} = heading.getBoundingClientRect();
          return top >= 0 && bottom <= innerHeight && document.querySelector('.pf-v6-c-wizard__main').scrollTop === 0;
        }, name, {timeout: 20_000})
        .catch(() => assert.fail(`the step ${name} does not open at its top, with the focus on its heading`));
    };
    const type = async (label, text) => {
      await page.getByRole('textbox', {name: label}).or(page.getByRole('combobox', {name: label})).first().focus();
      await page.keyboard.press('ControlOrMeta+a');
      await page.keyboard.type(text);
    };
    await next();
    await opens('Basics');
    await type('Name', 'Not_Allowed');
    await type('Project', 'ml-team');
    await page.getByText('use lower-case letters').waitFor();
    await inspect(page, 'create-basics');
    await type('Name', 'first-job');
    await page.getByText('use lower-case letters').waitFor({state: 'detached'});
    await page.waitForFunction(() => ![...document.querySelectorAll('button')].find((button) => button.textContent === 'Next')?.disabled);
    await next();
    await opens('Image and command');
    await type('Image', 'quay.io/me/train:1');
    await type('Command', 'python train.py --epochs 3');
    await page.waitForFunction(() => ![...document.querySelectorAll('button')].find((button) => button.textContent === 'Next')?.disabled);
    await inspect(page, 'create-program');
    await next();
    await opens('Workers and resources');
    await page.getByText(/requested, .* of .* free/).first().waitFor();
    await page.getByText('8.1 requested, 188 of 400 free').waitFor();
    await inspect(page, 'create-resources');
    await next();
    await opens('Advanced');
    await inspect(page, 'create-advanced');
    await next();
    await opens('Review');
    await page.getByText('The API server accepts this job').waitFor();
    await page.getByText('The job first-job runs 4 workers in namespace ml-team').waitFor();
    await expect(page.locator('.pf-v6-c-wizard__toggle'), 'steps that are left out are not counted').toHaveText(/^6\s*Review/);
    await inspect(page, 'create-review');
    await page.getByRole('button', {name: 'Create job'}).focus();
    await page.keyboard.press('Enter');
    await page.waitForURL(/projects\/ml-team\/mpijob\/first-job/);
    await page.getByRole('heading', {level: 1, name: /first-job/}).waitFor();
    const notice = page.locator('.pf-v6-c-alert-group', {hasText: 'first-job is created'});
    await notice.waitFor();
    for (const width of [1280, 640, 320]) {
      await page.setViewportSize({width, height: 900});
      await expect(async () => {
        const [covering, head] = [await notice.boundingBox(), await page.locator('.mpi-head-row').boundingBox()];
        assert.ok(covering.y >= head.y + head.height && covering.y + covering.height <= 900, `at ${width} px, the notice covers the heading or leaves the page: ${JSON.stringify([covering, head])}`);
      }).toPass({timeout: 5_000});
    }
    await page.goto(`${base}/`);
    await page.getByRole('link', {name: 'first-job', exact: true}).waitFor();
  },

  async 'a clone starts with all values of its original'() {
    const page = await open('user', '/projects/ml-team/mpijob/crash');
    await page.getByRole('button', {name: 'Clone and modify'}).click();
    await page.getByRole('link', {name: 'Edit all fields'}).click();
    await page.waitForURL(/create\?namespace=ml-team&clone=mpijob%2Fcrash/);
    const steps = async (name) => page.getByRole('navigation', {name: 'Steps'}).getByRole('button', {name}).click();
    await page.getByRole('heading', {level: 1, name: 'Clone crash'}).waitFor();
    await page.getByText('The type of a clone is that of its original').waitFor();
    await page.getByRole('button', {name: /fields? of the original that the wizard does not show/}).click();
    await page.getByText('volumeMounts[results].mountPath').first().waitFor();
    await inspect(page, 'clone-type');
    await steps('Basics');
    // Another journey clones the job, too.
    await expect(page.getByRole('textbox', {name: 'Name', exact: true})).toHaveValue(/^crash-\d+$/);
    const name = await page.getByRole('textbox', {name: 'Name', exact: true}).inputValue();
    await expect(page.locator('#namespace'), 'a clone stays in its project').toHaveAttribute('readonly', '');
    const description = page.getByRole('textbox', {name: 'Description'});
    const preview = page.getByRole('region', {name: 'Preview of the description'});
    await description.fill('>'.repeat(3000));
    await preview.locator('p.mpi-plain', {hasText: '>>>>'}).waitFor();
    await description.fill('x'.repeat(5000));
    await preview.locator('p.mpi-plain', {hasText: 'xxxx'}).waitFor();
    await description.fill('A **smaller** batch, as in the [notes](https://example.com/notes):\n\n- batch 32\n- `lr=0.1`');
    await preview.locator('strong', {hasText: 'smaller'}).waitFor();
    await inspect(page, 'clone-basics');
    await steps('Image and command');
    await expect(page.getByRole('combobox', {name: 'Image', exact: true})).not.toHaveValue('');
    await steps('Workers and resources');
    await page.getByRole('spinbutton', {name: 'Number of workers'}).fill('3');
    await steps(/^Advanced/);
    await page.getByRole('spinbutton', {name: 'Gang timeout in minutes'}).fill('10');
    // This user may not list Secrets, and names them.
    await page.getByRole('button', {name: 'Add data connection'}).click();
    await page.getByRole('textbox', {name: 'Data connection 1'}).fill('training-data');
    await inspect(page, 'clone-advanced');
    await steps('Review');
    await page.getByRole('heading', {name: 'Differences from the original'}).waitFor();
    await page.getByRole('region', {name: 'Differences', exact: true}).getByText('+      replicas: 3').waitFor();
    await page.getByRole('region', {name: 'Differences', exact: true}).getByText('scheduleTimeoutSeconds: 600').waitFor();
    await page.getByRole('region', {name: 'Differences', exact: true}).getByText('opendatahub.io/connections: training-data').waitFor();
    await inspect(page, 'clone-review');
    await page.getByRole('button', {name: 'Create job'}).focus();
    await page.waitForFunction(() => document.activeElement?.hasAttribute('disabled') === false);
    await page.keyboard.press('Enter');
    await page.waitForURL((url) => url.pathname.endsWith(`/mpijob/${name}`));
    await page.getByRole('region', {name: 'Description'}).locator('strong', {hasText: 'smaller'}).waitFor();
    await inspect(page, 'job-described');
    await page.goto(`${base}/create?namespace=ml-team&clone=mpijob/pi`);
    await steps(/^Advanced/);
    await expect(page.getByRole('switch', {name: 'Profile communication'}), 'the clone of a job with a profile has one').toBeChecked();
    await expect(page.getByRole('spinbutton', {name: 'Retries'}), 'the clone of a job without retries has none').toHaveValue('0');
    await page.goto(`${base}/create?namespace=ml-team&clone=mpijob/absent`);
    await page.getByText('The job absent cannot be cloned').waitFor();
  },

  async 'the configuration of a job is edited as a new job'() {
    const page = await open('user', '/projects/ml-team/mpijob/crash?tab=configuration');
    const start = page.getByRole('button', {name: 'Edit as a new job'});
    const editor = page.getByRole('textbox', {name: 'Configuration of the new job'});
    const create = page.getByRole('button', {name: 'Create job'});
    await tabTo(page, start);
    await page.keyboard.press('Enter');
    await page.getByText('The API server accepts this job').waitFor();
    // Another journey clones the job, too.
    const [, proposed] = /has the name (crash-\d+) unless/.exec(await page.getByText('crash stays as it is').textContent()) ?? [];
    const name = `${proposed}-edited`;
    const text = (await editor.inputValue()).replace(`name: ${proposed}`, `name: ${name}`);
    assert.match(text, new RegExp(`name: ${name}\n`));
    assert.doesNotMatch(text, /status:|uid:|resourceVersion/);
    await inspect(page, 'configuration-edit');
    // An error names its line; the button moves the cursor there, and the Tab key leaves the editor.
    await editor.fill(text.replace(/replicas: \d+/, 'replicas: -1'));
    const problem = page.getByRole('button', {name: /^Go to line \d+, spec\.mpiReplicaSpecs/}).first();
    await problem.waitFor();
    await create.and(page.locator(':disabled')).waitFor();
    await inspect(page, 'configuration-error');
    await tabTo(page, problem);
    await page.keyboard.press('Enter');
    await expect.poll(() => editor.evaluate((area) => area.value.slice(area.selectionStart, area.selectionEnd))).toMatch(/^ +replicas: -1$/);
    await page.keyboard.press('Tab');
    await expect(editor, 'the Tab key leaves the editor').not.toBeFocused();
    // What was written is kept while another tab is open.
    await page.getByRole('tab', {name: 'Pods', exact: true}).click();
    await page.getByRole('tab', {name: 'Configuration', exact: true}).click();
    await expect(editor).toHaveValue(/replicas: -1/);
    await editor.fill('metadata: [');
    await page.getByRole('button', {name: /^Go to line \d+$/}).waitFor();
    await editor.fill('');
    await create.and(page.locator(':disabled')).waitFor();
    await editor.fill(text.replace(/replicas: \d+/, 'replicas: 3'));
    await page.getByRole('region', {name: 'Differences'}).getByText('+      replicas: 3').waitFor();
    await page.getByText('The API server accepts this job').waitFor();
    await tabTo(page, create);
    await page.keyboard.press('Enter');
    await page.waitForURL((url) => url.pathname.endsWith(`/mpijob/${name}`));
    await page.getByRole('heading', {level: 1, name: new RegExp(name)}).waitFor();
    // The report of a deleted job has its secrets masked.
    await page.goto(`${base}/projects/ml-team/mpijob/deleted-job?tab=configuration`);
    await page.getByText('1 value that looks like a secret is shown as ****').waitFor();
    await start.click();
    await page.getByText('Replace each **** by the secret').waitFor();
    await page.getByText('is masked; write the secret, or remove the field').waitFor();
    await inspect(page, 'configuration-masked');
    await editor.fill((await editor.inputValue()).replace("'****'", 'hf_new'));
    await page.getByText('The API server accepts this job').waitFor();
    await page.getByRole('button', {name: 'Discard changes'}).click();
    await start.waitFor();
    const viewer = await open('viewer', '/projects/ml-team/mpijob/crash?tab=configuration');
    await viewer.getByText('mpiReplicaSpecs').first().waitFor();
    await expect(viewer.getByRole('button', {name: 'Edit as a new job'})).toHaveCount(0);
  },

  async 'a change in the cluster is shown without a reload'() {
    const page = await open('user');
    // A refused stream is opened again.
    await page.route(/api\/v1\/jobs\/stream/, (route) => route.fulfill({status: 429, headers: {'Retry-After': '1'}, json: {code: 'Busy', message: 'you have too many open pages at once'}}), {times: 1});
    await page.goto(`${base}/?q=live-`);
    await page.getByText('This page does not follow changes: you have too many open pages at once.').waitFor();
    await page.getByText('This page does not follow changes').waitFor({state: 'detached'});
    await page.getByText('No job matches').waitFor();
    const began = Date.now();
    const response = await page.request.post(`${base}/api/v1/namespaces/ml-team/jobs/mpijob/bert-large/clone`, {data: {name: 'live-clone', changes: []}});
    assert.equal(response.status(), 200);
    await page.getByRole('link', {name: 'live-clone', exact: true}).waitFor();
    const took = Date.now() - began;
    console.log(`   a new job is shown after ${took} ms`);
    assert.ok(took < 10_000);
    await page.goto(`${base}/projects/ml-team/mpijob/live-clone`);
    await page.getByRole('button', {name: 'Suspend'}).click();
    await page.getByText('mpijob/live-clone is suspended').first().waitFor();
    await page.getByRole('button', {name: 'Cancel job'}).click();
    await page.getByRole('dialog').getByRole('button', {name: 'Keep the job'}).click();
    await page.getByRole('button', {name: 'Actions'}).click();
    await page.getByRole('menuitem', {name: 'Delete job'}).click();
    await page.getByRole('dialog').getByRole('button', {name: 'Delete job'}).click();
    await page.waitForURL((url) => url.pathname === '/');
  },

  async 'runtimes, queues, usage and a comparison'() {
    const page = await open('user', '/runtimes?namespace=ml-team');
    await page.getByRole('button', {name: 'Test runtime mpi-openmpi'}).waitFor();
    await page.getByRole('button', {name: 'Details'}).first().click();
    await inspect(page, 'runtimes');
    await page.getByRole('button', {name: 'Test runtime mpi-openmpi'}).click();
    await page.getByRole('dialog').getByLabel('Project').selectOption('ml-team');
    await inspect(page, 'runtime-test');
    await page.getByRole('dialog').getByRole('button', {name: 'Start test'}).click();
    await page.getByText(/The test mpi-openmpi-\w+ of mpi-openmpi runs/).waitFor();
    await page.goto(`${base}/quotas`);
    await page.getByText('of 12 used').first().waitFor();
    await page.getByRole('region', {name: 'Quotas of ml-team'}).getByText('CPUs, shared by several projects (research)').waitFor();
    await inspect(page, 'quotas');
    // This cluster has no Kueue.
    await page.route(/api\/v1\/quotas/, async (route) => {
      const {rows} = await (await page.request.get(`${base}/api/v1/jobs?q=gpt-finetune`)).json();
      const queue = {namespace: 'ml-team', name: 'gpu-queue', clusterQueue: 'gpus', active: true, pending: 1, running: 2, samples: 14, waitP50: 420, waitP90: 2400, waiting: rows};
      await route.fulfill({json: {kueue: true, missing: [], quotas: [], queues: [{...queue, resources: [{flavor: 'a100', resource: 'nvidia.com/gpu', nominal: 12, used: 12}]}]}});
    });
    await page.reload();
    await page.getByText('Of 14 past jobs, half waited at most 7m, and nine of ten at most 40m.').waitFor();
    await page.getByText('12 of 12 used').waitFor();
    await page.getByRole('row', {name: /gpt-finetune/}).waitFor();
    await inspect(page, 'quotas-queue');
    await page.unrouteAll({behavior: 'wait'}); // an answer that is under way is awaited
    await page.route(/api\/v1\/quotas/, (route) => route.fulfill({status: 403, json: {code: 'Forbidden', message: 'you may not read them any more'}}));
    await page.getByText(/Not updated since \d\d:\d\d:\d\d: you may not read them any more/).waitFor();
    await page.getByText('12 of 12 used').waitFor();
    await page.unrouteAll({behavior: 'wait'});
    await page.goto(`${base}/usage`);
    await page.locator('td', {hasText: 'ml-team'}).first().waitFor();
    await page.getByRole('heading', {name: 'Why jobs failed'}).waitFor();
    await page.getByRole('link', {name: 'Guide to OutOfMemory'}).waitFor();
    await inspect(page, 'usage');
    await page.getByRole('button', {name: 'By job'}).click();
    await page.getByRole('row', {name: /^All/}).waitFor();
    const [csv] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', {name: 'Download as CSV'}).click()]);
    const table = readFileSync(await csv.path(), 'utf8').split('\r\n');
    assert.equal(table[0], 'project,kind,job,user,queue,jobs,gpu_hours,core_hours,memory_gib_hours,measured,used_gpu_hours,used_core_hours,used_memory_gib_hours,cost,currency,label');
    assert.ok(table.some((line) => line.startsWith('"ml-team","MPIJob","bert-large"')), table.join('\n'));
    await tabTo(page, page.getByRole('link', {name: /that failed with OutOfMemory$/}));
    await page.keyboard.press('Enter');
    await page.getByRole('link', {name: 'resnet-horovod', exact: true}).waitFor();
    // Of very many jobs a page shows the first ones, with the sum of all; the file has all.
    await page.route(/api\/v1\/usage/, async (route) => {
      const line = (job) => ({namespace: 'ml-team', kind: 'MPIJob', job, uid: `uid-of-${job}`, jobs: 1, gpuHours: 1, coreHours: 1, gibHours: 1, label: 'nlp'});
      const lines = new URL(route.request().url()).searchParams.has('all') ? ['one', 'two', 'three'] : ['one', 'two'];
      await route.fulfill({json: {lines: lines.map(line), omitted: 3 - lines.length, total: {jobs: 3, gpuHours: 3, coreHours: 3, gibHours: 3, measured: 0, costs: {}}, failures: [], estimated: 0, deleted: 0, unpriced: [], missing: [], commands: []}});
    });
    await page.goto(`${base}/usage?by=job`);
    await page.getByText('The first 2 lines are shown. The sum and the CSV file include 1 more.').waitFor();
    await page.getByRole('row', {name: /^All 3 3 3/}).waitFor();
    await expect(page.getByRole('link', {name: 'one', exact: true})).toHaveAttribute('href', /\/projects\/ml-team\/mpijob\/one\?uid=uid-of-one$/);
    const [whole] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', {name: 'Download as CSV'}).click()]);
    assert.match(readFileSync(await whole.path(), 'utf8'), /"three"/);
    // Of a label, the user names the key.
    await page.getByRole('button', {name: 'By label'}).click();
    await page.getByText('Enter the key of a label').waitFor();
    await page.getByLabel('Key of the label').fill('team');
    await page.keyboard.press('Enter');
    await page.waitForURL(/by=label%3Dteam/);
    await page.getByRole('columnheader', {name: 'team'}).waitFor();
    await page.locator('td', {hasText: 'nlp'}).first().waitFor();
    await page.unrouteAll({behavior: 'wait'});
    // Jobs are compared by their UIDs.
    await page.goto(`${base}/?namespace=ml-team&size=500`);
    for (const name of ['bert-large', 'resnet-horovod']) await page.getByRole('row').filter({has: page.getByRole('link', {name, exact: true})}).getByRole('checkbox').check();
    await page.getByRole('button', {name: 'Compare'}).click();
    await page.waitForURL(/compare\?a=.*&aUID=[0-9a-f-]{36}&bUID=[0-9a-f-]{36}$/);
    await page.getByRole('heading', {name: 'Findings'}).waitFor();
    await page.goto(`${base}/projects/ml-team/compare?a=mpijob/bert-large&b=mpijob/resnet-horovod`);
    await page.getByRole('heading', {name: 'Findings'}).waitFor();
    const curve = (...losses) => ({points: losses.map((loss, step) => ({step, loss})), skipped: 0});
    await page.route(/bert-large\/curves/, (route) => route.fulfill({json: curve(3, 2, 1)}));
    await page.route(/resnet-horovod\/curves/, (route) => route.fulfill({json: curve(4, 3)}));
    await page.reload();
    await page.getByRole('slider', {name: 'Loss by Step'}).press('Home');
    await page.getByText('Step 0: bert-large 3, resnet-horovod 4').waitFor();
    await inspect(page, 'compare');
    await page.goto(`${base}/no/such/page`);
    await page.getByText('This page does not exist').waitFor();
    await inspect(page, 'no-page');
  },

  async 'an administrator sees the quotas of all projects, the fullest first'() {
    const page = await open('admin', '/quotas');
    const full = page.getByRole('region', {name: 'Quotas of full-team'});
    await full.getByText('90 %', {exact: true}).waitFor();
    await page.getByRole('region', {name: 'Quotas of ml-team'}).waitFor();
    await expect(page.getByRole('region', {name: /^Quotas of/}).first()).toHaveText(/^full-team/);
    await page.locator('label', {hasText: 'Only these'}).click();
    await page.getByRole('region', {name: 'Quotas of ml-team'}).waitFor({state: 'detached'});
    await full.waitFor();
    await inspect(page, 'quotas-admin');
    const user = await open('user', '/quotas');
    await user.getByRole('region', {name: 'Quotas of ml-team'}).waitFor();
    await expect(user.getByRole('region', {name: 'Quotas of full-team'}), 'a user sees the own projects only').toHaveCount(0);
  },

  async 'an administrator creates, changes and deletes a runtime'() {
    const page = await open('admin', '/runtimes');
    await page.getByRole('button', {name: 'Create runtime'}).click();
    const dialog = page.getByRole('dialog');
    const field = (name) => dialog.getByRole('textbox', {name});
    await dialog.getByLabel('Start from').selectOption('mpi-openmpi');
    await field('Workers of a job, at most').fill('many');
    await dialog.getByText('many is not a whole number').waitFor();
    await dialog.getByRole('button', {name: 'Create'}).and(page.locator('[disabled]')).waitFor();
    await field('Workers of a job, at most').fill('0');
    await field('Name').fill('Not_Allowed');
    await dialog.getByRole('button', {name: 'Create'}).click();
    await dialog.getByText('use at most 63 lower-case letters').waitFor();
    await dialog.getByText('0 is not allowed; use 1 or more').waitFor();
    await inspect(page, 'runtime-create');
    await field('Gang timeout in seconds').fill('300');
    await field('Priority class').fill('urgent');
    await field('Allowed connections').fill('namespace/minio:9000');
    await field('Name').fill('mpi-large');
    await field('Workers of a job, at most').fill('4');
    await field('Image').fill('quay.io/team/mpi:2');
    await dialog.getByRole('button', {name: 'Create'}).click();
    const row = page.getByRole('row', {name: /mpi-large/});
    await row.getByText('4 workers, 8 GPUs per worker').waitFor();
    await row.getByText('quay.io/team/mpi:2').waitFor();
    await page.getByRole('button', {name: 'Edit runtime mpi-large'}).click();
    await field('GPUs of a worker, at most').fill('');
    await expect(field('Gang timeout in seconds')).toHaveValue('300');
    await expect(field('Priority class')).toHaveValue('urgent');
    await expect(field('Allowed connections')).toHaveValue('namespace/minio:9000');
    await inspect(page, 'runtime-edit');
    await dialog.getByRole('button', {name: 'Save runtime'}).click();
    await row.getByText('4 workers', {exact: true}).waitFor();
    const user = await open('user', '/runtimes');
    await user.getByRole('button', {name: 'Test runtime mpi-large'}).waitFor();
    for (const name of ['Create runtime', 'Edit runtime mpi-large', 'Delete runtime mpi-large']) await expect(user.getByRole('button', {name}), name).toHaveCount(0);
    await page.getByRole('button', {name: 'Delete runtime torch-distributed'}).click();
    await dialog.getByText('Jobs that use it: 1 waiting or suspended', {exact: true}).waitFor();
    await dialog.getByRole('link', {name: 'ml-team/llama-sft'}).waitFor();
    await inspect(page, 'runtime-delete');
    await dialog.getByRole('button', {name: 'Keep the runtime'}).click();
    await page.getByRole('button', {name: 'Delete runtime mpi-large'}).click();
    await dialog.getByText('No job that you may see uses it').waitFor();
    await dialog.getByRole('button', {name: 'Delete runtime'}).click();
    await row.waitFor({state: 'detached'});
    await page.getByText('The runtime mpi-large is deleted. Jobs that run continue.').waitFor();
  },

  async 'runtimes are created on a cluster without one'() {
    // The cluster of the other journeys has runtimes.
    const hide = (page) =>
      page.route(/api\/v1\/runtimes(\?|$)/, async (route) => {
        if (route.request().method() !== 'GET') return route.continue();
        const response = await route.fetch();
        await route.fulfill({response, json: {...(await response.json()), runtimes: []}});
      });
    const page = await open('admin');
    await hide(page);
    await page.goto(`${base}/runtimes`);
    await page.getByText('Create one from those that are shipped with the operator').waitFor();
    await inspect(page, 'runtimes-none');
    await tabTo(page, page.getByRole('button', {name: 'Create runtime'}));
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog');
    const field = (name) => dialog.getByRole('textbox', {name, exact: true});
    await dialog.getByLabel('Start from').selectOption('mpi-intel: Intel');
    await dialog.getByText('Nobody publishes an image with Intel MPI').waitFor();
    await field('Name').fill('shipped-mpich');
    await dialog.getByRole('button', {name: 'Create'}).and(page.locator('[disabled]')).waitFor();
    await dialog.getByLabel('Start from').selectOption('mpi-mpich: MPICH');
    await field('User ID').fill('0');
    await field('Image').fill('quay.io/team/mpich:1');
    await dialog.getByRole('button', {name: 'Create'}).click();
    await dialog.getByText('0 is not allowed; use 1 or more').waitFor();
    await inspect(page, 'runtime-shipped');
    await field('User ID').fill('1000');
    await dialog.getByRole('button', {name: 'Create'}).click();
    await page.getByText('The runtime shipped-mpich is created from mpi-mpich.').waitFor();
    await page.unrouteAll({behavior: 'wait'}); // an answer that is under way is awaited
    const row = page.getByRole('row', {name: /shipped-mpich/});
    await row.getByText('quay.io/team/mpich:1').waitFor();
    await row.getByText('100 workers, 16 GPUs per worker').waitFor();

    // The administrator of a project creates one for the project, changes and deletes it.
    const manager = await open('manager', '/runtimes');
    await manager.getByRole('row', {name: /shipped-mpich/}).waitFor();
    await expect(manager.getByRole('button', {name: 'Create runtime'})).toHaveCount(0);
    await manager.goto(`${base}/runtimes?namespace=ml-team`);
    await manager.getByRole('button', {name: 'Create runtime'}).click();
    const form = manager.getByRole('dialog');
    await expect(form.getByLabel('Available in').locator('option')).toHaveText(['The project ml-team']);
    await form.getByLabel('Start from').selectOption('mpi-openmpi5: OpenMPI');
    await form.getByRole('textbox', {name: 'Name'}).fill('of-the-team');
    await form.getByRole('button', {name: 'Create'}).click();
    const own = manager.getByRole('row', {name: /of-the-team/});
    await own.getByText('ml-team').waitFor();
    await expect(manager.getByRole('button', {name: 'Edit runtime shipped-mpich'}), 'a runtime of the cluster').toHaveCount(0);
    await manager.getByRole('button', {name: 'Edit runtime of-the-team'}).click();
    await form.getByRole('textbox', {name: 'Workers of a job, at most'}).fill('7');
    await form.getByRole('button', {name: 'Save runtime'}).click();
    await own.getByText('7 workers, 16 GPUs per worker').waitFor();
    await manager.getByRole('button', {name: 'Delete runtime of-the-team'}).click();
    await form.getByText('No job that you may see uses it').waitFor();
    await form.getByRole('button', {name: 'Delete runtime'}).click();
    await own.waitFor({state: 'detached'});
    await page.getByRole('button', {name: 'Delete runtime shipped-mpich'}).click();
    await dialog.getByRole('button', {name: 'Delete runtime'}).click();
    await row.waitFor({state: 'detached'});

    // Without the right, the page names who has it.
    const user = await open('user');
    await hide(user);
    for (const [query, text] of [['', 'If you are the administrator of a project, select the project'], ['?namespace=ml-team', 'this requires the role admin in ml-team']]) {
      await user.goto(`${base}/runtimes${query}`);
      await user.getByText(text).waitFor();
      await expect(user.getByRole('button', {name: 'Create runtime'})).toHaveCount(0);
    }
    await inspect(user, 'runtimes-none-user');
  },

  async 'a page whose files are missing is loaded again, once'() {
    const page = await open('user');
    await page.getByRole('heading', {level: 1, name: 'Training jobs'}).waitFor();
    let loads = 0;
    let isBroken = false;
    page.on('request', (request) => {
      if (request.resourceType() === 'document') loads++;
    });
    // A page consists of scripts and styles; until it is loaded again, they are away.
    await page.route(/assets\/(Usage|Glossary)-/, (route) => (isBroken || loads === 0 ? route.abort() : route.continue()));
    await page.getByRole('link', {name: 'Usage'}).click();
    await page.getByRole('heading', {level: 1, name: 'Usage'}).waitFor();
    assert.equal(loads, 1, 'the page is loaded again');
    isBroken = true;
    await page.getByRole('link', {name: 'Glossary'}).click();
    await page.getByRole('heading', {name: 'This page cannot be shown'}).waitFor();
    await inspect(page, 'page-broken');
    assert.equal(loads, 1, 'it is not loaded for ever');
    isBroken = false;
    await page.getByRole('button', {name: 'Load again'}).click();
    await page.getByRole('heading', {level: 1, name: 'Glossary'}).waitFor();
  },

  async 'a viewer sees, and may change nothing'() {
    const page = await open('viewer', '/projects/ml-team/mpijob/resnet-horovod');
    await page.getByRole('heading', {name: /Why it failed/}).waitFor();
    for (const name of ['Suspend', 'Cancel job', 'Clone and modify', 'Clone with this change']) await expect(page.getByRole('button', {name}), name).toHaveCount(0);
    // What remains is to read: nothing is in a menu.
    await expect(page.getByRole('button', {name: 'Actions'})).toHaveCount(0);
    for (const name of ['View logs', 'Download configuration']) await page.getByRole('button', {name}).waitFor();
    const crash = await open('viewer', '/projects/ml-team/mpijob/crash');
    await crash.getByRole('heading', {name: /Why it failed/}).waitFor();
    await expect(crash.getByRole('button', {name: 'Run it again'})).toHaveCount(0);
    await page.goto(`${base}/`);
    await page.getByRole('button', {name: 'Create training job'}).and(page.locator('[aria-disabled=true]')).waitFor();
    const nobody = await open('nobody');
    await nobody.getByText('No training jobs yet').waitFor();
    await inspect(nobody, 'jobs-empty');
  },

  async 'the dashboard goes away and comes back'() {
    const page = await open('user');
    await page.getByRole('link', {name: 'bert-large', exact: true}).waitFor();
    cut(true);
    try {
      await page.getByText('as it was last known').waitFor();
      await expect(page.getByRole('link', {name: 'bert-large', exact: true}), 'the last data stays').toHaveCount(1);
      await inspect(page, 'offline');
    } finally {
      cut(false);
    }
    await page.getByText('as it was last known').waitFor({state: 'detached', timeout: 30_000});
    await page.context().clearCookies();
    await page.goto(`${base}/usage`);
    await page.getByRole('heading', {level: 1, name: /Log in/}).waitFor();
  },

  async 'the API server goes away and comes back'() {
    const page = await open('user');
    await page.getByRole('link', {name: 'bert-large', exact: true}).waitFor();
    const job = await open('user', '/projects/ml-team/mpijob/bert-large');
    await job.getByText('4 of 4 ready').waitFor();
    await fetch(`${control}/cut`, {method: 'POST'});
    try {
      for (const each of [page, job]) await each.getByText('The API server does not answer').waitFor();
      await expect(page.getByRole('link', {name: 'bert-large', exact: true}), 'the last data stays').toHaveCount(1);
      await expect(job.getByText('4 of 4 ready'), 'the last data stays').toHaveCount(1);
      await inspect(page, 'api-away');
      await job.getByRole('tab', {name: 'Configuration'}).click();
    } finally {
      await fetch(`${control}/restore`, {method: 'POST'});
    }
    for (const each of [page, job]) await each.getByText('The API server does not answer').waitFor({state: 'detached', timeout: 30_000});
    // What is asked again by itself is shown, and the list is live again.
    await job.getByText('mpiReplicaSpecs').first().waitFor();
    await request(page, 'POST', 'namespaces/ml-team/jobs/mpijob/pi/clone', {name: 'after-outage', changes: []});
    await page.getByRole('link', {name: 'after-outage', exact: true}).waitFor();
  },

  async 'a login expires while a page is open'() {
    const page = await open('user', '/projects/ml-team/mpijob/bert-large?tab=events');
    await page.getByRole('heading', {level: 1, name: /bert-large/}).waitFor();
    await page.context().clearCookies();
    await page.getByRole('heading', {level: 1, name: /Log in/}).waitFor({timeout: 30_000});
    await page.getByLabel('Token', {exact: false}).first().fill(tokens.user);
    await page.getByRole('button', {name: 'Log in'}).click();
    // The same page continues.
    await page.getByRole('heading', {level: 1, name: /bert-large/}).waitFor();
    await expect(page).toHaveURL(/tab=events/);
  },

  async 'what the user has written stays when the login expires'() {
    const page = await open('user', '/create?namespace=ml-team');
    await page.getByRole('navigation', {name: 'Steps'}).getByRole('button', {name: 'Basics'}).click();
    const name = page.getByRole('textbox', {name: 'Name', exact: true});
    await name.fill('long-written');
    const dialog = page.getByRole('dialog', {name: 'Log in again'});
    const logInAs = async (role) => {
      await page.context().clearCookies();
      await dialog.waitFor({timeout: 30_000});
      await expect(name, 'the page is not shown without a login').toHaveCount(0);
      if (role === 'user') await inspect(page, 'login-again');
      await dialog.getByLabel('Token', {exact: false}).first().fill(tokens[role]);
      await dialog.getByRole('button', {name: 'Log in'}).click();
      await dialog.waitFor({state: 'detached'});
    };
    await logInAs('user');
    await expect(name).toHaveValue('long-written');
    // Another user does not see it.
    await logInAs('other');
    await page.getByRole('heading', {name: 'What do you want to run?'}).waitFor();
    await page.getByRole('navigation', {name: 'Steps'}).getByRole('button', {name: 'Basics'}).click();
    await expect(name).toHaveValue('');
  },

  async 'the end of a watched job is notified, also in a hidden page and after it'() {
    const page = await open('user');
    const find = async (job) => (await (await page.request.get(`${base}/api/v1/jobs?q=${job}`)).json()).rows.find(({name}) => name === job);
    const watch = (id) => page.evaluate((watched) => localStorage.setItem('mpijob-watched', JSON.stringify([watched])), id);
    // It has ended while no page was open.
    await watch((await find('crash')).id);
    await page.reload();
    await page.getByText('crash has failed').first().waitFor();
    await expect.poll(() => page.evaluate(() => localStorage.getItem('mpijob-watched'))).toBe('[]');
    // It ends while the page is hidden.
    await page.addInitScript(() => {
      window.shown = [];
      window.Notification = class {
        static permission = 'granted';
        constructor(title) {
          window.shown.push(title);
        }
      };
    });
    await page.clock.install();
    const row = await find('bert-large');
    await watch(row.id);
    await page.reload();
    await page.getByRole('link', {name: 'bert-large', exact: true}).waitFor();
    const hide = (hidden) =>
      page.evaluate((value) => {
        Object.defineProperty(document, 'hidden', {value, configurable: true});
        document.dispatchEvent(new Event('visibilitychange'));
      }, hidden);
    await hide(true);
    await page.clock.fastForward(35_000);
    const ended = {...row, phase: 'Succeeded', ended: new Date().toISOString()};
    await page.route(/jobs\/stream\?id=/, (route) => route.fulfill({headers: {'Content-Type': 'text/event-stream'}, body: `event: rows\ndata: ${JSON.stringify({rows: [ended], removed: []})}\n\n`}));
    await page.route(/api\/v1\/jobs\?id=/, (route) => route.fulfill({json: {rows: [ended], total: 1, visible: 1, facets: {}, cursor: ''}}));
    cut(true);
    cut(false);
    await expect.poll(() => page.evaluate(() => window.shown)).toEqual(['bert-large has succeeded']);
    await expect(page.getByText('bert-large has succeeded'), 'a notice waits for the user').toHaveCount(0);
    await hide(false);
    await page.getByText('bert-large has succeeded').first().waitFor();
    await page.unrouteAll({behavior: 'wait'});
  },

  async 'a job is deleted while its page is open'() {
    const page = await open('user');
    await request(page, 'POST', 'namespaces/ml-team/jobs/mpijob/pi/clone', {name: 'short-lived', changes: []});
    await page.goto(`${base}/projects/ml-team/mpijob/short-lived`);
    await page.getByRole('heading', {level: 1, name: /short-lived/}).waitFor();
    await request(page, 'DELETE', 'namespaces/ml-team/jobs/mpijob/short-lived');
    await page.getByText('The job was deleted while this page was open').waitFor();
    await expect(page.getByRole('heading', {level: 1, name: /short-lived/}), 'the last data stays').toHaveCount(1);
    await inspect(page, 'job-deleted-meanwhile');
  },

  async 'two users on one server see nothing of each other'() {
    const [one, other] = [await open('user'), await open('other')];
    await one.getByRole('link', {name: 'bert-large', exact: true}).waitFor();
    await other.getByRole('link', {name: 'other-team-job', exact: true}).waitFor();
    await request(other, 'POST', 'namespaces/other-team/jobs/mpijob/other-team-job/clone', {name: 'other-secret', changes: []});
    await request(one, 'POST', 'namespaces/ml-team/jobs/mpijob/pi/clone', {name: 'own-secret', changes: []});
    await other.getByRole('link', {name: 'other-secret', exact: true}).waitFor();
    await one.getByRole('link', {name: 'own-secret', exact: true}).waitFor();
    await expect(one.getByText(/^other-/), 'the jobs of the other project are not shown').toHaveCount(0);
    await expect(other.getByText(/ml-team|own-secret|bert-large/), 'the jobs of the other project are not shown').toHaveCount(0);
    await other.goto(`${base}/projects/ml-team/mpijob/bert-large`);
    await other.getByText('You may not see this').waitFor();
    await inspect(other, 'job-forbidden');
  },

  async 'hostile texts run no script and show no escape'() {
    const page = await open('user', '/?q=hostile');
    await page.getByRole('link', {name: 'hostile', exact: true}).waitFor();
    const check = async (where) => {
      const found = await page.evaluate(() => ({
        hacked: window.hacked,
        title: document.title,
        elements: document.querySelectorAll('#main script, #main img, #main a[href^=javascript], [onerror]').length,
        control: /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/.exec(document.body.innerText + [...document.querySelectorAll('input, textarea')].map(({value}) => value).join(''))?.[0].codePointAt(0),
      }));
      assert.deepEqual(found, {hacked: undefined, title: found.title, elements: 0, control: undefined}, where);
      assert.doesNotMatch(found.title, /<|hacked/, where);
    };
    await check('the list');
    await page.getByRole('link', {name: 'hostile', exact: true}).click();
    await page.locator('.mpi-cause', {hasText: '<img src=x'}).waitFor();
    for (const name of [/^Evidence/, /^As a command/]) for (const toggle of await page.getByRole('button', {name}).all()) await toggle.click();
    await check('the diagnosis');
    const description = page.getByRole('region', {name: 'Description'});
    await expect.poll(() => description.getByRole('link').evaluateAll((links) => links.map(({href, rel}) => [href, rel]))).toEqual([['https://example.com/guide', 'noopener noreferrer nofollow']]);
    for (const text of ['click', 'data', 'case', 'tab', 'pixel', 'entity', 'relative', '<svg onload']) await description.getByText(text).first().waitFor();
    await inspect(page, 'job-hostile');
    for (const [tab, text] of [['Topology', 'launcher'], ['Pods', 'hostile-launcher'], ['Events', '<img'], ['Configuration', '<img'], ['Training', /^(Loss|No training figures)$/], ['Metrics', /^(No metrics|Source: .*)$/], ['Logs', /No lines|<img src=x/]]) {
      await page.getByRole('tab', {name: tab, exact: true}).click();
      const panel = page.locator('.pf-v6-c-tab-content:not([hidden])');
      await panel.getByText(text).first().waitFor();
      if (tab === 'Topology') await panel.getByRole('button', {name: /^launcher/}).click();
      await check(tab);
    }
    await page.getByRole('button', {name: 'Clone and modify'}).click();
    await page.getByRole('dialog').getByText('Clone hostile and modify').waitFor();
    await check('the dialog');
    await page.goto(`${base}/projects/ml-team/compare?a=mpijob/bert-large&b=mpijob/hostile`);
    await page.getByRole('heading', {name: 'Findings'}).waitFor();
    await check('the comparison');
    await page.goto(`${base}/?q=${encodeURIComponent('"><img src=x onerror=window.hacked=1>')}`);
    await page.getByText('No job matches').waitFor();
    await check('a search from the URL');
    // A job without pods has the lines of its report.
    await request(page, 'DELETE', 'namespaces/ml-team/jobs/mpijob/hostile');
    await page.goto(`${base}/?q=hostile&deleted=true`);
    await page.getByRole('link', {name: 'hostile', exact: true}).click();
    await page.getByText('This job is deleted. Its report is kept').waitFor();
    await page.getByRole('tab', {name: 'Logs'}).click();
    await page.locator('.mpi-log-line', {hasText: '<img src=x'}).first().waitFor();
    await check('the log of a deleted job');
  },

  async 'the wizard names the error of each field'() {
    const page = await open('user', '/create?namespace=ml-team');
    const field = (name) => page.getByRole('textbox', {name, exact: true}).or(page.getByRole('combobox', {name, exact: true})).or(page.getByRole('spinbutton', {name, exact: true})).first();
    const next = page.getByRole('button', {name: 'Next'});
    const goOn = async () => {
      await page.waitForFunction(() => ![...document.querySelectorAll('.pf-v6-c-wizard__footer button')].find((button) => button.textContent === 'Next')?.disabled);
      await next.click();
    };
    /** Enters a value that is refused, and then one that is accepted. */
    const refuse = async (name, bad, error, good, blocks = true) => {
      await field(name).fill(bad);
      await page.getByText(error).first().waitFor();
      if (blocks) await page.waitForFunction(() => [...document.querySelectorAll('.pf-v6-c-wizard__footer button')].find((button) => button.textContent === 'Next')?.disabled);
      await field(name).fill(good);
      await page.getByText(error).first().waitFor({state: 'detached'});
    };
    await goOn();
    await refuse('Name', 'Not_Allowed', 'use lower-case letters', 'checked');
    await refuse('Name', `${'long-'.repeat(14)}name`, 'use lower-case letters', 'checked');
    await refuse('Project', 'no-such-project', 'no-such-project does not exist', 'ml-team');
    await refuse('Project', 'other-team', 'You may not create jobs in other-team', 'ml-team');
    await goOn();
    await field('Image').fill('x');
    await refuse('Image', '', 'is required', 'quay.io/me/train:1');
    await refuse('Command', 'python "train.py', /unterminated|quote/, 'python train.py');
    await page.getByRole('button', {name: 'Add variable'}).click();
    await page.getByRole('textbox', {name: 'Name of variable 1'}).fill('NOT=ALLOWED');
    await page.getByText('NOT=ALLOWED is not the name of a variable').waitFor();
    await page.getByRole('button', {name: 'Remove variable 1'}).click();
    await goOn();
    await refuse('Number of workers', '0', 'is not allowed', '4');
    await refuse('CPUs per worker', 'many', 'many is not a quantity', '2');
    await refuse('Memory per worker', '-1Gi', '-1Gi is not a quantity', '4Gi');
    await refuse('Slots per worker', '0', 'is not allowed', '');
    await refuse('Slots per worker', '1.5', 'is not a whole number', '');
    await inspect(page, 'create-resources-checked');
    await goOn();
    await refuse('Time limit in hours', '-1', 'is not allowed', '', false);
    await refuse('User ID', '0', 'is not allowed', '', false);
    await refuse('Shared memory', 'much', 'much is not a quantity', '8Gi', false);
    await refuse('CPUs of the launcher', 'x', 'x is not a quantity', '1', false);
    await refuse('Working folder', 'app', 'use an absolute path', '/app', false);
    await refuse('Topology', 'a b', 'is not the key of a node label', '', false);
    await refuse('Grace period in seconds', '-1', 'is not allowed', '60', false);
    await refuse('Delete after hours', '-1', 'is not allowed', '24', false);
    await refuse('Claim for results', 'Results', 'has the name', 'results', false);
    await field('Path of results').fill('/results');
    await page.getByRole('button', {name: 'Add volume'}).click();
    await field('Name of volume 1').fill('data');
    await refuse('Path of volume 1', 'data', 'has the path "data"', '/data', false);
    await page.getByRole('button', {name: 'Add toleration'}).click();
    await refuse('Toleration 1', 'gpu:Never', 'must be KEY', 'nvidia.com/gpu', false);
    await page.getByRole('button', {name: 'Add node label'}).click();
    await field('Name of node label 1').fill('gpu');
    await field('Value of node label 1').fill('a100');
    await page.locator('label', {hasText: 'Profile communication'}).click();
    await inspect(page, 'create-advanced-filled');
    await goOn();
    await page.getByText('The API server accepts this job').waitFor();
    for (const sentence of ['All pods mount claim data at /data.', 'Each pod has 8Gi of shared memory.', 'Its pods tolerate the taints nvidia.com/gpu.', 'Its pods run on nodes with gpu=a100.', 'The calls of MPI in each rank are counted and timed, for its communication profile.']) await page.getByText(sentence).waitFor();
  },

  async 'the wizard shows all errors at once, and what the API server refuses'() {
    const page = await open('user', '/create?namespace=ml-team');
    const steps = async (name) => {
      await page.getByRole('navigation', {name: 'Steps'}).getByRole('button', {name}).click();
    };
    const fill = async (name, value) => page.getByRole('textbox', {name, exact: true}).or(page.getByRole('combobox', {name, exact: true})).first().fill(value);
    // Everything is missing or wrong: the review lists it all.
    await steps('Basics');
    await fill('Name', 'Not_Allowed');
    await steps('Workers and resources');
    await fill('CPUs per worker', 'many');
    await fill('Memory per worker', 'much');
    await steps('Review');
    for (const text of [/^name Not_Allowed/, /^cpu many/, /^memory much/, /^image .*required/]) await page.getByRole('listitem').getByText(text).waitFor();
    await page.getByRole('button', {name: 'Create job'}).and(page.locator('[disabled]')).waitFor();
    await inspect(page, 'create-all-errors');
    await steps('Workers and resources');
    await fill('CPUs per worker', '2');
    await fill('Memory per worker', '4Gi');
    await steps('Image and command');
    await fill('Image', 'quay.io/me/train:1');
    await fill('Command', 'python train.py');
    // A name that is taken, one that a policy of the cluster refuses, and a namespace whose quota is used up.
    for (const [name, text] of [['bert-large', 'already exists'], ['refused', 'jobs of this name are not allowed here']]) {
      await steps('Basics');
      await fill('Name', name);
      await steps('Review');
      await page.getByText(text).first().waitFor();
      await page.getByRole('button', {name: 'Create job'}).and(page.locator('[disabled]')).waitFor();
      await inspect(page, `create-${name}`);
    }
    const limited = await open('limited', '/create?namespace=full-team');
    await limited.getByRole('navigation', {name: 'Steps'}).getByRole('button', {name: 'Basics'}).click();
    await limited.getByRole('textbox', {name: 'Name', exact: true}).fill('too-many');
    await limited.getByRole('navigation', {name: 'Steps'}).getByRole('button', {name: 'Image and command'}).click();
    await limited.getByRole('combobox', {name: 'Image', exact: true}).fill('quay.io/me/train:1');
    await limited.getByRole('textbox', {name: 'Command', exact: true}).fill('python train.py');
    await limited.getByRole('navigation', {name: 'Steps'}).getByRole('button', {name: 'Review'}).click();
    await limited.getByText(/exceeded quota/).first().waitFor();
    await inspect(limited, 'create-quota-exceeded');
    // A viewer is told before the form is filled in.
    const viewer = await open('viewer', '/create?namespace=ml-team');
    await viewer.getByRole('navigation', {name: 'Steps'}).getByRole('button', {name: 'Basics'}).click();
    await viewer.getByText('You may not create jobs in ml-team').waitFor();
  },

  async 'a job asks for the GPUs that the cluster has, and a refusal ends with the next change'() {
    const page = await open('user');
    await page.route(/namespaces\/ml-team\/options/, async (route) => route.fulfill({json: {...(await (await route.fetch()).json()), gpus: ['amd.com/gpu']}}));
    await page.goto(`${base}/create?namespace=ml-team`);
    const steps = async (name) => page.getByRole('navigation', {name: 'Steps'}).getByRole('button', {name}).click();
    await steps('Basics');
    const name = page.getByRole('textbox', {name: 'Name', exact: true});
    await name.fill('with-gpus');
    await steps('Image and command');
    await page.getByRole('combobox', {name: 'Image', exact: true}).fill('quay.io/me/train:1');
    await page.getByRole('textbox', {name: 'Command', exact: true}).fill('python train.py');
    await steps('Workers and resources');
    const asked = page.waitForRequest((sent) => sent.url().endsWith('/api/v1/jobs') && sent.postDataJSON()?.spec.gpu === 1);
    await page.getByRole('button', {name: '1 GPU'}).click();
    assert.equal((await asked).postDataJSON().spec.gpuResource, 'amd.com/gpu');
    await expect(page.getByRole('combobox', {name: 'GPU resource'})).toHaveValue('amd.com/gpu');
    await inspect(page, 'create-gpus');
    await page.route(/api\/v1\/jobs$/, async (route) => {
      if (route.request().postDataJSON().dryRun) return route.fallback();
      return route.fulfill({json: {problem: {code: 'Rejected', message: 'refused for now', reasons: ['refused for now']}}});
    });
    await steps('Review');
    await page.getByText('The API server accepts this job').waitFor();
    await page.getByRole('button', {name: 'Create job'}).click();
    await page.getByText('refused for now').first().waitFor();
    await steps('Basics');
    await name.fill('with-other-gpus');
    await steps('Review');
    await page.getByText('The API server accepts this job').waitFor();
    await expect(page.getByText('refused for now')).toHaveCount(0);
    await page.unrouteAll({behavior: 'wait'});
  },

  async 'YAML is imported, also a large one'() {
    const page = await open('user', '/create?namespace=ml-team');
    await page.locator('label[for=way-input-yaml]').click();
    await page.getByRole('button', {name: 'Next'}).click();
    await page.getByRole('button', {name: 'Next'}).click();
    const area = page.getByRole('textbox', {name: 'Job as YAML or JSON'});
    for (const [text, error] of [
      ['a: [', /yaml|did not find/i],
      ['kind: Pod\napiVersion: v1\nmetadata: {name: x}', 'is not a job; use kind MPIJob'],
      ['kind: MPIJob\napiVersion: kubeflow.org/v2beta1', 'metadata.name'],
    ]) {
      await area.fill(text);
      await page.locator('#yaml-problems').getByText(error).waitFor();
    }
    const job = (name, padding) => {
      const comment = `# ${'comment '.repeat(15)}\n`;
      const pod = (container) => `{template: {spec: {containers: [{name: ${container}, image: quay.io/me/train:1}]}}}`;
      return Buffer.from(`${comment.repeat(Math.ceil(padding / comment.length))}apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\nmetadata: {name: ${name}}\nspec:\n  mpiReplicaSpecs:\n    Launcher: ${pod('launcher')}\n    Worker: ${pod('worker')}\n`);
    };
    await page.locator('#yaml-file').setInputFiles({name: 'huge.yaml', mimeType: 'text/yaml', buffer: job('huge', 1.2 * 2 ** 20)});
    await page.getByText('huge.yaml is larger than 1 MiB').first().waitFor();
    await page.locator('#yaml-file').setInputFiles({name: 'large.yaml', mimeType: 'text/yaml', buffer: job('large', 2 ** 20 - 2000)});
    await page.getByRole('button', {name: 'Next'}).click();
    await page.getByText('The API server accepts this job').waitFor();
    await page.getByRole('button', {name: 'Create job'}).click();
    await page.waitForURL(/mpijob\/large/);
    await page.getByRole('heading', {level: 1, name: /large/}).waitFor();
  },

  async 'a job is saved as a template, which others use'() {
    const page = await open('user', '/create?namespace=ml-team');
    const next = async () => {
      await page.waitForFunction(() => ![...document.querySelectorAll('button')].find((button) => button.textContent === 'Next')?.disabled);
      await page.getByRole('button', {name: 'Next'}).click();
    };
    await next();
    await page.getByRole('textbox', {name: 'Name'}).fill('for-template');
    await next();
    await page.getByRole('combobox', {name: 'Image', exact: true}).fill('quay.io/me/train:1');
    await page.getByRole('textbox', {name: 'Command'}).fill('python train.py');
    await next();
    await page.getByText('8.1 CPUs, 16.1 GiB of memory').waitFor();
    await next();
    await next();
    await page.getByText('The API server accepts this job').waitFor();
    await page.getByText('each with 2 CPUs, 4 GiB of memory').waitFor();
    await page.getByRole('button', {name: 'Save as a template'}).click();
    await page.getByRole('textbox', {name: 'Name of the template'}).fill('nightly');
    await inspect(page, 'create-save-template');
    await page.getByRole('button', {name: 'Save template'}).click();
    await page.getByText('The template nightly is saved').first().waitFor();
    await page.getByRole('button', {name: 'Save template'}).click();
    await page.getByRole('button', {name: 'Replace it'}).waitFor();
    await page.getByRole('textbox', {name: 'Name of the template'}).fill('another');
    await expect(page.getByRole('button', {name: 'Replace it'}), 'another template is not replaced').toHaveCount(0);
    await page.goto(`${base}/create?namespace=ml-team`);
    await page.locator('label[for=way-input-template]').click();
    await next();
    await page.getByRole('textbox', {name: 'Name'}).fill('from-template');
    await page.getByRole('textbox', {name: 'Description'}).fill('The run **of tonight**');
    await next();
    await page.getByRole('combobox', {name: 'Template'}).selectOption('nightly');
    await inspect(page, 'create-template');
    await next();
    await page.getByText('from the template nightly').waitFor();
    await page.getByRole('button', {name: 'Create job'}).click();
    await page.waitForURL(/mpijob\/from-template/);
    await page.getByRole('region', {name: 'Description'}).locator('strong', {hasText: 'of tonight'}).waitFor();
  },
};

const code = await run([journeys]);
close();
process.exit(code);
