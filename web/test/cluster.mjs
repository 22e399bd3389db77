// Runs the journeys of users through the pages with real jobs on a real cluster, where web/test/cluster.sh has installed the
// dashboard. Each journey is also made with the keyboard alone.
import assert from 'node:assert/strict';
import {execFile, spawn} from 'node:child_process';
import https from 'node:https';
import {promisify} from 'node:util';
import {connection, expect, start, tabTo} from './harness.mjs';

const {KUBECTL: kubectlLine, NAMESPACE: namespace, SAMPLE_IMAGE: image, RUNTIME: runtime, PLUGIN: plugin} = process.env;
const [program, ...globals] = kubectlLine.split(' ');
const execute = promisify(execFile);
const kubectl = async (...words) => (await execute(program, [...globals, '-n', namespace, ...words], {maxBuffer: 1 << 26, timeout: 60_000})).stdout;
/** Runs the command line as the user of the pages. */
const cli = async (...words) => (await execute(plugin, [...words, '-n', namespace], {env: {...process.env, KUBECONFIG: process.env.USER_KUBECONFIG}, timeout: 60_000})).stdout;

const tokens = {};
for (const role of ['user', 'viewer', 'admin']) tokens[role] = (await kubectl('create', 'token', role)).trim();

let port = 0;
let forward;
let isEnding = false;
let isChecking = false;

/** Ends a port-forward that does not reach the dashboard. kubectl prints errors also about connections that pages have closed. */
async function checkForward(child) {
  if (isChecking) return;
  isChecking = true;
  const isReachable = await new Promise((resolve) => {
    // The dashboard has a certificate of its own.
    const request = https.get({host: '127.0.0.1', port, path: '/healthz', rejectUnauthorized: false, signal: AbortSignal.timeout(10_000)}, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    request.on('error', () => resolve(false));
  });
  isChecking = false;
  if (!isReachable) child.kill();
}

/** Forwards a port to the dashboard, again when its pod is replaced; resolves when the first one is open. */
const forwarding = () =>
  new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error('the dashboard is not reachable by kubectl port-forward after 60 s')), 60_000);
    const begin = () => {
      if (isEnding) return;
      const child = spawn(program, [...globals, '-n', 'mpijob-system', 'port-forward', 'service/mpijob-dashboard', ':8443'], {stdio: ['ignore', 'pipe', 'pipe']});
      forward = child;
      let text = '';
      child.stdout.on('data', (data) => {
        text += data;
        const found = /127\.0\.0\.1:(\d+)/.exec(text);
        if (!found) return;
        port = Number(found[1]);
        clearTimeout(late);
        resolve();
      });
      child.stderr.on('data', () => void checkForward(child));
      child.on('exit', () => setTimeout(begin, 200));
    };
    begin();
  });
await forwarding();
const {base, relay, close} = await connection(() => `https://127.0.0.1:${port}`);
const {open, inspect, picture, run} = await start({base, relay, tokens, timeout: 60_000});

const phaseOf = (page, phase) => page.locator('h1').getByText(phase, {exact: true}).waitFor({timeout: 150_000});
const jobPage = (name, kind = 'mpijob') => `/projects/${namespace}/${kind}/${name}`;
const enabledNext = (page) => page.waitForFunction(() => [...document.querySelectorAll('.pf-v6-c-wizard__footer button')].find((button) => /Next|Create job/.test(button.textContent))?.disabled === false);

