let url: string | undefined;

/** Returns the URL of the dashboard: that of the page, or the one that a host page sets. */
export const baseURL = (): string => url ?? document.baseURI;

/** Sets the URL of the dashboard, relative to that of the page. */
export function setBaseURL(path: string): void {
  url = new URL(path.replace(/\/*$/, '/'), location.href).href;
}
