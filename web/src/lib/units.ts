function bytes(n: number): string {
  const names = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  const power = Math.min(names.length - 1, n < 1 ? 0 : Math.floor(Math.log2(n) / 10));
  return `${(n / 1024 ** power).toLocaleString(undefined, {maximumFractionDigits: 1})} ${names[power] ?? ''}`;
}

/** The formats of figures by their units. */
export const units: Record<string, (n: number) => string> = {
  cores: (n) => n.toLocaleString(undefined, {maximumFractionDigits: 2}),
  GPUs: (n) => n.toLocaleString(undefined, {maximumFractionDigits: 2}),
  percent: (n) => (n > 0 && n < 1 ? `${n.toLocaleString(undefined, {maximumFractionDigits: 1})} %` : `${n.toLocaleString(undefined, {maximumFractionDigits: 0})} %`),
  bytes: (n) => bytes(n),
  'bytes/s': (n) => `${bytes(n)}/s`,
  'packets/s': (n) => `${n.toLocaleString(undefined, {maximumFractionDigits: n < 10 ? 1 : 0})}/s`,
  '/min': (n) => `${n.toLocaleString(undefined, {maximumFractionDigits: n < 10 ? 1 : 0})}/min`,
};

/** Returns a time in milliseconds with three digits and a unit. */
export function timeText(milliseconds: number): string {
  const [value, unit] = milliseconds > 0 && milliseconds < 1 ? [1000 * milliseconds, 'µs'] : milliseconds < 1000 ? [milliseconds, 'ms'] : milliseconds < 3.6e6 ? [milliseconds / 1000, 's'] : [milliseconds / 3.6e6, 'h'];
  const digits = unit === 'µs' || value >= 100 ? 0 : value >= 10 || unit === 'h' ? 1 : 2;
  return `${value.toLocaleString(undefined, {minimumFractionDigits: unit === 'ms' ? 0 : digits, maximumFractionDigits: digits})} ${unit}`;
}

/** Returns a part in percent of the whole. */
export const shareText = (part: number, whole: number): string => (whole > 0 ? `${((100 * part) / whole).toLocaleString(undefined, {minimumFractionDigits: 1, maximumFractionDigits: 1})} %` : '–');

/** Returns a figure of a program as text. */
export const figureText = (n: number): string => (Math.abs(n) >= 1e5 || (n !== 0 && Math.abs(n) < 1e-3) ? n.toExponential(1) : n.toLocaleString(undefined, {maximumFractionDigits: 4}));

/** Returns the name of a figure as a title: latency_us becomes Latency (us). */
export const titleOfFigure = (name: string): string => {
  const words = name.replace(/_(ns|us|ms|s|[kmgt]i?bps)$/, ' ($1)').replaceAll('_', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
};
