import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { test, type TestContext } from 'node:test';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';
import { outgoingOrder, smtpSettings } from '../../../../tests/support/destinations.ts';
import { loopbackTls } from '../../../../tests/support/loopback-tls.ts';
import { serveRaw, unusedPort } from '../../../../tests/support/raw-server.ts';
import { sha256Of } from '../../../kernel/canonical-json.ts';
import type { SmtpSettings } from '../../domain/destination-settings.ts';
import type { SendOutcome } from '../../domain/order.ts';
import { createSmtpSender } from './smtp-sender.ts';

const running = new AbortController().signal;
const request = '{"subject":"Order 7 is dead","text":"It needs attention."}';

type Received = Readonly<{ from: string; to: readonly string[]; text: string }>;

/** A real mail server on loopback, scripted by the test. */
async function serveMail(t: TestContext, options: SMTPServerOptions = {}) {
  const received: Received[] = [];
  const server = new SMTPServer({
    ...loopbackTls,
    authOptional: true,
    logger: false,
    onData(stream, { envelope }, done) {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        received.push({
          from: envelope.mailFrom === false ? '' : envelope.mailFrom.address,
          to: envelope.rcptTo.map(({ address }) => address),
          text: Buffer.concat(chunks).toString('utf8'),
        });
        done(null, 'OK: queued as ABC');
      });
    },
    ...options,
  });
  server.on('error', () => {});
  const sockets = new Set<Socket>();
  server.server.on('connection', (socket) => sockets.add(socket));
  server.listen(0, '127.0.0.1');
  await once(server.server, 'listening');
  const hangUp = (): void => sockets.forEach((socket) => socket.destroy());
  t.after(() => {
    server.close();
    hangUp();
  });
  return { port: (server.server.address() as AddressInfo).port, received, hangUp };
}

async function sendTo(
  changes: Partial<SmtpSettings> & Readonly<{ port: number }>,
  order: Parameters<typeof outgoingOrder>[0] = {},
): Promise<SendOutcome> {
  const [outcome] = createSmtpSender(smtpSettings(changes))([outgoingOrder({ request, ...order })], running);
  assert.ok(outcome);
  return outcome;
}

function endOf(outcome: SendOutcome): string {
  return 'code' in outcome ? `${outcome.end} ${outcome.code}` : outcome.end;
}

/** An error with a reply code, as the library of the server expects it. */
const saying = (responseCode: number): Error => Object.assign(new Error('so it says'), { responseCode });

test('a mail is sent to the recipients of the destination and identified by its Message-ID', async (t) => {
  const { port, received } = await serveMail(t);
  const outcome = await sendTo(
    { port, to: ['a@example.org', 'b@example.org'] },
    { idempotencyKey: 'mail-0001' },
  );
  assert.equal(outcome.end, 'sent');
  const { status, digest, outsideId } = outcome.answer;
  assert.deepEqual([status, digest], [null, sha256Of('250 OK: queued as ABC')]);
  assert.match(outsideId ?? '', /^<[0-9a-f]{40}@example\.org>$/);
  const [mail] = received;
  assert.ok(mail);
  assert.deepEqual([mail.from, mail.to], ['redrive@example.org', ['a@example.org', 'b@example.org']]);
  assert.ok(mail.text.includes(`Message-ID: ${outsideId}`));
  assert.match(mail.text, /^Subject: Order 7 is dead\r$/m);
  assert.match(mail.text, /It needs attention\./);
});

test('a second attempt has the same Message-ID, another order has a different one', async (t) => {
  const { port, received } = await serveMail(t);
  for (const idempotencyKey of ['mail-0001', 'mail-0001', 'mail-0002'])
    await sendTo({ port }, { idempotencyKey });
  const ids = received.map(({ text }) => /^Message-ID: (.*)\r$/m.exec(text)?.[1]);
  assert.equal(ids[0], ids[1]);
  assert.notEqual(ids[0], ids[2]);
});

test('a request may name its recipients and carry HTML', async (t) => {
  const { port, received } = await serveMail(t);
  const mail = {
    subject: 'Grüße\r\nBcc: evil@example.org',
    text: 'a',
    html: '<b>a</b>',
    to: 'c@example.org',
  };
  assert.equal((await sendTo({ port }, { request: JSON.stringify(mail) })).end, 'sent');
  assert.deepEqual(received[0]?.to, ['c@example.org']);
  assert.match(received[0].text, /text\/html/);
  assert.doesNotMatch(received[0].text, /^Bcc:/m);
});

test('an invalid mail is refused unsent, and no string is treated as a file name', async (t) => {
  const { port, received } = await serveMail(t);
  for (const mail of [
    {},
    { subject: 'a' },
    { subject: 'a', text: { path: '/etc/passwd' } },
    { subject: 'a', text: 'b', html: { href: 'http://127.0.0.1/' } },
    { subject: 'a', text: 'b', to: [] },
    { subject: 'a', text: 'b', to: [7] },
    { subject: 'a', text: 'b', to: 'nobody at all' },
  ])
    assert.equal(endOf(await sendTo({ port }, { request: JSON.stringify(mail) })), 'refused BAD_REQUEST');
  assert.equal(endOf(await sendTo({ port }, { request: '[' })), 'refused BAD_REQUEST');
  assert.equal(received.length, 0);
});

