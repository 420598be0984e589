import { sleep } from '../../src/kernel/clock.ts';

/** The operators of the demo, who use the API as a person would. */
export type OperatorOptions = Readonly<{ redriveUrl: string; signal: AbortSignal }>;

export const actor = 'demo';
const pollMs = 2000;

/** Asks every two seconds; null if the signal aborts first. */
export async function until<T>(signal: AbortSignal, ask: () => Promise<T | null>): Promise<T | null> {
  while (!signal.aborted) {
    const answer = await ask().catch((error: unknown) => {
      if (signal.aborted) return null;
      throw error;
    });
    if (answer !== null) return answer;
    await sleep(pollMs, signal);
  }
  return null;
}

export type Sent = Readonly<{ body?: object; ifMatch?: string }>;

/** The path is below `/api/v1/dlq`; with a body it is a POST. Any status but 2xx is in the answer, too. */
export function sendToRedrive(
  { redriveUrl, signal }: OperatorOptions,
  path: string,
  { body, ifMatch }: Sent = {},
): Promise<Response> {
  return fetch(`${redriveUrl}/api/v1/dlq${path}`, {
    ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
    headers: {
      'content-type': 'application/json',
      'x-actor': actor,
      ...(ifMatch === undefined ? {} : { 'if-match': ifMatch }),
    },
    signal,
  });
}

export async function callRedrive<T>(options: OperatorOptions, path: string, body?: object): Promise<T> {
  const response = await sendToRedrive(options, path, body === undefined ? {} : { body });
  if (!response.ok) throw new Error(`${path}: HTTP ${response.status}: ${await response.text()}`);
  return (await response.json()) as T;
}
