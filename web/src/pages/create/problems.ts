import type {Draft, Namespaces} from '../../api/types';
import {isWhole, type JobForm, largest} from './form';

/** The inputs of fields that have other names in errors. */
export const inputOf: Record<string, string> = {deadline: 'hours', runAsUser: 'user', mpiFlags: 'flags', gangTimeout: 'gangMinutes', ttl: 'ttlHours', gracePeriod: 'graceSeconds', volume: 'volumes', toleration: 'tolerations'};

/** The fields of each step, as errors name them. */
export const stepFields = {
  basics: ['name', 'namespace'],
  program: ['image', 'command', 'runtime', 'implementation', 'env'],
  resources: ['workers', 'cpu', 'memory', 'gpu', 'slots'],
  yaml: ['yaml', 'metadata.name', 'metadata.namespace'],
};

/** Returns what is wrong with the fields of a form, by their names in errors: as the API server reports, and what needs no request. */
export function problemsOf(form: JobForm, draft: Draft | undefined, namespaces: Namespaces | undefined): Map<string, string> {
  const {namespace} = form;
  const problems = new Map((draft?.problem?.fields ?? []).map(({field, value, reason}) => [field, `${value ? `${value} ` : ''}${reason}`]));
  for (const [field, text] of [['workers', String(form.workers)], ['slots', form.slots], ['runAsUser', form.user], ['retries', form.retries]] as const) {
    if (text !== '' && !isWhole(text)) problems.set(field, `${text} is not a whole number of at most ${largest}`);
  }
  // The API server takes any printable character but =.
  const noName = form.env.find(({name}) => name !== '' && !/^[ -<>-~]+$/.test(name));
  if (noName) problems.set('env', `${noName.name} is not the name of a variable; use letters, digits and _`);
  if (form.way === 'runtime' && form.runtime === '') problems.set('runtime', 'is required; select a runtime');
  if (namespace && namespaces?.complete && !namespaces.namespaces.some(({name}) => name === namespace)) problems.set('namespace', `${namespace} does not exist`);
  else if (namespaces?.namespaces.some(({name}) => name === namespace) && !namespaces.namespaces.some(({name, canCreate}) => canCreate && name === namespace)) problems.set('namespace', `You may not create jobs in ${namespace}. Ask its administrator for the role edit.`);
  return problems;
}
