import { cause, type FailureCause, type FailurePrinter } from './cause.ts';
import type { VariedValues } from './varied-values.ts';

const handler = 'handleOrder /src/handler.js';

export const nodeCauses: readonly FailureCause[] = [
  cause(
    'no id',
    'TypeError',
    () => "Cannot read properties of undefined (reading 'id')",
    'Orders.load /src/orders.js',
    handler,
  ),
  cause(
    'no total',
    'TypeError',
    () => "Cannot read properties of undefined (reading 'total')",
    'Orders.load /src/orders.js',
    handler,
  ),
  cause(
    'no id elsewhere',
    'TypeError',
    () => "Cannot read properties of undefined (reading 'id')",
    'Carts.load /src/carts.js',
    handler,
  ),
  cause(
    'bad JSON',
    'SyntaxError',
    (v) => `Unexpected token ${v.pick("'<'", "'u'")}, "${v.pick('<html>', 'undefin')}"... is not valid JSON`,
    'lib:JSON.parse <anonymous>',
    'decode /src/codec.js',
    handler,
  ),
  cause(
    'refused connection',
    'Error',
    (v) => `connect ECONNREFUSED ${v.address()}`,
    'lib:TCPConnectWrap.afterConnect node:net',
    'lib:Pool.connect /node_modules/pg-pool/index.js',
    'query /src/store.js',
    handler,
  ),
  cause(
    'reset connection',
    'Error',
    (v) => `read ECONNRESET ${v.address()}`,
    'lib:TCP.onStreamRead node:internal/stream',
    'query /src/store.js',
    handler,
  ),
  cause(
    'bad status',
    'AxiosError',
    (v) => `Request failed with status code ${v.n()}`,
    'lib:settle /node_modules/axios/lib/settle.js',
    'reserve /src/stock.ts',
    handler,
  ),
  cause(
    'unknown customer',
    'NotFoundError',
    (v) => `customer ${v.email()} not found`,
    'find /src/customers.ts',
    handler,
  ),
  cause(
    'invalid order',
    'ValidationError',
    (v) => `order {"id":${v.n()},"to":"${v.name().replaceAll('"', '')}"} has ${v.n()} lines, limit ${v.n()}`,
    'check /src/rules.ts',
    handler,
  ),
  cause(
    'stale order',
    'ConflictError',
    (v) => `version ${v.n()} of ${v.uuid()} changed at ${v.time()}`,
    '/src/rules.ts',
    handler,
  ),
];

export const printNode: FailurePrinter = (failure, v, wrappers) => {
  const message = failure.message(v);
  const root = `${failure.class}: ${message}\n${failure.calls.map((call) => frameOf(call, v)).join('\n')}`;
  let stack = root;
  let outer = message;
  for (let i = 0; i < wrappers; i += 1) {
    outer = `job ${v.n()} failed`;
    stack = `Error: ${outer}\n    at run (/app/node_modules/queue/index.js:${v.line()}:1) {\n  [cause]: ${stack.replaceAll('\n', '\n  ')}\n}`;
  }
  return { errorClass: wrappers > 0 ? 'Error' : failure.class, errorMessage: outer, errorStack: stack };
};

function frameOf(call: string, v: VariedValues): string {
  const [name = '', place] = call.replace(/^lib:/, '').split(' ');
  if (place === '<anonymous>') return `    at ${name} (<anonymous>)`;
  const root = v.pick('/app', '/srv/release-17/dist', 'file:///home/app', 'webpack-internal://');
  const file = (path: string): string =>
    `${path.startsWith('node:') ? '' : root}${path}:${v.line()}:${v.line()}`;
  if (place === undefined) return `    at ${v.pick('', 'async ')}${file(name)}`.replace('async ', '');
  return `    at ${v.pick('', 'async ')}${name} (${file(place)})`;
}
