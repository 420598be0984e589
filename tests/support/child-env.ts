/**
 * What a program that a test starts needs of our environment; the settings of the test run stay out. With the cache it
 * does not compile again what another process of the run has compiled.
 */
export const childEnv: Readonly<Record<string, string>> = Object.fromEntries(
  ['PATH', 'NODE_COMPILE_CACHE'].flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value]];
  }),
);
