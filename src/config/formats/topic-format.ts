import { Type } from 'typebox';

import { text, withRule, type About } from './value.ts';

const GLOB = '^[A-Za-z\\d._*-]{1,249}$';

/** A topic name in which `*` stands for any characters. What matches everything would read the live topics. */
export const topicGlob = (about: About = {}) =>
  text({
    what: 'a topic name in which * stands for any characters, and not * alone',
    pattern: GLOB,
    isValid: (value) => !/^[*.]+$/.test(value),
    ...about,
  });

/** A topic that records may be written to. Names that begin with __ are those of Kafka itself. */
export const topicName = (about: About = {}) =>
  text({
    what: 'a topic name: 1 to 249 letters, digits, dots, hyphens or underscores, not beginning with __',
    pattern: '^(?!\\.{1,2}$|__)[A-Za-z\\d._-]{1,249}$',
    ...about,
  });

const topicTemplate = text({
  what: 'a topic name; * stands for what the * of match caught',
  pattern: `^(?!__)${GLOB.slice(1)}`,
});

/**
 * Where a dead letter belongs when its headers do not tell: `{ match: "*.failed", topic: "*" }`, or a plain
 * pair of names. The first `*` of `topic` is what the first `*` of `match` caught, and so on.
 */
export const originalTopicRule = () =>
  withRule(Type.Object({ match: topicGlob(), topic: topicTemplate }), ({ match, topic }) =>
    stars(topic) > stars(match) ? 'topic has more * than match catches' : undefined,
  );

const stars = (glob: string): number => glob.split('*').length - 1;
