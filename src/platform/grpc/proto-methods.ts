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
  /** Throws where the value does not fit the request's type; with `ignoresUnknown` it may hold more. */
  encode(request: unknown, options?: Readonly<{ ignoresUnknown?: boolean }>): Buffer;
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
    encode(value, { ignoresUnknown = false } = {}) {
      const message = protojson.fromJson(request, value, { ignoreUnknownFields: ignoresUnknown });
      return Buffer.from(request.encode(message).finish());
    },
    decode: (bytes) => withDefaults(response, protojson.toJson(response, response.decode(bytes))),
  };
}

/**
 * A field without presence is not on the wire where it has its default, and a zero is as good an answer as any other
 * number: it is written out. What JSON has a form of its own for (google.protobuf.*) stays as it is.
 */
function withDefaults(type: protobuf.Type, json: unknown): unknown {
  if (type.fullName.startsWith('.google.protobuf.')) return json;
  if (typeof json !== 'object' || json === null || Array.isArray(json)) return json;
  const told = json as Readonly<Record<string, unknown>>;
  const filled: Record<string, unknown> = { ...told };
  for (const field of type.fieldsArray) {
    const value = told[field.name];
    if (value === undefined) {
      const missing = defaultOf(field);
      if (missing !== undefined) filled[field.name] = missing;
    } else if (field.resolvedType instanceof protobuf.Type) {
      const inner = field.resolvedType;
      filled[field.name] = mapParts(field, value, (part) => withDefaults(inner, part));
    }
  }
  return filled;
}

function mapParts(field: protobuf.Field, value: unknown, change: (part: unknown) => unknown): unknown {
  if (field.repeated) return Array.isArray(value) ? value.map(change) : value;
  if (!field.map) return change(value);
  return Object.fromEntries(Object.entries(value as object).map(([key, part]) => [key, change(part)]));
}

/** Undefined where being absent means something. */
function defaultOf(field: protobuf.Field): unknown {
  if (field.map) return {};
  if (field.repeated) return [];
  if (field.hasPresence || field.partOf !== null || field.resolvedType instanceof protobuf.Type)
    return undefined;
  if (field.resolvedType instanceof protobuf.Enum) return field.resolvedType.valuesById[0] ?? 0;
  if (field.type === 'bool') return false;
  if (field.type === 'string' || field.type === 'bytes') return '';
  return field.type.endsWith('64') ? '0' : 0;
}
