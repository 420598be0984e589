import assert from 'node:assert/strict';
import { test } from 'node:test';

import * as fc from 'fast-check';

import { parseDatabaseUrl, type DatabaseUrl } from './database-url.ts';

function partsOf(url: string): DatabaseUrl {
  const parsed = parseDatabaseUrl(url);
  assert(parsed.ok, url);
  return parsed.value;
}

const NOTHING = {
  name: undefined,
  user: undefined,
  password: undefined,
  sslMode: undefined,
  sslRootCert: undefined,
  hasOtherParameters: false,
};

test('a URL names the parts of a connection', () => {
  assert.deepEqual(
    partsOf('postgres://app:pw@db.example.com:6432/orders?sslmode=require&sslrootcert=/ca.pem'),
    {
      ...NOTHING,
      host: 'db.example.com',
      port: 6432,
      name: 'orders',
      user: 'app',
      password: 'pw',
      sslMode: 'require',
      sslRootCert: '/ca.pem',
    },
  );
  assert.deepEqual(partsOf('postgresql://db'), { ...NOTHING, host: 'db', port: 5432 });
  assert.equal(partsOf('postgres://[::1]/x').host, '::1');
  assert.equal(partsOf('postgres://%2Fvar%2Frun/x').host, '/var/run');
  assert.deepEqual(partsOf('postgres:///x?host=/var/run&user=a&port=1'), {
    ...NOTHING,
    host: '/var/run',
    port: 1,
    name: 'x',
    user: 'a',
  });
  assert(partsOf('postgres://db/x?pgbouncer=true').hasOtherParameters);
});

test('every user, password and name survives percent-encoding', () => {
  const word = fc.string({ minLength: 1, unit: 'grapheme' });
  fc.assert(
    fc.property(word, word, word, (user, password, name) => {
      const [u, p, n] = [user, password, name].map(encode);
      // A slash inside the name is refused: far more often it is a password cut short.
      fc.pre(name !== '.' && name !== '..');
      const parts = partsOf(`postgres://${u}:${p}@db:5432/${n}`);
      assert.deepEqual([parts.user, parts.password, parts.name], [user, password, name]);
    }),
  );
});

test('what is no URL of one database is refused without repeating any of it', () => {
  const urls = [
    'secret',
    'mysql://u:secret@db/x',
    'postgres://u:secret@db:99999/x',
    'postgres://u:se#cret@db/x',
    'postgres://u:1#secret@db/x',
    'postgres://u:1/secret@db/x',
    'postgres://u:%zz@db/secret',
    'postgres:///secret',
    'postgres://u:secret@db1,db2/x',
    'postgres://u:secret@db/x?port=0',
    'postgres://u:secret@db/x/y',
  ];
  for (const url of urls) {
    const parsed = parseDatabaseUrl(url);
    assert(!parsed.ok, url);
    assert(!JSON.stringify(parsed).includes('secret'), url);
  }
});

/** As encodeURIComponent, for lone surrogates and what it leaves alone, too. */
const encode = (text: string): string => encodeURIComponent(text.toWellFormed());
