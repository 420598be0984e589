import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import MailComposer from 'nodemailer/lib/mail-composer';
import SMTPConnection from 'nodemailer/lib/smtp-connection';
import { sha256Of } from '../../../kernel/canonical-json.ts';
import { codeOf, messageOf } from '../../../kernel/errors.ts';
import { cleanText } from '../../../kernel/text.ts';
import type { SmtpSettings } from '../../domain/destination-settings.ts';
import type { SendOutcome } from '../../domain/order.ts';
import type { OutgoingOrder, Sender } from './port.ts';
import { readMail, type Mail } from './mail-request.ts';

const MAX_DETAIL_BYTES = 500;

/**
 * One mail per order, each over its own connection: they are few, and a changed password is used at once. The server
 * has accepted a mail when it answers after the last line. If the connection breaks before the text is sent, nothing
 * was sent; after that the outcome is unknown. Duplicates have the same Message-ID.
 */
export function createSmtpSender(settings: SmtpSettings): Sender {
  return (orders, stopping) =>
    orders.map(async (order): Promise<SendOutcome> => {
      try {
        return await sendMail(settings, order, stopping);
      } catch (error) {
        // Nothing was sent: errors of the connection become outcomes.
        return { end: 'failed', code: 'UNKNOWN', detail: describe(error) };
      }
    });
}

async function sendMail(
  settings: SmtpSettings,
  order: OutgoingOrder,
  stopping: AbortSignal,
): Promise<SendOutcome> {
  const mail = readMail(order.request);
  if (typeof mail === 'string') return { end: 'refused', code: 'BAD_REQUEST', detail: mail };
  const login = readLogin(settings);
  if (typeof login === 'string') return { end: 'failed', code: 'UNAUTHORIZED', detail: `not sent: ${login}` };
  const message = await compose(mail, settings, order.idempotencyKey);
  if (stopping.aborted) return { end: 'released', reason: 'shutting down' };
  return deliver(settings, login, message);
}

type Login = Readonly<{ user: string; pass: string }>;

function readLogin({ user, password }: SmtpSettings): Login | undefined | string {
  if (user === undefined) return undefined;
  try {
    return { user, pass: password?.() ?? '' };
  } catch (error) {
    return `failed to read the password: ${describe(error)}`;
  }
}

type Message = Readonly<{ id: string; from: string | false; to: string[]; bytes: Buffer }>;

async function compose(mail: Mail, settings: SmtpSettings, idempotencyKey: string): Promise<Message> {
  const id = messageIdOf(idempotencyKey, settings.from);
  const composed = new MailComposer({
    from: settings.from,
    to: [...(mail.to ?? settings.to)],
    subject: mail.subject,
    text: mail.text,
    ...(mail.html === undefined ? {} : { html: mail.html }),
    messageId: id,
    headers: { 'auto-submitted': 'auto-generated' },
    disableFileAccess: true,
    disableUrlAccess: true,
  }).compile();
  const { from, to } = composed.getEnvelope();
  return { id, from, to, bytes: await composed.build() };
}

/** Derived from the key: the same for every attempt of an order, and different for other orders. */
function messageIdOf(idempotencyKey: string, from: string): string {
  const name = createHash('sha256').update(idempotencyKey).digest('hex').slice(0, 40);
  const domain = /@([A-Za-z0-9.-]+)/.exec(from)?.[1] ?? 'localhost';
  return `<${name}@${domain}>`;
}

/** `connecting`: no greeting yet. `talking`: commands. `text`: the text of the mail is being sent. */
type Stage = 'connecting' | 'talking' | 'text';

function deliver(settings: SmtpSettings, login: Login | undefined, message: Message): Promise<SendOutcome> {
  const { timeoutMs, security } = settings;
  const { promise, resolve } = Promise.withResolvers<SendOutcome>();
  let stage: Stage = 'connecting';
  const connection = new SMTPConnection({
    host: settings.host,
    port: settings.port,
    secure: security === 'implicit',
    requireTLS: security === 'starttls',
    ignoreTLS: security === 'none',
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    dnsTimeout: timeoutMs,
  });
  const finish = (outcome: SendOutcome): void => {
    clearTimeout(timer);
    resolve(outcome);
    connection.close();
  };
  const fail = (error: unknown): void => finish(judgeFailure(error, stage));
  const timer = setTimeout(() => fail(new Error(`timed out after ${timeoutMs} ms`)), timeoutMs);

  const text = Readable.from(
    (function* () {
      stage = 'text';
      yield message.bytes;
    })(),
    { objectMode: false },
  );
  const send = (): void =>
    connection.send(
      { from: message.from, to: message.to, size: message.bytes.length },
      text,
      (error, info) => {
        if (error) fail(error);
        else finish(accepted(message.id, info.response));
      },
    );
  connection.on('error', fail);
  connection.connect((refused) => {
    if (refused) return fail(refused);
    stage = 'talking';
    if (login === undefined) send();
    else connection.login({ ...login }, (error) => (error ? fail(error) : send()));
  });
  return promise;
}

function accepted(messageId: string, response: string): SendOutcome {
  const answer = { status: null, digest: sha256Of(response), outsideId: messageId };
  return { end: 'sent', answer, isConflict: false };
}

/** A reply code comes from the server; without one, the stage decides. */
function judgeFailure(error: unknown, stage: Stage): SendOutcome {
  const detail = describe(error);
  const code = codeOf(error);
  const { responseCode } = error as Readonly<{ responseCode?: number }>;
  if (responseCode === undefined) {
    // From the library, before it asked the server: no valid recipient, or larger than the server allows.
    if (code === 'EENVELOPE' || code === 'EMESSAGE') return { end: 'refused', code: 'BAD_REQUEST', detail };
    if (code === 'EAUTH') return { end: 'failed', code: 'UNAUTHORIZED', detail };
    return { end: stage === 'text' ? 'unknown' : 'failed', code: 'NETWORK_TIMEOUT', detail };
  }
  // A server that refuses the connection has not looked at this mail.
  if (stage === 'connecting' || responseCode < 500) return { end: 'failed', code: 'BROKER_5XX', detail };
  return { end: 'refused', code: code === 'EAUTH' ? 'UNAUTHORIZED' : 'BAD_REQUEST', detail };
}

function describe(error: unknown): string {
  return cleanText(messageOf(error), MAX_DETAIL_BYTES);
}
