import { refine, text, type Format } from './format.ts';
import { shapeOf } from './map-format.ts';

const GLOB = /^[A-Za-z\d._*-]{1,249}$/;

/** A topic name in which `*` stands for any characters. What matches everything would read the live topics. */
export const topicGlob = (): Format<string> =>
  text(
    'a topic name in which * stands for any characters, and not * alone',
    (value) => GLOB.test(value) && !/^[*.]+$/.test(value),
  );

/** A topic that records may be written to. Names that begin with __ are those of Kafka itself. */
export const topicName = (): Format<string> =>
  text(
    'a topic name: 1 to 249 letters, digits, dots, hyphens or underscores, not beginning with __',
    (value) => /^[A-Za-z\d._-]{1,249}$/.test(value) && !/^\.{1,2}$|^__/.test(value),
  );

const topicTemplate = (): Format<string> =>
  text(
    'a topic name; * stands for what the * of match caught',
    (value) => GLOB.test(value) && !value.startsWith('__'),
  );

export type OriginalTopicRule = Readonly<{ match: string; topic: string }>;

/**
 * Where a dead letter belongs when its headers do not tell: `{ match: "*.failed", topic: "*" }`, or a plain
 * pair of names. The first `*` of `topic` is what the first `*` of `match` caught, and so on.
 */
export const originalTopicRule = (): Format<OriginalTopicRule> =>
  refine(shapeOf({ match: topicGlob(), topic: topicTemplate() }), ({ match, topic }) =>
    stars(topic) > stars(match) ? 'topic has more * than match catches' : undefined,
  );

const stars = (glob: string): number => glob.split('*').length - 1;
