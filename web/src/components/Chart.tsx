import {ExpandableSection} from '@patternfly/react-core';
import {Table, Tbody, Td, Th, Thead, Tr} from '@patternfly/react-table';
import {type KeyboardEvent, type PointerEvent, type ReactElement, useState} from 'react';

export interface Point {
  x: number;
  y: number;
}

export interface Line {
  name: string;
  points: Point[];
  /** Whether the line sums up others: it is drawn thicker. */
  isAggregate?: boolean;
}

const width = 640;
const height = 240;
const margin = {top: 12, right: 12, bottom: 28, left: 64};

/** Returns about five round numbers between two. */
export function ticks(from: number, to: number): number[] {
  const span = to - from;
  if (!(span > 0)) return [from];
  const rough = span / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough) ?? rough;
  const all: number[] = [];
  for (let n = Math.ceil(from / step) * step; n <= to + step / 1e6; n += step) all.push(Math.abs(n) < step / 1e6 ? 0 : n);
  return all;
}

/** Returns the point of a line that is nearest to a place. */
function nearest(points: Point[], x: number): Point | undefined {
  let best: Point | undefined;
  for (const point of points) if (!best || Math.abs(point.x - x) < Math.abs(best.x - x)) best = point;
  return best;
}

interface ChartProps {
  title: string;
  lines: Line[];
  xTitle: string;
  formatX: (n: number) => string;
  formatY: (n: number) => string;
  /** Whether the vertical axis begins at zero. */
  isFromZero?: boolean;
  /** A place on the horizontal axis to mark. */
  mark?: number | undefined;
}

