import { parseArgs } from 'node:util';
import type { ParticipantCommand, ParticipantReply } from './participant/commands.ts';
import type { ParticipantScript } from './participant/script.ts';
import { serveParticipant } from './participant/serve-participant.ts';

/**
 * A participant of sagas in a process of its own, so that it outlives replicas and can be killed itself. Prints one
 * line with its port, takes commands by IPC, and ends with the channel.
 */
const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    script: { type: 'string', default: '{}' },
    'book-file': { type: 'string' },
  },
});
const { 'book-file': bookFile } = values;
const participant = await serveParticipant({
  port: Number(values.port),
  script: JSON.parse(values.script) as ParticipantScript,
  ...(bookFile === undefined ? {} : { bookFile }),
});

process.once('disconnect', () => process.exit(0));
process.on('message', ({ id, ...command }: ParticipantCommand & Readonly<{ id: number }>) => {
  process.send?.({ id, ...obey(command) } satisfies ParticipantReply & Readonly<{ id: number }>);
});
process.stdout.write(`${JSON.stringify({ port: participant.port })}\n`);

function obey(command: ParticipantCommand): ParticipantReply {
  switch (command.command) {
    case 'set_script':
      participant.setScript(command.script);
      return {};
    case 'release':
      participant.release();
      return {};
    case 'effects':
      return { guarded: participant.guarded.effects(), bare: participant.bare.effects() };
    case 'arrivals':
      return { arrivals: participant.arrivals() };
    case 'deliver_again':
      for (const call of participant.arrivals()) participant.guarded.arrive(call, 'do');
      return {};
  }
}
