import {
  Alert,
  Button,
  Form,
  FormGroup,
  FormHelperText,
  FormSelect,
  FormSelectOption,
  FormSelectOptionGroup,
  HelperText,
  HelperTextItem,
  Modal,
  ModalBody,
  ModalFooter,
  ModalHeader,
  TextInput,
} from '@patternfly/react-core';
import {useMutation, useQueryClient} from '@tanstack/react-query';
import {type ReactElement, useState} from 'react';
import {ApiError, errorText, path, post, put} from '../../api/client';
import {useRuntimeForm} from '../../api/queries';
import type {ActionResult, NewRuntime, Runtime, RuntimeForm, RuntimeSettings} from '../../api/types';
import {Loaded} from '../../components/States';
import {ExclamationCircleIcon} from '../../lib/icons';
import {notify} from '../../lib/notices';

/** A runtime to start from, as the API refers to it. */
interface Base {
  reference: string;
  label: string;
  group: string;
  image: string;
  slots: string;
  maxWorkers: string;
  minWorkers: string;
  maxGPUs: string;
  gangTimeoutSeconds: string;
  priorityClass: string;
  requiredNodeLabels: string;
  allowEgress: string;
}

interface Fields {
  from: string;
  name: string;
  namespace: string;
  image: string;
  slots: string;
  maxWorkers: string;
  minWorkers: string;
  maxGPUs: string;
  gangTimeoutSeconds: string;
  priorityClass: string;
  requiredNodeLabels: string;
  allowEgress: string;
  agentImage: string;
  runAsUser: string;
}

const shippedGroup = 'Shipped with the operator';
const isShipped = (reference: string): boolean => reference.startsWith('shipped/');

const baseOf = ({kind, name, namespace, image = '', slots = '', maxWorkers = '', minWorkers = '', maxGPUs = '', gangTimeout = '', priorityClass = '', nodeLabels = '', allowEgress = ''}: Runtime): Base => ({
  reference: `${kind.toLowerCase()}/${name}`,
  label: name,
  group: namespace === undefined ? 'Of the cluster' : `Of the project ${namespace}`,
  image,
  slots,
  maxWorkers,
  minWorkers,
  maxGPUs,
  gangTimeoutSeconds: gangTimeout,
  priorityClass,
  requiredNodeLabels: nodeLabels,
  allowEgress,
});

/** The runtimes that a new one in a namespace can start from: a runtime of a project is copied within the project. */
function basesFor(namespace: string, runtimes: Runtime[], form: RuntimeForm): Base[] {
  const shipped = form.shipped.map(({name, implementation, image = '', slots, maxWorkers = '', maxGPUs = ''}) => ({reference: `shipped/${name}`, label: `${name}: ${implementation}`, group: shippedGroup, image, slots, maxWorkers, minWorkers: '', maxGPUs, gangTimeoutSeconds: '', priorityClass: '', requiredNodeLabels: '', allowEgress: ''}));
  return [...runtimes.filter((runtime) => runtime.namespace === undefined || runtime.namespace === namespace).map(baseOf), ...shipped];
}

/** The fields that a base sets. */
const fieldsOf = ({reference, image, slots, maxWorkers, minWorkers, maxGPUs, gangTimeoutSeconds, priorityClass, requiredNodeLabels, allowEgress}: Base): Omit<Fields, 'name' | 'namespace' | 'agentImage' | 'runAsUser'> => ({
  from: reference,
  image,
  slots,
  maxWorkers,
  minWorkers,
  maxGPUs,
  gangTimeoutSeconds,
  priorityClass,
  requiredNodeLabels,
  allowEgress,
});

/** The fields that are numbers. */
const amounts = ['slots', 'maxWorkers', 'minWorkers', 'maxGPUs', 'gangTimeoutSeconds', 'runAsUser'] as const;
const isAmount = (text: string): boolean => text === '' || (/^-?\d+$/.test(text) && Math.abs(Number(text)) < 2 ** 31);

function settingsOf(fields: Fields): RuntimeSettings {
  const settings: RuntimeSettings = {image: fields.image.trim(), priorityClass: fields.priorityClass.trim(), requiredNodeLabels: fields.requiredNodeLabels.trim(), allowEgress: fields.allowEgress.trim()};
  for (const field of ['slots', 'maxWorkers', 'minWorkers', 'maxGPUs', 'gangTimeoutSeconds'] as const) if (fields[field] !== '') settings[field] = Number(fields[field]);
  return settings;
}