/** A line chart. The pointer and the arrow keys read values; a table shows the same. */
export function Chart({title, lines, xTitle, formatX, formatY, isFromZero = false, mark}: ChartProps): ReactElement | null {
  const [cursor, setCursor] = useState<number | undefined>();
  const all = lines.flatMap(({points}) => points);
  if (all.length === 0) return null;
  const xs = [...new Set(all.map(({x}) => x))].sort((a, b) => a - b);
  const left = xs[0] ?? 0;
  // A single value has no range. The times of samples are so large that a smaller addition is lost.
  const right = Math.max(xs.at(-1) ?? 0, left + Math.max(Math.abs(left), 1) * 1e-9);
  let bottom = isFromZero ? 0 : Math.min(...all.map(({y}) => y));
  let top = Math.max(...all.map(({y}) => y));
  if (top === bottom) {
    top += Math.abs(top) * 0.1 || 1;
    if (!isFromZero) bottom -= Math.abs(bottom) * 0.1 || 1;
  }
  const px = (x: number): number => margin.left + ((x - left) / (right - left)) * (width - margin.left - margin.right);
  const py = (y: number): number => height - margin.bottom - ((y - bottom) / (top - bottom)) * (height - margin.top - margin.bottom);
  const at = cursor === undefined ? undefined : xs[Math.min(cursor, xs.length - 1)];
  const readings = at === undefined ? [] : lines.map(({name, points, isAggregate}, i) => ({name, i, isAggregate, point: nearest(points, at)})).filter(({point}) => point !== undefined);
  const move = (event: PointerEvent<SVGSVGElement>): void => {
    const box = event.currentTarget.getBoundingClientRect();
    const x = left + (((event.clientX - box.left) / box.width) * width - margin.left) / ((width - margin.left - margin.right) / (right - left));
    let best = 0;
    for (const [i, value] of xs.entries()) if (Math.abs(value - x) < Math.abs((xs[best] ?? 0) - x)) best = i;
    setCursor(best);
  };
  const press = (event: KeyboardEvent): void => {
    const steps: Record<string, number> = {ArrowLeft: -1, ArrowRight: 1, PageDown: -10, PageUp: 10, Home: -xs.length, End: xs.length};
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    setCursor(Math.max(0, Math.min(xs.length - 1, (cursor ?? (step > 0 ? -1 : xs.length)) + step)));
  };
  const described = readings.map(({name, point}) => `${lines.length > 1 ? `${name} ` : ''}${point ? formatY(point.y) : ''}`).join(', ');
  const shown = xs.length > 200 ? xs.filter((_, i) => i % Math.ceil(xs.length / 200) === 0) : xs;
  return (
    <figure className="mpi-chart">
      <figcaption>
        <h3>{title}</h3>
        <span className="mpi-numbers" aria-live="polite">{at === undefined ? '' : `${xTitle} ${formatX(at)}: ${described}`}</span>
      </figcaption>
      {/* Arrow keys read the values, as a slider does. */}
      <div
        className="mpi-chart-area"
        tabIndex={0}
        role="slider"
        aria-label={`${title} by ${xTitle}`}
        aria-valuemin={left}
        aria-valuemax={right}
        aria-valuenow={at ?? right}
        aria-valuetext={at === undefined ? `${lines.length} lines with ${xs.length} values. Arrow keys read them.` : `${formatX(at)}: ${described}`}
        onKeyDown={press}
        onBlur={() => setCursor(undefined)}
      >
        <svg viewBox={`0 0 ${width} ${height}`} aria-hidden="true" onPointerMove={move} onPointerLeave={() => setCursor(undefined)}>
          {ticks(bottom, top).map((y) => (
            <g key={y}>
              <line className="mpi-chart-grid" x1={margin.left} x2={width - margin.right} y1={py(y)} y2={py(y)} />
              <text x={margin.left - 8} y={py(y) + 4} textAnchor="end">{formatY(y)}</text>
            </g>
          ))}
          {ticks(left, right).map((x) => (
            <text key={x} x={px(x)} y={height - 8} textAnchor="middle">{formatX(x)}</text>
          ))}
          {mark !== undefined && mark >= left && mark <= right ? <line className="mpi-chart-mark" x1={px(mark)} x2={px(mark)} y1={margin.top} y2={height - margin.bottom} /> : null}
          {lines.map(({name, points, isAggregate}, i) =>
            points.length === 1 ? (
              <circle key={name} className={isAggregate ? 'is-aggregate' : `mpi-c${i % 8}`} cx={px(points[0]?.x ?? 0)} cy={py(points[0]?.y ?? 0)} r="4" />
            ) : (
              <polyline key={name} className={isAggregate ? 'is-aggregate' : `mpi-c${i % 8}`} points={points.map(({x, y}) => `${px(x).toFixed(1)},${py(y).toFixed(1)}`).join(' ')} />
            ),
          )}
          {at === undefined ? null : <line className="mpi-chart-cursor" x1={px(at)} x2={px(at)} y1={margin.top} y2={height - margin.bottom} />}
          {readings.map(({name, i, isAggregate, point}) => (point ? <circle key={name} className={isAggregate ? 'is-aggregate' : `mpi-c${i % 8}`} cx={px(point.x)} cy={py(point.y)} r="4" /> : null))}
        </svg>
      </div>
      {lines.length > 1 ? (
        <ul className="mpi-legend">
          {lines.slice(0, 16).map(({name, isAggregate}, i) => (
            <li key={name}>
              <svg viewBox="0 0 16 4" aria-hidden="true"><line className={isAggregate ? 'is-aggregate' : `mpi-c${i % 8}`} x1="0" x2="16" y1="2" y2="2" /></svg>
              {name}
            </li>
          ))}
          {lines.length > 16 ? <li>and {lines.length - 16} more</li> : null}
        </ul>
      ) : null}
      <ExpandableSection toggleText={`${title} as a table`}>
        <div className="mpi-chart-table">
          <Table aria-label={title} variant="compact" gridBreakPoint="">
            <Thead>
              <Tr>
                <Th>{xTitle}</Th>
                {lines.map(({name}) => <Th key={name}>{name}</Th>)}
              </Tr>
            </Thead>
            <Tbody>
              {shown.map((x) => (
                <Tr key={x}>
                  <Td className="mpi-numbers">{formatX(x)}</Td>
                  {lines.map(({name, points}) => {
                    const point = points.find((each) => each.x === x);
                    return <Td key={name} className="mpi-numbers">{point ? formatY(point.y) : '–'}</Td>;
                  })}
                </Tr>
              ))}
            </Tbody>
          </Table>
        </div>
      </ExpandableSection>
    </figure>
  );
}
