import { Link } from '@tanstack/react-router';
import { formatCount } from '../../lib/sizes.ts';
import styles from './tab-links.module.css';

export type TabLink = Readonly<{
  to: string;
  search?: Readonly<Record<string, string>>;
  label: string;
  count?: number | null;
  /** Its number key. */
  hint?: string;
  isCurrent: boolean;
}>;

/** Tabs that are links, because each has an address. */
export function TabLinks({ label, tabs }: Readonly<{ label: string; tabs: readonly TabLink[] }>) {
  return (
    <nav aria-label={label} className={styles['tabs']}>
      {tabs.map((tab) => (
        <Link
          key={tab.label}
          to={tab.to}
          search={tab.search ?? {}}
          replace
          className={styles['tab']}
          aria-current={tab.isCurrent ? 'page' : undefined}
          aria-keyshortcuts={tab.hint}
        >
          {tab.label}
          {tab.count == null ? null : <span className={styles['count']}>{formatCount(tab.count)}</span>}
        </Link>
      ))}
    </nav>
  );
}
