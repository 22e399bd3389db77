// Opens the pages in a real browser, and checks them: accessibility (axe, all rules of WCAG 2.1 A and AA), that no policy is
// violated, and that the page is no wider than the screen.
import {AsyncLocalStorage} from 'node:async_hooks';
import {spawnSync} from 'node:child_process';
import {mkdirSync, mkdtempSync, readFileSync, rmSync} from 'node:fs';
import {createRequire} from 'node:module';
import net from 'node:net';
import tls from 'node:tls';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {chromium} from 'playwright';
import {expect as expectWith} from 'playwright/test';
import {pipe} from './pipe.mjs';

const {CHROMIUM: program, SCREENSHOTS: folder = '', PICTURES: pictures = ''} = process.env;
/** Asserts what a page shows, and waits for it: what is read only once may be read while the page still loads. */
export const expect = expectWith.configure({timeout: 20_000});

const axe = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
for (const each of [folder, pictures]) if (each) mkdirSync(each, {recursive: true});

/** Returns a connection to a server that the test can cut, as a network does. It listens on a port and on a socket. */
export async function connection(server) {
  const sockets = new Set();
  let isCut = false;
  const accept = (client) => {
    if (isCut) return client.destroy();
    const {protocol, port, hostname: host} = new URL(server());
    // Pages reach a server with TLS without it, because a certificate of its own is not trusted.
    const to = protocol === 'https:' ? tls.connect({port, host, rejectUnauthorized: false}) : net.connect(port, host);
    for (const socket of [client, to]) {
      sockets.add(socket);
      socket.on('close', () => sockets.delete(socket));
    }
    pipe(client, to);
  };
  const listen = async (...where) => {
    const proxy = net.createServer(accept);
    await new Promise((resolve) => proxy.listen(...where, resolve));
    return proxy;
  };
  const home = mkdtempSync(join(tmpdir(), 'dashboard-'));
  const path = join(home, 'socket');
  const proxies = [await listen(0, '127.0.0.1'), await listen(path)];
  const {port} = proxies[0].address();
  return {
    base: `http://127.0.0.1:${port}`,
    relay: {port, path},
    cut(on) {
      isCut = on;
      if (on) for (const socket of sockets) socket.destroy();
    },
    close() {
      for (const proxy of proxies) proxy.close();
      rmSync(home, {recursive: true, force: true});
    },
  };
}

