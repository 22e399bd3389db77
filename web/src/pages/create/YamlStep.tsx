import {TextArea, Title} from '@patternfly/react-core';
import type {ReactElement} from 'react';
import {notify} from '../../lib/notices';
import {Field, type StepProps} from './Field';

export function YamlStep({form, set, errorOf}: StepProps): ReactElement {
  return (
    <div className="mpi-stack">
      <Title headingLevel="h2">YAML</Title>
      <Field id="yaml" label="Job as YAML or JSON" required error={errorOf('yaml')} hint="One MPIJob (kubeflow.org/v2beta1) or TrainJob (trainer.kubeflow.org/v1alpha1).">
        <TextArea id="yaml" value={form.yaml} onChange={(_, yaml) => set({yaml})} rows={20} className="mpi-mono" spellCheck={false} aria-describedby="yaml-help" resizeOrientation="vertical" validated={errorOf('yaml') ? 'error' : 'default'} />
      </Field>
      <div>
        <label htmlFor="yaml-file" className="mpi-subtle">Or from a file, at most 1 MiB: </label>
        <input
          id="yaml-file"
          type="file"
          accept=".yaml,.yml,.json"
          onChange={(event) => {
            const file = event.target.files?.[0];
            if (!file) return;
            if (file.size > 1 << 20) notify({variant: 'danger', title: `${file.name} is larger than 1 MiB`});
            else void file.text().then((yaml) => set({yaml}));
          }}
        />
      </div>
    </div>
  );
}
