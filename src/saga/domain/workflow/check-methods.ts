import { parseMethod } from './method.ts';
import { didYouMean } from './read-fields.ts';
import type { Flaw, Mapping, Step, Workflow } from './workflow.ts';

/** `at`: its path in the mapping; `fields`: the fields that the message has. */
type UnknownField = Readonly<{ at: string; name: string; message: string; fields: readonly string[] }>;

/** Steps can call unary methods only. */
export type CallableMethod = Readonly<{
  isStream: boolean;
  /** Fields of a mapping that the request message lacks; references match anything. */
  unknownFields(input: unknown): readonly UnknownField[];
}>;

/** By name. */
export type KnownMethods = ReadonlyMap<string, CallableMethod>;

/** The methods of a service: `any` if it does not list them, or why they are unknown. */
export type CallableMethods = 'any' | KnownMethods | Readonly<{ unknown: string }>;

/** Never rejects. */
export type AskMethods = (service: string) => Promise<CallableMethods>;

export type CheckedMethods = Readonly<{
  flaws: readonly Flaw[];
  /** Services that could not be asked, and why. */
  unchecked: readonly Readonly<{ service: string; reason: string }>[];
}>;

/** Checks that the services have the methods that the steps call. Asks every service once, in parallel. */
export async function checkMethods(askMethods: AskMethods, { steps }: Workflow): Promise<CheckedMethods> {
  // HTTP services do not list their methods.
  const asked = [...new Set(steps.filter(isGrpc).map(({ service }) => service))];
  const known = new Map(
    await Promise.all(asked.map(async (service) => [service, await askMethods(service)] as const)),
  );
  const flaws = steps.flatMap((step) => {
    const methods = known.get(step.service);
    return methods instanceof Map ? flawsOfMethods(step, methods) : [];
  });
  const unchecked = [...known].flatMap(([service, methods]) =>
    typeof methods === 'object' && 'unknown' in methods ? [{ service, reason: methods.unknown }] : [],
  );
  return { flaws, unchecked };
}

function isGrpc({ method }: Step): boolean {
  const parsed = parseMethod(method);
  return parsed.ok && parsed.method.type === 'grpc';
}

function flawsOfMethods(step: Step, methods: KnownMethods): readonly Flaw[] {
  const { undo } = step;
  return [
    ...flawsOfCall(step, methods, { field: 'method', method: step.method, mapping: ['input', step.input] }),
    ...(undo.kind === 'call'
      ? flawsOfCall(step, methods, {
          field: 'compensate',
          method: undo.method,
          mapping: ['compensate_input', step.undoInput],
        })
      : []),
  ];
}

type StepCall = Readonly<{
  field: string;
  method: string;
  /** Null sends the saga's payload, which may have more fields than the message. */
  mapping: readonly [field: string, input: Mapping | null];
}>;

function flawsOfCall(
  { name: step, service }: Step,
  methods: KnownMethods,
  { field, method, mapping: [inputField, input] }: StepCall,
): readonly Flaw[] {
  const known = methods.get(method);
  if (known === undefined) {
    const message = `the service ${service} has no method ${method}${didYouMean(method, methods.keys())}`;
    return [{ step, field, message }];
  }
  if (known.isStream) {
    const message = `the method ${method} of the service ${service} is a stream; steps call unary methods`;
    return [{ step, field, message }];
  }
  if (input === null) return [];
  return known.unknownFields(input).map(({ at, name, message, fields }) => {
    const flaw = `the message ${message} has no field ${name}${didYouMean(name, fields)}`;
    return { step, field: `${inputField}.${at}`, message: flaw };
  });
}
