import {Alert, Button, Form, Switch, Title} from '@patternfly/react-core';
import {useMutation} from '@tanstack/react-query';
import {type ReactElement, useState} from 'react';
import {useNavigate} from 'react-router';
import {errorText, get} from '../../api/client';
import {type JobKey, uidPath, useCreate, useManifest, usePreview} from '../../api/queries';
import type {Detail, Edit, SpecRequest} from '../../api/types';
import {Code, count, Snippets} from '../../components/Common';
import {Diff} from '../../components/Diff';
import {ProblemAlert} from '../../components/Problem';
import {Busy, Loaded} from '../../components/States';
import {jobURL} from '../../components/Watcher';
import {YamlEditor} from '../../components/YamlEditor';
import {DownloadIcon, PencilAltIcon} from '../../lib/icons';
import {notify} from '../../lib/notices';
import {save} from '../../lib/save';

/** A new job that the user writes, starting from the configuration of a job. */
export interface EditedJob {
  edit: Edit;
  text: string;
}

/** The configuration of the job as YAML: to read, to copy and to download, and to edit as a new job. */
export default function ConfigurationTab({job, detail, edited, setEdited}: {job: JobKey; detail: Detail; edited: EditedJob | undefined; setEdited: (edited: EditedJob | undefined) => void}): ReactElement {
  const manifest = useManifest(job);
  const [isFull, setFull] = useState(false);
  const start = useMutation({mutationFn: () => get<Edit>(uidPath(job, 'edit')), onSuccess: (edit) => setEdited({edit, text: edit.yaml})});
  if (edited) return <Editor job={job} detail={detail} edited={edited} setText={(text) => setEdited({...edited, text})} close={() => setEdited(undefined)} />;
  return (
    <Loaded query={manifest} what="The configuration cannot be shown">
      {(data) => {
        const text = isFull ? data.full : data.clean;
        return (
          <div className="mpi-stack mpi-yaml">
            <div className="mpi-actions">
              {detail.can.clone ? (
                <Button icon={<PencilAltIcon />} isLoading={start.isPending} isDisabled={start.isPending} onClick={() => start.mutate()}>
                  Edit as a new job
                </Button>
              ) : null}
              <Button variant="secondary" icon={<DownloadIcon />} onClick={() => save(`${job.name}.yaml`, text)}>
                Download
              </Button>
              {data.full ? <Switch label="With the fields of the cluster" isChecked={isFull} onChange={(_, on) => setFull(on)} /> : null}
            </div>
            {start.error ? <Alert isInline variant="danger" title={errorText(start.error)} component="p" /> : null}
            {data.masked > 0 ? (
              <Alert isInline isPlain variant="info" component="p" title={`${count(data.masked, 'value')} that ${data.masked === 1 ? 'looks' : 'look'} like a secret ${data.masked === 1 ? 'is' : 'are'} shown as ****`} />
            ) : null}
            <Code text={text} label={`Configuration of ${job.name}`} />
          </div>
        );
      }}
    </Loaded>
  );
}

/** Edits the configuration as a new job, which the API server checks while it is written, and creates it. */
function Editor({job, detail, edited: {edit, text}, setText, close}: {job: JobKey; detail: Detail; edited: EditedJob; setText: (text: string) => void; close: () => void}): ReactElement {
  const navigate = useNavigate();
  const request: SpecRequest = {spec: {name: '', namespace: job.namespace, command: [], workers: 1}, yaml: text, original: edit.original, originalUID: edit.originalUID ?? ''};
  const isEmpty = text.trim() === '';
  const preview = usePreview(request, !isEmpty);
  const creation = useCreate();
  const draft = isEmpty ? undefined : creation.data?.problem && !preview.isFetching ? creation.data : preview.data;
  const problems = draft?.problem?.fields ?? [];
  const isChecked = draft !== undefined && !preview.isFetching && !preview.isError;
  const create = (): void =>
    creation.mutate(request, {
      onSuccess: (result) => {
        if (!result.created) return;
        const url = jobURL({namespace: result.namespace ?? '', kind: result.kind ?? '', name: result.name ?? ''});
        notify({variant: 'success', title: `${result.name ?? 'The job'} is created`});
        close();
        void navigate(url);
      },
    });
  const change = (value: string): void => {
    creation.reset();
    setText(value);
  };
  return (
    <Form
      className="mpi-form is-wide"
      onSubmit={(event) => {
        event.preventDefault();
        create();
      }}
    >
      <Title headingLevel="h2">New job from {detail.row.name}</Title>
      <p>
        {detail.row.name} stays as it is. The new job has the name {edit.name} unless you write another one.{' '}
        {edit.masked === 0 ? '' : detail.row.deleted ? 'Replace each **** by the secret: the report of a deleted job does not contain it.' : 'Each **** that you leave is replaced by the secret of this job.'}
      </p>
      <YamlEditor id="configuration" label="Configuration of the new job" text={text} set={change} problems={problems} hint="YAML or JSON. The cluster checks it while you write." />
      {preview.error ? <Alert isInline variant="danger" title={errorText(preview.error)} component="p" /> : null}
      {creation.error ? <Alert isInline variant="danger" title={errorText(creation.error)} component="p" /> : null}
      {problems.length > 0 ? null : <ProblemAlert problem={draft?.problem} />}
      {isChecked && !draft.problem ? <Alert isInline variant="success" title="The API server accepts this job" component="p">{draft.cost ? `It costs ${draft.cost} per hour.` : null}</Alert> : null}
      {draft?.warnings?.map((warning) => <Alert key={warning} isInline variant="warning" title={warning} component="p" />)}
      {preview.isFetching ? <Busy what="The API server checks the job" /> : null}
      {draft?.diff ? (
        <section aria-labelledby="configuration-diff" className="mpi-stack">
          <Title headingLevel="h3" id="configuration-diff">What changes</Title>
          <Diff text={draft.diff} />
        </section>
      ) : null}
      <div className="mpi-actions">
        <Button type="submit" isLoading={creation.isPending} isDisabled={!isChecked || draft.problem !== undefined || creation.isPending}>
          Create job
        </Button>
        <Button variant="link" onClick={close}>
          Discard changes
        </Button>
      </div>
      {draft?.commands ? <Snippets items={draft.commands} title="The same on the command line" /> : null}
    </Form>
  );
}
