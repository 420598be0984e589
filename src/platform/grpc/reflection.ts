import protobuf from 'protobufjs';
import type { GrpcChannel } from './grpc-channel.ts';
import { readDescriptors, type ProtoTypes } from './proto-methods.ts';

/** The part of the gRPC reflection protocol that we use; the same in both versions. */
const messages = protobuf.parse(
  `syntax = "proto3";
   message Request { string host = 1; string file_containing_symbol = 4; string list_services = 7; }
   message Files { repeated bytes file_descriptor_proto = 1; }
   message Service { string name = 1; }
   message Services { repeated Service service = 1; }
   message Failure { int32 error_code = 1; string error_message = 2; }
   message Answer { Files files = 4; Services services = 6; Failure failure = 7; }`,
  { keepCase: true },
).root;
const requestType = messages.lookupType('Request');
const answerType = messages.lookupType('Answer');

const versions = ['v1', 'v1alpha'] as const;
/** A person waits for the answer at the command line or at the start. */
const withinMs = 5000;

type Answer = Readonly<{
  files?: Readonly<{ file_descriptor_proto: readonly Uint8Array[] }>;
  services?: Readonly<{ service: readonly Readonly<{ name: string }>[] }>;
  failure?: Readonly<{ error_message: string }>;
}>;

/** Reads the server's services and their message types by reflection. */
export async function askForTypes(channel: GrpcChannel): Promise<ProtoTypes> {
  const { version, names } = await listServices(channel);
  const answers = await ask(
    channel,
    version,
    names.map((name) => ({ file_containing_symbol: name })),
  );
  const files = new Map<string, Uint8Array>();
  for (const { files: found } of answers)
    for (const bytes of found?.file_descriptor_proto ?? [])
      files.set(Buffer.from(bytes).toString('base64'), bytes);
  return readDescriptors([...files.values()]);
}

type Version = (typeof versions)[number];

async function listServices(
  channel: GrpcChannel,
): Promise<Readonly<{ version: Version; names: readonly string[] }>> {
  let refused: unknown;
  for (const version of versions)
    try {
      const [answer] = await ask(channel, version, [{ list_services: '*' }]);
      const names = (answer?.services?.service ?? []).map(({ name }) => name);
      return { version, names: names.filter((name) => !name.startsWith('grpc.reflection.')) };
    } catch (error) {
      refused = error;
    }
  throw refused;
}

async function ask(
  channel: GrpcChannel,
  version: Version,
  requests: readonly Readonly<Record<string, string>>[],
): Promise<readonly Answer[]> {
  const path = `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`;
  const bytes = requests.map((request) =>
    Buffer.from(requestType.encode(requestType.create(request)).finish()),
  );
  const answers = (await channel.exchange(path, bytes, withinMs)).map(
    (answer) => answerType.decode(answer) as unknown as Answer,
  );
  for (const { failure } of answers)
    if (failure) throw new Error(`server reflection failed: ${failure.error_message}`);
  return answers;
}