/** Fills the wizard in with the pointer. */
async function fillWizard(page, {name, command, workers, memory}) {
  await page.getByRole('button', {name: 'Create training job'}).first().click();
  const next = async () => {
    await enabledNext(page);
    await page.getByRole('button', {name: 'Next'}).click();
  };
  await next();
  await page.getByRole('textbox', {name: 'Name'}).fill(name);
  await page.getByRole('combobox', {name: 'Project'}).fill(namespace);
  await next();
  await page.getByRole('combobox', {name: 'Image', exact: true}).fill(image);
  await page.getByRole('textbox', {name: 'Command'}).fill(command);
  await next();
  await page.getByRole('spinbutton', {name: 'Number of workers'}).fill(String(workers));
  await page.getByRole('textbox', {name: 'CPUs per worker'}).fill('50m');
  // What the job asks for is shown when the server has checked it.
  await Promise.all([
    page.waitForResponse((response) => response.request().postData()?.includes(`"memory":"${memory}"`) ?? false),
    page.getByRole('textbox', {name: 'Memory per worker'}).fill(memory),
  ]);
  await page.getByText('No quota limits this project').or(page.getByText(/requested, .* free/)).first().waitFor();
  await picture(page, 'create');
  await next();
  await next();
  await page.getByText('The API server accepts this job').waitFor();
  await page.getByRole('button', {name: 'Create job'}).click();
  await page.waitForURL(new RegExp(`mpijob/${name}`));
}

/** Fills the wizard in with the keyboard alone. */
async function typeWizard(page, {name, command, workers, memory}) {
  const press = async (locator) => {
    await tabTo(page, locator);
    await page.keyboard.press('Enter');
  };
  const type = async (locator, text) => {
    await tabTo(page, locator);
    await page.keyboard.press('ControlOrMeta+a');
    await page.keyboard.type(text);
    await page.keyboard.press('Escape');
  };
  const next = async () => {
    await enabledNext(page);
    await press(page.getByRole('button', {name: 'Next'}));
  };
  await press(page.getByRole('button', {name: 'Create training job'}));
  await page.getByRole('heading', {name: 'What do you want to run?'}).waitFor();
  await next();
  await type(page.getByRole('textbox', {name: 'Name'}), name);
  await type(page.getByRole('combobox', {name: 'Project'}), namespace);
  await next();
  await type(page.getByRole('combobox', {name: 'Image', exact: true}), image);
  await type(page.getByRole('textbox', {name: 'Command'}), command);
  await next();
  await type(page.getByRole('spinbutton', {name: 'Number of workers'}), String(workers));
  await type(page.getByRole('textbox', {name: 'CPUs per worker'}), '50m');
  await type(page.getByRole('textbox', {name: 'Memory per worker'}), memory);
  await next();
  await page.getByRole('heading', {name: 'Advanced'}).waitFor();
  await next();
  await page.getByText('The API server accepts this job').waitFor();
  await enabledNext(page);
  await press(page.getByRole('button', {name: 'Create job'}));
  await page.waitForURL(new RegExp(`mpijob/${name}`));
}

const training = {command: 'train.py --epochs 3', workers: 2, memory: '256Mi'};
// It needs more memory than its workers have, and ends well with the half more that the remedy gives it.
const greedy = {command: `python3 -c "import time; data = b'x' * (120 << 20); time.sleep(1); print('trained on', len(data))"`, workers: 1, memory: '128Mi'};

// It prints numbered lines until it is cancelled.
const counting = "sh -c 'i=0; while true; do i=$((i+1)); echo line $i; sleep 0.05; done'";

async function seeTraining(page) {
  await phaseOf(page, 'Succeeded');
  await page.getByRole('tab', {name: 'Logs'}).click();
  await page.locator('.mpi-log-line', {hasText: 'loss'}).first().waitFor();
  await page.getByRole('tab', {name: 'Training'}).click();
  await page.getByRole('slider', {name: /^Loss by/}).waitFor();
}

