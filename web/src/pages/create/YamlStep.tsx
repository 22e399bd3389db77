import {Title} from '@patternfly/react-core';
import type {ReactElement} from 'react';
import type {Draft} from '../../api/types';
import {YamlEditor} from '../../components/YamlEditor';
import {notify} from '../../lib/notices';
import type {StepProps} from './Field';

export function YamlStep({form, set, draft}: StepProps & {draft: Draft | undefined}): ReactElement {
  return (
    <div className="mpi-stack">
      <Title headingLevel="h2">YAML</Title>
      <YamlEditor
        id="yaml"
        label="Job as YAML or JSON"
        text={form.yaml}
        set={(yaml) => set({yaml})}
        problems={form.yaml === '' ? [] : (draft?.problem?.fields ?? [])}
        hint="One MPIJob (kubeflow.org/v2beta1) or TrainJob (trainer.kubeflow.org/v1alpha1)."
      />
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
