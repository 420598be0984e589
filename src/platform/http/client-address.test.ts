import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createTestServer, talk } from '../../../tests/support/test-server.ts';
import { clientAddressOf, clientNetworkOf } from './client-address.ts';

const requestFrom = (ip: string, peer: string | undefined = '192.0.2.9') =>
  ({ ip, raw: { socket: { remoteAddress: peer } } }) as Parameters<typeof clientAddressOf>[0];

test('an address is plain: no port, brackets, zone, and IPv4 as IPv4', () => {
  for (const [given, plain] of [
    ['192.0.2.1', '192.0.2.1'],
    ['192.0.2.1:4711', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['2001:DB8::1', '2001:db8::1'],
    ['[2001:db8::1]:443', '2001:db8::1'],
    ['[2001:db8::1]', '2001:db8::1'],
    ['fe80::1%eth0', 'fe80::1'],
  ] as const)
    assert.equal(clientAddressOf(requestFrom(given)), plain, given);
});

test('what is not an address is replaced by the peer of the connection', () => {
  for (const given of ['unknown', '', '999.1.1.1', 'a\u001b[31m', '1.2.3.4, 5.6.7.8', 'x'.repeat(10_000)])
    assert.equal(clientAddressOf(requestFrom(given)), '192.0.2.9', given);
  assert.equal(clientAddressOf(requestFrom('nonsense', undefined)), '192.0.2.9');
  const closed = { ip: 'nonsense', raw: { socket: {} } } as Parameters<typeof clientAddressOf>[0];
  assert.equal(clientAddressOf(closed), 'unknown');
});

test('addresses of one /64 are one network, however they are written', () => {
  const network = (ip: string) => clientNetworkOf(requestFrom(ip));
  assert.equal(network('192.0.2.1'), '192.0.2.1');
  assert.equal(network('::ffff:192.0.2.1'), '192.0.2.1');
  for (const same of ['2001:db8:0:1::1', '2001:0db8:0000:0001:ffff::1', '[2001:DB8:0:1::9]:443'])
    assert.equal(network(same), '2001:db8:0:1::/64', same);
  assert.equal(network('2001:db8::1'), '2001:db8:0:0::/64');
  assert.notEqual(network('2001:db8:0:2::1'), network('2001:db8:0:1::1'));
});

const trusting = createTestServer({ trustedProxies: ['127.0.0.0/8', '10.0.0.0/8'] });
const plain = createTestServer();
before(() => Promise.all([trusting.server.start(), plain.server.start()]));
after(() =>
  Promise.all([
    trusting.server.stop(AbortSignal.timeout(1000)),
    plain.server.stop(AbortSignal.timeout(1000)),
  ]),
);

async function loggedAddress({ server, logged }: typeof plain, forwarded: string): Promise<unknown> {
  const head = `GET /api/v1/things HTTP/1.1\r\nhost: localhost\r\nx-forwarded-for: ${forwarded}\r\n`;
  await talk(server, `${head}x-forwarded-proto: https\r\nconnection: close\r\n\r\n`);
  return logged().findLast(({ msg }) => msg === 'served request')?.['address'];
}

test('x-forwarded-for counts only from a trusted proxy, and only its last address that is not one', async () => {
  assert.equal(await loggedAddress(plain, '203.0.113.7'), '127.0.0.1');
  assert.equal(await loggedAddress(trusting, '203.0.113.7'), '203.0.113.7');
  assert.equal(await loggedAddress(trusting, '203.0.113.7, 10.1.2.3'), '203.0.113.7');
  assert.equal(
    await loggedAddress(trusting, '198.51.100.1, 203.0.113.7'),
    '203.0.113.7',
    'the first is forged',
  );
  assert.equal(await loggedAddress(trusting, 'not-an-address'), '127.0.0.1');
});