/** A user who starts. */
const first = {
  async 'the first job, created, watched and understood'() {
    const page = await open('user');
    await fillWizard(page, {name: 'first', ...training});
    await seeTraining(page);
    await picture(page, 'training');
    await page.getByRole('tab', {name: 'Logs'}).click();
    await page.locator('.mpi-log-line', {hasText: 'loss'}).first().waitFor();
    await picture(page, 'logs');
    // Inspections follow the pictures: the narrow screen folds the navigation.
    await inspect(page, 'cluster-logs');
    await page.getByRole('tab', {name: 'Training'}).click();
    await page.getByRole('slider', {name: /^Loss by/}).waitFor();
    await inspect(page, 'cluster-training');
    await page.getByRole('tab', {name: 'Overview'}).click();
    await page.getByRole('heading', {name: 'Timeline'}).waitFor();
    await page.getByText(/^2 workers and the launcher: .* CPUs?, .* of memory$/).waitFor();
    await inspect(page, 'cluster-succeeded');
    assert.match(await cli('list'), /first\s/, 'the command line lists the job of the wizard');
  },

  async 'the first job, with the keyboard only'() {
    const page = await open('user');
    await typeWizard(page, {name: 'first-typed', ...training});
    await phaseOf(page, 'Succeeded');
    await tabTo(page, page.getByRole('tab', {name: 'Logs'}));
    await page.keyboard.press('Enter');
    await page.locator('.mpi-log-line', {hasText: 'loss'}).first().waitFor();
  },

  async 'an administrator creates a runtime with limits, tests it, changes it and deletes it'() {
    const page = await open('admin', `/runtimes?namespace=${namespace}`);
    const made = `${runtime}-made`;
    const dialog = page.getByRole('dialog');
    await page.getByRole('button', {name: 'Create runtime'}).click();
    await dialog.getByLabel('Start from').selectOption(runtime);
    await dialog.getByRole('textbox', {name: 'Name'}).fill(made);
    await dialog.getByRole('textbox', {name: 'Workers of a job, at most'}).fill('16');
    await dialog.getByRole('textbox', {name: 'GPUs of a worker, at most'}).fill('8');
    await dialog.getByRole('button', {name: 'Create'}).click();
    const row = page.getByRole('row', {name: new RegExp(made)});
    await row.getByText('16 workers, 8 GPUs per worker').waitFor();
    await page.getByRole('button', {name: `Test runtime ${made}`}).click();
    await dialog.getByLabel('Project').selectOption(namespace);
    await dialog.getByRole('button', {name: 'Start test'}).click();
    await row.getByText('Passed').waitFor({timeout: 150_000});
    await row.getByRole('button', {name: 'Details'}).click();
    await page.getByText('Ranks on different workers').waitFor();
    await page.getByText(/^Latency /).waitFor();
    await picture(page, 'runtimes');
    await inspect(page, 'cluster-runtimes');
    // The limits hold for jobs of the wizard, at once.
    const refusal = async (workers) => {
      const refused = await page.request.post(`${base}/api/v1/jobs`, {data: {dryRun: true, commandLine: 'true', spec: {name: 'too-big', namespace, command: [], workers, runtime: made}}});
      return JSON.stringify(await refused.json());
    };
    assert.match(await refusal(17), /at most 16/, 'a job above the limit is refused with the limit');
    await page.getByRole('button', {name: `Edit runtime ${made}`}).click();
    await dialog.getByRole('textbox', {name: 'Workers of a job, at most'}).fill('2');
    await dialog.getByRole('button', {name: 'Save runtime'}).click();
    await row.getByText('2 workers, 8 GPUs per worker').waitFor();
    const deadline = Date.now() + 30_000;
    for (let text = ''; !/at most 2/.test(text); text = await refusal(3)) assert.ok(Date.now() < deadline, `the limit of 2 does not hold: ${text}`);
    // A job that runs is named before its runtime is deleted, and continues.
    const created = await page.request.post(`${base}/api/v1/jobs`, {data: {commandLine: 'sleep 3600', spec: {name: 'outlives', namespace, command: [], workers: 1, cpu: '50m', memory: '128Mi', runtime: made}}});
    assert.equal(created.status(), 200, await created.text());
    await page.goto(`${base}${jobPage('outlives', 'trainjob')}`);
    await phaseOf(page, 'Running');
    await page.goto(`${base}/runtimes?namespace=${namespace}`);
    await page.getByRole('button', {name: `Delete runtime ${made}`}).click();
    await dialog.getByText('Jobs that use it: 1 running', {exact: true}).waitFor();
    await dialog.getByRole('link', {name: `${namespace}/outlives`}).waitFor();
    await dialog.getByRole('button', {name: 'Delete runtime'}).click();
    await row.waitFor({state: 'detached'});
    assert.equal((await kubectl('get', 'clustertrainingruntimes', made, '--ignore-not-found')).trim(), '', 'the runtime is deleted');
    assert.match(await refusal(1), /not found/, 'a new job cannot use it');
    await assert.rejects(cli('suspend', 'outlives'), /runtime/i, 'Trainer refuses changes of a job without its runtime, of which the dialog warns');
    assert.match(await cli('list', 'outlives'), /Running/, 'the job continues');
    await cli('delete', 'outlives', '--yes');
  },

  async 'an administrator creates a runtime, tests it and deletes it, with the keyboard only'() {
    const page = await open('admin', `/runtimes?namespace=${namespace}`);
    const typed = `${runtime}-typed`;
    const dialog = page.getByRole('dialog');
    const press = async (locator) => {
      await tabTo(page, locator);
      await page.keyboard.press('Enter');
    };
    await press(page.getByRole('button', {name: 'Create runtime'}));
    await tabTo(page, dialog.getByLabel('Start from'));
    await page.keyboard.type(runtime);
    await tabTo(page, dialog.getByRole('textbox', {name: 'Name'}));
    await page.keyboard.type(typed);
    await tabTo(page, dialog.getByRole('textbox', {name: 'Workers of a job, at most'}));
    await page.keyboard.press('ControlOrMeta+a');
    await page.keyboard.type('8');
    await page.keyboard.press('Enter');
    const row = page.getByRole('row', {name: new RegExp(typed)});
    await row.getByText('8 workers').waitFor();
    await press(page.getByRole('button', {name: `Test runtime ${typed}`}));
    await tabTo(page, dialog.getByLabel('Project'));
    await page.keyboard.type(namespace);
    await press(dialog.getByRole('button', {name: 'Start test'}));
    await row.getByText('Passed').waitFor({timeout: 150_000});
    await press(page.getByRole('button', {name: `Delete runtime ${typed}`}));
    await press(dialog.getByRole('button', {name: 'Delete runtime'}));
    await row.waitFor({state: 'detached'});
  },
};

