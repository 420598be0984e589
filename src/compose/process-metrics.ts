import type { MigrationStatus } from '../platform/postgres/migrate.ts';
import type { Metrics } from '../platform/telemetry/metrics.ts';

/** The version of this process, and, by what it returns, of the schema that it works on. */
export function exportVersions(
  metrics: Metrics,
  { version }: Readonly<{ version: string }>,
): (migrations: readonly MigrationStatus[]) => void {
  metrics
    .gauge({
      name: 'redrive_build_info',
      help: 'Always 1; the labels have the version of Redrive and of Node.js.',
      labelNames: ['version', 'node'],
    })
    .set({ version, node: process.versions.node }, 1);
  const schema = metrics.gauge({
    name: 'schema_version',
    help: 'Number of the last applied migration of a schema, when this process became ready.',
    labelNames: ['schema'],
  });
  return (migrations) => {
    // In ascending order; `unknown` are those of a newer version.
    for (const { slice, number, state } of migrations)
      if (state !== 'pending') schema.set({ schema: slice }, number);
  };
}
