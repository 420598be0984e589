/** The parts of a failure that differ from one message to the next; the same seed makes the same values. */
export type VariedValues = Readonly<{
  n: () => number;
  uuid: () => string;
  hex: () => string;
  name: () => string;
  email: () => string;
  address: () => string;
  time: () => string;
  duration: () => string;
  line: () => number;
  pick: <T>(...choices: readonly T[]) => T;
}>;

const names = ['ann', 'Bob Lee', 'chloé', 'd-4', 'O`Hara', '山田', 'x_y.z', 'eve (old)'];

export function variedValues(seed: number): VariedValues {
  let state = seed * 2_654_435_761;
  const random = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
  const below = (limit: number): number => Math.floor(random() * limit);
  const digits = (count: number): string =>
    Array.from({ length: count }, () => below(16).toString(16)).join('');
  const pick = <T>(...choices: readonly T[]): T => choices[below(choices.length)] as T;
  const time = (): string => {
    const iso = new Date(1.6e12 + below(2e11)).toISOString();
    return pick(iso, iso.replace('T', ' ').slice(0, 19), iso.slice(0, 19));
  };
  return {
    n: () => below(10 ** (1 + below(9))),
    uuid: () => `${digits(8)}-${digits(4)}-4${digits(3)}-a${digits(3)}-${digits(12)}`,
    hex: () => `0x${digits(8)}`,
    name: () => pick(...names),
    email: () => `${pick('ann', 'bob.lee', 'c+d')}${below(99)}@${pick('shop.example', 'mail.example.org')}`,
    address: () =>
      pick(
        `10.${below(255)}.${below(255)}.${below(255)}:${1024 + below(9999)}`,
        `db-${below(30)}.internal:${5432 + below(9)}`,
        `[2001:db8::${digits(3)}]:${5432 + below(9)}`,
      ),
    time,
    duration: () => pick(`${1 + below(900)}ms`, `${1 + below(90)}s`, `${1 + below(9)}m${below(60)}s`),
    line: () => 1 + below(2000),
    pick,
  };
}
