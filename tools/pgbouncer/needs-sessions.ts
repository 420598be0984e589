/** Tests that do not run through a pooler in transaction mode, each with the reason. */
export const needsSessions: Readonly<Record<string, string>> = {
  'src/platform/postgres/database.int.test.ts':
    'the database sets extra_float_digits, which a pooled connection overrides only inside of transactions',
  'src/platform/postgres/database-metrics.int.test.ts':
    'it enters as a role of its own, and this pooler enters as the owner for everybody',
  'tests/e2e/database-rights.test.ts':
    'it enters as a role of its own, and this pooler enters as the owner for everybody',
};
