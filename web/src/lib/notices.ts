import {useSyncExternalStore} from 'react';

export interface Toast {
  id: number;
  variant: 'success' | 'danger' | 'info' | 'warning';
  title: string;
  text?: string | undefined;
  to?: string | undefined;
  link?: string | undefined;
}

/** A value outside of React that components can read. */
class Store<T> {
  private readonly listeners = new Set<() => void>();
  constructor(private value: T) {}
  get = (): T => this.value;
  set(value: T): void {
    if (value === this.value) return;
    this.value = value;
    for (const listener of this.listeners) listener();
  }
  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };
}

const toasts = new Store<Toast[]>([]);
const stale = new Store('');
let next = 1;

/** Shows a notification. Errors stay until they are closed. */
export function notify(toast: Omit<Toast, 'id'>): void {
  toasts.set([{...toast, id: next++}, ...toasts.get()].slice(0, 5));
}

export const dismiss = (id: number): void => toasts.set(toasts.get().filter((toast) => toast.id !== id));
export const useToasts = (): Toast[] => useSyncExternalStore(toasts.subscribe, toasts.get);

/** Sets why the pages may be out of date; empty if they are not. */
export const setStale = (text: string): void => stale.set(text);
export const useStale = (): string => useSyncExternalStore(stale.subscribe, stale.get);

const watchedKey = 'mpijob-watched';

function readWatched(): string[] {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(watchedKey) ?? '[]');
    return Array.isArray(value) ? value.filter((id) => typeof id === 'string').slice(0, 50) : [];
  } catch {
    return [];
  }
}

const watched = new Store<string[]>(readWatched());
// Other tabs change them, too.
addEventListener('storage', ({key}) => {
  if (key === watchedKey) watched.set(readWatched());
});

/** The UIDs of jobs whose end is notified. */
export const useWatched = (): string[] => useSyncExternalStore(watched.subscribe, watched.get);

export const isWatched = (id: string): boolean => watched.get().includes(id);

export function setWatched(id: string, on: boolean): void {
  const others = watched.get().filter((other) => other !== id);
  const all = on ? [...others, id].slice(-50) : others;
  localStorage.setItem(watchedKey, JSON.stringify(all));
  watched.set(all);
}
