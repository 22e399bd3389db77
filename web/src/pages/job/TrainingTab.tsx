import {Alert, Card, CardBody, EmptyState, EmptyStateBody} from '@patternfly/react-core';
import type {ReactElement} from 'react';
import {type JobKey, useCurves} from '../../api/queries';
import type {CurvePoint, Detail} from '../../api/types';
import {Chart, type Point} from '../../components/Chart';
import {Loaded} from '../../components/States';
import {ChartLineIcon} from '../../lib/icons';
import {figureText, titleOfFigure} from '../../lib/units';

/** Returns how the points are numbered: by step if all have one, else by epoch, else by line. */
function axis(points: CurvePoint[]): {title: string; of: (point: CurvePoint, index: number) => number} {
  if (points.every(({step}) => step !== undefined)) return {title: 'Step', of: ({step}) => step ?? 0};
  const epochs = points.map(({epoch}) => epoch);
  if (epochs.every((epoch) => epoch !== undefined) && new Set(epochs).size === points.length) return {title: 'Epoch', of: ({epoch}) => epoch ?? 0};
  return {title: 'Line', of: (_, index) => index + 1};
}

/** The loss, the accuracy, and the figures about speed and communication that the program prints. */
export default function TrainingTab({job, detail}: {job: JobKey; detail: Detail}): ReactElement {
  const curves = useCurves(job, detail.row.ended === undefined);
  return (
    <Loaded query={curves} what="The training curves cannot be shown">
      {(data) => {
        if (data.points.length === 0) {
          return (
            <EmptyState titleText="No training figures" headingLevel="h2" icon={ChartLineIcon} variant="sm">
              <EmptyStateBody>{data.reason}</EmptyStateBody>
            </EmptyState>
          );
        }
        const by = axis(data.points);
        const line = (value: (point: CurvePoint) => number | undefined): Point[] =>
          data.points.flatMap((point, i) => {
            const y = value(point);
            return y === undefined ? [] : [{x: by.of(point, i), y}];
          });
        const figures = [...new Set(data.points.flatMap((point) => Object.keys(point.figures ?? {})))].sort();
        const loss = line((point) => point.loss);
        const accuracy = line((point) => point.accuracy);
        const broken = data.points.findIndex((point) => point.notANumber);
        const brokenPoint = data.points[broken];
        return (
          <div className="mpi-stack">
            {brokenPoint ? (
              <Alert isInline variant="danger" component="p" title={`The program printed a loss that is not a number (${by.title.toLowerCase()} ${figureText(by.of(brokenPoint, broken))})`}>
                The training has diverged. A lower learning rate or gradient clipping usually helps.
              </Alert>
            ) : null}
            {data.note ? <Alert isInline variant="info" component="p" title={data.note} /> : null}
            <div className="mpi-grid">
              {loss.length > 0 ? (
                <Card component="section" aria-label="Loss">
                  <CardBody>
                    <Chart title="Loss" lines={[{name: 'Loss', points: loss}]} xTitle={by.title} formatX={figureText} formatY={figureText} />
                  </CardBody>
                </Card>
              ) : null}
              {accuracy.length > 0 ? (
                <Card component="section" aria-label="Accuracy">
                  <CardBody>
                    <Chart title="Accuracy" lines={[{name: 'Accuracy', points: accuracy}]} xTitle={by.title} formatX={figureText} formatY={figureText} />
                  </CardBody>
                </Card>
              ) : null}
              {figures.map((name) => (
                <Card key={name} component="section" aria-label={titleOfFigure(name)}>
                  <CardBody>
                    <Chart title={titleOfFigure(name)} lines={[{name: titleOfFigure(name), points: line((point) => point.figures?.[name])}]} xTitle={by.title} formatX={figureText} formatY={figureText} />
                  </CardBody>
                </Card>
              ))}
            </div>
            <p className="mpi-subtle">
              The figures are what the program printed, read from the log{data.skipped > 0 ? `; of ${(data.skipped + data.points.length).toLocaleString()} values, ${data.points.length.toLocaleString()} are shown` : ''}.
            </p>
          </div>
        );
      }}
    </Loaded>
  );
}
