import assert from 'node:assert/strict';
import { test } from 'node:test';
import { acceptsHost } from './accepts-host.ts';

const loopback = { host: '127.0.0.1', allowUnauthenticated: false, allowedHosts: [] };

test('a server on loopback answers to the names of this machine and to no other', () => {
  const accepts = acceptsHost(loopback);
  for (const name of ['localhost', '127.0.0.1', '127.8.9.10', '::1']) assert.ok(accepts(name), name);
  for (const name of ['0.0.0.0', 'rebound.example.com', 'localhost.example.com', '192.0.2.1', '::'])
    assert.ok(!accepts(name), name);
});

test('listed names and the public URL are known, in any case', () => {
  const accepts = acceptsHost({
    ...loopback,
    allowedHosts: ['Redrive.Internal'],
    publicUrl: 'https://Redrive.example.com:8443/ops',
  });
  assert.ok(accepts('redrive.internal'));
  assert.ok(accepts('redrive.example.com'));
  assert.ok(!accepts('example.com'));
});

test('a server opened to others answers to any name, unless names are listed', () => {
  const open = { host: '0.0.0.0', allowUnauthenticated: true, allowedHosts: [] };
  assert.ok(acceptsHost(open)('anything.example.com'));
  assert.ok(!acceptsHost({ ...open, allowedHosts: ['a.example.com'] })('b.example.com'));
});

test('names are compared in the form in which a Host header is read', () => {
  const allowedHosts = ['redrive.internal.', '2001:DB8:0::1'];
  const accepts = acceptsHost({ ...loopback, allowedHosts, publicUrl: 'http://[2001:db8::2]:8080/' });
  for (const name of ['redrive.internal', '2001:db8::1', '2001:db8::2']) assert.ok(accepts(name), name);
});
