import assert from 'node:assert/strict';
import { test } from 'node:test';
import { attacks, harmful } from '../../../tests/support/terminal-attacks.ts';
import { AppError } from '../../kernel/errors.ts';
import { createProtection } from '../../kernel/protect/protection.ts';
import { createLogger, type LoggerOptions } from './logger.ts';

type Line = Readonly<Record<string, unknown>>;

function recordingLogger(more: Pick<LoggerOptions, 'cover'> = {}) {
  const lines: string[] = [];
  const logger = createLogger({
    service: 'redrive',
    version: '0.1.0',
    environment: 'test',
    level: 'info',
    stream: { write: (line) => lines.push(line) },
    ...more,
  });
  return { logger, text: () => lines.join(''), lines: () => lines.map((line) => JSON.parse(line) as Line) };
}

test('a line is JSON with the facts of the process, an ISO time and the level as a word', () => {
  const { logger, lines } = recordingLogger();
  logger.warn({ message_id: 'm1' }, 'late');
  logger.debug('not at this level');
  const [{ time, ...line } = {}, ...more] = lines();
  assert.deepEqual(line, {
    level: 'warn',
    service: 'redrive',
    version: '0.1.0',
    environment: 'test',
    message_id: 'm1',
    msg: 'late',
  });
  assert.equal(new Date(String(time)).toISOString(), time);
  assert.deepEqual(more, []);
});

test('an error is logged with its code and all of its causes', () => {
  const { logger, lines } = recordingLogger();
  const cause = new Error('connection refused', { cause: new Error('ECONNREFUSED') });
  logger.error({ err: new AppError('SYS_DLQ_INTERNAL_ERROR', 'internal', 'cannot store', { cause }) });
  const err = lines()[0]?.['err'] as {
    code: string;
    message: string;
    cause: { message: string; cause: Line };
  };
  assert.equal(err.code, 'SYS_DLQ_INTERNAL_ERROR');
  assert.equal(err.message, 'cannot store');
  assert.equal(err.cause.message, 'connection refused');
  assert.equal(err.cause.cause['message'], 'ECONNREFUSED');
});

test('secrets do not reach the log, by name or inside a URL', () => {
  const { logger, text } = recordingLogger();
  logger.info({
    password: 'hunter2',
    database: { password: 'hunter2', user: 'app' },
    kafka: { sasl: { password: 'hunter2' } },
    headers: { authorization: 'Bearer hunter2', cookie: 'hunter2', 'x-api-key': 'hunter2' },
    url: 'postgres://app:hunter2@db:5432/redrive',
  });
  logger
    .child({ token: 'hunter2' })
    .error(
      { err: new Error('cannot reach postgres://app:p/hunter2@db.example.com, amqp://x:hunter2@[::1]/') },
      'https://u:hunter2@host/path failed',
    );
  assert.doesNotMatch(text(), /hunter2/);
  assert.match(text(), /postgres:\/\/app:\*\*\*@db:5432\/redrive/);
  assert.match(text(), /"user":"app"/);
});

test('a URL without a password stays as it is', () => {
  const { logger, lines } = recordingLogger();
  const message = 'see http://127.0.0.1:8080/a?x=1 or mail a@b.c';
  logger.info(message);
  assert.equal(lines()[0]?.['msg'], message);
});

test('what a terminal acts on, or what hides or reorders text, is written as JSON escapes', () => {
  const { logger, text, lines } = recordingLogger();
  const hostile = '\u001b[2J \u009b31m \u202epay\u2066 \u2028 \u200b end';
  logger.info({ topic: hostile, [hostile]: 1, err: new Error(hostile) }, hostile);
  assert.doesNotMatch(text().replace(/\n$/, ''), /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
  const [line] = lines();
  assert.deepEqual([line?.['msg'], line?.['topic'], line?.[hostile]], [hostile, hostile, 1]);
});

for (const [index, attack] of attacks.entries())
  test(`attack ${index} on a terminal is harmless wherever it stands in a line, and can be read back`, () => {
    const { logger, text, lines } = recordingLogger();
    const error = Object.assign(new Error(attack, { cause: new Error(attack) }), {
      code: attack,
      detail: attack,
    });
    logger.child({ [attack]: attack }).error({ err: error, nested: { list: [attack] } }, attack);
    assert.doesNotMatch(text().replace(/\n$/, ''), harmful);
    const [line = {}, ...more] = lines();
    assert.deepEqual(more, []);
    assert.deepEqual([line['msg'], line[attack], line['nested']], [attack, attack, { list: [attack] }]);
  });

test('a line with text of any script stays as it is', () => {
  const { logger, text } = recordingLogger();
  logger.info('注文が失敗しました – Größe 👩‍💻');
  assert.match(text(), /"msg":"注文が失敗しました – Größe 👩‍💻"/);
});

for (const [what, piece] of [
  ['beginnings of URLs without an end', '://a:'],
  ['beginnings of URLs without a password', '://aaaa'],
  ['ends of URLs without a host', '://a:b@ '],
] as const)
  test(`a megabyte of ${what} is logged within a moment`, () => {
    // The shorter text first: a slow rule would take hours for a megabyte.
    for (const bytes of [100_000, 1_000_000]) {
      const { logger, lines } = recordingLogger();
      const hostile = piece.repeat(Math.ceil(bytes / piece.length));
      const began = performance.now();
      logger.info(hostile);
      assert.ok(performance.now() - began < 1000, `it took ${performance.now() - began} ms`);
      assert.equal(lines()[0]?.['msg'], hostile);
    }
  });

test('what is protected is covered in every field of a line, which stays JSON', () => {
  const masks = createProtection({
    rules: [{ ...aRule, fields: ['**.card'], patterns: ['email'] }],
    patterns: {},
    hashKey: null,
  }).ofEverything();
  const { logger, text, lines } = recordingLogger({ cover: masks.json });
  logger.warn(
    { err: new Error('no such user: ada@example.com'), request: { card: 7 } },
    'failed for ada@example.com',
  );
  assert.doesNotMatch(text(), /ada@/);
  assert.deepEqual(
    [lines()[0]?.['msg'], lines()[0]?.['request']],
    ['failed for [masked]', { card: '[masked]' }],
  );
});

const aRule = { names: {}, headers: [], key: false, action: 'mask' } as const;
