import { escapeText } from '../../kernel/escape-text.ts';
import type { ApiSession } from '../api/api-session.ts';
import { apiCommand, type AddCommand, type ApiCommand } from '../slice/api-command.ts';
import type { Input } from '../slice/define-command.ts';
import { sagaId, toneOf } from './saga-status.ts';

type Acted = Readonly<{ saga_id: string; status: string; message: string }>;

const exampleId = '1e0b9c5c-6f0e-4b5e-9a53-0c8b7f6f3d11';
const reason: Input = { flags: '--reason <text>', text: 'reason, for the history' };

export const cancel = abort('cancel', 'undo all completed steps; the saga ends as CANCELLED');
export const compensate = abort('compensate', 'undo all completed steps; the saga ends as FAILED');

function abort(name: 'cancel' | 'compensate', description: string): AddCommand {
  return apiCommand<Acted>({
    name,
    description,
    route: `POST /api/v1/sagas/{id}/${name}`,
    inputs: [sagaId, reason],
    examples: [`redrive saga ${name} ${exampleId} --reason 'the customer has called'`],
    print,
  });
}

export const retry = stepAction({
  name: 'retry',
  description: 'retry the step where a saga is stuck, with all its attempts',
});
export const skip = stepAction({ name: 'skip', description: 'continue a stuck saga without the stuck step' });
export const resolve = stepAction({
  name: 'resolve',
  description: 'record the outcome of a stuck step',
  inputs: [
    {
      flags: '--outcome <outcome>',
      text: 'outcome of an action; a resolved undo counts as done',
      choices: ['done', 'not_done'],
    },
  ],
  json: { field: 'output', text: "with --outcome done: the step's output" },
});

function stepAction(action: Pick<ApiCommand<Acted>, 'name' | 'description' | 'inputs' | 'json'>): AddCommand {
  const { name, inputs = [] } = action;
  return apiCommand<Acted>({
    ...action,
    route: `POST /api/v1/sagas/{id}/steps/{step}/${name}`,
    inputs: [sagaId, { flags: '<step>', text: 'step name' }, { ...reason, isRequired: true }, ...inputs],
    examples: [`redrive saga ${name} ${exampleId} charge --reason 'checked the bookings'`],
    print,
  });
}

function print({ saga_id, status, message }: Acted, session: ApiSession): void {
  session.print.line(`${saga_id} ${session.print.paint(toneOf({ status }), escapeText(status))}`);
  session.print.note(escapeText(message));
}
