/** Values that a handler may throw or return and that few programs expect, each made anew. */
export const hostileValues: readonly (readonly [name: string, make: () => unknown])[] = [
  ['an object without a prototype', () => Object.create(null)],
  ['an object without a prototype, with fields', () => Object.assign(Object.create(null), { a: 1 })],
  ['a proxy', () => new Proxy({}, {})],
  ['a proxy of an error', () => new Proxy(new Error('behind a proxy'), {})],
  ['a proxy whose every trap throws', () => new Proxy({}, throwingTraps)],
  ['a proxy of an error whose every trap throws', () => new Proxy(new Error('x'), throwingTraps)],
  ['a revoked proxy', () => revoked({})],
  ['a revoked proxy of a function', () => revoked(() => {})],
  ['an object whose toString throws', () => ({ toString: bomb })],
  ['an object whose toJSON throws', () => ({ toJSON: bomb })],
  ['an object whose toJSON returns nothing', () => ({ toJSON: () => undefined })],
  ['an object with a Symbol.toPrimitive that throws', () => ({ [Symbol.toPrimitive]: bomb })],
  [
    'an object with a getter that throws',
    () => Object.defineProperty({}, 'a', { get: bomb, enumerable: true }),
  ],
  ['an error whose message is a getter that throws', () => withGetter('message')],
  ['an error whose stack is a getter that throws', () => withGetter('stack')],
  ['an error whose name is a getter that throws', () => withGetter('name')],
  ['an error whose cause is a getter that throws', () => withGetter('cause')],
  ['an error whose message is a number', () => Object.assign(new Error('x'), { message: 5 })],
  ['an error whose message is a symbol', () => Object.assign(new Error('x'), { message: Symbol('m') })],
  ['an error whose message is an object without a prototype', () => withMessage(Object.create(null))],
  ['an error whose message is a revoked proxy', () => withMessage(revoked({}))],
  ['an error whose stack is a number', () => Object.assign(new Error('x'), { stack: 7 })],
  ['an error whose name is a number', () => Object.assign(new Error('x'), { name: 7 })],
  ['an error without a prototype', () => Object.setPrototypeOf(new Error('x'), null)],
  ['an error that is its own cause', () => itsOwnCause()],
  ['an error with a message of 5 MB', () => new Error('y'.repeat(5_000_000))],
  ['an error with NUL and lone surrogates', () => new Error('a\0b\ud800c')],
  ['an AggregateError that holds itself', () => holdsItself()],
  ['a cyclic object', () => cyclic()],
  ['an object that is deep', () => deep(5000)],
  ['an object with a bigint', () => ({ n: 1n })],
  ['a function', () => function thrown() {}],
  [
    'a function whose name is a getter that throws',
    () => Object.defineProperty(() => {}, 'name', { get: bomb }),
  ],
  ['a class', () => class Thrown extends Map {}],
  ['a symbol', () => Symbol('thrown')],
  ['a bigint', () => 12n],
  ['undefined', () => undefined],
  ['null', () => null],
  ['an empty string', () => ' '],
  ['an array with holes', () => Array.from({ length: 3 }).fill(undefined)],
  ['a buffer', () => Buffer.alloc(100_000)],
];

function bomb(): never {
  throw new Error('a trap');
}

const throwingTraps: ProxyHandler<object> = {
  get: bomb,
  has: bomb,
  getPrototypeOf: bomb,
  ownKeys: bomb,
  getOwnPropertyDescriptor: bomb,
};

function revoked(target: object): object {
  const { proxy, revoke } = Proxy.revocable(target, {});
  revoke();
  return proxy;
}

function withGetter(name: string): Error {
  return Object.defineProperty(new Error('x'), name, { get: bomb });
}

function withMessage(message: unknown): Error {
  return Object.assign(new Error('x'), { message });
}

function itsOwnCause(): Error {
  const error = new Error('x');
  error.cause = error;
  return error;
}

function holdsItself(): AggregateError {
  const error = new AggregateError([]);
  error.errors.push(error, error, error, error);
  return error;
}

function cyclic(): object {
  const object: Record<string, unknown> = {};
  object['self'] = object;
  return object;
}

function deep(levels: number): object {
  let object: object = {};
  for (let level = 0; level < levels; level += 1) object = { object };
  return object;
}
