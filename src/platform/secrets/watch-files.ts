import { watch, type FSWatcher } from 'node:fs';
import { dirname } from 'node:path';

/** How often the caller looks whether or not the file system reported a change. */
const lookEveryMs = 10_000;
/** A change reports several events: a new file, a rename, a removed folder. */
const settleMs = 100;

/**
 * Calls `look` soon after something changes in the folders of these files, and every 10 s. Folders, because agents replace
 * a file, or the link to a whole folder, instead of writing into it. `look` compares contents: events may be missed, and
 * an event need not mean a change.
 */
export function watchFiles(
  files: readonly string[],
  look: () => void,
  everyMs: number = lookEveryMs,
): Readonly<{ close(): void }> {
  const folders = new Set(files.map((file) => dirname(file)));
  const watchers = new Map<string, FSWatcher>();
  let soon: NodeJS.Timeout | undefined;

  const onEvent = (): void => void (soon ??= setTimeout(onSettled, settleMs).unref());
  const onSettled = (): void => {
    soon = undefined;
    look();
  };
  const watchFolders = (): void => {
    for (const folder of folders) {
      if (watchers.has(folder)) continue;
      try {
        const watcher = watch(folder, { persistent: false }, onEvent);
        watchers.set(folder, watcher);
        watcher.on('error', () => {
          watcher.close();
          watchers.delete(folder);
        });
      } catch {
        // The folder is missing, or there are too many watches: the timer looks, and tries again to watch.
      }
    }
  };

  watchFolders();
  const timer = setInterval(() => {
    watchFolders();
    look();
  }, everyMs).unref();
  return {
    close() {
      clearInterval(timer);
      clearTimeout(soon);
      for (const watcher of watchers.values()) watcher.close();
    },
  };
}
