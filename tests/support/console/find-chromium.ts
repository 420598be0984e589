import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

const names = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome'];

/** `CHROMIUM_BIN`, else an installed Chromium or Chrome; null if there is none. */
export function findChromium(env: NodeJS.ProcessEnv = process.env): string | null {
  const { CHROMIUM_BIN: given, PATH: path = '' } = env;
  if (given !== undefined) return given;
  const candidates = path.split(delimiter).flatMap((folder) => names.map((name) => join(folder, name)));
  return candidates.find(isExecutable) ?? null;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
