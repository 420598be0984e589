import { fingerprintVersion, type FingerprintBasis } from '../kernel/fingerprint/fingerprint.ts';
import type { Queryable } from '../platform/postgres/database.ts';
import { sql } from '../platform/postgres/sql.ts';

/**
 * Stores what fingerprints were made of. The rows are sorted, so that two writers with the same new causes do not
 * deadlock. The triggers add a row without a basis for a fingerprint that is not known yet.
 */
export async function storeBases(db: Queryable, found: ReadonlyMap<string, FingerprintBasis>): Promise<void> {
  if (found.size === 0) return;
  const bases = [...found.values()];
  await db.query(sql`
    INSERT INTO dlq.fingerprints AS f (fingerprint, version, class, template, frame)
    SELECT n.fingerprint, ${fingerprintVersion}::int, n.class, n.template, n.frame
    FROM unnest(${[...found.keys()]}::text[], ${bases.map((basis) => basis.class)}::text[],
                ${bases.map(({ template }) => template)}::text[], ${bases.map(({ frame }) => frame)}::text[])
         AS n (fingerprint, class, template, frame)
    ORDER BY n.fingerprint
    ON CONFLICT (fingerprint) DO UPDATE
    SET version = EXCLUDED.version, class = EXCLUDED.class, template = EXCLUDED.template, frame = EXCLUDED.frame
    WHERE f.template IS NULL`);
}
