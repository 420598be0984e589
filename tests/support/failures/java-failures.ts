import { cause, type FailureCause, type FailurePrinter } from './cause.ts';
import type { VariedValues } from './varied-values.ts';

const listener = 'com.acme.orders.OrderListener.onOrder';

export const javaCauses: readonly FailureCause[] = [
  cause(
    'locked customer',
    'java.lang.IllegalStateException',
    (v) => `customer ${v.n()} is locked`,
    'com.acme.orders.Customers.require',
    listener,
  ),
  cause(
    'closed order',
    'java.lang.IllegalStateException',
    (v) => `order ${v.uuid()} is closed since ${v.time()}`,
    'com.acme.orders.Orders.change',
    listener,
  ),
  cause(
    'duplicate order',
    'org.postgresql.util.PSQLException',
    (v) =>
      `ERROR: duplicate key value violates unique constraint "orders_pkey"\n  Detail: Key (id)=(${v.pick(v.uuid(), v.name())}) already exists.`,
    'lib:org.postgresql.jdbc.PgStatement.execute',
    'lib:org.hibernate.jdbc.Work.run',
    'com.acme.orders.OrderStore.lambda$insert$3',
    listener,
  ),
  cause(
    'duplicate payment',
    'org.postgresql.util.PSQLException',
    (v) =>
      `ERROR: duplicate key value violates unique constraint "payments_pkey"\n  Detail: Key (id)=(${v.uuid()}) already exists.`,
    'lib:org.postgresql.jdbc.PgStatement.execute',
    'com.acme.orders.OrderStore.insert',
    listener,
  ),
  cause(
    'no email',
    'org.postgresql.util.PSQLException',
    (v) =>
      `ERROR: null value in column "email" of relation "customers" violates not-null constraint\n  Detail: Failing row contains (${v.n()}, null, ${v.time()}).`,
    'lib:org.postgresql.jdbc.PgStatement.execute',
    'com.acme.orders.OrderStore.insert',
    listener,
  ),
  cause(
    'refused connection',
    'java.net.ConnectException',
    (v) => `Connection to ${v.address()} refused. Check that the hostname and port are correct.`,
    'lib:java.net.Socket.connect',
    'lib:com.zaxxer.hikari.pool.HikariPool.newConnection',
    'com.acme.orders.OrderStore.load',
    listener,
  ),
  cause(
    'slow stock',
    'java.net.SocketTimeoutException',
    (v) =>
      `timeout after ${v.duration()} calling https://stock-${v.n()}.example/items/${v.n()}?id=${v.uuid()}`,
    'lib:okhttp3.internal.Exchange.read',
    'com.acme.orders.StockClient.reserve',
    listener,
  ),
  cause(
    'missing price',
    'java.lang.NullPointerException',
    () => 'Cannot invoke "java.math.BigDecimal.add(java.math.BigDecimal)" because "price" is null',
    'com.acme.orders.Prices.sum',
    listener,
  ),
  cause(
    'missing address',
    'java.lang.NullPointerException',
    () => 'Cannot invoke "com.acme.Address.street()" because "address" is null',
    'com.acme.orders.Labels.print',
    listener,
  ),
  cause(
    'bad JSON',
    'com.fasterxml.jackson.databind.exc.MismatchedInputException',
    (v) =>
      `Cannot deserialize value of type \`java.time.Instant\` from String "${v.time()}": failed at index ${v.n()}\n at [Source: (byte[])"{"id":${v.n()},"name":"${v.name().replaceAll('"', '')}"}"; line: ${v.n()}, column: ${v.n()}]`,
    'lib:com.fasterxml.jackson.databind.Reader.read',
    'com.acme.orders.OrderCodec.decode',
    listener,
  ),
  cause(
    'rejected order',
    'com.acme.orders.RejectedException',
    (v) => `rejected Order[id=${v.n()}, customer=${v.name()}, total=${v.n()}.50]`,
    'com.acme.orders.Rules$RiskRule.check',
    listener,
  ),
];

const wrapperClasses = [
  'org.springframework.kafka.listener.ListenerExecutionFailedException',
  'org.springframework.dao.DataAccessResourceFailureException',
  'java.util.concurrent.CompletionException',
  'java.lang.reflect.UndeclaredThrowableException',
];

/** As Spring Kafka's headers have it: the class and message of the outermost error, and the whole stack. */
export const printJava: FailurePrinter = (failure, v, wrappers) => {
  const message = failure.message(v);
  const around = Array.from({ length: wrappers }, (_, i) => ({
    class: v.pick(...wrapperClasses),
    message: v.pick(
      `Listener failed; nested exception is ${failure.class}: ${message}`,
      `attempt ${v.n()} of batch ${v.uuid()} failed`,
    ),
    frames: [`org.springframework.kafka.Container$Invoker${i}.run`],
  }));
  const sections = [...around, { class: failure.class, message, frames: [] as readonly string[] }];
  const stack = sections.map((one, depth) => {
    const isRoot = depth === sections.length - 1;
    const frames = isRoot ? failure.calls : one.frames;
    return [
      `${depth === 0 ? '' : 'Caused by: '}${one.class}: ${one.message}`,
      ...frames.map((call) => frameOf(call, v)),
      ...(depth === 0
        ? [`\tat java.base/java.lang.Thread.run(Thread.java:${v.line()})`]
        : [`\t... ${v.line()} more`]),
    ].join('\n');
  });
  return {
    errorClass: sections[0]?.class,
    errorMessage: sections[0]?.message ?? '',
    errorStack: stack.join('\n'),
  };
};

function frameOf(call: string, v: VariedValues): string {
  const name = call.replace(/^lib:/, '').replace(/\$\d+$/, () => `$${v.line()}`);
  const [type, method] = [name.slice(0, name.lastIndexOf('.')), name.slice(name.lastIndexOf('.') + 1)];
  const proxied = call.startsWith('lib:') ? type : `${type}${v.pick('', '', '$$SpringCGLIB$$0')}`;
  return `\tat ${v.pick('', 'app//')}${proxied}.${method}(${type.slice(type.lastIndexOf('.') + 1)}.java:${v.line()})`;
}
