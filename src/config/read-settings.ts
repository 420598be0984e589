import type { Problem } from './config-error.ts';
import { parentPath } from './key-path.ts';
import type { AllGiven } from './layers/merge-layers.ts';
import { readValue } from './read-value.ts';
import { schema, type Settings } from './schema.ts';

/** The settings of what the layers say, with defaults for what is missing or wrong; what is wrong joins the problems. */
export function readSettings(tree: unknown, given: AllGiven, problems: Problem[]): Settings {
  const read = readValue(schema, tree, (path) => sourceOf(path, given));
  problems.push(...read.problems);
  return read.value as Settings;
}

/** Of what a problem is about, or of what it stands in. */
function sourceOf(path: string, given: AllGiven): string | undefined {
  const found = given.get(path)?.source;
  const parent = parentPath(path);
  return found !== undefined || parent === path ? found : sourceOf(parent, given);
}
