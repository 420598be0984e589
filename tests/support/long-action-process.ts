import { Pool } from 'pg';
import { sagaGuard } from '../../src/sdk/saga-guard/saga-guard.ts';
import type { GuardRequest } from '../../src/sdk/saga-guard/guard-call.ts';

/** A participant that begins the long action it is given, says so, and never comes to its end. */
const [url, request] = process.argv.slice(2);
const guard = sagaGuard({ pool: new Pool({ connectionString: url }) });
const act = guard.longAction({
  leaseMs: 1500,
  work: async () => {
    process.stdout.write('begun\n');
    await new Promise((resolve) => setTimeout(resolve, 3_600_000));
  },
  effect: () => 'never',
});
await act(JSON.parse(request ?? '') as GuardRequest);