function requestOf(fields: Fields): NewRuntime {
  const request: NewRuntime = {from: fields.from, name: fields.name, namespace: fields.namespace, settings: settingsOf(fields)};
  if (isShipped(fields.from)) {
    request.agentImage = fields.agentImage.trim();
    if (fields.runAsUser !== '') request.runAsUser = Number(fields.runAsUser);
  }
  return request;
}

interface Props {
  /** The MPI runtimes that exist. */
  runtimes: Runtime[];
  /** The runtime to change; undefined to create one. */
  changed: Runtime | undefined;
  /** Where the user may create runtimes; an empty project for none. */
  canCreate: {cluster: boolean; project: string};
  close: () => void;
}

/** Creates a runtime from one that exists or is shipped with the operator, or changes one. */
export function RuntimeDialog(props: Props): ReactElement {
  const {changed, runtimes, canCreate, close} = props;
  const form = useRuntimeForm(!changed);
  const empty = {from: '', name: '', namespace: '', image: '', slots: '', maxWorkers: '', minWorkers: '', maxGPUs: '', gangTimeoutSeconds: '', priorityClass: '', requiredNodeLabels: '', allowEgress: '', agentImage: '', runAsUser: ''};
  if (changed) return <FilledDialog {...props} bases={() => []} initial={{...empty, ...fieldsOf(baseOf(changed))}} />;
  if (!form.data) {
    return (
      <Modal variant="medium" isOpen onClose={close} aria-labelledby="runtime-title">
        <ModalHeader title="Create runtime" labelId="runtime-title" />
        <ModalBody>
          <Loaded query={form} what="The runtimes to start from cannot be listed">{() => null}</Loaded>
        </ModalBody>
      </Modal>
    );
  }
  const {data} = form;
  const namespace = canCreate.cluster ? '' : canCreate.project;
  const bases = (of: string): Base[] => basesFor(of, runtimes, data);
  const first = bases(namespace).find(({reference}) => !isShipped(reference)) ?? bases(namespace).find(({reference}) => reference === 'shipped/mpi-openmpi');
  return <FilledDialog {...props} bases={bases} initial={{...empty, namespace, agentImage: data.agentImage, runAsUser: data.runAsUser === undefined ? '' : String(data.runAsUser), ...(first ? fieldsOf(first) : {})}} />;
}

