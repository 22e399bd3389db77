import {baseURL} from '../lib/base';

/** The time of the last automatic reload, so that a page whose files are missing is not loaded for ever. */
const reloadedKey = 'mpijob-reloaded';
const minInterval = 60_000;

function readReloaded(): number {
  try {
    return Number(sessionStorage.getItem(reloadedKey) ?? 0);
  } catch {
    return Date.now(); // without storage there is no guard, and so no reload
  }
}

/** Resolves when the dashboard answers; a reload before that would replace the page by the browser's error. */
async function whenReachable(): Promise<void> {
  for (;;) {
    try {
      if ((await fetch(new URL('healthz', baseURL()), {cache: 'no-store'})).ok) return;
    } catch {
      // It is asked again.
    }
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}

/**
 * Loads the page again, once a minute at most, if a part of it could not be loaded: the network changed in that moment, or a
 * new version of the dashboard has other files. Pages are loaded when they are opened, so that a form loses nothing: only
 * leaving it can end here. Until the page is loaded again, and after that, RouteError offers to do so.
 */
export function reloadMissingParts(): void {
  let isWaiting = false;
  addEventListener('vite:preloadError', () => {
    if (isWaiting || Date.now() - readReloaded() < minInterval) return;
    isWaiting = true;
    // By the time of the answer, the address is that of the page that was opened.
    void whenReachable().then(() => {
      sessionStorage.setItem(reloadedKey, String(Date.now()));
      location.reload();
    });
  });
}
