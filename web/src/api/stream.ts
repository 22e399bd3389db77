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
}

// The server sends a heartbeat every 15 s.
const silence = 40_000;
const shortestDelay = 500;
const longestDelay = 5000;
/** How long a hidden page keeps its stream: browsers open only six connections to a server without HTTP/2. */
const hiddenFor = 30_000;

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

  async function connect(): Promise<void> {
    const controller = new AbortController();
    connection = controller;
    let quiet = setTimeout(() => controller.abort(), silence);
    let cause: Problem | undefined;
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
      if (error instanceof ApiError) cause = error.problem;
      if (error instanceof ApiError && error.status >= 400 && error.status < 500) {
        state('ended', error.problem);
        ended = true;
      }
    } finally {
      clearTimeout(quiet);
      if (connection === controller) connection = undefined;
    }
    if (ended || document.hidden && hide === undefined) return;
    if (options.isDone?.()) {
      state('ended');
      ended = true;
      return;
    }
    state('waiting', cause);
    retry = setTimeout(() => void connect(), delay * (0.8 + 0.4 * Math.random()));
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
      // While the API server is away, the server ends streams; they continue when it answers.
      if (problem.code === 'Unavailable') {
        connection?.abort();
        return;
      }
      state('ended', problem);
      stop();
      return;
    }
    options.onEvent(event);
  }

  function pause(): void {
    clearTimeout(retry);
    connection?.abort();
  }

  const visibility = (): void => {
    clearTimeout(hide);
    hide = undefined;
    if (document.hidden) {
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
    pause();
  }

  document.addEventListener('visibilitychange', visibility);
  void connect();
  return stop;
}
