import type { Texts } from '../../../lib/text/catalogue.ts';
import type { ObjectKind } from './describe-object.ts';

export const en = {
  message: 'message',
  redrive: 'redrive',
  topic: 'topic',
  source: 'source',
  policy: 'policy',
  erasure: 'messages',
  order: 'order',
  job: 'job',
  queue: 'queue',
  saga: 'saga',
  workflow: 'workflow',
  apiKey: 'API key',
  session: 'session',
  auditMonth: 'audit log',
  dataKey: 'data key',
  other: '',
} as const satisfies Texts & Readonly<Record<ObjectKind, string>>;