/** A user whose job fails, and a viewer who reads why. */
const repair = {
  async 'a failed job is cloned with its remedy, and succeeds'() {
    const page = await open('user');
    await fillWizard(page, {name: 'greedy', ...greedy});
    await phaseOf(page, 'Failed');
    await page.getByRole('heading', {name: /Why it failed/}).getByText('OutOfMemory').waitFor();
    await picture(page, 'failed');
    await inspect(page, 'cluster-failed');
    // The guide to the code is a page of the dashboard.
    await page.getByRole('link', {name: 'Guide to OutOfMemory'}).click();
    await page.getByRole('heading', {level: 1, name: 'OutOfMemory'}).waitFor();
    await page.getByText('Increase the memory limit of each worker.').waitFor();
    await page.goBack();
    // The worker ended in order; the page shows its problem.
    await page.getByRole('tab', {name: 'Topology'}).click();
    await page.getByRole('button', {name: /^worker-0/}).click();
    await page.getByRole('region', {name: 'Details of worker-0'}).getByText(/memory limit exceeded/).first().waitFor();
    await page.getByRole('tab', {name: 'Pods'}).click();
    await page.getByRole('button', {name: 'Events of greedy-worker-0'}).click();
    await page.getByText('pod/greedy-worker-0').nth(1).waitFor();
    await expect(page.locator('td', {hasText: 'pod/greedy-launcher'}), 'only events of the pod').toHaveCount(0);
    await page.getByRole('tab', {name: 'Overview'}).click();
    await page.getByRole('link', {name: /^Log at Failed/}).click();
    await page.locator('.mpi-log-line').first().waitFor();
    await page.getByRole('button', {name: 'Clone with this change'}).first().click();
    await page.getByRole('dialog').getByRole('button', {name: 'Create clone'}).click();
    await page.waitForURL(/greedy-2/);
    await phaseOf(page, 'Succeeded');
    await page.getByRole('heading', {name: 'Attempts'}).waitFor();
    await page.getByRole('link', {name: 'Compare with greedy'}).click();
    await page.getByRole('heading', {name: 'Fields'}).waitFor();
  },

  async 'a failed job is cloned with its remedy, with the keyboard only'() {
    const page = await open('user');
    await typeWizard(page, {name: 'greedy-typed', ...greedy});
    await phaseOf(page, 'Failed');
    await tabTo(page, page.getByRole('button', {name: 'Clone with this change'}));
    await page.keyboard.press('Enter');
    const create = page.getByRole('dialog').getByRole('button', {name: 'Create clone'});
    await create.waitFor();
    await page.waitForFunction(() => [...document.querySelectorAll('[role=dialog] button')].find((button) => button.textContent === 'Create clone')?.disabled === false);
    await tabTo(page, create);
    await page.keyboard.press('Enter');
    await page.waitForURL(/greedy-typed-2/);
    await phaseOf(page, 'Succeeded');
  },

  async 'a viewer sees jobs and logs, and may change nothing'() {
    const page = await open('viewer', jobPage('greedy'));
    await page.getByRole('heading', {name: /Why it failed/}).waitFor();
    for (const name of ['Suspend', 'Cancel job', 'Clone and modify', 'Clone with this change']) await expect(page.getByRole('button', {name}), name).toHaveCount(0);
    const response = await page.request.post(`${base}/api/v1/namespaces/${namespace}/jobs/mpijob/greedy/clone`, {data: {name: 'of-viewer', changes: []}});
    assert.match(await response.text(), /Forbidden|cannot create/i, 'a viewer clones nothing');
    assert.equal((await kubectl('get', 'mpijobs', 'of-viewer', '--ignore-not-found')).trim(), '');
    await tabTo(page, page.getByRole('button', {name: 'See the log lines'}));
    await page.keyboard.press('Enter');
    await page.locator('.mpi-log').waitFor();
    await page.goto(`${base}/create?namespace=${namespace}`);
    await page.getByRole('button', {name: 'Next'}).click();
    await page.getByRole('combobox', {name: 'Project'}).fill(`${namespace} `);
    await page.getByRole('combobox', {name: 'Project'}).fill(namespace);
    await page.getByText('Ask its administrator for the role edit').waitFor();
    const created = await page.request.post(`${base}/api/v1/jobs`, {data: {commandLine: 'true', spec: {name: 'mine', namespace, command: [], workers: 1, image}}});
    assert.match(await created.text(), /Forbidden|may not|cannot create/i, 'a viewer creates nothing');
    assert.equal((await kubectl('get', 'mpijobs', 'mine', '--ignore-not-found')).trim(), '');
  },
};

