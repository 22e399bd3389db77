import {Alert, Card, CardBody, CardHeader, CardTitle, Title} from '@patternfly/react-core';
import type {ReactElement} from 'react';
import {Link} from 'react-router';
import type {JobKey} from '../../api/queries';
import type {CloneForm} from '../../api/types';
import {FrameworkMark} from '../../components/Framework';
import {CubesIcon, FileCodeIcon} from '../../lib/icons';
import type {StepProps} from './Field';
import {KeptFields} from './KeptFields';
import type {Way} from './form';

/** Which kind of job fits a program. */
const guide: readonly (readonly [string, string])[] = [
  ['Your program calls MPI, or you start it with mpirun or horovodrun', 'MPIJob: the workers exchange data in every step, over the fastest network that they share.'],
  ['You start PyTorch with torchrun, as with DDP or FSDP', 'TrainJob with a runtime of PyTorch. A PyTorchJob of the Training Operator is its predecessor.'],
  ['TensorFlow with parameter servers or a TF_CONFIG', 'TFJob of the Training Operator, which this dashboard does not create. With Horovod, TensorFlow runs as an MPIJob.'],
  ['An administrator gave you the name of a runtime', 'TrainJob with that runtime: its image, MPI and limits are prepared.'],
  ['Ray or Spark start their own workers', 'RayJob or SparkApplication, which this dashboard does not create.'],
  ['The model and its data fit one GPU, and a run takes less than an hour', 'No distributed job yet: run it in your workbench.'],
];

export function TypeStep({form, set, choices, clone, original}: StepProps & {clone: CloneForm | undefined; original: JobKey | undefined}): ReactElement {
  const ways: {way: Way; icon: ReactElement; title: string; text: string; for: string}[] = [
    {way: 'image', icon: <FrameworkMark name="MPI" />, title: 'MPIJob', text: 'High-performance distributed training using MPI for tightly coupled workloads. You bring an image that contains an MPI.', for: 'Horovod, DeepSpeed on MPI, simulations, your own MPI program'},
    {way: 'runtime', icon: <FrameworkMark name="PyTorch" />, title: 'TrainJob with a runtime', text: 'An administrator has prepared image, MPI and limits as a runtime. You bring the program.', for: 'PyTorch (torchrun), DeepSpeed, MPI, as your cluster offers'},
    {way: 'template', icon: <CubesIcon />, title: 'Template', text: 'Your team has saved a job with parameters in the project. You fill in the parameters.', for: 'jobs that are run again and again, by several people'},
    {way: 'yaml', icon: <FileCodeIcon />, title: 'Import YAML', text: 'You have a job as YAML, from the command line, from Git or from a colleague.', for: 'MPIJob and TrainJob'},
  ];
  return (
    <div className="mpi-stack">
      <Title headingLevel="h2">What do you want to run?</Title>
      {clone?.note && original ? (
        <Alert isInline variant="warning" component="p" title={`The fields of the wizard cannot describe ${original.name}`}>
          {clone.note} The wizard starts with its YAML instead.
        </Alert>
      ) : null}
      {clone && !clone.note ? (
        <>
          <Alert isInline variant="info" component="p" title="The type of a clone is that of its original">
            {form.way === 'runtime' ? 'It is a TrainJob with a runtime.' : 'It is an MPIJob.'} The other types start a job of their own.
          </Alert>
          <KeptFields fields={clone.kept} />
        </>
      ) : null}
      <div className="mpi-cards" role="radiogroup" aria-label="Type of the job">
        {ways.map(({way, icon, title, text, for: what}) => (
          <Card key={way} id={`way-${way}`} isSelectable isSelected={form.way === way}>
            <CardHeader
              selectableActions={{selectableActionId: `way-input-${way}`, selectableActionAriaLabelledby: `way-title-${way}`, name: 'way', variant: 'single', isChecked: form.way === way, onChange: () => set({way})}}
            >
              <CardTitle id={`way-title-${way}`} component="h3">
                <span className="mpi-tile">
                  {icon}
                  {title}
                </span>
              </CardTitle>
            </CardHeader>
            <CardBody>
              <p>{text}</p>
              <p className="mpi-subtle">For {what}.</p>
            </CardBody>
          </Card>
        ))}
      </div>
      {form.way === 'runtime' && choices && choices.runtimes.length === 0 ? (
        <Alert isInline variant="warning" title="This project sees no runtimes" component="p">
          If the cluster has Kubeflow Trainer, an administrator can <Link to={`/runtimes?${new URLSearchParams({namespace: form.namespace}).toString()}`}>create one</Link>. An MPIJob needs neither.
        </Alert>
      ) : null}
      <Card component="section" aria-labelledby="guide" isCompact className="mpi-guide">
        <CardTitle id="guide" component="h3">Which one do I need?</CardTitle>
        <CardBody>
          <dl>
            {guide.map(([need, use]) => (
              <div key={need}>
                <dt>{need}</dt>
                <dd>{use}</dd>
              </div>
            ))}
          </dl>
        </CardBody>
      </Card>
    </div>
  );
}
