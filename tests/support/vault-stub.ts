import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export type VaultStub = Readonly<{ url: string; token: string; close(): Promise<void> }>;

/** The parts of Vault's HTTP API that its agent needs to read secrets, over a fixed content by path. */
export async function startVaultStub(secrets: Readonly<Record<string, object>>): Promise<VaultStub> {
  const token = 'a-token';
  const server = createServer((request, response) => {
    const path = new URL(request.url ?? '', 'http://vault').pathname.replace('/v1/', '');
    const answer = (status: number, body: object): void => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    };
    if (request.headers['x-vault-token'] !== token) return answer(403, { errors: ['permission denied'] });
    const mount = 'sys/internal/ui/mounts/';
    if (path.startsWith(mount)) {
      const isKv = path.startsWith(`${mount}secret/`);
      return answer(200, {
        data: isKv
          ? { path: 'secret/', type: 'kv', options: { version: '2' } }
          : { path: 'database/', type: 'database', options: null },
      });
    }
    const found = secrets[path];
    if (found === undefined) return answer(404, { errors: [] });
    const isKv = path.startsWith('secret/');
    return answer(200, {
      lease_id: isKv ? '' : `${path}/1`,
      lease_duration: isKv ? 0 : 86_400,
      renewable: !isKv,
      data: isKv ? { data: found, metadata: { version: 1 } } : found,
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    token,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
