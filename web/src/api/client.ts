import {baseURL} from '../lib/base';
import type {Problem} from './types';

/** A response that is an error, or no response. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly problem: Problem,
    /** After how many milliseconds the request may be repeated, if the server sets that. */
    readonly retryAfter?: number | undefined,
  ) {
    super(problem.message);
  }
}

/** Returns the URL of an operation of the API. */
export function apiURL(path: string, params?: URLSearchParams): string {
  const url = new URL(`api/v1/${path}`, baseURL());
  if (params) url.search = params.toString();
  return url.toString();
}

/** Encodes the parts of a path: names come from the cluster. */
export const path = (...parts: string[]): string => parts.map(encodeURIComponent).join('/');

const unreachable: Problem = {
  code: 'Unreachable',
  message: 'The dashboard does not answer. Your jobs are not affected; this page continues by itself.',
};

/** Throws the problem of a response that is an error. */
export async function check(response: Response): Promise<Response> {
  if (response.ok) return response;
  let problem: Problem;
  try {
    problem = (await response.json()) as Problem;
  } catch {
    problem = {code: response.status >= 500 ? 'Unreachable' : 'Internal', message: `The request failed with status ${response.status}.`};
  }
  throw new ApiError(response.status, problem, 1000 * Number(response.headers.get('Retry-After') ?? 0) || undefined);
}

/** Sends a request. Errors of the network are ApiErrors with status 0. */
export async function send<T>(method: string, url: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  let response: Response;
  try {
    response = await fetch(url, {
      method,
      credentials: 'same-origin',
      redirect: 'error',
      signal: signal ?? null,
      ...(body === undefined ? {} : {body: JSON.stringify(body), headers: {'Content-Type': 'application/json'}}),
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, unreachable);
  }
  await check(response);
  return (response.status === 204 ? undefined : await response.json()) as T;
}

export const get = <T>(p: string, params?: URLSearchParams, signal?: AbortSignal): Promise<T> => send<T>('GET', apiURL(p, params), undefined, signal);
export const post = <T>(p: string, body: unknown, signal?: AbortSignal): Promise<T> => send<T>('POST', apiURL(p), body, signal);
export const put = <T>(p: string, body: unknown): Promise<T> => send<T>('PUT', apiURL(p), body);
export const remove = <T>(p: string, params?: URLSearchParams): Promise<T> => send<T>('DELETE', apiURL(p, params));

/** Returns the text of an error for users. */
export function errorText(error: unknown): string {
  if (error instanceof ApiError || error instanceof Error) return error.message;
  return String(error);
}
