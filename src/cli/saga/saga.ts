import type { SliceCommands } from '../slice/add-slice.ts';
import { facets, list, reveal, show } from './browse.ts';
import { addCheckCommand } from './check.ts';
import { cancel, compensate, resolve, retry, skip } from './decide.ts';
import { addProbeCommand } from './probe/probe-command.ts';
import { retryAll } from './retry-all.ts';
import { services } from './services.ts';
import { start } from './start.ts';
import { register, workflows } from './workflows.ts';

export const sagaCommands: SliceCommands = {
  name: 'saga',
  description: 'sagas and workflows: check, register, start, list, retry, compensate',
  examples: [
    'redrive saga check workflows/place-order.yaml',
    'redrive saga list --needs-attention',
    "redrive saga retry 1e0b9c5c-6f0e-4b5e-9a53-0c8b7f6f3d11 charge --reason 'it is back'",
  ],
  groups: {
    Read: [list, facets, show, reveal, workflows, services],
    Change: [register, start, retry, skip, resolve, retryAll, cancel, compensate],
    'Test workflows and services, without a server': [addCheckCommand, addProbeCommand],
  },
};
