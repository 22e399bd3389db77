// Measures the pages in Chromium, against the server that TestBench (internal/dashboard) starts, and writes the results to
// BENCH_FILE in the form of hack/bench. Less is better in each case.
import {readFileSync, writeFileSync} from 'node:fs';
import os from 'node:os';
import {gzipSync} from 'node:zlib';
import {start} from './harness.mjs';

const {DASHBOARD_URL: base, DASHBOARD_TOKENS: tokens, BENCH_CONTROL: control, BENCH_FILE: file} = process.env;
const {browser, open} = await start({base, tokens: JSON.parse(tokens), timeout: 60_000});

const cases = [];
function add(name, unit, ours, peers = {}) {
  const ratios = Object.fromEntries(Object.entries(peers).map(([peer, value]) => [peer, value / ours]));
  cases.push({name, unit, ours, peers, ratios});
  const others = Object.entries(peers).map(([peer, value]) => `, ${peer} ${value.toPrecision(3)} ${unit}`);
  console.log(`${name.padEnd(22)} ${ours.toPrecision(3).padStart(9)} ${unit}${others.join('')}`);
}

async function ask(path) {
  const response = await fetch(`${control}/${path}`, {method: 'POST'});
  if (!response.ok) throw new Error(`${path}: ${await response.text()}`);
  return response.json();
}

const sorted = (values) => [...values].sort((a, b) => a - b);
const median = (values) => sorted(values)[Math.floor(values.length / 2)];
const p95 = (values) => sorted(values)[Math.floor(values.length * 0.95)];

await ask('grow?to=100');
const first = await open('user');
const storageState = await first.context().storageState();
await first.context().close();

/** Opens the list in a browser without cache, and returns the seconds until its rows are on the page. */
async function firstLoad(onResponse) {
  const context = await browser.newContext({storageState, viewport: {width: 1280, height: 900}});
  const page = await context.newPage();
  if (onResponse) page.on('response', onResponse);
  const began = performance.now();
  await page.goto(`${base}/`, {waitUntil: 'commit'});
  await page.waitForFunction(() => document.querySelectorAll('tbody tr a').length >= 20, null, {polling: 'raf'});
  const took = (performance.now() - began) / 1000;
  return {context, page, took};
}

const memory = {};
for (const jobs of [100, 1000, 10_000]) {
  await ask(`grow?to=${jobs}`);
  const times = [];
  for (let i = 0; i < 5; i++) {
    const {context, took} = await firstLoad();
    times.push(took);
    await context.close();
  }
  memory[jobs] = (await ask('memory')).MiB;
  add(`list/${jobs}`, 's', median(times));

  if (jobs !== 1000) continue;
  // From the request that changes a job to the text on the page.
  const {context, page} = await firstLoad();
  await page.evaluate(() => {
    window.seen = {};
    new MutationObserver(() => {
      for (const [, mark] of document.querySelector('tbody').innerText.matchAll(/\/(\d{7}) ready/g)) window.seen[mark] ??= Date.now();
    }).observe(document.body, {subtree: true, childList: true, characterData: true});
  });
  const shown = await page.locator('tbody tr a').allInnerTexts();
  const delays = [];
  for (let i = 0; i < 60; i++) {
    const mark = 1_000_000 + i;
    const began = Date.now();
    await ask(`change?job=${Number(shown[i % shown.length].split('-')[1])}&mark=${mark}`);
    await page.waitForFunction((number) => window.seen[number], mark, {polling: 'raf'});
    delays.push(((await page.evaluate((number) => window.seen[number], mark)) - began) / 1000);
  }
  await context.close();
  add('change/p95', 's', p95(delays), {'kubectl get --watch': (await ask('kubectl?n=60')).p95});
}

// The shell is what index.html names; the list's page is loaded by it.
const scripts = new Map();
let index;
const {context} = await firstLoad((response) => {
  if (/\.js$/.test(new URL(response.url()).pathname)) scripts.set(response.url(), response.body());
  if (response.request().isNavigationRequest()) index ??= response.text();
});
const html = await index;
let shell = 0;
let all = 0;
for (const [url, body] of scripts) {
  const size = gzipSync(await body, {level: 9}).length;
  all += size;
  if (html.includes(new URL(url).pathname.split('/').pop())) shell += size;
}
add('bundle/shell-kB', 'kB', shell / 1000);
add('bundle/list-kB', 'kB', (all - shell) / 1000);
await context.close();

const tabs = await ask('tabs?n=200');
add('tabs/200', 's', tabs.p95);
add('memory/10000-jobs', 'MiB', memory[10_000]);
add('memory/per-1000-jobs', 'MiB', Math.max(0, memory[10_000] - memory[100]) / 9.9);
add('memory/per-tab', 'MiB', tabs.MiB);

// Every line of 64 pods is counted while the page goes on drawing.
const flood = await ask('flood');
{
  const flooded = await browser.newContext({viewport: {width: 1280, height: 900}, locale: 'en-GB'});
  flooded.setDefaultTimeout(60_000);
  const page = await flooded.newPage();
  await page.goto(flood.url);
  await page.getByLabel('Token', {exact: false}).first().fill(flood.token);
  await page.getByRole('button', {name: 'Log in'}).click();
  await page.getByRole('heading', {level: 1, name: 'Training jobs'}).waitFor();
  await page.goto(flood.url + flood.path);
  await page.locator('.mpi-log-line').first().waitFor();
  const began = performance.now();
  await page.evaluate(() => {
    window.longest = 0;
    let last = performance.now();
    const draw = (now) => {
      window.longest = Math.max(window.longest, now - last);
      last = now;
      requestAnimationFrame(draw);
    };
    requestAnimationFrame(draw);
  });
  const shown = () =>
    page.locator('.mpi-log-foot').evaluate((foot) => {
      const number = (pattern) => Number((pattern.exec(foot.innerText)?.[1] ?? '0').replaceAll(',', ''));
      return number(/([\d,]+) lines/) + number(/, ([\d,]+) older/);
    });
  while ((await shown()) < flood.lines) {
    if (performance.now() - began > 120_000) throw new Error(`the page shows ${await shown()} of ${flood.lines} lines after 120 s`);
    await page.waitForTimeout(100);
  }
  const took = (performance.now() - began) / 1000;
  if ((await shown()) !== flood.lines) throw new Error(`the page shows ${await shown()} lines of ${flood.lines}`);
  add('logs/300000-lines', 's', took);
  add('logs/longest-frame', 's', (await page.evaluate(() => window.longest)) / 1000);
  await flooded.close();
}

const model = /model name\s*: (.*)/.exec(readFileSync('/proc/cpuinfo', 'utf8'))?.[1];
const version = browser.version();
writeFileSync(file, `${JSON.stringify({suite: 'dashboard', date: new Date().toISOString(), machine: {cpus: os.availableParallelism(), model, kernel: os.release()}, versions: {chromium: version, node: process.version}, cases}, null, 2)}\n`);
await browser.close();
console.log(file);
