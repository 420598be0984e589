import { statSync } from 'node:fs';
import type { Config } from '../../../config/config.ts';
import { ok, skipped, warning, type Finding } from '../finding.ts';

/** Others: nothing; the group: read at most. */
const tooWide = 0o037;

/** Secret files that others on the machine can read. */
export function examineSecretFiles({
  secretFiles,
  protect,
}: Pick<Config, 'secretFiles' | 'protect'>): Finding {
  const { masterKey } = protect.encrypt;
  const keys = masterKey === null ? [] : [masterKey.in === 'file' ? masterKey.file : masterKey.tokenFile];
  const modes = [...secretFiles, ...keys].flatMap((file) => {
    const mode = modeOf(file);
    return mode === undefined ? [] : [{ file, mode }];
  });
  if (modes.length === 0) return skipped('secret_files', 'none used');
  const wide = modes.filter(({ mode }) => (mode & tooWide) !== 0);
  if (wide.length === 0) return ok('secret_files', `${modes.length}, mode 0640 or stricter`);
  return warning(
    'secret_files',
    wide.map(({ file, mode }) => `${file} has mode 0${mode.toString(8)}`).join(', '),
    'set mode 0640 or stricter (Kubernetes: defaultMode; Vault agent: agent-inject-perms)',
  );
}

function modeOf(file: string): number | undefined {
  try {
    return statSync(file).mode & 0o777;
  } catch {
    return undefined;
  }
}
