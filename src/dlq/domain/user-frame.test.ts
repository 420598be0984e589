import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { topUserFrame } from './user-frame.ts';

const stackOf = (...lines: string[]): string => lines.join('\n');

test('on the JVM library frames are skipped, with or without a module', () => {
  const stack = stackOf(
    'org.springframework.kafka.listener.ListenerExecutionFailedException: Listener failed',
    '\tat org.springframework.kafka.listener.Adapter.invoke(Adapter.java:10)',
    'Caused by: java.lang.IllegalStateException: look at com.acme.Wrong.place(here)',
    '\tat java.base/java.util.Objects.requireNonNull(Objects.java:233)',
    '\tat kotlin.coroutines.Task.run(Task.kt:3)',
    '\tat app//com.acme.orders.Orders.store(Orders.java:42)',
    '\tat com.acme.orders.Listener.on(Listener.java:7)',
  );
  assert.equal(topUserFrame(stack), 'com.acme.orders.Orders.store');
});

test('a user’s package may begin like a library’s', () => {
  assert.equal(topUserFrame('\tat javaland.Orders.store(Orders.java:1)'), 'javaland.Orders.store');
  assert.equal(topUserFrame('\tat org.springframeworks.A.b(A.java:1)'), 'org.springframeworks.A.b');
  assert.equal(topUserFrame('\tat Main.main(Main.java:1)'), 'Main.main');
});

test('line numbers, proxies and lambdas do not change the frame', () => {
  for (const [one, other] of [
    ['com.acme.Orders.store(Orders.java:42)', 'com.acme.Orders.store(Orders.java:97)'],
    [
      'com.acme.Orders$$SpringCGLIB$$0.store(<generated>)',
      'com.acme.Orders$$EnhancerBySpringCGLIB$$1a2b3c.store(<generated>)',
    ],
    ['com.acme.Orders.lambda$store$3(Orders.java:1)', 'com.acme.Orders.lambda$store$12(Orders.java:1)'],
    [
      'com.acme.Orders$$Lambda$14/0x0000000800c03000.accept(Unknown Source)',
      'com.acme.Orders$$Lambda/0x000000012b.accept(Unknown Source)',
    ],
    ['com.acme.Orders$1.run(Orders.java:1)', 'com.acme.Orders$2.run(Orders.java:1)'],
  ] as const) {
    assert.equal(topUserFrame(`\tat ${one}`), topUserFrame(`\tat ${other}`));
    assert.match(topUserFrame(`\tat ${one}`) ?? '', /^com\.acme\.Orders/);
  }
});

test('.NET frames are parsed like those of the JVM', () => {
  const stack = stackOf(
    'System.InvalidOperationException: closed',
    '   at System.Linq.Enumerable.First[T](IEnumerable`1 source)',
    '   at Acme.Orders.Store(Order order) in /src/Orders.cs:line 42',
  );
  assert.equal(topUserFrame(stack), 'Acme.Orders.Store');
});

test('in Node the frame is the function and its file, without the folder', () => {
  const stack = stackOf(
    'TypeError: x is not a function',
    '    at node:internal/process/task_queues:95:5',
    '    at Array.map (<anonymous>)',
    '    at run (/srv/app/node_modules/lib/index.js:1:2)',
    '    at async Orders.store [as handle] (file:///srv/release-17/src/orders.ts:42:7)',
  );
  assert.equal(topUserFrame(stack), 'Orders.store@orders.ts');
  assert.equal(topUserFrame('    at C:\\app\\orders.js:1:2\r'), '@orders.js');
  assert.equal(topUserFrame('    at new Orders (/app/orders.js:1:2)'), 'Orders@orders.js');
});

test('in Python the innermost call is the last', () => {
  const stack = stackOf(
    'Traceback (most recent call last):',
    '  File "/app/main.py", line 3, in <module>',
    '    run()',
    '  File "/app/orders.py", line 42, in store',
    '    json.loads(x)',
    '  File "/usr/lib/python3.12/json/__init__.py", line 346, in loads',
    '  File "/venv/lib/python3.12/site-packages/x/y.py", line 1, in z',
    'ValueError: bad at com.acme.A.b(x)',
  );
  assert.equal(topUserFrame(stack), 'store@orders.py');
});

test('a stack without user code has no frame', () => {
  assert.equal(topUserFrame('\tat java.lang.Thread.run(Thread.java:1)\n\t... 7 more'), undefined);
  assert.equal(topUserFrame('Traceback (most recent call last):\n'), undefined);
  assert.equal(topUserFrame('something happened at noon (somewhere)'), undefined);
  assert.equal(topUserFrame(''), undefined);
});

test('only the beginning of a stack is read', () => {
  const library = '\tat java.lang.Thread.run(Thread.java:1)\n';
  assert.equal(topUserFrame(`${library.repeat(300)}\tat com.acme.A.b(A.java:1)`), undefined);
});

test('takes linear time', () => {
  const pieces = [
    'at ',
    '\n',
    ' ',
    '\tat a(',
    '(',
    ')',
    ':1',
    ' [as ',
    '$$',
    '$1',
    '/',
    'File "',
    '", line 1, in ',
  ];
  const started = performance.now();
  for (const piece of pieces)
    for (const start of ['at ', 'Traceback\n  File "', 'at x ('])
      topUserFrame(start + piece.repeat(65_536 / piece.length));
  assert.ok(performance.now() - started < 1000);
});

test('never throws, whatever the text', () => {
  const pieces = [
    'at ',
    '\n',
    '\t',
    '(',
    ')',
    ' (',
    '.',
    'a',
    '/',
    ':1:2',
    '$$',
    'File "',
    '"',
    'Traceback',
    ' [as ',
  ];
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...pieces)), (text) => {
      assert.doesNotThrow(() => topUserFrame(text.join('')));
    }),
  );
});
