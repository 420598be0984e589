import type { BrokerRecord, Header, PartitionRef } from '../../kernel/broker-record.ts';
import type { Masks, Protection } from '../../kernel/protect/protection.ts';
import type { DeadLetter, RemovablePart } from '../domain/dead-letter.ts';
import { recordSha256 } from '../domain/record-sha256.ts';
import { isJsonForPostgres } from './decoding/json-view.ts';
import { stripFailureHeaders } from './decoding/strip-failure-headers.ts';

/** Of the rules with `drop_at_ingest`. */
export type RemovalRules = Pick<Protection, 'of'>;

type Decode = (record: BrokerRecord, source: PartitionRef) => DeadLetter;

/**
 * Removes what the rules with `drop_at_ingest` protect, before anything of a dead letter is stored. It is done right after
 * decoding, so that no statement, row or error of the database has it. What cannot be understood is removed as a whole,
 * as it is covered elsewhere: a value that is no JSON where a rule names fields. The fingerprint is of the error as it was
 * read, and the hash of the record too: so messages are grouped, and recognised when they come back, as without rules.
 */
export function removeAtIngest(rules: RemovalRules, decode: Decode): Decode {
  return (record, source) => {
    const letter = decode(record, source);
    const masks = rules.of('topics', [letter.originalTopic, source.topic]);
    return masks.isEmpty ? letter : removeParts(letter, masks);
  };
}

function removeParts(letter: DeadLetter, masks: Masks): DeadLetter {
  const { record, fingerprintBasis: basis } = letter;
  const key = record.key === null ? null : masks.key(record.key);
  const value = record.value === null ? null : masks.value(record.value);
  const headers = record.headers.map((header) => removeFromHeader(header, masks));
  const published = new Set(stripFailureHeaders(record.headers, letter.dialect));
  const changedHeaders = record.headers.filter((header, i) => header !== headers[i]);
  const error = {
    errorMessage: masks.text(letter.errorMessage),
    errorClass: masks.text(letter.errorClass),
    errorStack: masks.text(letter.errorStack),
  };
  const changed: Readonly<Record<RemovablePart, boolean>> = {
    key: key !== record.key,
    value: value !== record.value,
    headers: changedHeaders.some((header) => published.has(header)),
    error:
      error.errorMessage !== letter.errorMessage ||
      error.errorClass !== letter.errorClass ||
      error.errorStack !== letter.errorStack ||
      changedHeaders.some((header) => !published.has(header)),
  };
  const parts = (Object.keys(changed) as RemovablePart[]).filter((part) => changed[part]);
  if (parts.length === 0) return letter;
  return {
    ...letter,
    ...error,
    record: { ...record, key, value, headers: headers.filter((header) => header !== null) },
    isJson: changed.value ? value !== null && isJsonForPostgres(value) : letter.isJson,
    fingerprintBasis:
      basis === null
        ? null
        : {
            class: masks.text(basis.class),
            template: masks.text(basis.template),
            frame: masks.text(basis.frame),
          },
    removed: { parts, sha256: recordSha256(record.key, record.value) },
  };
}

/** An unchanged header is the same object; null is left out. */
function removeFromHeader(header: Header, masks: Masks): Header | null {
  const shown = masks.header(header.key.toString('utf8'), header.value);
  if (shown === undefined) return null;
  return shown.value === header.value ? header : { ...header, value: shown.value };
}
