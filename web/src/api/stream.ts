import {ApiError, check} from './client';
import type {Problem} from './types';

export type StreamState = 'connecting' | 'open' | 'waiting' | 'ended';

export interface StreamEvent {
  name: string;
  data: string;
}

interface StreamOptions {
  url: () => string;
  onEvent: (event: StreamEvent) => void;
  onState?: (state: StreamState, problem?: Problem) => void;
  /** Returns whether the stream is complete, so that it is not opened again. */
  isDone?: () => boolean;
  /** Whether the stream stays open while the page is hidden. */
  keepWhileHidden?: boolean;
}

// The server sends a heartbeat every 15 s.
const silence = 40_000;
const shortestDelay = 500;
const longestDelay = 5000;
/** How long a hidden page keeps its stream: browsers open only six connections to a server without HTTP/2. */
const hiddenFor = 30_000;

/** Whether an error passes: the user or the server has too many requests, or one took too long. */
const isTemporary = (status: number): boolean => status === 408 || status === 429;

/** Opens again the streams that an expired login has ended. */
const expired = new Set<() => void>();

/** Continues the streams that an expired login has ended, after the user has logged in again. */
export function continueStreams(): void {
  for (const resume of [...expired]) resume();
}

/**
 * Reads server-sent events, and opens the stream again when the connection is lost, from the last event on. EventSource
 * does not report the status of a response, such as an expired login. Returns a function that ends the stream.
 */
export function openStream(options: StreamOptions): () => void {
  let lastID = '';
  let ended = false;
  let delay = shortestDelay;
  let connection: AbortController | undefined;
  let retry: ReturnType<typeof setTimeout> | undefined;
  let hide: ReturnType<typeof setTimeout> | undefined;

  const state = (value: StreamState, problem?: Problem): void => {
    if (!ended) options.onState?.(value, problem);
  };

  const resume = (): void => {
    delay = shortestDelay;
    void connect();
  };

  const expire = (problem: Problem): void => {
    expired.add(resume);
    state('ended', problem);
  };

  async function connect(): Promise<void> {
    const controller = new AbortController();
    connection = controller;
    expired.delete(resume);
    let quiet = setTimeout(() => controller.abort(), silence);
    let cause: Problem | undefined;
    let wait = 0;
    state('connecting');
    try {
      const response = await check(
        await fetch(options.url(), {
          credentials: 'same-origin',
          redirect: 'error',
          signal: controller.signal,
          headers: {Accept: 'text/event-stream', ...(lastID ? {'Last-Event-ID': lastID} : {})},
        }),
      );
      state('open');
      const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
      let buffer = '';
      for (;;) {
        const chunk = await reader?.read();
        if (!chunk || chunk.done) break;
        clearTimeout(quiet);
        quiet = setTimeout(() => controller.abort(), silence);
        delay = shortestDelay;
        buffer += chunk.value;
        const parts = buffer.split('\n\n');
        buffer = parts.pop() ?? '';
        for (const part of parts) if (!controller.signal.aborted) dispatch(part);
      }
    } catch (error) {
      if (error instanceof ApiError) {
        cause = error.problem;
        wait = error.retryAfter ?? 0;
        if (error.status === 401) expire(error.problem);
        else if (error.status >= 400 && error.status < 500 && !isTemporary(error.status)) {
          state('ended', error.problem);
          ended = true;
        }
      }
    } finally {
      clearTimeout(quiet);
      if (connection === controller) connection = undefined;
    }
    if (ended || expired.has(resume) || isPaused()) return;
    if (options.isDone?.()) {
      state('ended');
      ended = true;
      return;
    }
    state('waiting', cause);
    retry = setTimeout(() => void connect(), Math.max(delay, wait) * (0.8 + 0.4 * Math.random()));
    delay = Math.min(2 * delay, longestDelay);
  }

  function dispatch(part: string): void {
    const event: StreamEvent = {name: 'message', data: ''};
    for (const line of part.split('\n')) {
      if (line.startsWith('event: ')) event.name = line.slice(7);
      else if (line.startsWith('id: ')) lastID = line.slice(4);
      else if (line.startsWith('data: ')) event.data += line.slice(6);
    }
    if (!event.data) return;
    if (event.name === 'problem') {
      const problem = JSON.parse(event.data) as Problem;
      // While the API server is away or there are too many streams, the server ends streams; they continue when it can.
      if (problem.code === 'Unavailable' || problem.code === 'Busy') {
        connection?.abort();
        return;
      }
      if (problem.code === 'Unauthorized') {
        expire(problem);
        connection?.abort();
        return;
      }
      state('ended', problem);
      stop();
      return;
    }
    options.onEvent(event);
  }

  /** Whether the page has been hidden for long. */
  const isPaused = (): boolean => document.hidden && hide === undefined && !options.keepWhileHidden;

  function pause(): void {
    clearTimeout(retry);
    connection?.abort();
  }

  const visibility = (): void => {
    clearTimeout(hide);
    hide = undefined;
    if (document.hidden) {
      if (options.keepWhileHidden) return;
      hide = setTimeout(() => {
        hide = undefined;
        pause();
      }, hiddenFor);
    } else if (!connection && !ended) {
      clearTimeout(retry);
      delay = shortestDelay;
      void connect();
    }
  };

  function stop(): void {
    ended = true;
    document.removeEventListener('visibilitychange', visibility);
    clearTimeout(hide);
    expired.delete(resume);
    pause();
  }

  document.addEventListener('visibilitychange', visibility);
  void connect();
  return stop;
}
