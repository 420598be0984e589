/** How keys are written in the code: camelCase, and with the unit as suffix where a file says it in the value. */
import type { Secret } from './layers/secret.ts';

declare const isDuration: unique symbol;

/** Milliseconds; its key ends with `Ms`. */
export type Duration = number & Readonly<{ [isDuration]: true }>;

type Camel<K> = K extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<Camel<Tail>>}` : K;

type CamelKey<K, V> = V extends Duration ? `${Camel<K> & string}Ms` : Camel<K>;

type Kept = string | number | boolean | null | undefined | Secret | ((...given: never[]) => unknown);

/** The value of a schema under the keys of the code: `conn_max_lifetime` is `connMaxLifetimeMs`. */
export type InCode<T> = unknown extends T
  ? T
  : T extends Duration
    ? number
    : T extends Kept
      ? T
      : T extends readonly (infer Item)[]
        ? readonly InCode<Item>[]
        : {
            readonly [K in keyof T as CamelKey<K, NonNullable<T[K]>>]-?: object extends Pick<T, K>
              ? string extends K
                ? InCode<T[K]>
                : InCode<T[K]> | undefined
              : InCode<T[K]>;
          };

export const camel = (key: string): string =>
  key.replaceAll(/_([a-z\d])/g, (_, letter: string) => letter.toUpperCase());
