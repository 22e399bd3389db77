// Tests the axes of charts (src/lib/ticks.ts).
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {test} from 'node:test';
import ts from 'typescript';

process.env.TZ = 'UTC';
const source = readFileSync(new URL('../src/lib/ticks.ts', import.meta.url), 'utf8');
const {outputText} = ts.transpileModule(source, {compilerOptions: {target: 'ES2022', module: 'ESNext'}});
const {valueAxis, placeAxis, timeAxis} = await import(`data:text/javascript,${encodeURIComponent(outputText)}`);

const KiB = 1024;

test('values have round numbers around them', () => {
  for (const [from, to, isBinary, ticks] of [
    [0, 10, false, [0, 5, 10]],
    [0, 1, false, [0, 0.5, 1]],
    [0, 7, false, [0, 2, 4, 6, 8]],
    [-3, 3, false, [-4, -2, 0, 2, 4]],
    [0, 3.2 * KiB ** 3, true, [0, KiB ** 3, 2 * KiB ** 3, 3 * KiB ** 3, 4 * KiB ** 3]],
    [0, 3900 * KiB, true, [0, KiB ** 2, 2 * KiB ** 2, 3 * KiB ** 2, 4 * KiB ** 2]],
  ]) {
    const axis = valueAxis(from, to, 4, isBinary);
    assert.deepEqual(axis.ticks, ticks, `${from} to ${to}`);
    assert.ok(axis.from <= from && axis.to >= to);
  }
});

test('places have marks at round numbers between the ends', () => {
  assert.deepEqual(placeAxis(0, 100, 6).ticks, [0, 20, 40, 60, 80, 100]);
  assert.deepEqual(placeAxis(3, 97, 5).ticks, [20, 40, 60, 80]);
  assert.deepEqual(placeAxis(0, 0.9, 5).ticks.map((tick) => tick.toFixed(1)), ['0.0', '0.2', '0.4', '0.6', '0.8']);
});

test('times have marks at round times of the clock', () => {
  const at = (text) => Date.parse(`2026-01-05T${text}Z`) / 1000;
  assert.deepEqual(timeAxis(at('10:01:00'), at('10:31:00'), 4).ticks, [at('10:10:00'), at('10:20:00'), at('10:30:00')]);
  assert.deepEqual(timeAxis(at('00:30:00'), at('23:00:00'), 4).ticks, [at('06:00:00'), at('12:00:00'), at('18:00:00')].slice(0, 3));
});

test('every axis has at least two marks, in order and within it, and not many more than asked for', () => {
  const begin = 1_700_000_000;
  for (const most of [2, 3, 5, 8, 14]) {
    for (let n = 0; n < 370; n++) {
      const length = 1.07 ** n / 1000;
      for (const [name, axis] of [['places', placeAxis(n / 7, n / 7 + length, most)], ['times', timeAxis(begin + n, begin + n + Math.min(length, 1e8), most)], ['one place', placeAxis(n, n, most)], ['one time', timeAxis(begin, begin, most)]]) {
        const text = `${name}: ${most} of ${length}: ${axis.ticks}`;
        assert.ok(axis.ticks.length >= 2, text);
        assert.ok(axis.ticks.every((tick, i) => i === 0 || tick > axis.ticks[i - 1]), text);
        const slack = (axis.to - axis.from) * 1e-6;
        assert.ok(axis.ticks[0] >= axis.from - slack && axis.ticks.at(-1) <= axis.to + slack, text);
        assert.ok(axis.ticks.length <= Math.max(most, 2) * 3, text);
      }
    }
  }
});