test('at every step, 5xx replies refuse the mail and 4xx replies make it fail', async (t) => {
  for (const [code, end] of [
    [550, 'refused BAD_REQUEST'],
    [451, 'failed BROKER_5XX'],
  ] as const) {
    const steps: readonly SMTPServerOptions[] = [
      { onMailFrom: (_address, _session, done) => done(saying(code)) },
      { onRcptTo: (_address, _session, done) => done(saying(code)) },
      {
        onData: (stream, _session, done) => {
          stream.on('end', () => done(saying(code)));
          stream.resume();
        },
      },
    ];
    for (const step of steps) {
      const { port } = await serveMail(t, step);
      const outcome = await sendTo({ port });
      assert.equal(endOf(outcome), end);
      assert.ok('detail' in outcome && outcome.detail.includes(`${code} so it says`));
    }
  }
});

test('a mail with one refused recipient is sent to the others', async (t) => {
  const { port, received } = await serveMail(t, {
    onRcptTo: ({ address }, _session, done) => (address === 'b@example.org' ? done(saying(550)) : done()),
  });
  assert.equal((await sendTo({ port, to: ['a@example.org', 'b@example.org'] })).end, 'sent');
  assert.deepEqual(received[0]?.to, ['a@example.org']);
});

test('a server that refuses the connection has not refused the mail', async (t) => {
  const { port } = await serveMail(t, { onConnect: (_session, done) => done(saying(554)) });
  assert.equal(endOf(await sendTo({ port })), 'failed BROKER_5XX');
});

test('the password is read for each send; a wrong one is a refusal, an unreadable one is not', async (t) => {
  const { port, received } = await serveMail(t, {
    authOptional: false,
    allowInsecureAuth: true,
    onAuth: ({ username, password }, _session, done) =>
      username === 'redrive' && password === 'right' ? done(null, { user: 'redrive' }) : done(saying(535)),
  });
  const withPassword = (password: () => string) => sendTo({ port, user: 'redrive', password });
  assert.equal((await withPassword(() => 'right')).end, 'sent');
  const wrong = await withPassword(() => 'wrong-password');
  assert.equal(endOf(wrong), 'refused UNAUTHORIZED');
  assert.ok(!JSON.stringify(wrong).includes('wrong-password'));
  const unreadable = await withPassword(() => {
    throw new Error('away');
  });
  assert.deepEqual(unreadable, {
    end: 'failed',
    code: 'UNAUTHORIZED',
    detail: 'not sent: failed to read the password: away',
  });
  assert.equal(endOf(await withPassword(() => '')), 'failed UNAUTHORIZED');
  assert.equal(received.length, 1);
});

test('before the text is sent, a refused, silent, closed or endless connection means that nothing was sent', async (t) => {
  assert.equal(endOf(await sendTo({ port: await unusedPort() })), 'failed NETWORK_TIMEOUT');
  const mute = await serveRaw(t, () => {});
  assert.equal(endOf(await sendTo({ port: mute.port, timeoutMs: 100 })), 'failed NETWORK_TIMEOUT');
  const closing = await serveRaw(t, (socket) => socket.end());
  assert.equal(endOf(await sendTo({ port: closing.port })), 'failed NETWORK_TIMEOUT');
  const dropping = await serveRaw(t, (socket) => {
    socket.write('220 ready\r\n');
    socket.once('data', () => socket.destroy());
  });
  assert.equal(endOf(await sendTo({ port: dropping.port })), 'failed NETWORK_TIMEOUT');
  const endless = await serveRaw(t, (socket) => {
    socket.write('220 ready\r\n');
    const timer = setInterval(() => socket.write('250-and more\r\n'), 10);
    socket.on('close', () => clearInterval(timer));
  });
  assert.deepEqual(await sendTo({ port: endless.port, timeoutMs: 200 }), {
    end: 'failed',
    code: 'NETWORK_TIMEOUT',
    detail: 'timed out after 200 ms',
  });
});

test('once the text is being sent, a missing answer leaves the mail in doubt', async (t) => {
  const { promise: taken, resolve: take } = Promise.withResolvers<void>();
  const mute = await serveMail(t, {
    onData: (stream) => {
      stream.on('end', take);
      stream.resume();
    },
  });
  const dropped = sendTo({ port: mute.port });
  await taken;
  mute.hangUp();
  assert.equal(endOf(await dropped), 'unknown NETWORK_TIMEOUT');
  assert.equal(endOf(await sendTo({ port: mute.port, timeoutMs: 200 })), 'unknown NETWORK_TIMEOUT');
});

test('TLS is required if configured, and its certificate is verified', async (t) => {
  const { port } = await serveMail(t);
  assert.equal(endOf(await sendTo({ port, security: 'starttls' })), 'failed NETWORK_TIMEOUT');
  const without = await serveMail(t, { disabledCommands: ['STARTTLS'] });
  assert.equal((await sendTo({ port: without.port, security: 'starttls' })).end, 'failed');
  const secure = await serveMail(t, { secure: true });
  assert.equal(endOf(await sendTo({ port: secure.port, security: 'implicit' })), 'failed NETWORK_TIMEOUT');

  const trusted = getCACertificates('default');
  setDefaultCACertificates([...trusted, loopbackTls.cert]);
  t.after(() => setDefaultCACertificates(trusted));
  assert.equal((await sendTo({ port, security: 'starttls' })).end, 'sent');
  assert.equal((await sendTo({ port: secure.port, security: 'implicit' })).end, 'sent');
});

test('orders during shutdown are released', async (t) => {
  const { port, received } = await serveMail(t);
  const sender = createSmtpSender(smtpSettings({ port }));
  const [outcome] = await Promise.all(sender([outgoingOrder({ request })], AbortSignal.abort()));
  assert.deepEqual(outcome, { end: 'released', reason: 'shutting down' });
  assert.equal(received.length, 0);
});
