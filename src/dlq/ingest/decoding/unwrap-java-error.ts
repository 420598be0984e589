import type { HeaderError } from './header-error.ts';
import { causesOfStack } from './java-cause.ts';

/**
 * Frameworks wrap what failed in exceptions of their own, whose messages say little ("Converting byte[] to Kafka
 * Connect data failed"). The error is the first one of the stack trace's chain of causes that is no wrapper, else its
 * last one. A class that is no wrapper is kept. `wrappers` are beginnings of class names.
 */
export function unwrapJavaError(...wrappers: readonly string[]): (error: HeaderError) => HeaderError {
  const isWrapper = (className: string): boolean =>
    [...javaWrappers, ...wrappers].some((wrapper) => className.startsWith(wrapper));

  return (error) => {
    if (error.stack === undefined || (error.class !== undefined && !isWrapper(error.class))) return error;
    const causes = causesOfStack(error.stack).filter((cause) => cause.class !== undefined);
    const found = causes.find((cause) => !isWrapper(cause.class ?? '')) ?? causes.at(-1);
    if (found === undefined || found.class === error.class) return error;
    return { message: found.message ?? error.message, class: found.class, stack: error.stack };
  };
}

const javaWrappers = [
  'org.apache.kafka.common.errors.SerializationException',
  'java.util.concurrent.CompletionException',
  'java.util.concurrent.ExecutionException',
  'java.lang.reflect.InvocationTargetException',
];
