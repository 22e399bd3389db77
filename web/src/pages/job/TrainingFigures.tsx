import {Card, CardBody} from '@patternfly/react-core';
import type {ReactElement} from 'react';
import type {ReportTrainingCurve, ReportTrainingCurves} from '../../api/types';
import {Chart} from '../../components/Chart';
import {moment, timeOfDay} from '../../lib/time';
import {figureText, titleOfFigure} from '../../lib/units';

const axes: Record<ReportTrainingCurve['by'], {title: string; scale: number; format: (n: number) => string}> = {
  Step: {title: 'Step', scale: 1, format: figureText},
  Epoch: {title: 'Epoch', scale: 0.001, format: figureText},
  Time: {title: 'Time', scale: 1, format: (seconds) => timeOfDay(new Date(seconds * 1000).toISOString())},
};

function Figure({curve}: {curve: ReportTrainingCurve}): ReactElement {
  const {title: by, scale, format} = axes[curve.by];
  const values = (curve.values ?? []).map(Number);
  const points = (curve.at ?? []).flatMap((at, i) => {
    const y = values[i];
    return y === undefined || !Number.isFinite(y) ? [] : [{x: at * scale, y}];
  });
  const title = titleOfFigure(curve.name);
  return (
    <Card component="section" aria-label={title}>
      <CardBody>
        <Chart title={title} lines={[{name: title, points}]} xTitle={by} formatX={format} formatY={figureText} isTime={curve.by === 'Time'} />
        {points.length === 0 ? <h3>{title}</h3> : null}
        {curve.notFiniteAt === undefined ? null : (
          <p className="mpi-subtle">
            {curve.values?.at(-1) === 'NaN' ? 'It is not a number' : 'It was not a finite number'}, first at {by.toLowerCase()} {format(curve.notFiniteAt * scale)}.
          </p>
        )}
      </CardBody>
    </Card>
  );
}

/** The figures that the program printed over time, as the job's report keeps them. */
export function TrainingFigures({curves}: {curves: ReportTrainingCurves}): ReactElement {
  return (
    <section className="mpi-stack" aria-labelledby="figures-title">
      <div>
        <h2 id="figures-title" className="mpi-heading">Training figures</h2>
        <p className="mpi-subtle">What the program printed until {moment(curves.until)}. The job’s report keeps at most 120 points of each figure.</p>
      </div>
      <div className="mpi-grid">{curves.figures?.map((curve) => <Figure key={curve.name} curve={curve} />)}</div>
    </section>
  );
}
