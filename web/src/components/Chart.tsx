import {ExpandableSection} from '@patternfly/react-core';
import {Table, Tbody, Td, Th, Thead, Tr} from '@patternfly/react-table';
import {type KeyboardEvent, type PointerEvent, type ReactElement, useLayoutEffect, useState} from 'react';
import {placeAxis, timeAxis, valueAxis} from '../lib/ticks';
import {timeLabel} from '../lib/time';

export interface Point {
  x: number;
  y: number;
}

export interface Line {
  name: string;
  points: Point[];
  /** Whether the line sums up others: it is drawn thicker. */
  isAggregate?: boolean;
  /** Whether the line is a limit of the others: it is dashed. */
  isLimit?: boolean;
}

const margin = {top: 12, right: 12, bottom: 28};
/** The width of a character of a label, in pixels. */
const characterWidth = 6.6;

/** Returns the width of an element in pixels, also after it has changed, and the reference that the element needs. */
function useWidth(): [number, (element: HTMLElement | null) => void] {
  const [element, setElement] = useState<HTMLElement | null>(null);
  const [width, setWidth] = useState(640);
  useLayoutEffect(() => {
    if (!element) return;
    const measure = (): void => setWidth(Math.max(200, Math.floor(element.clientWidth)));
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, [element]);
  return [width, setElement];
}

/** Returns the parts of a line between gaps: places without a point that are longer than usual. */
function partsOf(points: Point[], gap: number): Point[][] {
  const parts: Point[][] = [];
  let last: Point | undefined;
  for (const point of points) {
    if (last && point.x - last.x <= gap) parts.at(-1)?.push(point);
    else parts.push([point]);
    last = point;
  }
  return parts;
}

/** Returns the point of a line that is nearest to a place. */
function nearest(points: Point[], x: number): Point | undefined {
  let best: Point | undefined;
  for (const point of points) if (!best || Math.abs(point.x - x) < Math.abs(best.x - x)) best = point;
  return best;
}

/** Returns a format of marks that tells them apart: one with more digits if they differ less than the usual one shows. */
function distinct(marks: number[], format: (n: number) => string): (n: number) => string {
  return new Set(marks.map(format)).size < marks.length ? (n) => String(Number(n.toPrecision(10))) : format;
}

interface ChartProps {
  title: string;
  lines: Line[];
  xTitle: string;
  formatX: (n: number) => string;
  formatY: (n: number) => string;
  /** Whether the vertical axis begins at zero. */
  isFromZero?: boolean;
  /** Whether the horizontal axis is time, in seconds since 1970. */
  isTime?: boolean;
  /** Whether the values are bytes, whose round numbers are powers of 1024. */
  isBinary?: boolean;
  /** The longest distance of two points that a line connects. */
  gap?: number;
  /** A place on the horizontal axis to mark. */
  mark?: number | undefined;
}

const styleOf = ({isAggregate, isLimit}: Pick<Line, 'isAggregate' | 'isLimit'>, i: number): string => (isLimit ? 'is-limit' : isAggregate ? 'is-aggregate' : `mpi-c${i % 8}`);

/** A line chart. The pointer and the arrow keys read values; a table shows the same. */
export function Chart({title, lines, xTitle, formatX, formatY, isFromZero = false, isTime = false, isBinary = false, gap = Infinity, mark}: ChartProps): ReactElement | null {
  const [cursor, setCursor] = useState<number | undefined>();
  const [isTable, setTable] = useState(false);
  const [width, measured] = useWidth();
  const all = lines.flatMap(({points}) => points);
  if (all.length === 0) return null;
  const height = width < 400 ? 200 : 240;
  const xs = [...new Set(all.map(({x}) => x))].sort((a, b) => a - b);
  let [bottom, top] = [isFromZero ? 0 : Infinity, -Infinity];
  for (const {y} of all) {
    bottom = isFromZero ? 0 : Math.min(bottom, y);
    top = Math.max(top, y);
  }
  if (top === bottom) {
    top += Math.abs(top) * 0.1 || 1;
    if (!isFromZero) bottom -= Math.abs(bottom) * 0.1 || 1;
  }
  const vertical = valueAxis(bottom, top, 4, isBinary);
  bottom = vertical.from;
  top = vertical.to;
  const labelY = distinct(vertical.ticks, formatY);
  const marginLeft = 16 + Math.ceil(characterWidth * Math.max(...vertical.ticks.map((y) => labelY(y).length)));
  const inner = width - marginLeft - margin.right;
  const horizontal = (isTime ? timeAxis : placeAxis)(xs[0] ?? 0, xs.at(-1) ?? 0, Math.max(2, Math.floor(inner / 70)));
  const {from: left, to: right} = horizontal;
  const label = isTime ? timeLabel(horizontal.ticks) : distinct(horizontal.ticks, formatX);
  const px = (x: number): number => marginLeft + ((x - left) / (right - left)) * inner;
  const py = (y: number): number => height - margin.bottom - ((y - bottom) / (top - bottom)) * (height - margin.top - margin.bottom);
  // A label at an edge stays within the picture.
  const anchor = (x: number): 'start' | 'middle' | 'end' => {
    const half = (characterWidth * label(x).length) / 2;
    return px(x) + half > width ? 'end' : px(x) - half < 0 ? 'start' : 'middle';
  };
  const at = cursor === undefined ? undefined : xs[Math.min(cursor, xs.length - 1)];
  const readings = at === undefined ? [] : lines.map((line, i) => ({name: line.name, style: styleOf(line, i), point: nearest(line.points, at)})).filter(({point}) => point !== undefined);
  const move = (event: PointerEvent<SVGSVGElement>): void => {
    const box = event.currentTarget.getBoundingClientRect();
    const x = left + (((event.clientX - box.left) / box.width) * width - marginLeft) / (inner / (right - left));
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
  return (
    <figure className="mpi-chart">
      <figcaption>
        <h3>{title}</h3>
        <span className={`mpi-reading mpi-numbers${lines.length > 2 || width < 320 ? ' is-tall' : ''}`} aria-live="polite">{at === undefined ? '' : `${xTitle} ${formatX(at)}: ${described}`}</span>
      </figcaption>
      {/* Arrow keys read the values, as a slider does. */}
      <div
        ref={measured}
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
          {vertical.ticks.map((y) => (
            <g key={y}>
              <line className="mpi-chart-grid" x1={marginLeft} x2={width - margin.right} y1={py(y)} y2={py(y)} />
              <text data-axis="y" x={marginLeft - 8} y={py(y) + 4} textAnchor="end">{labelY(y)}</text>
            </g>
          ))}
          {horizontal.ticks.map((x) => (
            <text key={x} data-axis="x" x={px(x)} y={height - 8} textAnchor={anchor(x)}>{label(x)}</text>
          ))}
          {mark !== undefined && mark >= left && mark <= right ? <line className="mpi-chart-mark" x1={px(mark)} x2={px(mark)} y1={margin.top} y2={height - margin.bottom} /> : null}
          {lines.flatMap((line, i) =>
            partsOf(line.points, line.isLimit ? Infinity : gap).map((part) =>
              part.length === 1 ? (
                <circle key={`${line.name} ${part[0]?.x ?? 0}`} className={styleOf(line, i)} cx={px(part[0]?.x ?? 0)} cy={py(part[0]?.y ?? 0)} r={line.points.length === 1 ? 4 : 1.5} />
              ) : (
                <polyline key={`${line.name} ${part[0]?.x ?? 0}`} className={styleOf(line, i)} points={part.map(({x, y}) => `${px(x).toFixed(1)},${py(y).toFixed(1)}`).join(' ')} />
              ),
            ),
          )}
          {at === undefined ? null : <line className="mpi-chart-cursor" x1={px(at)} x2={px(at)} y1={margin.top} y2={height - margin.bottom} />}
          {readings.map(({name, style, point}) => (point ? <circle key={name} className={style} cx={px(point.x)} cy={py(point.y)} r="4" /> : null))}
        </svg>
      </div>
      {lines.length > 1 ? (
        <ul className="mpi-legend">
          {lines.slice(0, 16).map((line, i) => (
            <li key={line.name}>
              <svg viewBox="0 0 16 4" aria-hidden="true"><line className={styleOf(line, i)} x1="0" x2="16" y1="2" y2="2" /></svg>
              {line.name}
            </li>
          ))}
          {lines.length > 16 ? <li>and {lines.length - 16} more</li> : null}
        </ul>
      ) : null}
      <ExpandableSection toggleText={`${title} as a table`} isExpanded={isTable} onToggle={(_, on) => setTable(on)}>
        {isTable ? <ChartTable title={title} lines={lines} xs={xs} xTitle={xTitle} formatX={formatX} formatY={formatY} /> : null}
      </ExpandableSection>
    </figure>
  );
}

/** The maximum numbers of lines and of rows of a table. */
const maxColumns = 50;
const maxRows = 200;

/** The values of a chart as a table: of many lines the first ones, and of many values some. */
function ChartTable({title, lines, xs, xTitle, formatX, formatY}: Pick<ChartProps, 'title' | 'lines' | 'xTitle' | 'formatX' | 'formatY'> & {xs: number[]}): ReactElement {
  const rows = xs.length > maxRows ? xs.filter((_, i) => i % Math.ceil(xs.length / maxRows) === 0) : xs;
  const columns = lines.slice(0, maxColumns).map(({name, points}) => ({name, values: new Map(points.map(({x, y}) => [x, y]))}));
  return (
    <div className="mpi-chart-table">
      {columns.length < lines.length ? <p className="mpi-subtle">The first {columns.length} of {lines.length} lines.</p> : null}
      <Table aria-label={title} variant="compact" gridBreakPoint="">
        <Thead>
          <Tr>
            <Th>{xTitle}</Th>
            {columns.map(({name}) => <Th key={name}>{name}</Th>)}
          </Tr>
        </Thead>
        <Tbody>
          {rows.map((x) => (
            <Tr key={x}>
              <Td className="mpi-numbers">{formatX(x)}</Td>
              {columns.map(({name, values}) => {
                const value = values.get(x);
                return <Td key={name} className="mpi-numbers">{value === undefined ? '–' : formatY(value)}</Td>;
              })}
            </Tr>
          ))}
        </Tbody>
      </Table>
    </div>
  );
}
