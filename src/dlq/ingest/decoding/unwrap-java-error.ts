import type { HeaderError } from './header-error.ts';
import { afterLast, rootOfStack } from './java-cause.ts';

/**
 * Kafka's frameworks wrap what failed in exceptions of their own package, whose messages say little ("Converting
 * byte[] to Kafka Connect data failed"). The stack trace ends with the root. Other exceptions are kept as they are.
 */
export function unwrapJavaError(wrapperPackage: string): (error: HeaderError) => HeaderError {
  return (error) => {
    const isWrapped = error.class === undefined || isWrapper(error.class, wrapperPackage);
    if (!isWrapped || error.stack === undefined) return error;
    if (error.class !== undefined && afterLast(error.stack, '\nCaused by: ') === undefined) return error;
    const root = rootOfStack(error.stack);
    if (root?.class === undefined) return error;
    return { message: root.message ?? error.message, class: root.class, stack: error.stack };
  };
}

const SERIALIZATION = 'org.apache.kafka.common.errors.SerializationException';

function isWrapper(className: string, wrapperPackage: string): boolean {
  return className === SERIALIZATION || className.startsWith(wrapperPackage);
}
