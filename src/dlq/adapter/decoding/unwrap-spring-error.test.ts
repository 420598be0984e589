import assert from 'node:assert/strict';
import { test } from 'node:test';
import { unwrapSpringError } from './unwrap-spring-error.ts';

const WRAPPER = 'org.springframework.kafka.listener.ListenerExecutionFailedException';

const unwrap = (told: {
  message?: string;
  class?: string;
  stack?: string;
}): { message?: string; class?: string } => {
  const { message, class: className } = unwrapSpringError({
    message: told.message,
    class: told.class,
    stack: told.stack,
  });
  return {
    ...(message === undefined ? {} : { message }),
    ...(className === undefined ? {} : { class: className }),
  };
};

test('the deepest nested exception is the cause', () => {
  const message =
    'Listener failed; nested exception is org.springframework.messaging.MessagingException: handler failed; nested exception is com.acme.OutOfStock: item 4711';
  assert.deepEqual(unwrap({ message, class: WRAPPER }), {
    message: 'item 4711',
    class: 'com.acme.OutOfStock',
  });
});

test('a class that is told and is no wrapper is kept', () => {
  const message = 'Listener failed; nested exception is com.acme.OutOfStock: item 4711';
  assert.deepEqual(unwrap({ message, class: 'com.acme.Told' }), {
    message: 'item 4711',
    class: 'com.acme.Told',
  });
});

test('a nested exception may have no message', () => {
  const message = 'Listener failed; nested exception is java.lang.NullPointerException';
  assert.deepEqual(unwrap({ message, class: WRAPPER }), { class: 'java.lang.NullPointerException' });
});

test("the listener's signature is taken off", () => {
  const message =
    "Listener method 'public void com.acme.L.on(java.util.List<java.lang.String>)' threw exception; no stock";
  assert.deepEqual(unwrap({ message, class: 'com.acme.OutOfStock' }), {
    message: 'no stock',
    class: 'com.acme.OutOfStock',
  });
});

test('where the message says nothing, the stack tells the root, with all lines of its message', () => {
  const stack = `${WRAPPER}: Listener failed\n\tat a.B.c(B.java:1)\nCaused by: a.Middle: m\n\tat a.B.d(B.java:2)\nCaused by: a.Root: line one\nline two\n\tat a.B.e(B.java:3)\n\t... 7 more\n`;
  const root = { message: 'line one\nline two', class: 'a.Root' };
  assert.deepEqual(unwrap({ message: 'Listener failed', class: WRAPPER, stack }), root);
  assert.deepEqual(unwrap({ stack }), root);
  assert.deepEqual(unwrap({ message: 'Listener failed; no stock', class: WRAPPER, stack }), {
    message: 'no stock',
    class: 'a.Root',
  });
});

test('a stack without causes tells its first line', () => {
  assert.deepEqual(unwrap({ stack: 'java.lang.IllegalStateException: closed\n\tat a.B.c(B.java:1)\n' }), {
    message: 'closed',
    class: 'java.lang.IllegalStateException',
  });
});

test('a message that is no wrapper’s stays as it is', () => {
  for (const message of [
    'Listener is down',
    'warning: disk full',
    'a.b.C: odd but told',
    'failed to deserialize it',
  ])
    assert.equal(unwrap({ message, class: 'com.acme.E' }).message, message);
});

test('with nothing told nothing is explained', () => {
  assert.deepEqual(unwrap({}), {});
  assert.deepEqual(unwrap({ class: WRAPPER }), { class: WRAPPER });
});
