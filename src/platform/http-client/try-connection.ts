import { once } from 'node:events';
import { connect } from 'node:net';

/** Opens a connection to the URL's host and closes it; rejects on failure or timeout. */
export async function tryConnection({ protocol, hostname, port }: URL, withinMs: number): Promise<void> {
  const socket = connect({
    host: hostname.replace(/^\[|\]$/g, ''),
    port: port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port),
  });
  try {
    await once(socket, 'connect', { signal: AbortSignal.timeout(withinMs) });
  } finally {
    socket.destroy();
  }
}
