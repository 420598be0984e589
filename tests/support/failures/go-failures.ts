import { cause, type FailureCause, type FailurePrinter } from './cause.ts';
import type { VariedValues } from './varied-values.ts';

const consume = 'acme.example/orders/worker.(*Consumer).handle worker/consumer.go';

export const goCauses: readonly FailureCause[] = [
  cause(
    'nil pointer',
    'runtime.Error',
    (v) =>
      `runtime error: invalid memory address or nil pointer dereference [signal SIGSEGV: code=${v.hex()} addr=${v.hex()} pc=${v.hex()}]`,
    'acme.example/orders/price.Sum price/sum.go',
    consume,
  ),
  cause(
    'index',
    'runtime.Error',
    (v) => `runtime error: index out of range [${v.n()}] with length ${v.n()}`,
    'acme.example/orders/price.Last price/sum.go',
    consume,
  ),
  cause(
    'nil map',
    'runtime.Error',
    () => 'assignment to entry in nil map',
    'acme.example/orders/price.(*Cache).Put price/cache.go',
    consume,
  ),
  cause(
    'no rows',
    '*errors.errorString',
    () => 'sql: no rows in result set',
    'lib:database/sql.(*Row).Scan /usr/local/go/src/database/sql/sql.go',
    'acme.example/orders/store.(*Repo).Load store/repo.go',
    consume,
  ),
  cause(
    'refused connection',
    '*net.OpError',
    (v) => `dial tcp ${v.address()}: connect: connection refused`,
    'lib:net.(*Dialer).Dial /usr/local/go/src/net/dial.go',
    'acme.example/orders/store.Open store/open.go',
    consume,
  ),
  cause(
    'deadline',
    'context.deadlineExceededError',
    () => 'context deadline exceeded',
    'acme.example/orders/stock.(*Client).Reserve stock/client.go',
    consume,
  ),
  cause(
    'deadline elsewhere',
    'context.deadlineExceededError',
    () => 'context deadline exceeded',
    'acme.example/orders/mail.Send mail/send.go',
    consume,
  ),
  cause(
    'duplicate key',
    '*pq.Error',
    () => 'pq: duplicate key value violates unique constraint "orders_pkey"',
    'lib:github.com/lib/pq.(*conn).exec /root/go/pkg/mod/github.com/lib/pq@v1.10.9/conn.go',
    'acme.example/orders/store.(*Repo).Save store/repo.go',
    consume,
  ),
  cause(
    'bad order',
    '*orders.Invalid',
    (v) => `invalid order &{ID:${v.n()} Customer:${v.name()}}`,
    'acme.example/orders/rules.Check.func1 rules/check.go',
    consume,
  ),
];

/** Runtime errors panic; the others carry a stack, and wrappers add their own message and stack behind it. */
export const printGo: FailurePrinter = (failure, v, wrappers) => {
  const message = failure.message(v);
  const frames = failure.calls.map((call) => frameOf(call, v)).join('\n');
  if (failure.class === 'runtime.Error') {
    const recovery = [
      'lib:runtime/debug.Stack /usr/local/go/src/runtime/debug/stack.go',
      ...Array.from(
        { length: wrappers },
        () => 'acme.example/orders/middleware.Recover.func1 middleware/recover.go',
      ),
      'lib:panic /usr/local/go/src/runtime/panic.go',
    ];
    return {
      errorClass: undefined,
      errorMessage: message,
      errorStack: `goroutine ${v.n()} [running]:\n${recovery.map((call) => frameOf(call, v)).join('\n')}\n${frames}\ncreated by main.start in goroutine 1\n\t/src/main.go:${v.line()} +0x1`,
    };
  }
  const around = Array.from(
    { length: wrappers },
    () => `\nhandle order ${v.n()}\n${frameOf(consume, v)}`,
  ).join('');
  const outer = `${Array.from({ length: wrappers }, () => `handle order ${v.n()}: `).join('')}${message}`;
  return { errorClass: undefined, errorMessage: outer, errorStack: `${message}\n${frames}${around}` };
};

function frameOf(call: string, v: VariedValues): string {
  const [name = '', path = ''] = call.replace(/^lib:/, '').split(' ');
  const place = path.startsWith('/') ? path : `${v.pick('/src', '/home/ci/build')}/${path}`;
  return `${name}(${v.pick('...', `0xc000${v.line()}, {0x1, ${v.hex()}}`)})\n\t${place}:${v.line()} +${v.hex()}`;
}