/** A user who also uses the command line. */
const channels = {
  async 'a job of the command line is shown, and a job of the page is found there'() {
    const page = await open('user', `/?namespace=${namespace}`);
    await cli('create', 'from-cli', '--image', image, '--cpu', '50m', '--memory', '128Mi', '--command', counting);
    await page.getByRole('link', {name: 'from-cli', exact: true}).waitFor();
    await page.goto(base + jobPage('from-cli'));
    await phaseOf(page, 'Running');
    await inspect(page, 'cluster-running');
    // The command that the page shows does what the page shows.
    await page.getByRole('button', {name: 'The same on the command line and in Python'}).click();
    const shown = await page.locator('.mpi-snippets pre').innerText();
    assert.match(shown, /describe from-cli/);
    assert.match(await cli(...shown.split('\n')[0].replace(/^.*mpijob /, '').replace(/ -n .*/, '').split(' ')), /from-cli/);
    await page.getByRole('button', {name: 'Suspend'}).click();
    await phaseOf(page, 'Suspended');
    assert.match(await cli('list', 'from-cli'), /Suspended/);
    await cli('resume', 'from-cli');
    await phaseOf(page, 'Running');
    await page.goto(`${base}/quotas?namespace=${namespace}`);
    await page.getByRole('heading', {level: 1, name: 'Queues and quotas'}).waitFor();
    await page.getByText('No quota limits this project').waitFor();
    await inspect(page, 'cluster-quotas');
  },

  async 'a job of the command line is watched and cloned with the keyboard only, and its result is read there'() {
    await cli('create', 'cli-typed', '--image', image, '--cpu', '50m', '--memory', '128Mi', '--command', 'sh -c "sleep 5; echo the answer is 42"');
    const page = await open('user', `/?namespace=${namespace}`);
    const press = async (locator) => {
      await tabTo(page, locator);
      await page.keyboard.press('Enter');
    };
    await press(page.getByRole('link', {name: 'cli-typed', exact: true}));
    await page.waitForURL(/mpijob\/cli-typed/);
    await phaseOf(page, 'Succeeded');
    await press(page.getByRole('tab', {name: 'Logs'}));
    await page.locator('.mpi-log-line', {hasText: 'the answer is 42'}).first().waitFor();
    await press(page.getByRole('button', {name: 'Clone and modify'}));
    const dialog = page.getByRole('dialog');
    await press(dialog.getByRole('button', {name: 'memory', exact: true}));
    await tabTo(page, dialog.getByRole('textbox', {name: 'Value of change 1'}));
    await page.keyboard.press('ControlOrMeta+a');
    await page.keyboard.type('160Mi');
    await dialog.getByRole('region', {name: 'Differences'}).getByText('160Mi').first().waitFor();
    const create = dialog.getByRole('button', {name: 'Create clone'});
    await create.and(page.locator(':enabled')).waitFor();
    await press(create);
    // The page of the original has the same phase.
    await page.getByRole('heading', {level: 1, name: /cli-typed-2/}).waitFor();
    await phaseOf(page, 'Succeeded');
    assert.match(await kubectl('get', 'mpijobs', 'cli-typed-2', '-o', 'yaml'), /160Mi/, 'the clone has the change');
    assert.match(await cli('list', 'cli-typed-2'), /Succeeded/, 'the command line lists the clone');
    assert.match(await cli('logs', 'cli-typed-2'), /the answer is 42/, 'the command line reads the result of the clone');
  },
};

