import { useState } from 'react';
import { useText } from '../../components/text/use-text.ts';
import type { SystemConfig } from '../../lib/server-shapes.ts';
import { FactTable, SystemPanel } from './system-panel.tsx';
import styles from './system.module.css';
import { systemTexts } from './texts/system-texts.ts';

const everyMs = 60_000;

export function ConfigPanel() {
  const t = useText(systemTexts);
  const [search, setSearch] = useState('');
  return (
    <SystemPanel<SystemConfig>
      title={t.configuration}
      path="/api/v1/system/config"
      permission="system:status:view"
      isWide
      everyMs={everyMs}
    >
      {({ settings }) => {
        const wanted = search.trim().toLowerCase();
        const found = settings.filter(({ path }) => path.includes(wanted));
        return (
          <>
            <p className={styles['hint']}>{t.configurationHint}</p>
            <label className={styles['search']}>
              {t.search}
              <input
                type="search"
                value={search}
                spellCheck={false}
                onChange={(event) => setSearch(event.target.value)}
              />
            </label>
            {found.length === 0 ? (
              <p role="status">{t.noSetting}</p>
            ) : (
              <FactTable
                label={t.configuration}
                columns={[{ title: t.setting }, { title: t.value }, { title: t.source }]}
                rows={found.map(({ path, value, source }) => [
                  <code key="path">{path}</code>,
                  value === null ? (
                    <span key="value" className={styles['quiet']}>
                      {t.hidden}
                    </span>
                  ) : (
                    <code key="value">{value}</code>
                  ),
                  source ?? (
                    <span key="source" className={styles['quiet']}>
                      {t.isDefault}
                    </span>
                  ),
                ])}
              />
            )}
          </>
        );
      }}
    </SystemPanel>
  );
}
