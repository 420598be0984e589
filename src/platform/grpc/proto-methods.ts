import { readdirSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import protobuf from 'protobufjs';
import descriptor from 'protobufjs/ext/descriptor.js';
import protojson from 'protobufjs/ext/protojson.js';

/** One method, with JSON as request and response; field names are those of the .proto file. */
export type MethodType = Readonly<{
  /** `/shop.v1.Inventory/Reserve` */
  path: string;
  isStreaming: boolean;
  /** Throws if the value does not match the request type; `ignoresUnknown` allows unknown fields. */
  encode(request: unknown, options?: Readonly<{ ignoresUnknown?: boolean }>): Buffer;
  decode(bytes: Buffer): unknown;
  /** Unknown fields of a value that may still have placeholders. */
  unknownFields(request: unknown): readonly UnknownField[];
}>;

/** `at` is the path, `lines.0.sku`; `fields` are the fields of the message type. */
export type UnknownField = Readonly<{
  at: string;
  name: string;
  message: string;
  fields: readonly string[];
}>;

/** Described services. */
export type ProtoTypes = Readonly<{
  /** By `shop.v1.Inventory.Reserve`; the method is behind the last dot. */
  method(name: string): MethodType | null;
  methods(): readonly string[];
}>;

/** Loads a .proto file, or all in a folder and its subfolders; imports are relative to it. */
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

/** From server reflection: serialised FileDescriptorProtos. */
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

/** JSON uses the names of the .proto file, not camelCase, because workflow authors read that file. */
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
    unknownFields: (value) => unknownFieldsIn(request, value, []),
  };
}

function unknownFieldsIn(
  type: protobuf.Type,
  json: unknown,
  way: readonly string[],
): readonly UnknownField[] {
  if (hasOwnJsonForm(type) || !isJsonObject(json)) return [];
  return Object.entries(json).flatMap(([key, value]): readonly UnknownField[] => {
    const at = [...way, key];
    const field = Object.hasOwn(type.fields, key) ? type.fields[key] : undefined;
    if (field === undefined)
      return [
        { at: at.join('.'), name: key, message: type.fullName.slice(1), fields: Object.keys(type.fields) },
      ];
    const inner = field.resolvedType;
    if (!(inner instanceof protobuf.Type)) return [];
    if (!field.repeated && !field.map) return unknownFieldsIn(inner, value, at);
    // Elements of a list, values of a map.
    if (typeof value !== 'object' || value === null) return [];
    return Object.entries(value).flatMap(([part, each]) => unknownFieldsIn(inner, each, [...at, part]));
  });
}

function isJsonObject(json: unknown): json is Readonly<Record<string, unknown>> {
  return typeof json === 'object' && json !== null && !Array.isArray(json);
}

/** Types with their own JSON form, such as google.protobuf.Timestamp. */
function hasOwnJsonForm(type: protobuf.Type): boolean {
  return type.fullName.startsWith('.google.protobuf.');
}

/**
 * Adds default values of fields without presence, which are not sent: a zero is an answer like any other number. Types
 * with their own JSON form (google.protobuf.*) are not changed.
 */
function withDefaults(type: protobuf.Type, json: unknown): unknown {
  if (hasOwnJsonForm(type) || !isJsonObject(json)) return json;
  const filled: Record<string, unknown> = { ...json };
  for (const field of type.fieldsArray) {
    const value = json[field.name];
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

/** Undefined if absence has a meaning. */
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
