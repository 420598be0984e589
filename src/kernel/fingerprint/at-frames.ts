const LINE_MAX_LENGTH = 1024;

/**
 * The first frame of the user's own code in a stack of `at` lines, without line numbers and generated names, so that it
 * is the same across builds and restarts: `com.acme.Orders.store` on the JVM and in .NET, `store@orders.ts` in Node.
 */
export function firstAtFrame(stack: string): string | undefined {
  let start = 0;
  while (start < stack.length) {
    const newline = stack.indexOf('\n', start);
    const end = newline < 0 ? stack.length : newline;
    const line = stack.slice(start, Math.min(end, start + LINE_MAX_LENGTH)).trim();
    // Suppressed exceptions were thrown while the failure was already on its way.
    if (line.startsWith('Suppressed: ')) return undefined;
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
  const readable = COMPILED.reduce(
    (name, [pattern, replacement]) => name.replaceAll(pattern, replacement),
    qualifiedName,
  );
  const name = readable.slice(readable.lastIndexOf('/') + 1);
  const first = name.indexOf('.');
  const second = name.indexOf('.', first + 1);
  if (first < 0 || LIBRARIES.has(name.slice(0, first)) || LIBRARIES.has(name.slice(0, second)))
    return undefined;
  return name;
}

/** Names that compilers and proxies generate, whose numbers change with every build, and the name in the source. */
const COMPILED: readonly (readonly [RegExp, string])[] = [
  // Proxies and lambda classes: `Orders$$SpringCGLIB$$0`, `Orders$$Lambda$14/0x0000000800c03000`.
  [/\$\$[^.]*/g, ''],
  // Lambdas of Java and Scala: `lambda$store$3`, `$anonfun$store$1$adapted`.
  [/(?:lambda|\$anonfun)\$(\w+)\$\d+(?:\$adapted)?/g, '$1'],
  // Coroutines of Kotlin: `Orders$store$2.invokeSuspend`.
  [/\$(\w+)\$\d+\.invokeSuspend$/g, '.$1'],
  // Anonymous classes: `Orders$1`.
  [/\$\d+/g, '$'],
  // Closures, async methods and lambdas of .NET: `<>c__DisplayClass3_0.<Store>b__0`, `<StoreAsync>d__12.MoveNext`.
  [/\.<>c(?:__DisplayClass\w+)?(?=\.)/g, ''],
  [/<+(\w+)>[\w|>]*/g, '$1'],
  [/\.MoveNext$/g, ''],
  // Generic types of .NET: `Repository`1.Save[T]`.
  [/`\d+|\[[^\]]*\]/g, ''],
];

/** Packages, by their first one or two names, that are never the user's own. */
const LIBRARIES: ReadonlySet<string> = new Set(
  [
    'java javax jakarta jdk sun kotlin kotlinx scala akka groovy clojure reactor rx okhttp3 okio retrofit2 feign',
    'com.sun com.fasterxml com.google com.zaxxer com.mysql com.mongodb com.rabbitmq com.amazonaws com.oracle',
    'com.netflix com.github io.confluent io.grpc io.lettuce io.micrometer io.micronaut io.netty io.opentelemetry',
    'io.quarkus io.reactivex io.smallrye io.vertx io.ktor io.r2dbc io.debezium org.apache org.aspectj org.bson',
    'org.eclipse org.elasticsearch org.glassfish org.h2 org.hibernate org.jboss org.jooq org.mariadb org.mybatis',
    'org.postgresql org.slf4j org.springframework org.yaml redis.clients ch.qos software.amazon oracle.jdbc',
    'System Microsoft Windows Confluent MassTransit Wolverine NServiceBus Rebus MediatR Polly Npgsql MySqlConnector',
    'Dapper Newtonsoft StackExchange RabbitMQ MongoDB Grpc Google Azure Amazon Castle Autofac Serilog Hangfire Quartz',
  ].flatMap((line) => line.split(' ')),
);

function nodeFrame(name: string, location: string): string | undefined {
  const place = /^(.*?):\d+(?::\d+)?$/.exec(location.trim())?.[1];
  if (place === undefined || place === '<anonymous>' || NODE_LIBRARY.test(place)) return undefined;
  return `${bareName(name)}@${withoutHash(fileName(place))}`;
}

const NODE_LIBRARY = /^(?:node:|internal\/)|(?:^|[\\/])node_modules[\\/]/;

/** `async Object.store [as handle]` is `store`. */
function bareName(name: string): string {
  const bare = name.replace(/^(?:async |new )+/, '').replace(/ \[as [^\]]*\]$/, '');
  return bare.replace(/^Object\./, '').replace(/^<anonymous>$/, '');
}

function fileName(path: string): string {
  return path.slice(Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\')) + 1);
}

/** Bundlers put a hash of the content into the name: `main.3f2a1b9c.js`, `chunk-5QWHR2XZ.js`. */
function withoutHash(file: string): string {
  return file.replace(/[.-](?=[A-Za-z]*\d)\w{6,}(?=\.[cm]?js$)/, '');
}
