import {Button, FormGroup, FormSelect, FormSelectOption, HelperText, HelperTextItem, Switch, TextInput} from '@patternfly/react-core';
import type {ReactElement, ReactNode} from 'react';
import {Help} from '../../components/Common';
import {ExclamationCircleIcon, PlusCircleIcon, TrashIcon} from '../../lib/icons';
import {isSized, type Pair, type VolumeForm} from './form';

/** A field of which a job can have several: one row for each, and a button that adds one. */
function Rows<T>({id, label, help, noun, items, empty, set, error, className, row}: {id: string; label: string; help: string; noun: string; items: T[]; empty: T; set: (items: T[]) => void; error: string | undefined; className: string; row: (item: T, change: (item: T) => void, of: string) => ReactNode}): ReactElement {
  return (
    <FormGroup label={label} role="group" fieldId={id} labelHelp={<Help label={label}>{help}</Help>}>
      <div className="mpi-stack" id={id}>
        {items.map((item, i) => (
          <div className={className} key={i}>
            {row(item, (changed) => set(items.map((each, at) => (at === i ? changed : each))), `${noun} ${i + 1}`)}
            <Button variant="plain" icon={<TrashIcon />} aria-label={`Remove ${noun} ${i + 1}`} onClick={() => set(items.filter((_, at) => at !== i))} />
          </div>
        ))}
        <div>
          <Button variant="link" isInline icon={<PlusCircleIcon />} onClick={() => set([...items, empty])}>
            Add {noun}
          </Button>
        </div>
        {error ? (
          <HelperText isLiveRegion>
            <HelperTextItem variant="error" icon={<ExclamationCircleIcon />}>
              {error}
            </HelperTextItem>
          </HelperText>
        ) : null}
      </div>
    </FormGroup>
  );
}

interface ListProps<T> {
  id: string;
  label: string;
  help: string;
  noun: string;
  items: T[];
  set: (items: T[]) => void;
  error?: string | undefined;
}

/** Names with values. */
export function Pairs(props: ListProps<Pair>): ReactElement {
  return (
    <Rows
      {...props}
      error={props.error}
      empty={{name: '', value: ''}}
      className="mpi-pair"
      row={(pair, change, of) => (
        <>
          <TextInput aria-label={`Name of ${of}`} placeholder="NAME" value={pair.name} onChange={(_, name) => change({...pair, name})} />
          <TextInput aria-label={`Value of ${of}`} value={pair.value} onChange={(_, value) => change({...pair, value})} />
        </>
      )}
    />
  );
}

/** Texts, such as taints. */
export function Texts({placeholder, ...props}: ListProps<string> & {placeholder: string}): ReactElement {
  return (
    <Rows
      {...props}
      error={props.error}
      empty=""
      className="mpi-text"
      row={(text, change, of) => <TextInput aria-label={of.charAt(0).toUpperCase() + of.slice(1)} placeholder={placeholder} value={text} onChange={(_, value) => change(value)} />}
    />
  );
}

const sources: readonly (readonly [string, string])[] = [
  ['claim', 'Claim (PVC)'],
  ['configmap', 'ConfigMap'],
  ['secret', 'Secret'],
  ['scratch', 'Disk of the node'],
  ['memory', 'Memory'],
];

/** Volumes of all pods. */
export function Volumes(props: ListProps<VolumeForm>): ReactElement {
  return (
    <Rows
      {...props}
      error={props.error}
      empty={{source: 'claim', name: '', size: '', path: '', subPath: '', readOnly: false}}
      className="mpi-volume"
      row={(volume, change, of) => (
        <>
          <FormSelect aria-label={`Source of ${of}`} value={volume.source} onChange={(_, source) => change({...volume, source})}>
            {sources.map(([source, label]) => (
              <FormSelectOption key={source} value={source} label={label} />
            ))}
          </FormSelect>
          {isSized(volume.source) ? (
            <TextInput aria-label={`Size of ${of}`} placeholder="8Gi" value={volume.size} onChange={(_, size) => change({...volume, size})} />
          ) : (
            <TextInput aria-label={`Name of ${of}`} placeholder="NAME" value={volume.name} onChange={(_, name) => change({...volume, name})} />
          )}
          <TextInput aria-label={`Path of ${of}`} placeholder="/data" value={volume.path} onChange={(_, path) => change({...volume, path})} />
          <Switch label="Read only" aria-label={`${of} is read only`} isChecked={volume.readOnly} onChange={(_, readOnly) => change({...volume, readOnly})} />
        </>
      )}
    />
  );
}
