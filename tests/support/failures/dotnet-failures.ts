import { cause, type FailureCause, type FailurePrinter } from './cause.ts';
import type { VariedValues } from './varied-values.ts';

const consume = 'Acme.Orders.OrderConsumer.Consume(ConsumeContext`1 context)';

export const dotnetCauses: readonly FailureCause[] = [
  cause(
    'null reference',
    'System.NullReferenceException',
    () => 'Object reference not set to an instance of an object.',
    'Acme.Orders.Prices.Sum(Order order)',
    consume,
  ),
  cause(
    'null reference elsewhere',
    'System.NullReferenceException',
    () => 'Object reference not set to an instance of an object.',
    'Acme.Orders.Labels.Print(Order order)',
    consume,
  ),
  cause(
    'no element',
    'System.InvalidOperationException',
    () => 'Sequence contains no elements',
    'lib:System.Linq.ThrowHelper.ThrowNoElements()',
    'Acme.Orders.Carts.<>c__DisplayClass3_0.<First>b__0(Order o)',
    consume,
  ),
  cause(
    'missing key',
    'System.Collections.Generic.KeyNotFoundException',
    (v) => `The given key '${v.name()}' was not present in the dictionary.`,
    'lib:System.Collections.Generic.Dictionary`2.get_Item(TKey key)',
    'Acme.Orders.Prices.Find(String sku)',
    consume,
  ),
  cause(
    'slow database',
    'Npgsql.NpgsqlException',
    (v) => `Exception while reading from stream ${v.hex()} of ${v.address()}`,
    'lib:Npgsql.NpgsqlReadBuffer.Ensure(Int32 count)',
    'Acme.Orders.OrderStore.<LoadAsync>d__7.MoveNext()',
    consume,
  ),
  cause(
    'duplicate key',
    'Npgsql.PostgresException',
    (v) =>
      `23505: duplicate key value violates unique constraint "orders_pkey"\n\nDETAIL: Key (id)=(${v.uuid()}) already exists.`,
    'lib:Npgsql.NpgsqlDataReader.NextResult()',
    'Acme.Orders.OrderStore.SaveAsync(Order order)',
    consume,
  ),
  cause(
    'cancelled call',
    'System.Threading.Tasks.TaskCanceledException',
    (v) => `The request was canceled due to the configured HttpClient.Timeout of ${v.n()} seconds elapsing.`,
    'lib:System.Net.Http.HttpClient.HandleFailure(Exception e)',
    'Acme.Orders.StockClient.ReserveAsync(String sku)',
    consume,
  ),
  cause(
    'bad JSON',
    'System.Text.Json.JsonException',
    (v) =>
      `The JSON value could not be converted to System.DateTime. Path: $.lines[${v.n()}].at | LineNumber: ${v.n()} | BytePositionInLine: ${v.n()}.`,
    'lib:System.Text.Json.ThrowHelper.ThrowJsonException()',
    'Acme.Orders.Codec.Decode(Byte[] bytes)',
    consume,
  ),
  cause(
    'rejected order',
    'Acme.Orders.RejectedException',
    (v) => `Order { Id = ${v.n()}, Total = ${v.n()}.5 } exceeds ${v.n()} kg`,
    'Acme.Orders.Rules`1.Check[T](T item)',
    consume,
  ),
];

export const printDotnet: FailurePrinter = (failure, v, wrappers) => {
  const message = failure.message(v);
  const outer = Array.from({ length: wrappers }, () => ({
    class: v.pick('System.AggregateException', 'MassTransit.ConsumerException'),
    message: `delivery ${v.n()} of ${v.uuid()} failed`,
  }));
  const headings = [...outer, { class: failure.class, message }].map((one) => `${one.class}: ${one.message}`);
  const end = outer.map(
    () =>
      `   --- End of inner exception stack trace ---\n   at MassTransit.Pipeline.Send(Int32 depth) in /_/src/Pipeline.cs:line ${v.line()}`,
  );
  const frames = failure.calls.map((call) => frameOf(call, v));
  return {
    errorClass: outer[0]?.class ?? failure.class,
    errorMessage: outer[0]?.message ?? message,
    errorStack: [headings.join(v.pick(' ---> ', '\n ---> ')), ...frames, ...end].join('\n'),
  };
};

function frameOf(call: string, v: VariedValues): string {
  const name = call
    .replace(/^lib:/, '')
    .replace(/d__\d+/, () => `d__${v.line()}`)
    .replace(/Class\d+_\d/, () => `Class${v.line()}_0`);
  return `   at ${name}${call.startsWith('lib:') ? '' : v.pick('', ` in /src/${v.n()}/File.cs:line ${v.line()}`)}`;
}
