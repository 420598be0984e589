import { readdirSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import protobuf from 'protobufjs';
import descriptor from 'protobufjs/ext/descriptor.js';
import protojson from 'protobufjs/ext/protojson.js';

/** How one method is called: JSON in, JSON out, by the names that the .proto file gives to the fields. */
export type MethodType = Readonly<{
  /** `/shop.v1.Inventory/Reserve` */
  path: string;
  isStreaming: boolean;
  /** Throws where the value does not fit the request's type. */
  encode(request: unknown): Buffer;
  decode(bytes: Buffer): unknown;
}>;

/** The services that somebody has described. */
export type ProtoTypes = Readonly<{
  /** `shop.v1.Inventory.Reserve`: the method stands behind the last dot. */
  method(name: string): MethodType | null;
  methods(): readonly string[];
}>;

/** Of one file, or of every .proto file in a folder and below it; imports are looked up beside it. */
export function loadProtoFiles(path: string): ProtoTypes {
  const isFolder = statSync(path).isDirectory();
  const base = resolve(isFolder ? path : dirname(path));
  const root = new protobuf.Root();
  root.resolvePath = (_origin, target) => resolve(base, target);
  root.loadSync(isFolder ? protoFilesIn(base) : [resolve(path)], { keepCase: true });
  return typesOf(root);
}

function protoFilesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.proto'))
    .map((name) => join(folder, name))
    .toSorted();
}

/** Of what a server tells about itself: serialised FileDescriptorProtos. */
export function readDescriptors(files: readonly Uint8Array[]): ProtoTypes {
  const set = descriptor.FileDescriptorSet.create({
    file: files.map((bytes) => descriptor.FileDescriptorProto.decode(bytes)),
  });
  const bytes = descriptor.FileDescriptorSet.encode(set).finish();
  return typesOf(protobuf.Root.fromDescriptor(bytes, { keepCase: true }));
}

function typesOf(root: protobuf.Root): ProtoTypes {
  root.resolveAll();
  keepFieldNames(root);
  const services = new Map(servicesIn(root).map((service) => [service.fullName.slice(1), service]));
  return {
    method(name) {
      const dot = name.lastIndexOf('.');
      const service = services.get(name.slice(0, dot));
      const found = service?.methods[name.slice(dot + 1)];
      return service === undefined || found === undefined ? null : methodType(service, found);
    },
    methods: () =>
      [...services.values()].flatMap((service) =>
        service.methodsArray.map(({ name }) => `${service.fullName.slice(1)}.${name}`),
      ),
  };
}

function servicesIn(space: protobuf.NamespaceBase): readonly protobuf.Service[] {
  return space.nestedArray.flatMap((each) => {
    if (each instanceof protobuf.Service) return [each];
    return each instanceof protobuf.Namespace ? servicesIn(each) : [];
  });
}

/** JSON has the names of the .proto file, not their camel-case forms: a workflow is written with the file in view. */
function keepFieldNames(space: protobuf.NamespaceBase): void {
  for (const each of space.nestedArray) {
    if (each instanceof protobuf.Type)
      for (const field of each.fieldsArray) (field as { jsonName: string }).jsonName = field.name;
    if (each instanceof protobuf.Namespace) keepFieldNames(each);
  }
}

function methodType(service: protobuf.Service, method: protobuf.Method): MethodType {
  const { resolvedRequestType: request, resolvedResponseType: response } = method;
  if (request === null || response === null) throw new Error(`${method.fullName} has no known types`);
  return {
    path: `/${service.fullName.slice(1)}/${method.name}`,
    isStreaming: method.requestStream === true || method.responseStream === true,
    encode: (value) => Buffer.from(request.encode(protojson.fromJson(request, value)).finish()),
    decode: (bytes) => protojson.toJson(response, response.decode(bytes)) as unknown,
  };
}