/** Jobs that fail in ten ways, with the code that the page of each shows. */
const causes = {
  async 'ten failures show their causes'() {
    const common = ['--image', image, '--cpu', '20m', '--memory', '128Mi'];
    const failures = {
      'fails-exit': [/ApplicationFailed|RankFailed/, ...common, '--command', 'sh -c "exit 3"'],
      'fails-python': [/ApplicationFailed|RankFailed/, ...common, '--command', `python3 -c "raise ValueError('the batch is empty')"`],
      'fails-missing': [/ProgramMissing/, ...common, '--command', '/no/such/program'],
      'fails-image': [/ImagePullFailed/, '--image', 'localhost:1/no/such/image:1', '--cpu', '20m', '--memory', '128Mi', '--command', 'true'],
      'fails-node': [/NoMatchingNode|GangNeverFits|GangImpossible|Unschedulable/, ...common, '--node-selector', 'disk=none', '--command', 'true'],
      'fails-segv': [/SegmentationFault/, ...common, '--command', 'sh -c "kill -SEGV $$$$"'],
      'fails-deadline': [/DeadlineExceeded/, ...common, '--deadline', '5s', '--command', 'sleep 600'],
      'fails-claim': [/MissingReference|VolumeClaimPending|Unschedulable/, ...common, '--volume', 'no-such-claim:/data', '--command', 'true'],
      'fails-abort': [/Aborted/, ...common, '--command', 'sh -c "kill -ABRT $$$$"'],
      'fails-memory': [/OutOfMemory/, ...common, '--command', `python3 -c "import time; data = b'x' * (200 << 20); time.sleep(1)"`],
    };
    for (const [name, [, ...words]] of Object.entries(failures)) await cli('create', name, ...words);
    const page = await open('user');
    const shown = [];
    for (const [name, [code]] of Object.entries(failures)) {
      await page.goto(base + jobPage(name));
      const label = page.locator('#diagnosis .pf-v6-c-label');
      await label.getByText(code).waitFor({timeout: 120_000}).catch(async (error) => {
        throw new Error(`${name} shows ${(await label.allInnerTexts()).join() || 'no cause'} instead of ${code}`, {cause: error});
      });
      await expect(page.locator('.mpi-cause').first(), `${name} shows a cause`).toHaveText(/.{10}/);
      await expect(page.locator('.mpi-remedies li').or(page.getByRole('button', {name: /^Evidence/})), `${name} shows what to do or the evidence`).not.toHaveCount(0);
      shown.push(`${name}: ${await label.innerText()}: ${await page.locator('.mpi-cause').innerText()}`);
    }
    await page.goto(`${base}/?namespace=${namespace}`);
    await page.getByRole('link', {name: 'fails-memory', exact: true}).waitFor();
    await picture(page, 'jobs');
    console.log(shown.map((line) => `     ${line}`).join('\n'));
  },
};

