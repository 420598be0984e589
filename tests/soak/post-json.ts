export type Told = Readonly<{ status: number; body: unknown }>;

const withinMs = 3000;

/** Null where no answer came: the process has died, sleeps, or does not listen yet. */
export async function postJson(url: string, body: object, key?: string): Promise<Told | null> {
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-actor': 'soak',
        ...(key === undefined ? {} : { 'idempotency-key': key }),
      },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(withinMs),
    });
    return { status: response.status, body: await response.json() };
  } catch {
    return null;
  }
}
