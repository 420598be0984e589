import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';

/**
 * Where the orders of a bench go: a process of its own that reads just enough of HTTP/1.1 to answer each request with
 * 200 and a small JSON body, so that it is never what limits a run. Its first message names its port; then it says
 * what it is asked for. With `keep` it also remembers when each key came, by the clock that all processes of a machine
 * share. It ends with its parent.
 */
const keepsArrivals = process.argv.includes('keep');
const arrivals = new Map<string, bigint>();
let received = 0;

const body = '{"broker_order_id":"sink-1"}';
const head = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n`;
const answer = Buffer.from(`${head}\r\n${body}`);
const lastAnswer = Buffer.from(`${head}connection: close\r\n\r\n${body}`);

const server = createServer({ noDelay: true }, serve);
server.listen(0, '127.0.0.1');
await once(server, 'listening');
process.once('disconnect', () => process.exit(0));
process.on('message', (asked) => process.send?.(asked === 'arrivals' ? arrivals : received));
process.send?.({ port: (server.address() as AddressInfo).port });

function serve(socket: Socket): void {
  let pending: Buffer = Buffer.alloc(0);
  socket.on('error', () => socket.destroy());
  socket.on('data', (chunk) => {
    pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk]);
    for (let end = endOfRequest(pending); end !== undefined; end = endOfRequest(pending)) {
      take(socket, pending);
      pending = pending.subarray(end);
    }
  });
}

function endOfRequest(bytes: Buffer): number | undefined {
  const endOfHead = bytes.indexOf('\r\n\r\n');
  if (endOfHead < 0) return undefined;
  const length = Number(valueOf('content-length', bytes) ?? 0);
  const end = endOfHead + 4 + length;
  return bytes.length < end ? undefined : end;
}

function take(socket: Socket, request: Buffer): void {
  received += 1;
  if (keepsArrivals) arrivals.set(valueOf('idempotency-key', request) ?? '', process.hrtime.bigint());
  if (valueOf('connection', request) === 'close') socket.end(lastAnswer);
  else socket.write(answer);
}

/** Header names come in lower case from the senders of a bench. */
function valueOf(header: string, request: Buffer): string | undefined {
  const at = request.indexOf(`\r\n${header}: `);
  if (at < 0) return undefined;
  const begin = at + header.length + 4;
  return request.toString('latin1', begin, request.indexOf('\r\n', begin));
}
