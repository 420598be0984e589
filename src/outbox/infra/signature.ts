import { createHmac } from 'node:crypto';

/**
 * `t=<unix seconds>,v1=<hex HMAC-SHA256 of "t.body">`, over the bytes that are sent. It is made when they are: the
 * time in it lets the receiver refuse what somebody has recorded and sends again later.
 */
export function signatureOf(body: string, secret: string, now: Date): string {
  const t = Math.floor(now.getTime() / 1000);
  return `t=${t},v1=${createHmac('sha256', secret).update(`${t}.${body}`).digest('hex')}`;
}
