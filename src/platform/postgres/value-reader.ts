/**
 * How values of a row are parsed. Statements run on connections of the server and, in the client library, on those of a
 * service, which may have configured its driver to parse dates, numbers or JSON differently. So no parsing is left to
 * the driver.
 */
export type ReadText = (text: string) => unknown;

const asIs: ReadText = (text) => text;
const asJson: ReadText = (text) => JSON.parse(text) as unknown;

/** By the OID of the type; a domain is sent as its base type. */
const readers: ReadonlyMap<number, ReadText> = new Map<number, ReadText>([
  [16, (text) => text === 't'], // bool
  [18, asIs], // "char"
  [19, asIs], // name
  [20, BigInt], // int8
  [21, Number], // int2
  [23, Number], // int4
  [25, asIs], // text
  [114, asJson], // json
  [700, Number], // float4
  [701, Number], // float8
  [1043, asIs], // varchar
  [1184, readTimestamp], // timestamptz
  [2249, asIs], // record
  [2278, asIs], // void
  [2950, asIs], // uuid
  [3802, asJson], // jsonb
]);

/** Undefined for types that only the server reads. */
export function readerOf(type: number): ReadText | undefined {
  return readers.get(type);
}

const isoTimestamp =
  /^(\d{4,})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?([+-])(\d\d)(?::(\d\d))?(?::(\d\d))?( BC)?$/;

/**
 * A timestamp in DateStyle ISO, rounded down to the millisecond. As in the driver, `infinity` becomes the number, and a
 * time outside the range of Date an invalid Date.
 */
export function readTimestamp(text: string): Date | number {
  if (text === 'infinity') return Infinity;
  if (text === '-infinity') return -Infinity;
  const parts = isoTimestamp.exec(text);
  if (parts === null) throw new Error(`not a time in the DateStyle ISO: ${text.slice(0, 60)}`);
  const [, year, month, day, hour, minute, second, fraction = '', sign, ...rest] = parts;
  const [aheadHours, aheadMinutes = 0, aheadSeconds = 0, era] = rest;
  const date = new Date(0);
  date.setUTCFullYear(era === undefined ? Number(year) : 1 - Number(year), Number(month) - 1, Number(day));
  date.setUTCHours(Number(hour), Number(minute), Number(second), Number(fraction.padEnd(3, '0').slice(0, 3)));
  const aheadMs = (Number(aheadHours) * 3600 + Number(aheadMinutes) * 60 + Number(aheadSeconds)) * 1000;
  return new Date(date.getTime() - (sign === '-' ? -aheadMs : aheadMs));
}