/** The server is killed, which interrupts other journeys. */
const interruptions = {
  async 'a stream of logs continues when the server is killed, without a lost line'() {
    await cli('create', 'steady', '--image', image, '--cpu', '50m', '--memory', '128Mi', '--command', counting);
    const page = await open('user', `${jobPage('steady')}?tab=logs`);
    await page.locator('.mpi-log-line', {hasText: 'line 20'}).first().waitFor({timeout: 150_000});
    await kubectl('-n', 'mpijob-system', 'delete', 'pod', '-l', 'app.kubernetes.io/name=mpijob-dashboard', '--grace-period=1', '--wait=false');
    // Every line from the first one shown on is there once: the list is virtual, so that the numbers of lines are read as they scroll by.
    const last = async () => Number((await page.locator('.mpi-log-line').last().innerText()).match(/line (\d+)/)?.[1] ?? 0);
    const before = await last();
    const deadline = Date.now() + 120_000;
    while ((await last()) < before + 100) {
      assert.ok(Date.now() < deadline, `the log has not continued after line ${before}`);
      await page.waitForTimeout(250);
    }
    await page.getByRole('button', {name: 'Stop scrolling'}).click();
    const count = Number((await page.locator('.mpi-log-foot').innerText()).match(/([\d,.]+) lines/)[1].replace(/\D/g, ''));
    const seen = await page.evaluate(async () => {
      const log = document.querySelector('.mpi-log');
      const numbers = new Map();
      for (let top = 0; top <= log.scrollHeight; top += log.clientHeight / 2) {
        log.scrollTop = top;
        await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
        for (const line of document.querySelectorAll('.mpi-log-line')) numbers.set(line.style.transform || line.style.top, Number(line.textContent.match(/line (\d+)/)?.[1] ?? 0));
      }
      return [...numbers.values()].filter((n) => n > 0);
    });
    const sorted = [...seen].sort((a, b) => a - b);
    assert.equal(new Set(seen).size, seen.length, 'no line is shown twice');
    assert.equal(sorted.at(-1) - sorted[0] + 1, sorted.length, 'no line is lost');
    console.log(`     ${count} lines, ${sorted.length} of the program, none lost and none twice`);
  },

  async 'a job is cancelled while its page and its log are open'() {
    const page = await open('user', `${jobPage('steady')}?tab=logs`);
    const other = await open('user', jobPage('steady'));
    await page.locator('.mpi-log-line').first().waitFor();
    await other.getByRole('button', {name: 'Cancel job'}).click();
    await other.getByRole('dialog').getByRole('button', {name: 'Cancel job'}).click();
    await other.getByText('This job is deleted. Its report is kept').waitFor();
    await page.getByText(/deleted while this page was open|This job is deleted/).first().waitFor();
    assert.equal((await kubectl('get', 'mpijobs', 'steady', '--ignore-not-found')).trim(), '', 'the job is cancelled');
  },
};

// Jobs of three users run at once; then the server is killed.
const code = await run([first, repair, {...channels, ...causes}], [interruptions]);
isEnding = true;
forward.kill();
close();
process.exit(code);
