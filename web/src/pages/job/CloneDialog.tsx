import {Alert, Button, Form, FormGroup, FormHelperText, HelperText, HelperTextItem, Modal, ModalBody, ModalFooter, ModalHeader, TextInput} from '@patternfly/react-core';
import {keepPreviousData, useMutation, useQuery} from '@tanstack/react-query';
import {type ReactElement, useState} from 'react';
import {Link, useNavigate} from 'react-router';
import {ApiError, errorText, post} from '../../api/client';
import {type JobKey, uidPath} from '../../api/queries';
import type {Detail, Draft} from '../../api/types';
import {Snippets} from '../../components/Common';
import {Diff} from '../../components/Diff';
import {ProblemAlert} from '../../components/Problem';
import {Busy} from '../../components/States';
import {jobURL} from '../../components/Watcher';
import {notify} from '../../lib/notices';
import {PlusCircleIcon, TrashIcon} from '../../lib/icons';

interface Change {
  field: string;
  value: string;
}

const parse = (text: string): Change => {
  const at = text.indexOf('=');
  return {field: text.slice(0, at), value: text.slice(at + 1)};
};

/** The wizard with all values of a job. */
const wizardURL = ({namespace, kind, name}: JobKey): string => `/create?${new URLSearchParams({namespace, clone: `${kind.toLowerCase()}/${name}`}).toString()}`;

const usual = ['workers', 'slots', 'memory', 'cpu', 'gpu', 'image', 'command', 'queue'];

