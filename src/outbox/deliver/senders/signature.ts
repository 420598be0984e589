import { createHmac } from 'node:crypto';

/**
 * `t=<unix seconds>,v1=<hex HMAC-SHA256 of "t.body">`, over the bytes that are sent. The time is that of the send, so
 * that the receiver can reject a replayed request.
 */
export function signatureOf(body: string, secret: string, now: Date): string {
  const t = Math.floor(now.getTime() / 1000);
  return `t=${t},v1=${createHmac('sha256', secret).update(`${t}.${body}`).digest('hex')}`;
}
