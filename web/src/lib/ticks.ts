/** An axis: where it begins and ends, and its marks, at least two. */
export interface Axis {
  from: number;
  to: number;
  ticks: number[];
}

/** Returns the number of the first and of the last multiple of a step in a range. */
const numbersOf = (from: number, to: number, step: number, offset: number): [number, number] => [Math.ceil((from + offset) / step - 1e-9), Math.floor((to + offset) / step + 1e-9)];

const multiples = (from: number, to: number, step: number, offset = 0): number[] => {
  const all: number[] = [];
  const [first, last] = numbersOf(from, to, step, offset);
  for (let n = first; n <= last; n++) all.push(n * step - offset + 0); // not -0
  return all;
};

/** Returns the least round number that is not less: 1, 2 or 5 times a power of ten; in bytes also times a power of 1024. */
function roundStep(rough: number, isBinary: boolean): number {
  const unit = isBinary && rough >= 1 ? 1024 ** Math.floor(Math.log2(rough) / 10) : 1;
  const power = 10 ** Math.floor(Math.log10(rough / unit));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= (rough / unit) * (1 - 1e-9)) ?? 10 * power;
  // 1000 KiB are not a round number of MiB.
  return isBinary && step >= 1000 ? 1024 * unit : step * unit;
}

/** Returns an axis of round numbers around values, with about so many marks. */
export function valueAxis(from: number, to: number, count: number, isBinary = false): Axis {
  const step = roundStep((to - from) / count, isBinary);
  const axis = {from: Math.floor(from / step + 1e-9) * step, to: Math.ceil(to / step - 1e-9) * step};
  return {...axis, ticks: multiples(axis.from, axis.to, step)};
}

/** Returns the marks of the shortest step that has at most so many; with the step before if they are fewer than two. */
function marksOf(from: number, to: number, steps: number[], most: number, offset = 0): number[] {
  const countOf = (step: number): number => {
    const [first, last] = numbersOf(from, to, step, offset);
    return last - first + 1;
  };
  const index = steps.findIndex((step) => countOf(step) <= most);
  for (const step of [steps[index], steps[index - 1]]) if (step && countOf(step) > 1) return multiples(from, to, step, offset);
  return [from, to];
}

/** Returns an axis from one place to another, with about so many marks at round numbers, and at least two. */
export function placeAxis(from: number, to: number, most: number): Axis {
  // A single place has no range.
  if (!(to > from)) return placeAxis(from - 2, to + 2, most);
  const power = 10 ** Math.floor(Math.log10((to - from) / 100));
  return {from, to, ticks: marksOf(from, to, [1, 10, 100, 1000].flatMap((n) => [n * power, 2 * n * power, 5 * n * power]), most)};
}

const minute = 60;
const hour = 60 * minute;
const day = 24 * hour;
const timeSteps = [1, 2, 5, 10, 15, 30, minute, 2 * minute, 5 * minute, 10 * minute, 15 * minute, 30 * minute, hour, 2 * hour, 3 * hour, 6 * hour, 12 * hour, day, 2 * day, 7 * day, 14 * day, 28 * day, 56 * day, 112 * day, 224 * day, 448 * day, 896 * day];

/** Returns an axis from one time to another, in seconds since 1970, with about so many marks at round times, and at least two. */
export function timeAxis(from: number, to: number, most: number): Axis {
  // A single time has no range.
  if (to - from < 2) return timeAxis(from - minute, to + minute, most);
  return {from, to, ticks: marksOf(from, to, timeSteps, most, -60 * new Date(from * 1000).getTimezoneOffset())};
}