/** Runs a job again under a new name, with changes, and shows what changes before. */
export function CloneDialog({job, detail, changes: initial, isAgain = false, close}: {job: JobKey; detail: Detail; changes: string[]; isAgain?: boolean; close: () => void}): ReactElement {
  const navigate = useNavigate();
  const [name, setName] = useState('');
  const [changes, setChanges] = useState<Change[]>(initial.length > 0 ? initial.map(parse) : []);
  const texts = changes.filter(({field}) => field !== '').map(({field, value}) => `${field}=${value}`);
  const request = {name, changes: texts};
  const preview = useQuery({
    queryKey: ['clone', job, request],
    placeholderData: keepPreviousData,
    retry: false,
    queryFn: async ({signal}) => {
      await new Promise((resolve) => setTimeout(resolve, 300));
      signal.throwIfAborted();
      return post<Draft>(uidPath(job, 'clone'), {...request, dryRun: true}, signal);
    },
  });
  const creation = useMutation({
    mutationFn: () => post<Draft>(uidPath(job, 'clone'), {...request, name: name || (preview.data?.name ?? '')}),
    onSuccess: (draft) => {
      if (!draft.created) return;
      const url = jobURL({namespace: draft.namespace ?? '', kind: draft.kind ?? '', name: draft.name ?? ''});
      notify({variant: 'success', title: `${draft.name ?? 'The job'} is created`});
      close();
      void navigate(url);
    },
  });
  // What was wrong may be mended.
  const forget = (): void => {
    if (!creation.isPending) creation.reset();
  };
  const change = (next: (all: Change[]) => Change[]): void => {
    forget();
    setChanges(next);
  };
  const edit = (i: number, part: Partial<Change>): void => change((all) => all.map((each, at) => (at === i ? {...each, ...part} : each)));
  const draft = preview.data;
  // Secrets that are masked in the report of a deleted job.
  const masked = preview.error instanceof ApiError && preview.error.problem.code === 'Masked' ? (preview.error.problem.fields ?? []).map(({field}) => field) : [];
  const missing = masked.filter((field) => !changes.some((each) => each.field === field));
  return (
    <Modal variant="large" isOpen onClose={close} aria-labelledby="clone-title">
      <ModalHeader title={isAgain ? `Run ${detail.row.name} again` : `Clone ${detail.row.name} and modify`} labelId="clone-title" description="A job that has run cannot be changed. Its clone runs under a new name; the original stays for comparison." />
      <ModalBody tabIndex={0} aria-label="Changes of the clone">
        <Form
          onSubmit={(event) => {
            event.preventDefault();
            creation.mutate();
          }}
        >
          <FormGroup label="Name" fieldId="clone-name">
            <TextInput id="clone-name" value={name} placeholder={draft?.name ?? ''} onChange={(_, value) => {
              forget();
              setName(value);
            }} aria-describedby="clone-name-help" />
            <FormHelperText>
              <HelperText id="clone-name-help">
                <HelperTextItem>Empty for the next free number{draft?.name && name === '' ? `: ${draft.name}` : ''}.</HelperTextItem>
              </HelperText>
            </FormHelperText>
          </FormGroup>
          <FormGroup label="Changes" role="group" fieldId="clone-changes">
            <div className="mpi-stack" id="clone-changes">
              {changes.map(({field, value}, i) => (
                <div className="mpi-pair" key={i}>
                  <TextInput aria-label={`Field of change ${i + 1}`} placeholder="memory" list="clone-fields" value={field} onChange={(_, text) => edit(i, {field: text})} />
                  <TextInput aria-label={`Value of change ${i + 1}`} value={value} onChange={(_, text) => edit(i, {value: text})} />
                  <Button variant="plain" aria-label={`Remove change ${i + 1}`} icon={<TrashIcon />} onClick={() => change((all) => all.filter((_, at) => at !== i))} />
                </div>
              ))}
              <datalist id="clone-fields">
                {usual.map((field) => (
                  <option key={field} value={field} />
                ))}
                <option value="env.NAME" />
              </datalist>
              <div className="mpi-actions">
                {usual
                  .filter((field) => !changes.some((each) => each.field === field))
                  .slice(0, 6)
                  .map((field) => (
                    <Button key={field} variant="link" size="sm" isInline icon={<PlusCircleIcon />} onClick={() => change((all) => [...all, {field, value: valueOf(field, detail)}])}>
                      {field}
                    </Button>
                  ))}
                <Button variant="link" size="sm" isInline icon={<PlusCircleIcon />} onClick={() => change((all) => [...all, {field: '', value: ''}])}>
                  another field
                </Button>
              </div>
            </div>
          </FormGroup>
          {masked.length > 0 ? (
            <Alert
              isInline
              variant="warning"
              title="Secrets are masked in the report of the deleted job: set them again"
              component="p"
              actionLinks={
                missing.length > 0 ? (
                  <Button variant="link" isInline onClick={() => change((all) => [...all, ...missing.map((field) => ({field, value: ''}))])}>
                    Add {missing.join(', ')}
                  </Button>
                ) : undefined
              }
            />
          ) : preview.error ? (
            <Alert isInline variant="danger" title={errorText(preview.error)} component="p" />
          ) : null}
          {creation.error ? <Alert isInline variant="danger" title={errorText(creation.error)} component="p" /> : null}
          <ProblemAlert problem={creation.data?.problem ?? draft?.problem} />
          {draft?.warnings?.map((warning) => <Alert key={warning} isInline variant="warning" title={warning} component="p" />)}
          <FormGroup label="What changes" role="group" fieldId="clone-diff">
            {draft?.diff ? <Diff text={draft.diff} /> : preview.isFetching ? <Busy what="Checking" /> : <p className="mpi-subtle">Only the name.</p>}
          </FormGroup>
        </Form>
        {draft?.commands ? <Snippets items={draft.commands} title="The same on the command line" /> : null}
      </ModalBody>
      <ModalFooter>
        <Button isLoading={creation.isPending} isDisabled={creation.isPending || draft === undefined || preview.isError} onClick={() => creation.mutate()}>
          {isAgain && changes.length === 0 ? 'Run again' : 'Create clone'}
        </Button>
        {detail.row.deleted ? null : (
          <Button variant="secondary" component={(props) => <Link {...props} to={wizardURL(job)} />}>
            Edit all fields
          </Button>
        )}
        <Button variant="link" onClick={close}>
          Close
        </Button>
      </ModalFooter>
    </Modal>
  );
}

/** The present value of a field, to start from. */
function valueOf(field: string, detail: Detail): string {
  switch (field) {
    case 'workers':
      return String(detail.row.workers);
    case 'slots':
      return String(detail.status?.mpi?.slotsPerWorker ?? 1);
    case 'image':
      return detail.image ?? '';
    case 'command':
      return detail.command ?? '';
    case 'queue':
      return detail.row.queue ?? '';
    case 'memory':
    case 'cpu':
      return new RegExp(`\\b${field} (\\S+)`).exec(detail.resources ?? '')?.[1]?.replace(/,$/, '') ?? '';
    case 'gpu':
      return /\/gpu (\d+)/.exec(detail.resources ?? '')?.[1] ?? '';
    default:
      return '';
  }
}
