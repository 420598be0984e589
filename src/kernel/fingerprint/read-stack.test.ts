import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { readStack } from './read-stack.ts';

const topUserFrame = (stack: string): string | undefined => readStack(stack).frame;

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
  assert.equal(topUserFrame(`${library.repeat(300)}\tat com.acme.A.b(A.java:1)`), 'com.acme.A.b');
  assert.equal(topUserFrame(`${library.repeat(2000)}\tat com.acme.A.b(A.java:1)`), undefined);
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
    'Caused by: ',
    '\nCaused by: a',
    '[cause]: ',
    ' ---> ',
    'goroutine ',
    '\n\ta.go:1',
    'x\n\ta.go:1\n',
    '<',
    '<a>',
    'a.',
    '[',
  ];
  const started = performance.now();
  for (const piece of pieces)
    for (const start of [
      'at ',
      'Traceback (most recent call last):\n  File "',
      'at x (',
      'x\n\ta.go:1\n',
      'panic: ',
    ])
      topUserFrame(start + piece.repeat(1_000_000 / piece.length));
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

test('the root cause is the last of a chain, in the order of each language', () => {
  const roots: readonly (readonly [string, unknown])[] = [
    [
      'a.B: outer\n\tat x.Y.z(Y.java)\nCaused by: a.C: inner: 7\n\tat x.Y.w(Y.java)',
      { class: 'a.C', message: 'inner: 7' },
    ],
    ['a.B: outer\n\tat x.Y.z(Y.java)\nCaused by: a.C\n\t... 3 more', { class: 'a.C', message: 'a.C' }],
    [
      'A.B: outer ---> C.D: inner\r\n ---> E.F: root\r\n   at X.Y()\r\n   --- End of inner exception stack trace ---',
      { class: 'E.F', message: 'root' },
    ],
    [
      'Error: outer\n    at a (/a.js:1:1) {\n  [cause]: TypeError [ERR_X]: inner\n      at b (/b.js:1:1)\n}',
      { class: 'TypeError', message: 'inner' },
    ],
    [
      'Traceback (most recent call last):\n  File "/a.py", line 1, in a\nx.Inner: root\n\nThe above exception was the direct cause of the following exception:\n\nTraceback (most recent call last):\n  File "/b.py", line 1, in b\nOuter: outer',
      { class: 'x.Inner', message: 'root' },
    ],
    [
      'panic: boom [recovered]\n\ngoroutine 1 [running]:\nmain.a()\n\t/a.go:1',
      { class: undefined, message: 'boom' },
    ],
    ['no rows\nmain.a\n\t/a.go:1\nload\nmain.b\n\t/b.go:1', { class: undefined, message: 'no rows' }],
    ['a.B: alone\n\tat x.Y.z(Y.java)', undefined],
    ['', undefined],
  ];
  for (const [stack, root] of roots) assert.deepEqual(readStack(stack).rootCause, root, stack);
});

test('a Python exception raised while another is handled is a failure of its own', () => {
  const stack = stackOf(
    'Traceback (most recent call last):',
    '  File "/app/a.py", line 1, in first',
    'KeyError: 1',
    '',
    'During handling of the above exception, another exception occurred:',
    '',
    'Traceback (most recent call last):',
    '  File "/app/b.py", line 1, in second',
    'ValueError: 2',
  );
  assert.deepEqual(readStack(stack), { rootCause: undefined, frame: 'second@b.py' });
});

test('suppressed exceptions are not read', () => {
  const stack = stackOf(
    'java.io.IOException: x',
    '\tat java.io.Reader.read(Reader.java:1)',
    '\tSuppressed: java.io.IOException: y',
    '\t\tat com.acme.Orders.close(Orders.java:9)',
  );
  assert.equal(topUserFrame(stack), undefined);
});

test('Go frames: the panic’s own, not those of the recovery; no arguments, closures or libraries', () => {
  const stack = stackOf(
    'goroutine 17 [running]:',
    'runtime/debug.Stack()',
    '\t/usr/local/go/src/runtime/debug/stack.go:24 +0x5e',
    'main.recoverAll()',
    '\t/src/recover.go:9 +0x1',
    'panic({0x1?, 0x2?})',
    '\t/usr/local/go/src/runtime/panic.go:770 +0x132',
    'github.com/lib/pq.(*conn).query(0xc0001)',
    '\t/root/go/pkg/mod/github.com/lib/pq@v1.10.9/conn.go:1 +0x1',
    'acme.example/orders/store.(*Repo).Save.func1.2(0xc000123, {0x1, 0x2})',
    '\t/src/store/repo.go:42 +0x1d',
  );
  assert.equal(topUserFrame(stack), 'acme.example/orders/store.(*Repo).Save');
  assert.equal(topUserFrame('x\nmain.(*S).run\n\t/s.go:1'), 'main.(*S).run');
  const trimmed =
    'x\nnet/http.(*conn).serve(0x1)\n\tnet/http/server.go:1\nacme.example/a.F(...)\n\tacme.example/a/f.go:1';
  assert.equal(topUserFrame(trimmed), 'acme.example/a.F');
});

test('compiler-generated names of .NET, Kotlin and Scala are read as written', () => {
  for (const [frame, name] of [
    ['Acme.Orders.<StoreAsync>d__12.MoveNext()', 'Acme.Orders.StoreAsync'],
    ['Acme.Orders.<>c__DisplayClass3_0.<Handle>b__0(Order o)', 'Acme.Orders.Handle'],
    ['Acme.Orders.<>c__DisplayClass3_0.<<Handle>b__0>d.MoveNext()', 'Acme.Orders.Handle'],
    ['Acme.Repository`1.Save[T](T item)', 'Acme.Repository.Save'],
    ['com.acme.Orders$store$2.invokeSuspend(Orders.kt:5)', 'com.acme.Orders.store'],
    ['com.acme.Orders.$anonfun$store$1$adapted(Orders.scala:5)', 'com.acme.Orders.store'],
  ] as const)
    assert.equal(topUserFrame(`   at ${frame}`), name);
});

test('a hash in a bundle’s name, and the index of a promise, are not part of the frame', () => {
  assert.equal(
    topUserFrame('    at async Promise.all (index 3)\n    at f (/app/main.3f2a1b9c.js:1:2)'),
    'f@main.js',
  );
  assert.equal(topUserFrame('    at f (/app/chunk-5QWHR2XZ.js:1:2)'), 'f@chunk.js');
});
