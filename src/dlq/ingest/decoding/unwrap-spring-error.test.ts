import assert from 'node:assert/strict';
import { test } from 'node:test';
import { unwrapSpringError } from './unwrap-spring-error.ts';

const WRAPPER = 'org.springframework.kafka.listener.ListenerExecutionFailedException';

const unwrap = (error: {
  message?: string;
  class?: string;
  stack?: string;
}): { message?: string; class?: string } => {
  const { message, class: className } = unwrapSpringError({
    message: error.message,
    class: error.class,
    stack: error.stack,
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

test('a class that is not a wrapper is kept', () => {
  const message = 'Listener failed; nested exception is com.acme.OutOfStock: item 4711';
  assert.deepEqual(unwrap({ message, class: 'com.acme.Failure' }), {
    message: 'item 4711',
    class: 'com.acme.Failure',
  });
});

test('a nested exception may have no message', () => {
  const message = 'Listener failed; nested exception is java.lang.NullPointerException';
  assert.deepEqual(unwrap({ message, class: WRAPPER }), { class: 'java.lang.NullPointerException' });
});

test("the listener's signature is removed", () => {
  const message =
    "Listener method 'public void com.acme.L.on(java.util.List<java.lang.String>)' threw exception; no stock";
  assert.deepEqual(unwrap({ message, class: 'com.acme.OutOfStock' }), {
    message: 'no stock',
    class: 'com.acme.OutOfStock',
  });
});

test('without a message the root comes from the stack, with all lines of its message', () => {
  const stack = `${WRAPPER}: Listener failed\n\tat a.B.c(B.java:1)\nCaused by: a.Middle: m\n\tat a.B.d(B.java:2)\nCaused by: a.Root: line one\nline two\n\tat a.B.e(B.java:3)\n\t... 7 more\n`;
  const root = { message: 'line one\nline two', class: 'a.Root' };
  assert.deepEqual(unwrap({ message: 'Listener failed', class: WRAPPER, stack }), root);
  assert.deepEqual(unwrap({ stack }), root);
  assert.deepEqual(unwrap({ message: 'Listener failed; no stock', class: WRAPPER, stack }), {
    message: 'no stock',
    class: 'a.Root',
  });
});

test('a stack without causes yields its first line', () => {
  assert.deepEqual(unwrap({ stack: 'java.lang.IllegalStateException: closed\n\tat a.B.c(B.java:1)\n' }), {
    message: 'closed',
    class: 'java.lang.IllegalStateException',
  });
});

test('a message without a wrapper is kept as it is', () => {
  for (const message of [
    'Listener is down',
    'warning: disk full',
    'a.b.C: odd but a message',
    'failed to deserialize it',
  ])
    assert.equal(unwrap({ message, class: 'com.acme.E' }).message, message);
});

test('without an error there is nothing to unwrap', () => {
  assert.deepEqual(unwrap({}), {});
  assert.deepEqual(unwrap({ class: WRAPPER }), { class: WRAPPER });
});
