/** How much of a stack is read. If the frame is deeper, the error is grouped by its class and message. */
const STACK_MAX_LENGTH = 8192;
const LINE_MAX_LENGTH = 1024;

/**
 * The frame of the user's own code nearest to the error, without line numbers and generated names, so that it is the
 * same across builds and restarts: `com.acme.Orders.store` on the JVM and in .NET, `store@orders.ts` in Node and
 * `store@orders.py` in Python. Undefined if there is none.
 */
export function topUserFrame(stack: string): string | undefined {
  return stack.startsWith('Traceback') ? lastPythonFrame(stack) : firstAtFrame(stack);
}

function firstAtFrame(stack: string): string | undefined {
  const limit = Math.min(stack.length, STACK_MAX_LENGTH);
  let start = 0;
  while (start < limit) {
    const newline = stack.indexOf('\n', start);
    const end = newline < 0 ? stack.length : newline;
    const line = stack.slice(start, Math.min(end, start + LINE_MAX_LENGTH)).trim();
    const frame = line.startsWith('at ') ? atFrame(line.slice(3)) : undefined;
    if (frame !== undefined) return frame;
    start = end + 1;
  }
  return undefined;
}

function atFrame(line: string): string | undefined {
  const open = line.indexOf('(');
  if (open < 0) return nodeFrame('', line);
  if (line[open - 1] === ' ')
    return nodeFrame(line.slice(0, open - 1), line.slice(open + 1, line.lastIndexOf(')')));
  return classFrame(line.slice(0, open));
}

/** JVM frames may have a class loader and module: `app//com.acme.Orders.store`, `java.base/java.util.…`. */
function classFrame(qualifiedName: string): string | undefined {
  const bare = qualifiedName.replace(GENERATED, '').replace(NUMBERED, '$');
  const name = bare.slice(bare.lastIndexOf('/') + 1);
  const first = name.indexOf('.');
  const second = name.indexOf('.', first + 1);
  if (LIBRARIES.has(name.slice(0, first)) || LIBRARIES.has(name.slice(0, second))) return undefined;
  return name;
}

/** `Orders$$SpringCGLIB$$0`, `Orders$$Lambda$14/0x0000000800c03000`. */
const GENERATED = /\$\$[^.]*/g;

/** `lambda$store$3`, `Orders$1`. */
const NUMBERED = /\$\d+/g;

/** Packages, by their first one or two names, that are never the user's own. */
const LIBRARIES: ReadonlySet<string> = new Set([
  'java',
  'javax',
  'jakarta',
  'jdk',
  'sun',
  'kotlin',
  'kotlinx',
  'scala',
  'akka',
  'groovy',
  'reactor',
  'rx',
  'com.sun',
  'com.fasterxml',
  'com.zaxxer',
  'com.mysql',
  'io.confluent',
  'io.grpc',
  'io.micrometer',
  'io.micronaut',
  'io.netty',
  'io.opentelemetry',
  'io.quarkus',
  'io.reactivex',
  'io.smallrye',
  'io.vertx',
  'org.apache',
  'org.aspectj',
  'org.hibernate',
  'org.jboss',
  'org.postgresql',
  'org.springframework',
  'System',
  'Microsoft',
  'Confluent',
  'MassTransit',
  'Wolverine',
]);

function nodeFrame(name: string, location: string): string | undefined {
  if (location.startsWith('node:') || location.includes('/node_modules/')) return undefined;
  const file = fileName(location.replace(/:\d+(?::\d+)?$/, ''));
  if (file === '' || file === '<anonymous>' || file === 'native') return undefined;
  return `${name.replace(/^(?:async |new )+/, '').replace(/ \[as [^\]]*\]$/, '')}@${file}`;
}

function fileName(path: string): string {
  return path.slice(Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\')) + 1);
}

/** Python writes the innermost call last. */
function lastPythonFrame(stack: string): string | undefined {
  const tail = stack.slice(-STACK_MAX_LENGTH);
  return tail
    .split('\n')
    .toReversed()
    .map((line) => pythonFrame(line.slice(0, LINE_MAX_LENGTH)))
    .find((frame) => frame !== undefined);
}

function pythonFrame(line: string): string | undefined {
  const call = /^ *File "([^"]+)", line \d+, in (.+)$/.exec(line);
  const path = call?.[1] ?? '';
  if (path === '' || /[\\/](?:site-packages|dist-packages|lib[\\/]python[\d.]*)[\\/]|^</.test(path))
    return undefined;
  return `${call?.[2]?.trim() ?? ''}@${fileName(path)}`;
}