/** Starts Chromium; with a relay on a network of its own (isolated.sh), if the machine allows it. */
async function launch(base, relay) {
  const isIsolated = relay && spawnSync('unshare', ['--net', 'ip', 'link', 'set', 'lo', 'up']).status === 0;
  const browser = await chromium.launch({
    executablePath: isIsolated ? fileURLToPath(new URL('isolated.sh', import.meta.url)) : program,
    args: ['--no-sandbox', '--disable-dev-shm-usage'],
    ...(isIsolated ? {env: {...process.env, RELAY_PORT: String(relay.port), RELAY_SOCKET: relay.path}} : {}),
  });
  // The relay listens soon after Chromium has started.
  const page = await browser.newPage();
  for (const deadline = Date.now() + 60_000; ; ) {
    const error = await page.goto(`${base}/healthz`).then(() => undefined, (failure) => failure);
    if (!error) break;
    if (Date.now() > deadline) throw error;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  await page.close();
  return browser;
}

/**
 * Returns the functions of journeys: open, logIn, inspect, picture, and run, which runs them. A journey that takes longer than
 * its limit in milliseconds has failed. A page may take settling milliseconds until it looks as it should.
 */
export async function start({base, relay, tokens, timeout = 20_000, limit = 300_000, settling = 5_000}) {
  const browser = await launch(base, relay);
  const problems = [];
  let checks = 0;
  // The contexts of the journey that runs.
  const opened = new AsyncLocalStorage();

  /** Opens a page as a user. Errors in the console and violations of the policy are problems. */
  async function open(role, path = '', options = {}) {
    const context = await browser.newContext({viewport: {width: 1280, height: 900}, locale: 'en-GB', timezoneId: 'UTC', reducedMotion: 'reduce', ...options});
    context.setDefaultTimeout(timeout);
    opened.getStore()?.push(context);
    const page = await context.newPage();
    page.on('console', (message) => {
      const text = message.text();
      // An expired login and a missing job are responses that pages show.
      // Playwright's screenshots add a style of their own.
      if (message.type() === 'error' && !((folder || pictures) && text.startsWith('Applying inline style')) && !/status of (401|403|404|410|422|429|502|503)|net::ERR_/.test(text)) problems.push(`console of ${page.url()}: ${text}`);
    });
    page.on('pageerror', (error) => problems.push(`error in ${page.url()}: ${error.message}`));
    await page.goto(`${base}/`);
    if (role) await logIn(page, role);
    if (path) await page.goto(base + path);
    return page;
  }

  async function logIn(page, role) {
    await page.getByLabel('Token', {exact: false}).first().fill(tokens[role]);
    await page.getByRole('button', {name: 'Log in'}).click();
    await page.getByRole('heading', {level: 1, name: 'Training jobs'}).waitFor({timeout: 60_000});
  }

  /** Returns what is wrong with a page at this moment. */
  async function faults(page, where, width) {
    const {violations} = await page.evaluate(() => window.axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']}));
    const found = violations.map((violation) => `${where}: ${violation.id}: ${violation.help}\n    ${violation.nodes.slice(0, 3).map((node) => node.html.slice(0, 200) + (node.any[0]?.message ? `\n      ${node.any[0].message}` : '')).join('\n    ')}`);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    if (wide > 1) found.push(`${where}: the page is ${wide} px wider than the screen`);
    const cut = await page.evaluate(() => [...document.querySelectorAll('table.mpi-jobs')].map((element) => Math.round(Math.max(element.scrollWidth - element.clientWidth, element.getBoundingClientRect().right - innerWidth))).find((pixels) => pixels > 1));
    if (cut && width > 320) found.push(`${where}: ${cut} px of the list are cut off`);
    const marks = await page.evaluate(() => [...document.querySelectorAll('.mpi-chart-area svg')].flatMap((chart) => ['x', 'y'].map((axis) => [...chart.querySelectorAll(`[data-axis=${axis}]`)].map((text) => text.textContent))));
    for (const axis of marks) if (axis.length < 2 || new Set(axis).size < axis.length) found.push(`${where}: an axis has the marks ${axis.join(' | ')}`);
    return found;
  }

  /**
   * Checks a page: in both themes, at a zoom of 200 % (1280 pixels are then 640), and on a narrow screen. The page follows a new
   * width, new data and a menu that closes in a moment, so what is wrong must still be wrong when it has settled.
   */
  async function inspect(page, name) {
    checks++;
    for (const [theme, width] of [['light', 1280], ['dark', 1280], ['light', 640], ['light', 320]]) {
      await page.setViewportSize({width, height: 900});
      await page.evaluate((dark) => document.documentElement.classList.toggle('pf-v6-theme-dark', dark), theme === 'dark');
      await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
      await page.evaluate(() => document.getAnimations().filter((animation) => animation.effect?.getComputedTiming().endTime !== Infinity).forEach((animation) => animation.finish()));
      if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(readFileSync(axe, 'utf8'));
      let found = await faults(page, `${name} (${theme}, ${width} px)`, width);
      for (const deadline = Date.now() + settling; found.length > 0 && Date.now() < deadline; ) {
        await new Promise((resolve) => setTimeout(resolve, 250));
        found = await faults(page, `${name} (${theme}, ${width} px)`, width);
      }
      problems.push(...found);
      if (folder) await page.screenshot({path: join(folder, `${name}-${theme}-${width}.png`)});
    }
    await page.setViewportSize({width: 1280, height: 900});
    await page.evaluate(() => document.documentElement.classList.remove('pf-v6-theme-dark'));
  }

  /** Saves a page as a picture for the documentation, in PICTURES. */
  async function picture(page, name) {
    if (!pictures) return;
    await page.setViewportSize({width: 1280, height: 800});
    // Notifications cover the page.
    await page.evaluate(() => document.querySelectorAll('.pf-v6-c-alert-group button').forEach((button) => button.click()));
    await page.locator('.pf-v6-c-alert-group .pf-v6-c-alert').first().waitFor({state: 'detached'});
    await page.evaluate(() => document.getElementById('main')?.scrollTo(0, 0));
    await page.mouse.move(0, 0);
    await page.screenshot({path: join(pictures, `dashboard-${name}.png`), animations: 'disabled'});
  }

  /**
   * Runs journeys, and returns the exit code. Stages run one after the other; a stage is a list of lanes, which run at once; a
   * lane is an object of journeys, which run one after the other. JOURNEY selects journeys by their names.
   */
  async function run(...stages) {
    let failed = 0;
    const only = process.env.JOURNEY ? new RegExp(process.env.JOURNEY, 'i') : /./;
    const runJourney = async (name, journey) => {
      const contexts = [];
      const began = Date.now();
      const seconds = () => ((Date.now() - began) / 1000).toFixed(1);
      let timer;
      const late = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error(`the journey has not ended after ${limit / 1000} s`)), limit);
      });
      try {
        await Promise.race([opened.run(contexts, journey), late]);
        console.log(`ok   ${name} (${seconds()} s)`);
      } catch (error) {
        const number = ++failed;
        console.log(`FAIL ${name} (${seconds()} s): ${error.stack}`);
        for (const page of contexts.flatMap((context) => context.pages())) {
          console.log(`     ${page.url()}: ${(await page.locator('#main').innerText({timeout: 2_000}).catch(() => '')).replace(/\s+/g, ' ').slice(0, 1500)}`);
          if (folder) await page.screenshot({path: join(folder, `FAILED-${number}.png`)}).catch(() => {});
        }
      }
      clearTimeout(timer);
      // This also ends what a late journey waits for.
      for (const context of contexts) await context.close();
    };
    for (const lanes of stages) {
      await Promise.all(
        lanes.map(async (lane) => {
          for (const [name, journey] of Object.entries(lane)) if (only.test(name)) await runJourney(name, journey);
        }),
      );
    }
    await browser.close();
    for (const problem of new Set(problems)) console.log(`PROBLEM ${problem}`);
    console.log(`${checks} pages checked, ${new Set(problems).size} problems, ${failed} journeys failed`);
    return failed > 0 || problems.length > 0 ? 1 : 0;
  }
  return {browser, open, logIn, inspect, picture, run};
}

/** Moves the focus to an element by the Tab key alone. */
export async function tabTo(page, locator) {
  await locator.first().waitFor();
  for (let i = 0; i < 150; i++) {
    if (await locator.first().evaluate((element) => element === document.activeElement)) return;
    await page.keyboard.press('Tab');
  }
  throw new Error(`the Tab key does not reach ${locator}`);
}
