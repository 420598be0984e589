import type { Header } from '../../../kernel/broker-record.ts';
import type { Masks } from '../../../kernel/protect/protection.ts';
import type { MessageBody } from '../../stored-message.ts';
import type { ComparedVersion } from '../read-versions.ts';

/** Whether the record has protected parts. */
export function isCovered({ key, value, headers }: MessageBody, masks: Masks): boolean {
  return (
    (key !== null && masks.key(key) !== key) ||
    (value !== null && masks.value(value) !== value) ||
    headers.some((header) => {
      const shown = masks.header(nameOf(header), header.value);
      return shown === undefined || shown.value !== header.value;
    })
  );
}

/**
 * A version as it is compared, with its protected parts covered. A covered part has no hash either: whoever can guess
 * what it says could test the guess.
 */
export function coverCompared(version: ComparedVersion, masks: Masks): ComparedVersion {
  if (masks.isEmpty) return version;
  const { key, keySha256, value, valueSha256, headers } = version;
  const [shownKey, shownValue] = [
    key === null ? null : masks.key(key),
    value === null ? null : masks.value(value),
  ];
  return {
    ...version,
    key: shownKey,
    keySha256: key !== null && shownKey === key ? keySha256 : null,
    value: shownValue,
    valueSha256: value !== null && shownValue === value ? valueSha256 : null,
    headers: headers === null ? null : headers.flatMap((header) => coverHeader(header, masks)),
  };
}

function coverHeader(header: Header, masks: Masks): readonly Header[] {
  const shown = masks.header(nameOf(header), header.value);
  return shown === undefined ? [] : [{ ...header, value: shown.value }];
}

function nameOf({ key }: Header): string {
  return key.toString('utf8');
}
