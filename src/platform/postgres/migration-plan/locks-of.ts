import { splitStatements } from './split-statements.ts';

/**
 * What a migration locks, read from its text. Only locks that make somebody wait are listed: SHARE and above. What a
 * called function does cannot be read from the text: `callsOf` names it. A test runs every migration of Redrive and
 * compares with `pg_locks`.
 */
export type Lock = Readonly<{
  /** As written: with its schema. */
  relation: string;
  /** An index stands for its table. */
  kind: 'table' | 'index' | 'domain';
  mode: LockMode;
  work: Work;
}>;

/** From weak to strong. */
export const lockModes = [
  'ROW EXCLUSIVE',
  'SHARE UPDATE EXCLUSIVE',
  'SHARE',
  'SHARE ROW EXCLUSIVE',
  'ACCESS EXCLUSIVE',
] as const;
export type LockMode = (typeof lockModes)[number];

/** What takes time: only the catalog, a scan of the table, an index over it, all rows written anew, or some rows. */
export type Work = 'catalog' | 'scan' | 'index' | 'rewrite' | 'rows';

/** Functions that a migration calls by themselves: their locks are not in the text. */
export function callsOf(migration: string): readonly string[] {
  return splitStatements(migration).flatMap(
    (statement) => /^(?:SELECT|CALL|PERFORM)\s+([\w."]+)\s*\([^()]*\)$/i.exec(statement)?.[1] ?? [],
  );
}

export function locksOf(migration: string): readonly Lock[] {
  return splitStatements(migration).flatMap(locksOfStatement);
}

const name = String.raw`(?:ONLY\s+)?(?:IF\s+(?:NOT\s+)?EXISTS\s+)?([\w."]+)`;

/** The first that matches. */
const statements: readonly (readonly [pattern: string, kind: Lock['kind'], mode: LockMode, work: Work])[] = [
  [
    `CREATE\\s+(?:UNIQUE\\s+)?INDEX\\s+CONCURRENTLY\\b[\\s\\S]*?\\bON\\s+${name}`,
    'table',
    'SHARE UPDATE EXCLUSIVE',
    'index',
  ],
  [`CREATE\\s+(?:UNIQUE\\s+)?INDEX\\b[\\s\\S]*?\\bON\\s+${name}`, 'table', 'SHARE', 'index'],
  [`DROP\\s+INDEX\\s+CONCURRENTLY\\s+${name}`, 'index', 'SHARE UPDATE EXCLUSIVE', 'catalog'],
  [`DROP\\s+INDEX\\s+${name}`, 'index', 'ACCESS EXCLUSIVE', 'catalog'],
  [
    `(?:DROP|TRUNCATE)\\s+(?:TABLE\\s+)?(?!FUNCTION|TRIGGER|VIEW|SCHEMA|TYPE|SEQUENCE|PROCEDURE|DOMAIN)${name}`,
    'table',
    'ACCESS EXCLUSIVE',
    'catalog',
  ],
  [`DROP\\s+TRIGGER\\b[\\s\\S]*?\\bON\\s+${name}`, 'table', 'ACCESS EXCLUSIVE', 'catalog'],
  [
    `CREATE\\s+(?:OR\\s+REPLACE\\s+)?(?:CONSTRAINT\\s+)?TRIGGER\\b[\\s\\S]*?\\bON\\s+${name}`,
    'table',
    'SHARE ROW EXCLUSIVE',
    'catalog',
  ],
  [`CREATE\\s+TABLE\\b[\\s\\S]*?\\bPARTITION\\s+OF\\s+${name}`, 'table', 'ACCESS EXCLUSIVE', 'scan'],
  [`ALTER\\s+DOMAIN\\s+${name}(?![\\s\\S]*\\bNOT\\s+VALID\\b)`, 'domain', 'SHARE', 'scan'],
  [`(?:UPDATE|DELETE\\s+FROM|INSERT\\s+INTO|MERGE\\s+INTO)\\s+${name}`, 'table', 'ROW EXCLUSIVE', 'rows'],
];

function locksOfStatement(statement: string): readonly Lock[] {
  const block = /^DO\s+\$(\w*)\$([\s\S]*)\$\1\$/i.exec(statement);
  if (block !== null)
    return splitStatements(block[2] ?? '').flatMap((one) => locksOfStatement(withoutControl(one)));
  const body =
    /^CREATE\s+(?:OR\s+REPLACE\s+)?FUNCTION\b[\s\S]*\bLANGUAGE\s+sql\b[\s\S]*?\$(\w*)\$([\s\S]*)\$\1\$/i.exec(
      statement,
    );
  if (body !== null) return writtenBy(body[2] ?? '');
  const altered = new RegExp(`^ALTER\\s+TABLE\\s+${name}([\\s\\S]*)`, 'i').exec(statement);
  const references = referencedBy(statement);
  if (altered !== null) return [alteration(altered[1] ?? '', altered[2] ?? ''), ...references];
  for (const [pattern, kind, mode, work] of statements) {
    const relation = new RegExp(`^${pattern}`, 'i').exec(statement)?.[1];
    if (relation !== undefined) return [{ relation, kind, mode, work }];
  }
  return /^CREATE\s+(?:UNLOGGED\s+)?TABLE/i.test(statement) ? references : [];
}

/** PostgreSQL analyses the body of a function in SQL when it is created, and locks what the body writes to. */
function writtenBy(body: string): readonly Lock[] {
  const writes =
    /(?<!\b(?:DO|FOR)\s+)\b(?:UPDATE|DELETE\s+FROM|INSERT\s+INTO|MERGE\s+INTO)\s+([\w"]+\.[\w"]+)/gi;
  return [...body.matchAll(writes)].map(([, relation = '']) => ({
    relation,
    kind: 'table',
    mode: 'ROW EXCLUSIVE',
    work: 'catalog',
  }));
}

/** The statement of PL/pgSQL behind `BEGIN`, `IF … THEN`, `ELSE` or `FOR … LOOP`. */
function withoutControl(statement: string): string {
  const control = /^(?:DECLARE|BEGIN|IF|ELSIF|ELSE|FOR|FOREACH|WHILE|LOOP|EXCEPTION)\b/i;
  let rest = statement;
  while (control.test(rest)) {
    const inner = rest.replace(/^[\s\S]*?\b(?:BEGIN|THEN|ELSE|LOOP)\b\s*/i, '');
    if (inner === rest) return rest;
    rest = inner;
  }
  return rest;
}

/** A foreign key makes a trigger on the table that it refers to. */
function referencedBy(statement: string): readonly Lock[] {
  return [...statement.matchAll(/\bREFERENCES\s+([\w."]+)/gi)].map(([, relation = '']) => ({
    relation,
    kind: 'table',
    mode: 'SHARE ROW EXCLUSIVE',
    work: 'catalog',
  }));
}

function alteration(relation: string, actions: string): Lock {
  const lock = (mode: LockMode, work: Work): Lock => ({ relation, kind: 'table', mode, work });
  if (/\bVALIDATE\s+CONSTRAINT\b|\bATTACH\s+PARTITION\b/i.test(actions))
    return lock('SHARE UPDATE EXCLUSIVE', 'scan');
  if (/^\s*(?:RE)?SET\s*\(/i.test(actions)) return lock('SHARE UPDATE EXCLUSIVE', 'catalog');
  if (
    /\bALTER\s+(?:COLUMN\s+)?[\w"]+\s+(?:SET\s+DATA\s+)?TYPE\b|\bGENERATED\b|\bSET\s+(?:UN)?LOGGED\b/i.test(
      actions,
    )
  )
    return lock('ACCESS EXCLUSIVE', 'rewrite');
  if (
    /\bDEFAULT\s+[\w.]*(?:random|new_id|nextval|clock_timestamp|gen_\w+)\w*\s*\(/i.test(actions) &&
    /\bADD\b/i.test(actions)
  )
    return lock('ACCESS EXCLUSIVE', 'rewrite');
  if (/\bADD\s+(?:CONSTRAINT\s+[\w"]+\s+)?(?:PRIMARY\s+KEY|UNIQUE|EXCLUDE)\b/i.test(actions))
    return lock('ACCESS EXCLUSIVE', 'index');
  if (
    /\b(?:CHECK|FOREIGN\s+KEY|REFERENCES)\b|\bSET\s+NOT\s+NULL\b/i.test(actions) &&
    !/\bNOT\s+VALID\b/i.test(actions)
  )
    return lock('ACCESS EXCLUSIVE', 'scan');
  return lock('ACCESS EXCLUSIVE', 'catalog');
}
