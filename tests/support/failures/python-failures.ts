import { cause, type FailureCause, type FailurePrinter } from './cause.ts';
import type { VariedValues } from './varied-values.ts';

const consume = 'consume app/worker.py';

export const pythonCauses: readonly FailureCause[] = [
  cause(
    'missing key',
    'KeyError',
    (v) => `'${v.pick('a', 'customer', 'sku-7')}'`,
    'total app/prices.py',
    consume,
  ),
  cause(
    'bad date',
    'ValueError',
    (v) => `time data '${v.time()}' does not match format '%Y-%m-%d'`,
    'lib:_strptime lib/python3.12/_strptime.py',
    'parse app/dates.py',
    consume,
  ),
  cause(
    'bad number',
    'ValueError',
    (v) => `could not convert string to float: '${v.name()}'`,
    'parse app/prices.py',
    consume,
  ),
  cause(
    'bad JSON',
    'json.decoder.JSONDecodeError',
    (v) => `Expecting value: line ${v.n()} column ${v.n()} (char ${v.n()})`,
    'lib:raw_decode lib/python3.12/json/decoder.py',
    'decode app/codec.py',
    consume,
  ),
  cause(
    'refused connection',
    'psycopg2.OperationalError',
    (v) => `connection to server at "${v.address()}", port ${v.n()} failed: Connection refused`,
    'lib:connect site-packages/psycopg2/__init__.py',
    'open_db app/store.py',
    consume,
  ),
  cause(
    'serialization failure',
    'psycopg2.errors.SerializationFailure',
    () => 'could not serialize access due to concurrent update',
    'lib:execute site-packages/sqlalchemy/engine.py',
    'save app/store.py',
    consume,
  ),
  cause(
    'missing attribute',
    'AttributeError',
    () => "'NoneType' object has no attribute 'street'",
    'label app/labels.py',
    consume,
  ),
  cause(
    'other missing attribute',
    'AttributeError',
    () => "'NoneType' object has no attribute 'zip'",
    'label app/labels.py',
    consume,
  ),
  cause(
    'timeout',
    'requests.exceptions.ReadTimeout',
    (v) =>
      `HTTPSConnectionPool(host='stock-${v.n()}.example', port=${v.n()}): Read timed out. (read timeout=${v.n()})`,
    'lib:send site-packages/requests/adapters.py',
    'reserve app/stock.py',
    consume,
  ),
  cause(
    'unhashable object',
    'TypeError',
    (v) => `unsupported operand for <Order object at ${v.hex()}> and ${v.n()}`,
    'merge app/orders.py',
    consume,
  ),
];

export const printPython: FailurePrinter = (failure, v, wrappers) => {
  const message = failure.message(v);
  let stack = traceback(failure.calls, v, `${failure.class}: ${message}`);
  for (let i = 0; i < wrappers; i += 1)
    stack += `\n\nThe above exception was the direct cause of the following exception:\n\n${traceback(['lib:run site-packages/celery/app/trace.py'], v, `celery.exceptions.Retry: retry ${v.n()} in ${v.n()}s`)}`;
  return {
    errorClass: wrappers > 0 ? 'celery.exceptions.Retry' : failure.class,
    errorMessage: wrappers > 0 ? `retry ${v.n()} in ${v.n()}s` : message,
    errorStack: stack,
  };
};

function traceback(calls: readonly string[], v: VariedValues, heading: string): string {
  const root = v.pick('/srv', '/home/app', 'C:\\app');
  const frames = calls.toReversed().map((call) => {
    const [name = '', path = ''] = call.replace(/^lib:/, '').split(' ');
    return `  File "${call.startsWith('lib:') ? '/usr/' : `${root}/`}${path}", line ${v.line()}, in ${name}\n    ${name}(x)\n${v.pick('', '    ~~~^^^^\n')}`;
  });
  return `Traceback (most recent call last):\n${frames.join('')}${heading}`;
}
