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
    database: { type: 'string', default: '' },
  },
});
const participant = await serveParticipant({
  databaseUrl: values.database,
  port: Number(values.port),
  script: JSON.parse(values.script) as ParticipantScript,
});

process.once('disconnect', () => process.exit(0));
process.on('message', ({ id, ...command }: ParticipantCommand & Readonly<{ id: number }>) => {
  void obey(command).then(
    (reply) => process.send?.({ id, ...reply }),
    (error: unknown) => process.send?.({ id, error: String(error) }),
  );
});
process.stdout.write(`${JSON.stringify({ port: participant.port })}\n`);

async function obey(command: ParticipantCommand): Promise<ParticipantReply> {
  switch (command.command) {
    case 'set_script':
      participant.setScript(command.script);
      return {};
    case 'release':
      participant.release(command.tag);
      return {};
    case 'effects':
      return { effects: await participant.guarded.effects() };
    case 'arrivals':
      return { arrivals: participant.arrivals() };
    case 'deliver_again':
      for (const call of participant.arrivals())
        if (call.isGuarded && !command.except.includes(call.tag))
          await participant.guarded.arrive(call, { do: 'do' });
      return {};
  }
}
