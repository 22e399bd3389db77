import {
  BanIcon,
  CheckCircleIcon,
  ExclamationCircleIcon,
  HourglassHalfIcon,
  InProgressIcon,
  ListOlIcon,
  PauseCircleIcon,
  PendingIcon,
  ThLargeIcon,
  UnknownIcon,
} from './icons';
import {Label} from '@patternfly/react-core';
import type {ReactElement} from 'react';
import type {Detail, ReportPhase} from '../api/types';

type Color = 'blue' | 'green' | 'grey' | 'red' | 'teal' | 'orange';

interface Look {
  text: string;
  color: Color;
  icon: ReactElement;
  /** What the phase means, for tooltips. */
  meaning: string;
}

/** The phases, in the order in which a job passes through them. */
export const phases: Record<string, Look> = {
  Pending: {text: 'Pending', color: 'blue', icon: <PendingIcon />, meaning: 'No pod has started.'},
  Queued: {text: 'Queued', color: 'blue', icon: <ListOlIcon />, meaning: 'The job waits in its queue for quota.'},
  GangScheduling: {text: 'Gang scheduling', color: 'blue', icon: <ThLargeIcon />, meaning: 'The job waits until all of its pods fit.'},
  Initializing: {text: 'Initializing', color: 'blue', icon: <HourglassHalfIcon />, meaning: 'Pods start: images are pulled, workers get ready.'},
  Running: {text: 'Running', color: 'green', icon: <InProgressIcon />, meaning: 'The launcher and all workers run.'},
  Suspended: {text: 'Suspended', color: 'grey', icon: <PauseCircleIcon />, meaning: 'The pods are deleted until the job is resumed.'},
  Succeeded: {text: 'Succeeded', color: 'teal', icon: <CheckCircleIcon />, meaning: 'The program has ended without an error.'},
  Failed: {text: 'Failed', color: 'red', icon: <ExclamationCircleIcon />, meaning: 'The program or the job has failed.'},
} satisfies Record<ReportPhase, Look>;

const unknown: Look = {text: 'Unknown', color: 'grey', icon: <UnknownIcon />, meaning: 'The operator has not reported on the job yet.'};

export const lookOf = (phase: string | undefined): Look => phases[phase ?? ''] ?? unknown;

/** Shows a phase by color, icon and text. */
export function PhaseLabel({phase, isCompact = false}: {phase: string | undefined; isCompact?: boolean}): ReactElement {
  const look = lookOf(phase);
  return (
    <Label color={look.color} icon={look.icon} isCompact={isCompact} className={phase === 'Running' ? 'mpi-running' : ''}>
      {look.text}
    </Label>
  );
}

const pods: Record<string, Look> = {
  Running: {text: 'Running', color: 'green', icon: <InProgressIcon />, meaning: ''},
  Succeeded: {text: 'Succeeded', color: 'teal', icon: <CheckCircleIcon />, meaning: ''},
  Failed: {text: 'Failed', color: 'red', icon: <ExclamationCircleIcon />, meaning: ''},
  Pending: {text: 'Pending', color: 'orange', icon: <PendingIcon />, meaning: ''},
  Terminating: {text: 'Terminating', color: 'grey', icon: <HourglassHalfIcon />, meaning: ''},
  Gone: {text: 'Deleted', color: 'grey', icon: <BanIcon />, meaning: ''},
};

/** Returns the look of a pod. A pod that runs but is not ready counts as pending. */
export function podLook(pod: {phase: string; ready: boolean; reason?: string}): Look {
  if (pod.phase === 'Running' && !pod.ready) return {...(pods['Pending'] ?? unknown), text: pod.reason ?? 'Not ready'};
  const look = pods[pod.phase] ?? unknown;
  return pod.reason && pod.phase !== 'Running' && pod.phase !== 'Gone' ? {...look, text: pod.reason} : look;
}

/**
 * Returns the look of a pod of a job: in a failed job, that of the problem that affects it. The pods of a failed job are often
 * stopped in good order, and then look as if nothing had happened.
 */
export function podLookIn(pod: {name: string; phase: string; ready: boolean; reason?: string}, detail: Detail): Look {
  const cause = detail.row.phase === 'Failed' ? detail.findings.find(({severity, affected}) => severity === 'Error' && affected.includes(pod.name)) : undefined;
  return cause ? {text: cause.code, color: 'red', icon: <ExclamationCircleIcon />, meaning: cause.summary} : podLook(pod);
}

export function PodLabel({pod, detail}: {pod: {name: string; phase: string; ready: boolean; reason?: string}; detail: Detail}): ReactElement {
  const look = podLookIn(pod, detail);
  return (
    <Label color={look.color} icon={look.icon} isCompact>
      {look.text}
    </Label>
  );
}