function FilledDialog({changed, canCreate, bases: basesIn, initial, close}: Props & {bases: (namespace: string) => Base[]; initial: Fields}): ReactElement {
  const queries = useQueryClient();
  const [fields, setFields] = useState<Fields>(initial);
  const bases = basesIn(fields.namespace);
  const save = useMutation({
    mutationFn: () => {
      if (!changed) return post<ActionResult>('runtimes', requestOf(fields));
      return put<ActionResult>(path('runtimes', changed.name) + (changed.namespace ? `?${new URLSearchParams({namespace: changed.namespace}).toString()}` : ''), settingsOf(fields));
    },
    onSuccess: (result) => {
      notify({variant: 'success', title: result.message});
      void queries.invalidateQueries({queryKey: ['runtimes']});
      close();
    },
  });
  const set = (change: Partial<Fields>): void => {
    setFields({...fields, ...change});
    save.reset();
  };
  const refused = new Map((save.error instanceof ApiError ? (save.error.problem.fields ?? []) : []).map(({field, value, reason}) => [field, `${value ? `${value} ` : ''}${reason}`]));
  const errorOf = (field: keyof Fields): string | undefined =>
    refused.get(field) ?? (amounts.some((each) => each === field) && !isAmount(fields[field]) ? `${fields[field]} is not a whole number` : undefined);
  const isFromShipped = isShipped(fields.from);
  const needsImage = isFromShipped && bases.find(({reference}) => reference === fields.from)?.image === '';
  const isIncomplete = amounts.some((field) => !isAmount(fields[field])) || (!changed && (fields.name === '' || fields.from === '' || (needsImage && fields.image === '')));
  const text = (field: keyof Fields, label: string, hint: string, isRequired = false): ReactElement => {
    const error = errorOf(field);
    return (
      <FormGroup key={field} label={label} fieldId={`runtime-${field}`} isRequired={isRequired}>
        <TextInput id={`runtime-${field}`} value={fields[field]} isRequired={isRequired} autoComplete="off" validated={error ? 'error' : 'default'} aria-describedby={`runtime-${field}-help`} onChange={(_, value) => set({[field]: value})} />
        <FormHelperText>
          <HelperText id={`runtime-${field}-help`} isLiveRegion={error !== undefined}>
            {error ? <HelperTextItem variant="error" icon={<ExclamationCircleIcon />}>{error}</HelperTextItem> : <HelperTextItem>{hint}</HelperTextItem>}
          </HelperText>
        </FormHelperText>
      </FormGroup>
    );
  };
  const imageHint = needsImage ? 'Nobody publishes an image with Intel MPI: enter one that you have built.' : 'Of the workers, and of the launcher if it has the same.';
  return (
    <Modal variant="medium" isOpen onClose={close} aria-labelledby="runtime-title">
      <ModalHeader
        title={changed ? `Edit ${changed.name}` : 'Create runtime'}
        labelId="runtime-title"
        description={changed ? 'New jobs get the new settings. A job above a limit is refused when it is created.' : 'The new runtime has all settings of the one that it starts from but these.'}
      />
      <ModalBody tabIndex={0} aria-label="Settings of the runtime">
        <Form
          id="runtime-form"
          onSubmit={(event) => {
            event.preventDefault();
            if (!isIncomplete) save.mutate();
          }}
        >
          {changed ? null : (
            <>
              <FormGroup label="Available in" isRequired fieldId="runtime-namespace">
                <FormSelect
                  id="runtime-namespace"
                  value={fields.namespace}
                  onChange={(_, namespace) => {
                    const isLeft = basesIn(namespace).some(({reference}) => reference === fields.from);
                    const [base] = basesIn(namespace);
                    set({namespace, ...(isLeft || !base ? {} : fieldsOf(base))});
                  }}
                >
                  {canCreate.cluster ? <FormSelectOption value="" label="All projects (runtime of the cluster)" /> : null}
                  {canCreate.project ? <FormSelectOption value={canCreate.project} label={`The project ${canCreate.project}`} /> : null}
                </FormSelect>
              </FormGroup>
              <FormGroup label="Start from" isRequired fieldId="runtime-from">
                <FormSelect
                  id="runtime-from"
                  value={fields.from}
                  onChange={(_, from) => {
                    const base = bases.find(({reference}) => reference === from);
                    if (base) set(fieldsOf(base));
                  }}
                >
                  {[...new Set(bases.map(({group}) => group))].map((group) => (
                    <FormSelectOptionGroup key={group} label={group}>
                      {bases
                        .filter((base) => base.group === group)
                        .map(({reference, label}) => (
                          <FormSelectOption key={reference} value={reference} label={label} />
                        ))}
                    </FormSelectOptionGroup>
                  ))}
                </FormSelect>
              </FormGroup>
              {text('name', 'Name', 'Such as mpi-a100. It cannot be changed later.', true)}
            </>
          )}
          {text('image', 'Image', imageHint, needsImage)}
          {text('slots', 'Slots per worker', 'Ranks on each worker, unless the job sets it.')}
          {text('maxWorkers', 'Workers of a job, at most', 'Empty for no limit.')}
          {text('minWorkers', 'Workers of a job, at least', 'Empty for no minimum.')}
          {text('maxGPUs', 'GPUs of a worker, at most', 'Empty for no limit.')}
          {text('gangTimeoutSeconds', 'Gang timeout in seconds', 'An attempt to place all pods of a job together ends after this time, unless the job sets it. Empty for 600.')}
          {text('priorityClass', 'Priority class', "Of the pods. Empty for the cluster's default.")}
          {text('requiredNodeLabels', 'Labels of the nodes', 'The pods run on nodes with these labels, as key=value, separated by commas. Jobs cannot change them. Empty for any node.')}
          {text('allowEgress', 'Allowed connections', 'Destinations that the pods may connect to besides their own job, such as 192.0.2.7:2049,namespace/minio:9000. Empty for none.')}
          {!changed && isFromShipped ? text('agentImage', 'Image of the agent', 'The program that starts ranks in the pods. Change it if nodes pull images from another registry.') : null}
          {!changed && isFromShipped ? text('runAsUser', 'User ID', 'User of the pods. Empty if the cluster assigns one, as OpenShift does, or if the image names a user other than root.') : null}
          {save.error && refused.size === 0 ? <Alert isInline variant="danger" title={errorText(save.error)} component="p" /> : null}
        </Form>
      </ModalBody>
      <ModalFooter>
        <Button type="submit" form="runtime-form" isDisabled={isIncomplete || save.isPending} isLoading={save.isPending}>
          {changed ? 'Save runtime' : 'Create'}
        </Button>
        <Button variant="link" onClick={close}>
          Close
        </Button>
      </ModalFooter>
    </Modal>
  );
}
