import { mkdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { generatedFiles } from './generated-files.ts';

/** `npm run observability`: writes the rules of deploy/prometheus and the dashboards of deploy/grafana. */
const root = new URL('../../', import.meta.url);

for (const [path, text] of generatedFiles()) {
  const file = fileURLToPath(new URL(path, root));
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, text);
}
