import assert from 'node:assert/strict';
import { test } from 'node:test';
import { callsOf, locksOf } from './locks-of.ts';
import { splitStatements } from './split-statements.ts';

const read = (statement: string): readonly string[] =>
  locksOf(statement).map(({ relation, mode, work }) => `${relation}: ${mode}, ${work}`);

test('each statement has the lock and the work that PostgreSQL documents for it', () => {
  const expected: readonly (readonly [statement: string, ...locks: string[]])[] = [
    ['CREATE INDEX i ON a.b (c)', 'a.b: SHARE, index'],
    ['CREATE UNIQUE INDEX IF NOT EXISTS i ON a.b (c)', 'a.b: SHARE, index'],
    ['CREATE INDEX CONCURRENTLY i ON a.b (c)', 'a.b: SHARE UPDATE EXCLUSIVE, index'],
    ['drop index if exists a.i', 'a.i: ACCESS EXCLUSIVE, catalog'],
    ['ALTER TABLE ONLY a.b ADD COLUMN c INT NOT NULL DEFAULT 0', 'a.b: ACCESS EXCLUSIVE, catalog'],
    ['ALTER TABLE a.b ADD COLUMN c UUID DEFAULT gen_random_uuid()', 'a.b: ACCESS EXCLUSIVE, rewrite'],
    ['ALTER TABLE a.b ALTER COLUMN c TYPE BIGINT', 'a.b: ACCESS EXCLUSIVE, rewrite'],
    ['ALTER TABLE a.b ADD COLUMN d INT GENERATED ALWAYS AS (c) STORED', 'a.b: ACCESS EXCLUSIVE, rewrite'],
    ['ALTER TABLE a.b ADD CHECK (c > 0)', 'a.b: ACCESS EXCLUSIVE, scan'],
    ['ALTER TABLE a.b ADD CONSTRAINT d CHECK (c > 0) NOT VALID', 'a.b: ACCESS EXCLUSIVE, catalog'],
    ['ALTER TABLE a.b VALIDATE CONSTRAINT d', 'a.b: SHARE UPDATE EXCLUSIVE, scan'],
    ['ALTER TABLE a.b ALTER COLUMN c SET NOT NULL', 'a.b: ACCESS EXCLUSIVE, scan'],
    ['ALTER TABLE a.b ADD PRIMARY KEY (c)', 'a.b: ACCESS EXCLUSIVE, index'],
    ['ALTER TABLE a.b SET (fillfactor = 50)', 'a.b: SHARE UPDATE EXCLUSIVE, catalog'],
    ['CREATE TABLE a.n (b INT REFERENCES a.b (c))', 'a.b: SHARE ROW EXCLUSIVE, catalog'],
    ['CREATE TABLE a.p PARTITION OF a.b DEFAULT', 'a.b: ACCESS EXCLUSIVE, scan'],
    [
      'CREATE TRIGGER t BEFORE UPDATE ON a.b FOR EACH ROW EXECUTE FUNCTION f()',
      'a.b: SHARE ROW EXCLUSIVE, catalog',
    ],
    ['DROP TABLE IF EXISTS a.b', 'a.b: ACCESS EXCLUSIVE, catalog'],
    ['UPDATE a.b SET c = 1', 'a.b: ROW EXCLUSIVE, rows'],
    ['DELETE FROM a.b', 'a.b: ROW EXCLUSIVE, rows'],
    [
      'DO $$ BEGIN IF true THEN ALTER TABLE a.b DROP COLUMN c; END IF; END $$',
      'a.b: ACCESS EXCLUSIVE, catalog',
    ],
    [
      'DO $$ DECLARE n INT; BEGIN UPDATE a.b SET c = CASE WHEN d THEN 1 ELSE 2 END; END $$',
      'a.b: ROW EXCLUSIVE, rows',
    ],
    ['CREATE TABLE a.n (b INT)'],
    [
      'CREATE FUNCTION f() RETURNS void LANGUAGE sql AS $f$ UPDATE a.b SET c = 1; $f$',
      'a.b: ROW EXCLUSIVE, catalog',
    ],
    [
      'CREATE OR REPLACE FUNCTION f() LANGUAGE sql AS $$ WITH n AS (INSERT INTO a.b VALUES (1) ON CONFLICT (c) DO UPDATE SET c = 2) SELECT 1 FROM a.d FOR UPDATE $$',
      'a.b: ROW EXCLUSIVE, catalog',
    ],
    ['CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $f$ BEGIN UPDATE a.b SET c = 1; END $f$'],
    ['DROP FUNCTION a.f(TEXT)'],
  ];
  for (const [statement, ...locks] of expected) assert.deepEqual(read(statement), locks, statement);
});

test('a statement ends at a semicolon outside of comments, names, strings and dollar quotes', () => {
  const text = `-- no; comment
    CREATE FUNCTION f() AS $a$ SELECT ';' ; $a$; /* nor; this */ INSERT INTO "a;b" VALUES ('it''s; one');`;
  assert.deepEqual(splitStatements(text), [
    "CREATE FUNCTION f() AS $a$ SELECT ';' ; $a$",
    `INSERT INTO "a;b" VALUES ('it''s; one')`,
  ]);
});

test('a function that a migration calls is named', () => {
  assert.deepEqual(callsOf('SELECT a.f(); CALL a.g(1); SELECT count(*) FROM a.b; UPDATE a.b SET c = f()'), [
    'a.f',
    'a.g',
  ]);
});
